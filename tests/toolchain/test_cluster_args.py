"""The inputs of cluster components are those of a stack file."""

from typing import Any

import pytest
from earshot_pulumi import cluster_args

from earshot.placement_registry import PLACEMENTS
from toolchain.cluster_args import CLUSTERS, FILE, source


def test_the_file_is_what_the_models_make_it() -> None:
    assert FILE.read_text() == source()


@pytest.mark.parametrize(("placement", "name"), CLUSTERS.items())
def test_a_cluster_has_the_keys_of_a_stack_file(placement: str, name: str) -> None:
    model = PLACEMENTS[placement].module("earshot.config").MODEL
    args: Any = getattr(cluster_args, name)
    assert set(args.__annotations__) == {*model.model_fields, "policy"} - {"placement"}
    needed = {key for key, it in model.model_fields.items() if it.is_required()}
    assert args.__required_keys__ == needed - {"placement"}

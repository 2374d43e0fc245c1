"""Which cluster a stack on AWS is: a parameter of its own remembers, and attached volumes tell."""

from typing import Any

import pytest
from earshot_pulumi.aws.identity import checked

from earshot.cluster_id import check_cluster_id, of_stack_name
from earshot.errors import EarshotError
from tests.components.aws.registered import INSTANCE, PARAMETER, STACK, VOLUME, Answers, registered
from tests.components.engine_double import Engine
from tests.config.aws_documents import read_aws

A, B = "5L6g3nShT-eMCtK-X86swQ", "7QhzWcGeQ9mTn0UP4nS3Rg"


def made(engine: Engine) -> str:
    """The id in the parameter, which every instance and volume has too."""
    parameter = engine.of(PARAMETER)["mine-cluster-id"]
    assert parameter.inputs["name"] == "/earshot/mine/cluster-id"
    assert "insecureValue" in parameter.request.ignoreChanges, "or every run would make another"
    found = str(parameter.inputs["insecureValue"])
    for it in engine.of(INSTANCE).values():
        assert f"cluster_id={found}\n" in it.inputs["userData"]
    assert {it.inputs["tags"]["earshot:cluster-id"] for it in engine.of(VOLUME).values()} == {found}
    return found


def test_two_stacks_of_one_name_are_two_clusters() -> None:
    first, second = made(registered(read_aws())), made(registered(read_aws()))
    assert check_cluster_id(first) != check_cluster_id(second)


def test_the_stacks_file_says_which() -> None:
    assert made(registered(read_aws(cluster_id=A))) == A


def attached(**tags: str) -> dict[str, dict[str, Any]]:
    own = {"earshot:stack": STACK, **tags}
    return {"vol-0123456789abcdef1": {"state": "in-use", "tags": own}}


def test_what_runs_keeps_its_id_though_the_parameter_is_gone() -> None:
    volumes = attached(**{"earshot:cluster-id": A})
    assert made(registered(read_aws(), Answers(volumes=volumes))) == A


def test_what_an_earlier_release_deployed_keeps_its_id() -> None:
    assert made(registered(read_aws(), Answers(volumes=attached()))) == of_stack_name(STACK)


@pytest.mark.parametrize(("said", "volumes"), [(None, None), (A, None), (None, A), (A, A)])
def test_what_agrees_is_the_clusters_id(said: str | None, volumes: str | None) -> None:
    assert checked(A, said, volumes) == A


@pytest.mark.parametrize(
    ("said", "volumes", "text"),
    [
        (B, None, f"cluster_id: {B}: this stack's cluster is {A}, which is in the data of every"),
        (None, B, f"parameter cluster-id: is {A}, and the volumes at the instances hold data of"),
    ],
)
def test_no_cluster_gets_another_id(said: str | None, volumes: str | None, text: str) -> None:
    with pytest.raises(EarshotError) as caught:
        checked(A, said, volumes)
    assert str(caught.value).startswith(text)

"""Which cluster a stack on AWS is: a parameter of its own remembers, and attached volumes tell."""

from typing import Any

import pytest
from earshot_pulumi.aws.cluster_id import checked

from earshot.errors import EarshotError
from earshot.listeners.cluster_id import check_cluster_id, of_stack_name
from tests.components.aws.registered import (
    INSTANCE,
    PARAMETER,
    STACK,
    VOLUME,
    Answers,
    inputs,
    registered,
)
from tests.config.aws_documents import read_aws

A, B = "5L6g3nShT-eMCtK-X86swQ", "7QhzWcGeQ9mTn0UP4nS3Rg"


def cluster_id(answers: Answers | None = None, **settings: Any) -> str:
    """The id in the parameter of a registered cluster, which all instances and volumes have too."""
    engine = registered(read_aws(**settings), answers)
    parameter = engine.of(PARAMETER)["mine-cluster-id"]
    assert parameter.inputs["name"] == "/earshot/mine/cluster-id"
    assert "insecureValue" in parameter.request.ignoreChanges, "or every run would make another"
    id = str(parameter.inputs["insecureValue"])
    for instance in inputs(engine, INSTANCE).values():
        assert f"cluster_id={id}\n" in instance["userData"]
    volumes = inputs(engine, VOLUME).values()
    assert {volume["tags"]["earshot:cluster-id"] for volume in volumes} == {id}
    return id


def test_two_stacks_of_one_name_are_two_clusters_unless_the_file_has_the_id() -> None:
    first, second = cluster_id(), cluster_id()
    assert check_cluster_id(first) != check_cluster_id(second)
    assert cluster_id(cluster_id=A) == A


@pytest.mark.parametrize(
    ("tags", "id"),
    [({"earshot:cluster-id": A}, A), ({}, of_stack_name(STACK))],
    ids=["the parameter is gone", "of an earlier release"],
)
def test_attached_volumes_keep_their_id(tags: dict[str, str], id: str) -> None:
    volume = {"state": "in-use", "tags": {"earshot:stack": STACK, **tags}}
    assert cluster_id(Answers(volumes={"vol-0123456789abcdef1": volume})) == id


@pytest.mark.parametrize(("setting", "volumes"), [(None, None), (A, None), (None, A), (A, A)])
def test_what_agrees_is_the_clusters_id(setting: str | None, volumes: str | None) -> None:
    assert checked(A, setting, volumes) == A


@pytest.mark.parametrize(("setting", "volumes", "text"), [
    (B, None, f"cluster_id: {B}: this stack's cluster is {A}, which is in the data of every"),
    (None, B,
     f"parameter cluster-id: is {A}, and the volumes attached to the instances have data of"),
])  # fmt: skip
def test_no_cluster_gets_another_id(setting: str | None, volumes: str | None, text: str) -> None:
    with pytest.raises(EarshotError) as caught:
        checked(A, setting, volumes)
    assert str(caught.value).startswith(text)

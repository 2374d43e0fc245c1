"""Volumes of an earlier stack: which may be taken over, and that they stay nobody's resource."""

from typing import Any

import pytest

from earshot.errors import EarshotError
from tests.components.aws import registered as aws
from tests.components.aws.registered import Answers, registered
from tests.config.aws_documents import ZONES, read_aws

KEPT, OTHER = "5L6g3nShT-eMCtK-X86swQ", "7QhzWcGeQ9mTn0UP4nS3Rg"
ONE, TWO = "vol-0123456789abcdef1", "vol-0123456789abcdef2"


def there(id: str, node: int, **changes: Any) -> dict[str, Any]:
    """As AWS describes a volume that stack `mine` has left."""
    tags = {
        "earshot:stack": aws.STACK,
        "earshot:node": str(node),
        "earshot:voters": "1,2,3",
        "earshot:cluster-id": KEPT,
    }
    return {
        "volumeId": id,
        "availabilityZone": ZONES[node - 1],
        "size": 100,
        "encrypted": True,
        "tags": tags | changes.pop("tags", {}),
        **changes,
    }


def test_volumes_are_marked_for_those_who_come_later() -> None:
    engine = registered(read_aws(controllers={"mode": "separate"}))
    for name, id in (("mine-broker-2", "2"), ("mine-controller-10001", "10001")):
        assert engine.of(aws.VOLUME)[name].inputs["tags"] == {
            "Name": name,
            "earshot:stack": aws.STACK,
            "earshot:node": id,
            "earshot:voters": "10001,10002,10003",
            "earshot:cluster-id": engine.of(aws.PARAMETER)["mine-cluster-id"].inputs[
                "insecureValue"
            ],
        }


def test_a_volume_that_is_given_is_attached_and_not_made() -> None:
    volumes = {ONE: there(ONE, 1), TWO: there(TWO, 2, size=200)}
    engine = registered(
        read_aws(volumes={1: ONE, 2: TWO}, cluster_id=KEPT), Answers(volumes=volumes)
    )
    assert list(engine.of(aws.VOLUME)) == ["mine-broker-3"]
    attached = {name: it.inputs["volumeId"] for name, it in engine.of(aws.ATTACHMENT).items()}
    assert attached["mine-broker-1"] == ONE and attached["mine-broker-2"] == TWO
    for id, volume in ((1, ONE), (2, TWO)):
        text = engine.of(aws.INSTANCE)[f"mine-broker-{id}"].inputs["userData"]
        assert volume.replace("-", "") in text


def test_unused_volumes_are_reported(caplog: pytest.LogCaptureFixture) -> None:
    volumes = {ONE: there(ONE, 1), TWO: there(TWO, 2)}
    registered(read_aws(volumes={1: ONE}, cluster_id=KEPT), Answers(volumes=volumes))
    (reported,) = [it.message for it in caplog.records if "attached to nothing" in it.message]
    assert f"volumes of stack mine are attached to nothing, by node: 2: {TWO}. " in reported
    assert f"`volumes: {{2: {TWO}}}` takes the first over" in reported
    caplog.clear()
    registered(read_aws(volumes={1: ONE, 2: TWO}, cluster_id=KEPT), Answers(volumes=volumes))
    assert "attached to nothing" not in caplog.text


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"tags": {"earshot:stack": "other", "earshot:cluster-id": OTHER}},
            f"{ONE} is of stack other, and holds data of cluster {OTHER}; this stack's is {KEPT}. ",
        ),
        (
            {"tags": {"earshot:stack": None}},
            f"{ONE} is of no stack; allowed: volumes of stack mine",
        ),
        ({"tags": {"earshot:node": "2"}}, "holds the data of node 2; allowed: that of node 1"),
        ({"tags": {"earshot:voters": "1"}}, "for a quorum of 1 and would get one of 1,2,3"),
        ({"availabilityZone": ZONES[1]}, f"keep the node there: `pinned: {{1: {ZONES[1]}}}`"),
        ({"size": 99}, "has 99 GiB, and `size_gib` asks for 100; ask for less, or enlarge it"),
        ({"encrypted": False}, "is not encrypted"),
    ],
)
@pytest.mark.parametrize("preview", [False, True])
def test_what_holds_something_else_is_refused_before_anything_is_made(
    changes: dict[str, Any], said: str, preview: bool
) -> None:
    answers = Answers(preview=preview, volumes={ONE: there(ONE, 1, **changes)})
    with pytest.raises(EarshotError) as caught:
        registered(read_aws(volumes={1: ONE}, cluster_id=KEPT), answers)
    text = str(caught.value)
    assert text.startswith(f"stack mine: volumes.1: {ONE} ") and said in text


def test_a_volume_that_is_not_there_is_named() -> None:
    with pytest.raises(EarshotError) as caught:
        registered(
            read_aws(volumes={1: ONE, 2: TWO}, cluster_id=KEPT),
            Answers(volumes={ONE: there(ONE, 2)}),
        )
    text = str(caught.value)
    assert f"  - volumes.2: {TWO} is not in eu-central-1" in text
    assert "  - volumes.1: " in text, "all that is wrong at once"


def test_data_is_taken_over_by_saying_so() -> None:
    """The volumes alone do not decide: another checkout may have a stack of that name."""
    volumes = {ONE: there(ONE, 1)}
    with pytest.raises(EarshotError) as caught:
        registered(read_aws(volumes={1: ONE}), Answers(volumes=volumes))
    assert str(caught.value).endswith(
        f"volumes.1: {ONE} holds data of cluster {KEPT}. A new stack takes it over with "
        f"`cluster_id: {KEPT}`"
    )
    engine = registered(read_aws(volumes={1: ONE}, cluster_id=KEPT), Answers(volumes=volumes))
    assert engine.of(aws.PARAMETER)["mine-cluster-id"].inputs["insecureValue"] == KEPT


def test_idle_volumes_of_another_cluster_are_told_of_with_its_id(
    caplog: pytest.LogCaptureFixture,
) -> None:
    registered(read_aws(), Answers(volumes={ONE: there(ONE, 1)}))
    assert f"`volumes: {{1: {ONE}}}` and `cluster_id: {KEPT}` take the first over" in caplog.text

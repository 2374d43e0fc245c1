"""Volumes of an earlier stack: those that may be taken over, without becoming resources."""

from typing import Any

import pytest
from earshot_pulumi.aws.last_run import LastRun

from earshot.errors import EarshotError
from tests.components.aws import registered as aws
from tests.components.aws.registered import Answers, inputs, registered
from tests.config.aws_documents import ZONES, read_aws

KEPT, OTHER = "5L6g3nShT-eMCtK-X86swQ", "7QhzWcGeQ9mTn0UP4nS3Rg"
ONE, TWO = "vol-0123456789abcdef1", "vol-0123456789abcdef2"


def there(id: str, node: int, **changes: Any) -> dict[str, Any]:
    """AWS's description of a volume from an earlier stack `mine`."""
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
    cluster_id = inputs(engine, aws.PARAMETER)["mine-cluster-id"]["insecureValue"]
    for name, id in (("mine-broker-2", "2"), ("mine-controller-10001", "10001")):
        assert inputs(engine, aws.VOLUME)[name]["tags"] == {
            "Name": name,
            "earshot:stack": aws.STACK,
            "earshot:node": id,
            "earshot:voters": "10001,10002,10003",
            "earshot:cluster-id": cluster_id,
        }


def test_a_volume_that_is_given_is_attached_and_not_made() -> None:
    volumes = {ONE: there(ONE, 1), TWO: there(TWO, 2, size=200)}
    spec = read_aws(volumes={1: ONE, 2: TWO}, cluster_id=KEPT)
    engine = registered(spec, Answers(volumes=volumes))
    assert list(engine.of(aws.VOLUME)) == ["mine-broker-3"]
    for id, volume in ((1, ONE), (2, TWO)):
        assert inputs(engine, aws.ATTACHMENT)[f"mine-broker-{id}"]["volumeId"] == volume
        text = inputs(engine, aws.INSTANCE)[f"mine-broker-{id}"]["userData"]
        assert volume.replace("-", "") in text


def test_unused_volumes_are_reported(caplog: pytest.LogCaptureFixture) -> None:
    volumes = {ONE: there(ONE, 1), TWO: there(TWO, 2)}
    registered(read_aws(volumes={1: ONE}, cluster_id=KEPT), Answers(volumes=volumes))
    (text,) = [it.message for it in caplog.records if "are not attached" in it.message]
    assert f"volumes of stack mine are not attached, by node: 2: {TWO}. " in text
    assert f"`volumes: {{2: {TWO}}}` to use the first one" in text
    caplog.clear()
    registered(read_aws(volumes={1: ONE, 2: TWO}, cluster_id=KEPT), Answers(volumes=volumes))
    assert "are not attached" not in caplog.text
    registered(read_aws(), Answers(volumes={ONE: there(ONE, 1)}))
    assert f"`volumes: {{1: {ONE}}}` and `cluster_id: {KEPT}` to use the first one" in caplog.text


def test_a_volume_in_the_state_is_not_offered_to_be_taken_over(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """An interrupted update has detached it, and this one attaches it again."""
    answers = Answers(volumes={ONE: there(ONE, 1)})
    registered(read_aws(), answers, remembered=LastRun(volumes={"broker-1": ONE}))
    assert "are not attached" not in caplog.text


@pytest.mark.parametrize(("changes", "problem"), [
    ({"tags": {"earshot:stack": "other", "earshot:cluster-id": OTHER}},
     (f"{ONE} is of stack other, and has data of cluster {OTHER}; the cluster of this "
      f"stack is {KEPT}. ")),
    ({"tags": {"earshot:stack": None}},
     f"{ONE} has no tag of a stack; allowed: volumes of stack mine"),
    ({"tags": {"earshot:node": "2"}}, "has the data of node 2; allowed: that of node 1"),
    ({"tags": {"earshot:voters": "1"}}, "for a quorum of 1 and would get one of 1,2,3"),
    ({"availabilityZone": ZONES[1]}, f"keep the node there: `pinned: {{1: {ZONES[1]}}}`"),
    ({"size": 99}, "has 99 GiB, and `size_gib` asks for 100; ask for less, or enlarge it"),
    ({"encrypted": False}, "is not encrypted"),
])  # fmt: skip
@pytest.mark.parametrize("preview", [False, True])
def test_what_holds_something_else_is_refused_before_anything_is_made(
    changes: dict[str, Any], problem: str, preview: bool
) -> None:
    answers = Answers(preview=preview, volumes={ONE: there(ONE, 1, **changes)})
    with pytest.raises(EarshotError) as caught:
        registered(read_aws(volumes={1: ONE}, cluster_id=KEPT), answers)
    text = str(caught.value)
    assert text.startswith(f"stack mine: volumes.1: {ONE} ") and problem in text


def test_all_problems_with_volumes_are_in_one_error() -> None:
    spec = read_aws(volumes={1: ONE, 2: TWO}, cluster_id=KEPT)
    with pytest.raises(EarshotError) as caught:
        registered(spec, Answers(volumes={ONE: there(ONE, 2)}))
    text = str(caught.value)
    assert f"  - volumes.2: {TWO} is not in eu-central-1" in text
    assert "  - volumes.1: " in text


def test_data_is_taken_over_only_with_its_cluster_id() -> None:
    """The volumes alone do not decide: another checkout may have a stack of that name."""
    answers = Answers(volumes={ONE: there(ONE, 1)})
    with pytest.raises(EarshotError) as caught:
        registered(read_aws(volumes={1: ONE}), answers)
    assert str(caught.value).endswith(
        f"volumes.1: {ONE} has data of cluster {KEPT}. A new stack can use it with "
        f"`cluster_id: {KEPT}`"
    )
    engine = registered(read_aws(volumes={1: ONE}, cluster_id=KEPT), answers)
    assert inputs(engine, aws.PARAMETER)["mine-cluster-id"]["insecureValue"] == KEPT

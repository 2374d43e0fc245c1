"""What a stack on AWS may become, given what it was."""

from __future__ import annotations

import json
from typing import Any

import pytest

from components.aws.ground import GroundProvider, Held, problems
from tests.components.aws.registered import GATE, GROUND, INSTANCE, VOLUME, Answers, registered
from tests.spec.aws_documents import ZONES, read_aws

SEPARATE = {"controllers": {"mode": "separate"}}
KEPT = "vol-0123456789abcdef0"


def held(**settings: Any) -> Held:
    return Held.of("mine", read_aws(**settings))


def refusals(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    return list(problems(held(**before), held(**after)))


def refusal(before: dict[str, Any], after: dict[str, Any]) -> str:
    (found,) = refusals(before, after)
    return found


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({}, {}),
        ({}, {"brokers": 5, "heap": "2g", "kafka_version": "4.2.0"}),
        ({"kafka_version": "4.1.1"}, {"kafka_version": "4.1.0"}),
        ({"volumes": {1: KEPT}}, {"volumes": {1: KEPT}}),
        ({"volumes": {1: KEPT}}, {"volumes": {1: "vol-0123456789abcdef1"}}),
        ({}, {"volumes": {1: KEPT}}),
        ({}, {"pinned": {1: ZONES[2], 2: ZONES[1], 3: ZONES[2]}, "volumes": {1: KEPT}}),
    ],
)
def test_what_leaves_data_where_it_is_may_be_done(
    before: dict[str, Any], after: dict[str, Any]
) -> None:
    assert refusals(before, after) == []


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ({}, {"controllers": {"count": 1}}, "the voters 1, 2, 3 and would get 1: "),
        ({}, SEPARATE, "the voters 1, 2, 3 and would get 10001, 10002, 10003: "),
    ],
)
def test_voters_stay(before: dict[str, Any], after: dict[str, Any], said: str) -> None:
    told = refusal(before, after)
    assert said in told and "a static quorum cannot change them" in told
    assert "`controllers.count: 3`" in told and "`make clean STACK=mine`" in told
    assert ("`controllers.mode: combined`" in told) == (after == SEPARATE)


@pytest.mark.parametrize("change", [{"port": 29093}, {"protocol": "SSL"}])
def test_controllers_that_run_do_not_move(change: dict[str, Any]) -> None:
    told = refusal({}, {"controllers": change})
    assert "would move from PLAINTEXT on port 29092 to " in told
    assert "Keep `controllers.port`" in told


def test_data_goes_forward_only() -> None:
    told = refusal({"kafka_version": "4.1.1"}, {"kafka_version": "4.0.1"})
    assert "Kafka 4.0.1 is older than 4.1.1, which has written the data" in told


def test_a_broker_goes_when_the_stacks_file_says_that_it_is_empty() -> None:
    told = refusal({"brokers": 5}, {"brokers": 3})
    assert told.startswith("broker 4, 5 would be removed")
    assert "bin/kafka-reassign-partitions.sh --bootstrap-server HOST:19092 " in told
    assert '--broker-list "1,2,3" --generate' in told
    assert '--describe --broker-list "4,5"' in told
    assert "write `drained: [4, 5]`" in told
    told = refusal({"brokers": 5}, {"brokers": 3, "drained": [5]})
    assert told.startswith("broker 4 would be removed")
    assert "write `drained: [4, 5]`" in told
    assert refusals({"brokers": 5}, {"brokers": 3, "drained": [4, 5]}) == []
    assert refusals({"brokers": 3, "drained": [4, 5]}, {"brokers": 3}) == []


def test_a_node_stays_with_its_volume() -> None:
    two, three = ({"zones": ZONES[:count]} for count in (2, 3))
    told = refusal({"vpc": two}, {"vpc": three})
    assert f"cannot follow: node 3 from {ZONES[0]} to {ZONES[2]}." in told
    assert f"`pinned: {{1: {ZONES[0]}, 2: {ZONES[1]}, 3: {ZONES[0]}}}`" in told
    pins = {1: ZONES[0], 2: ZONES[1], 3: ZONES[0]}
    assert refusals({"vpc": two}, {"vpc": three, "pinned": pins}) == []


def test_a_given_volume_is_not_swapped_for_a_blank_one() -> None:
    told = refusal({"volumes": {2: KEPT}}, {})
    assert f"node 2 has its data on {KEPT}" in told
    assert f"`volumes: {{2: {KEPT}}}`" in told


def test_a_volume_of_its_own_is_not_deleted_for_a_given_one() -> None:
    told = refusal({"data": "delete"}, {"data": "keep", "volumes": {1: KEPT}})
    assert "its own volume would be deleted. Set `data: keep` and apply that first" in told


def test_everything_that_is_wrong_is_told_at_once() -> None:
    after = {"brokers": 1, "kafka_version": "3.9.1"}
    assert len(refusals({"brokers": 4}, after)) == 3


def props(**settings: Any) -> dict[str, Any]:
    """As they come to a provider: every number is a float."""
    return dict(json.loads(json.dumps(held(**settings).to_props()), parse_int=float))


def test_what_was_is_remembered_in_the_resource_itself() -> None:
    provider = GroundProvider()
    settings = {"brokers": 4, "drained": [5], "volumes": {1: KEPT}, **SEPARATE}
    assert Held.from_props(props(**settings)) == held(**settings)
    assert provider.check({}, props(brokers=4)).failures == []
    created = provider.create(props(brokers=4))
    assert provider.check(created.outs or {}, props(brokers=5)).failures == []
    (failure,) = provider.check(created.outs or {}, props(brokers=3)).failures
    assert failure.reason.startswith("\n- broker 4 would be removed")
    updated = provider.update("held", props(brokers=4), props(brokers=3, drained=[4]))
    assert provider.check(updated.outs or {}, props(brokers=3)).failures == []


def test_nothing_that_holds_data_is_touched_before() -> None:
    for answers in (Answers(), Answers(preview=True)):
        engine = registered(read_aws(**SEPARATE), answers)
        ground = engine.one(GROUND)
        assert ground.is_below(engine.one(GATE))
        for kind in (INSTANCE, VOLUME):
            assert len(engine.of(kind)) == 6
            assert all(item.depends_on(ground) for item in engine.of(kind).values())
        assert Held.from_props(ground.inputs) == held(**SEPARATE)

"""What the pack answers for: the gate's inputs, all of them and no others, in this very run."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pulumi
import pytest
from earshot_pulumi.gate import (
    APPROVAL_TYPE,
    GATE_APPROVAL_TYPE,
    GATE_TYPE,
    NOBODY,
    NOT_CHECKED,
    AdvertisedListeners,
    GateApproval,
    _GateApprovalProvider,
    approved,
    digest,
)
from pulumi.output import Unknown

from earshot.placement.local import plan_local
from tests.config.read import read_local
from tests.doubles.pack import Answer, Engine, approving, reported, saying, silent
from tests.policies.calls import UNKNOWN, floats

CHECKED: dict[str, Any] = {
    "placement": "docker",
    "plan": {"nodes": [{"id": 1, "rack": None, "listeners": [{"host": "h", "port": 9092}]}]},
    "addresses": {"1": ["10.0.0.1"]},
    "containers": {"1": {"image": "apache/kafka:4.1.1", "ports": [{"external": 9092}]}},
    "cloud": {"instances": {"1": {"ingress": [], "elastic": []}}},
}
CONTAINER = {"name": "kafka-1", "image": "i", "envs": ["A=b"], "ports": [{"internal": 9092}]}
BROKER = "test:index:Broker"


@pytest.fixture(autouse=True)
def outputs_of_refused_programs() -> Iterator[None]:
    """Python complains of failures that nobody waited for when it finds them: here, not later.

    What other tests have left is not looked through again.
    """
    gc.freeze()
    yield
    gc.collect()


def without_none(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_none(item) for key, item in value.items() if item is not None}
    return [without_none(item) for item in value] if isinstance(value, list) else value


def test_the_digest_survives_the_way_through_the_engine() -> None:
    assert digest(floats(without_none(CHECKED))) == digest(CHECKED)
    assert digest(dict(reversed(CHECKED.items()))) == digest(CHECKED)


@pytest.mark.parametrize(
    "changed",
    [
        {"placement": "local"},
        {"plan": {"nodes": [{"id": 1, "listeners": [{"host": "other", "port": 9092}]}]}},
        {"addresses": {"1": ["10.0.0.2"]}},
        {"containers": {"1": {"image": "apache/kafka:4.1.0", "ports": [{"external": 9092}]}}},
        {"containers": {"1": {"image": "apache/kafka:4.1.1", "ports": [{"external": 9093}]}}},
        {"cloud": {"instances": {"1": {"ingress": [{"cidr": "0.0.0.0/0"}], "elastic": []}}}},
    ],
)
def test_whatever_is_checked_is_part_of_the_digest(changed: dict[str, Any]) -> None:
    assert digest({**CHECKED, **changed}) != digest(CHECKED)


@pytest.mark.parametrize("checked", [NOBODY, "another", "", None])
def test_what_nobody_checked_is_refused(checked: Any) -> None:
    with pytest.raises(pulumi.RunError) as caught:
        approved(checked, "d")
    assert str(caught.value) == NOT_CHECKED


def test_what_was_checked_is_approved() -> None:
    assert approved("d", "d") == "d"


class Broker(pulumi.CustomResource):
    """Stands for all that is not touched without an approval."""

    def __init__(self, approval: pulumi.Input[str], opts: pulumi.ResourceOptions) -> None:
        super().__init__(BROKER, "broker", {"gate": approval}, opts)


def run(
    engine: Engine,
    *,
    containers: Mapping[int, pulumi.Input[Mapping[str, Any]]] | None = None,
    **settings: Any,
) -> Engine:
    """A program with a broker behind its gate."""
    made = plan_local(read_local({"placement": "local", **settings}), Path("/state"))

    def program() -> None:
        gate = AdvertisedListeners("s", made.plan, "local", {1: ("::1",)}, containers=containers)
        Broker(GateApproval("s", gate).approved, pulumi.ResourceOptions(parent=gate))

    pulumi.runtime.test(program)()  # type: ignore[no-untyped-call]
    return engine


@pytest.mark.parametrize("preview", [False, True])
def test_behind_a_gate_that_was_checked_the_broker_is_registered(preview: bool) -> None:
    engine = run(Engine(approving, preview))
    assert engine.types == [GATE_TYPE, APPROVAL_TYPE, GATE_APPROVAL_TYPE, BROKER]
    shown = engine.inputs(GATE_TYPE)
    assert shown.keys() == {"placement", "plan", "addresses", "containers"}
    assert (shown["placement"], shown["addresses"]) == ("local", {"1": ["::1"]})
    known_by = reported(shown)
    assert engine.inputs(APPROVAL_TYPE) == {"digest": known_by, "approved_digest": "nobody"}
    assert engine.inputs(GATE_APPROVAL_TYPE)["digest"] == known_by
    assert engine.inputs(BROKER) == {"gate": known_by}


@pytest.mark.parametrize("preview", [False, True])
@pytest.mark.parametrize(
    "answer",
    [silent, saying("0123456789abcdef"), saying("")],
    ids=["silent", "another digest", "empty"],
)
def test_without_an_answer_for_just_this_gate_nothing_is_registered_behind_it(
    answer: Answer, preview: bool
) -> None:
    engine = Engine(answer, preview)
    with pytest.raises(pulumi.RunError) as caught:
        run(engine)
    assert str(caught.value) == NOT_CHECKED
    assert engine.types == [GATE_TYPE, APPROVAL_TYPE]


def test_the_answer_of_an_earlier_run_does_for_the_same_gate_alone() -> None:
    earlier = saying(reported(run(Engine(approving)).inputs(GATE_TYPE)))
    assert BROKER in run(Engine(earlier)).types
    for changed in ({"brokers": 1}, {"extra": {"num.io.threads": "4"}}):
        engine = Engine(earlier)
        with pytest.raises(pulumi.RunError):
            run(engine, **changed)
        assert engine.types == [GATE_TYPE, APPROVAL_TYPE]


def test_containers_are_checked_alike_as_values_and_as_outputs() -> None:
    now = run(Engine(approving), containers={1: CONTAINER})
    later = run(Engine(approving), containers={1: pulumi.Output.from_input(CONTAINER)})
    none = run(Engine(approving))
    shown = [it.inputs(APPROVAL_TYPE)["digest"] for it in (now, later, none)]
    assert shown[0] == shown[1] == reported(now.inputs(GATE_TYPE))
    assert shown[2] != shown[0]
    assert now.inputs(GATE_TYPE)["containers"] == {"1": floats(CONTAINER)}


def test_what_a_preview_does_not_know_is_left_to_the_update() -> None:
    hidden: Any = {**CONTAINER, "name": Unknown()}  # type: ignore[no-untyped-call]
    engine = run(Engine(silent, preview=True), containers={1: pulumi.Output.from_input(hidden)})
    assert engine.inputs(APPROVAL_TYPE) == {"digest": UNKNOWN, "approved_digest": "nobody"}
    assert engine.inputs(BROKER) == {"gate": UNKNOWN}


OLD = {"digest": "a"}


@pytest.mark.parametrize(
    ("olds", "news", "changes"),
    [
        (OLD, OLD, False),
        (OLD, {"digest": "b"}, True),
        ({}, OLD, True),
        ({"digest": "a", "judged": "a"}, OLD, False),
        (OLD, {"digest": Unknown()}, True),  # type: ignore[no-untyped-call]
    ],
    ids=["same", "another", "without state", "of an earlier release", "unknown"],
)
def test_an_approval_changes_with_what_was_checked(
    olds: dict[str, Any], news: dict[str, Any], changes: bool
) -> None:
    found = _GateApprovalProvider().diff("approved", olds, news)
    assert (found.changes, found.replaces) == (changes, None)


def test_an_approval_keeps_what_it_is_given() -> None:
    provider, news = _GateApprovalProvider(), {"digest": "b"}
    made = provider.create(news)
    assert (made.id, made.outs) == ("approved", news)
    assert provider.update("approved", OLD, news).outs == news
    read = provider.read("approved", OLD)
    assert (read.id, read.outs) == ("approved", OLD)


def test_what_has_no_value_in_a_list_is_left_out_as_the_engine_does() -> None:
    assert digest({"a": [1, None, 2]}) == digest({"a": [1.0, 2]}) == digest({"a": (1, 2)})
    assert digest({"a": [1, 2]}) != digest({"a": [2, 1]})
    assert digest({"a": 1.5}) != digest({"a": 1})
    assert digest({"a": {1: "b"}}) == digest({"a": {"1": "b"}})

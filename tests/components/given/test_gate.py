"""The gate's check, as the engine calls it for each provider instance."""

from __future__ import annotations

from typing import Any

import pytest
from earshot_pulumi.given.gate import judge
from earshot_pulumi.provider.kind import UNKNOWN, InvalidInputs

from earshot.listeners.terms import UnknownHost
from earshot.placement.given import plan_given, read_given

LISTENERS = [
    {"name": "INTERNAL", "port": 19092, "scopes": ["internal"]},
    {"name": "HOST", "port": 9092, "scopes": ["host"]},
]


def inputs(host: Any = "localhost", **changes: Any) -> dict[str, Any]:
    document = {
        "listeners": LISTENERS,
        "nodes": {"7": {"internal": "localhost", "host": host}},
    }
    plan = plan_given(read_given(document, "kafka")).model_dump(mode="json")
    return {"plan": plan, "vantage": "machine", **changes}


def test_names_that_resolve_are_approved() -> None:
    approved = judge(inputs())["approved"]
    assert isinstance(approved, str) and len(approved) == 16
    assert judge(inputs())["approved"] == approved
    assert judge(inputs(names={"timeout": 3}))["approved"] != approved


def test_a_name_that_does_not_resolve_is_refused() -> None:
    with pytest.raises(InvalidInputs) as caught:
        judge(inputs("kafka.nobody.invalid"))
    (reason,) = caught.value.reasons.values()
    assert "kafka.nobody.invalid does not resolve" in reason and "[KL011]" in reason


def test_an_unknown_host_is_neither_approved_nor_refused() -> None:
    assert judge(inputs(UnknownHost("nodes.7.host")))["approved"] is UNKNOWN
    assert judge({"plan": UNKNOWN})["approved"] is UNKNOWN


def test_an_instance_without_a_plan_is_no_gate() -> None:
    assert judge({"version": "1"}) == {"version": "1"}


def test_internal_names_elsewhere_need_evidence() -> None:
    document = {
        "listeners": LISTENERS[:1],
        "nodes": {"7": {"internal": "kafka-7.corp.example.com"}},
    }
    plan = plan_given(read_given(document, "kafka")).model_dump(mode="json")
    with pytest.raises(InvalidInputs) as caught:
        judge({"plan": plan})
    assert "nothing declares the name" in str(caught.value)
    declared = {"internal": "records of the zone corp", "controller": "records of the zone corp"}
    assert judge({"plan": plan, "declared": declared})["approved"]


@pytest.mark.parametrize("vantage", ["network", "vpc"])
def test_a_declared_name_counts_at_every_vantage(vantage: str) -> None:
    document = {"listeners": LISTENERS[:1], "nodes": {"7": {"internal": "kafka-7"}}}
    plan = plan_given(read_given(document, "kafka")).model_dump(mode="json")
    with pytest.raises(InvalidInputs):
        judge({"plan": plan, "vantage": vantage})
    declared = dict.fromkeys(("internal", "controller"), "aliases on the network")
    assert judge({"plan": plan, "vantage": vantage, "declared": declared})["approved"]

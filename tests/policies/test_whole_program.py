"""What the pack says of a program as a whole: brokers without a gate, and causes that repeat."""

from typing import Any

import pulumi
import pytest
from earshot_policies.evaluations import CONTAINER_TYPE
from earshot_pulumi.gate import GATE_TYPE, PROVIDER_TYPE
from pulumi_policy import PolicyResource, PolicyResourceOptions
from pulumi_policy.proxy import unknown_checking_proxy

from tests.policies.calls import Pack
from tests.policies.test_containers import inputs, second

WRONG = {"KAFKA_ADVERTISED_LISTENERS": "PLAINTEXT://0.0.0.0:9092"}


def resource(
    type: str,
    name: str,
    *,
    parent: PolicyResource | None = None,
    parents: str = "",
    props: dict[str, Any] | None = None,
    depends: list[PolicyResource] | None = None,
    by_property: list[PolicyResource] | None = None,
) -> PolicyResource:
    options = PolicyResourceOptions(False, [], None, [], None, [])  # type: ignore[arg-type]
    return PolicyResource(
        type,
        unknown_checking_proxy(props or {}),
        f"urn:pulumi:s::p::{parents}{type}::{name}",
        name,
        options,
        None,
        parent,
        depends or [],
        {"envs": by_property or []},
    )


STACK = resource("pulumi:pulumi:Stack", "p-s")
GATE = resource(PROVIDER_TYPE, "g", parent=STACK, props={"plan": {}})
PLAIN_PROVIDER = resource(PROVIDER_TYPE, "other", parent=STACK, props={"version": "1"})


def ungated(*resources: PolicyResource, parents: str = "") -> list[tuple[str, str]]:
    """The reports about the broker in the container `broker`, which is among ``resources``."""
    pack = Pack()
    pack.analyze(CONTAINER_TYPE, inputs(), name="broker", parents=parents)
    pack.analyze_stack([STACK, *resources])
    return pack.ungated


@pytest.mark.parametrize("near", [[], [PLAIN_PROVIDER]])
def test_a_broker_without_a_gate_is_named(near: list[PolicyResource]) -> None:
    ((urn, text),) = ungated(*near, resource(CONTAINER_TYPE, "broker", parent=STACK, depends=near))
    assert urn.endswith("::broker")
    assert text.startswith("broker broker: no gate checks what it advertises")
    assert "`Listeners`" in text and '"no-gate": "disabled"' in text


def test_a_gate_elsewhere_in_the_program_is_not_the_brokers() -> None:
    assert ungated(GATE, resource(CONTAINER_TYPE, "broker", parent=STACK))


def test_a_broker_made_from_what_a_gate_approved_is_behind_it() -> None:
    volume = resource("docker:index/volume:Volume", "v", parent=STACK, depends=[GATE])
    assert not ungated(GATE, resource(CONTAINER_TYPE, "broker", parent=STACK, by_property=[GATE]))
    assert not ungated(GATE, volume, resource(CONTAINER_TYPE, "broker", depends=[volume]))
    listeners = resource("earshot:index:Listeners", "kafka", parent=STACK)
    below = resource(PROVIDER_TYPE, "kafka-gate", parent=listeners, props={"plan": {}})
    broker = resource(CONTAINER_TYPE, "broker", parent=STACK, by_property=[listeners])
    assert not ungated(listeners, below, broker)


def test_a_stack_with_gate_off_is_told_how_to_switch_it_on() -> None:
    parents = f"{GATE_TYPE}$"
    component = resource(GATE_TYPE, "s", parent=STACK)
    broker = resource(CONTAINER_TYPE, "broker", parent=component, parents=parents)
    ((_, text),) = ungated(component, broker, parents=parents)
    assert "set `gate: required`" in text
    gate = resource(PROVIDER_TYPE, "s", parent=component, props={"plan": {}})
    assert not ungated(component, gate, broker, parents=parents)


def test_what_runs_no_broker_needs_no_gate() -> None:
    pack = Pack()
    pack.analyze(CONTAINER_TYPE, {"name": "web", "image": "nginx"}, name="web")
    pack.analyze_stack([STACK, resource(CONTAINER_TYPE, "web", parent=STACK)])
    assert pack.ungated == []


@pytest.mark.parametrize("preview", [True, False])
def test_a_cause_is_told_once_and_its_other_places_at_the_end(
    monkeypatch: pytest.MonkeyPatch, preview: bool
) -> None:
    monkeypatch.setattr(pulumi.runtime, "is_dry_run", lambda: preview)
    pack = Pack()
    first = pack.analyze(CONTAINER_TYPE, inputs(WRONG), name="one")
    envs = [text.replace("kafka1", "kafka2") for text in inputs(WRONG)["envs"]]
    again = pack.analyze(CONTAINER_TYPE, second(envs=envs), name="two")
    assert "\n  fix: " in first["kl002"][0]
    if preview:
        assert "kl002" not in again
    else:  # an update that goes on after errors must not make this container
        (text,) = again["kl002"]
        assert text.endswith(f"the same as at urn:pulumi:s::p::{CONTAINER_TYPE}::one")
        assert "\n" not in text
    pack.places.clear()
    end = pack.analyze_stack([])
    ((urn, text),) = [item for item in end["repeated"] if "[KL002]" in item[1]]
    assert urn.endswith("::one") and "other resources have the same cause" in text
    assert any("::two" in place for place in pack.places)

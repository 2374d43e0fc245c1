"""Whether a node may be touched: only while all others serve."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from earshot_pulumi.aws import turns
from earshot_pulumi.aws.machines import Machine
from earshot_pulumi.aws.targets import Target
from earshot_pulumi.aws.turns import AwsTurnKind

from earshot.user_data.boot import NodeState
from tests.components.aws.test_readiness_reports import ONE, THREE, TWO, report
from tests.components.called import Called

STACK = "mine"
NODES = (ONE, TWO, THREE)
STARTED = 2000.0


CONFIG = {"aws:profile": "the stack's"}


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """Three nodes that serve; tests remove what they need."""
    world = SimpleNamespace(
        machines={
            f"mine-broker-{it.node}": Machine(it.instance, "", "running", STARTED) for it in NODES
        },
        reports={it.parameter: report(it, booted=2001) for it in NODES},
        requests=0,
    )

    def machines(config: Any, region: str, stack: str) -> dict[str, Machine]:
        assert (config, region, stack) == (CONFIG, "eu-central-1", STACK)
        world.requests += 1
        return dict(world.machines)

    def read(names: Sequence[str]) -> dict[str, str]:
        return {name: world.reports.get(name, "") for name in names}

    monkeypatch.setattr(turns, "machines", machines)
    monkeypatch.setattr(turns, "reader", lambda *_: read)
    return world


def props(data: str, node: int = 1, **changes: Any) -> dict[str, Any]:
    """As a provider receives them: every number is a float. ``data`` is the user data."""
    others = [
        {"node": float(it.node), "name": f"{STACK}-broker-{it.node}", "parameter": it.parameter}
        for it in NODES
        if it.node != node
    ]
    wanted = {"node": float(node), "wanted": [data, "m7g.large", ""], "root_gib": 16.0}
    stack = {"stack": STACK, "region": "eu-central-1", "settings": CONFIG}
    return {**wanted, **stack, "others": others, "granted": None, **changes}


OLD = props("a")
NEW = props("b")


def refusal(olds: dict[str, Any], news: dict[str, Any]) -> str:
    return "".join(Called(AwsTurnKind()).check(olds, news).failures)


def test_a_node_may_be_touched_while_all_others_serve(world: SimpleNamespace) -> None:
    assert refusal(OLD, NEW) == "" and world.requests == 1


@pytest.mark.parametrize(("machine", "text", "reason"), [
    (None, report(THREE), "it has no instance"),
    (Machine("i-3", "", "stopped", STARTED), report(THREE), "its instance i-3 is stopped"),
    (Machine("i-3", "", "running", STARTED, "system status"), report(THREE),
     "EC2 reports its instance i-3 as impaired (system status)"),
    (..., "nothing yet", "i-3 has sent no report; `systemctl start kafka-ready` on it sends one"),
    (..., report(THREE, booted=1000), "the last report is of an earlier boot of i-3"),
    (..., report(THREE, instance="i-0"), "the last report is of another instance, i-0"),
    (..., report(THREE, NodeState.FAILED, detail="no volume"), "failed: no volume"),
    (..., report(THREE, NodeState.STARTING), "starting"),
])  # fmt: skip
def test_while_another_is_down_none_is_touched(
    machine: Any, text: str, reason: str, world: SimpleNamespace
) -> None:
    if machine is None:
        del world.machines["mine-broker-3"]
    elif machine is not ...:
        world.machines["mine-broker-3"] = machine
    world.reports[THREE.parameter] = text
    message = refusal(OLD, NEW)
    assert "node 1 would be restarted while node 3 is down:\n  - node 3: " + reason in message
    assert "`in_turn: false` changes all nodes at once" in message
    assert refusal({}, NEW) == message, "also where an earlier release remembered no turn"


def test_another_root_volume_is_a_change_too(world: SimpleNamespace) -> None:
    del world.machines["mine-broker-3"]
    larger = {**OLD, "root_gib": 32.0}
    assert "while node 3 is down" in refusal(OLD, larger)
    earlier_release = {key: value for key, value in OLD.items() if key != "root_gib"}
    assert refusal(earlier_release, OLD) == ""
    assert not Called(AwsTurnKind()).differs(earlier_release, OLD)
    assert Called(AwsTurnKind()).differs(OLD, larger)


def test_the_node_that_is_down_itself_is_replaced(world: SimpleNamespace) -> None:
    del world.machines["mine-broker-3"]
    assert refusal(props("a", 3), props("b", 3)) == ""


def test_a_node_that_does_not_change_sends_no_request(world: SimpleNamespace) -> None:
    world.machines.clear()
    assert refusal(OLD, OLD) == ""
    assert refusal(OLD, props("b", others=[])) == "", "a new cluster"
    assert world.requests == 0


def test_every_turn_that_is_granted_is_another() -> None:
    provider = Called(AwsTurnKind())
    first = provider.create(NEW).outs or {}
    second = provider.update(first, OLD).outs or {}
    assert first["granted"] and second["granted"] and first["granted"] != second["granted"]
    assert not provider.differs(first, {**NEW, "others": []})
    assert provider.differs(first, OLD)


TARGET = {"group": "arn", "address": "10.0.0.11", "port": 9094.0}


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Calls of the balancer, which serves the target at the first two looks."""
    calls: list[Any] = []

    def still_served(*_: Any) -> list[str]:
        calls.append("look")
        return ["target 10.0.0.11:9094 is healthy"] if calls.count("look") < 3 else []

    monkeypatch.setattr(turns, "POLL", 0.0)
    monkeypatch.setattr(turns, "deregister", lambda *arguments: calls.append(arguments))
    monkeypatch.setattr(turns, "still_served", still_served)
    return calls


def test_a_broker_has_left_the_bootstrap_before_it_stops(calls: list[Any]) -> None:
    provider = Called(AwsTurnKind(), {"settings": CONFIG})
    news = {**NEW, "shared_targets": [TARGET]}
    provider.create(news)
    provider.update(OLD, {**news, "others": []})
    assert calls == [], "a new node, and one of a cluster that is down as a whole"
    assert provider.update(OLD, news).outs["granted"]
    deregistration = (CONFIG, "eu-central-1", [Target("arn", "10.0.0.11", 9094)])
    assert calls == [deregistration, "look", "look", "look"]


def test_a_balancer_that_does_not_let_a_broker_go_is_named(
    calls: list[Any], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(turns, "LEAVING_SECONDS", -1.0)
    provider = Called(AwsTurnKind(), {"settings": CONFIG})
    assert provider.update(OLD, {**NEW, "shared_targets": [TARGET]}).outs["granted"]
    assert calls.count("look") == 1
    assert "target 10.0.0.11:9094 is healthy. The change continues" in capsys.readouterr().out

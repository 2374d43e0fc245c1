"""Whether a node may be touched: only while all others serve."""

from types import SimpleNamespace
from typing import Any

import pytest
from earshot_pulumi.aws import turns
from earshot_pulumi.aws.machines import Machine
from earshot_pulumi.aws.reports import Target
from earshot_pulumi.aws.turns import AwsTurnKind, others_of

from earshot.user_data.boot import NodeState
from tests.components.aws.test_reports import ONE, THREE, TWO, report
from tests.components.called import Called

STACK = "mine"
NAMES = {it.node: (f"broker-{it.node}", it.parameter) for it in (ONE, TWO, THREE)}
STARTED = 2000.0


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """Three nodes that serve; tests take away what they need."""
    made = SimpleNamespace(
        machines={
            f"mine-broker-{it.node}": Machine(
                it.instance, f"mine-broker-{it.node}", "running", STARTED
            )
            for it in (ONE, TWO, THREE)
        },
        reports={it.parameter: report(it, booted=2001) for it in (ONE, TWO, THREE)},
        asked=0,
    )

    def machines(config: Any, region: str, stack: str) -> dict[str, Machine]:
        assert (config, region, stack) == (CONFIG, "eu-central-1", STACK)
        made.asked += 1
        return dict(made.machines)

    monkeypatch.setattr(turns, "machines", machines)
    monkeypatch.setattr(
        turns, "reader", lambda *_: lambda names: {it: made.reports.get(it, "") for it in names}
    )
    return made


CONFIG = {"aws:profile": "the stack's"}


def props(wanted: Any, node: int = 1, **changed: Any) -> dict[str, Any]:
    """As they come to a provider: every number is a float."""
    others = [{**it, "node": float(it["node"])} for it in others_of(STACK, NAMES, node)]
    given = {"node": float(node), "wanted": wanted, "others": others, "granted": None}
    given["root_gib"] = 16.0
    given |= {"stack": STACK, "region": "eu-central-1", "settings": CONFIG}
    return {**given, **changed}


OLD = props(["a", "m7g.large", ""])
NEW = props(["b", "m7g.large", ""])


def refusal(olds: dict[str, Any], news: dict[str, Any]) -> str:
    provider = Called(AwsTurnKind())
    return "".join(provider.check(olds, news).failures)


def test_a_node_may_be_touched_while_all_others_serve(world: SimpleNamespace) -> None:
    assert refusal(OLD, NEW) == "" and world.asked == 1


@pytest.mark.parametrize(
    ("machine", "text", "reason"),
    [
        (None, report(THREE), "it has no instance"),
        (Machine("i-3", "", "stopped", STARTED), report(THREE), "its instance i-3 is stopped"),
        (
            Machine("i-3", "", "running", STARTED, "system status"),
            report(THREE),
            "EC2 calls its instance i-3 impaired (system status)",
        ),
        (..., "nothing yet", "i-3 has not reported; `systemctl start kafka-ready` there makes it"),
        (..., report(THREE, booted=1000), "the last report is of an earlier boot of i-3"),
        (..., report(THREE, instance="i-0"), "the last report is of another instance, i-0"),
        (..., report(THREE, NodeState.FAILED, detail="no volume"), "failed: no volume"),
        (..., report(THREE, NodeState.STARTING), "starting"),
    ],
)
def test_while_another_is_down_none_is_touched(
    machine: Any, text: str, reason: str, world: SimpleNamespace
) -> None:
    if machine is None:
        del world.machines["mine-broker-3"]
    elif machine is not ...:
        world.machines["mine-broker-3"] = machine
    world.reports[THREE.parameter] = text
    found = refusal(OLD, NEW)
    assert "node 1 would be restarted while node 3 is down:\n  - node 3: " + reason in found
    assert "`in_turn: false` changes all nodes at once" in found
    assert refusal({}, NEW) == found, "also where an earlier release remembered no turn"


def test_another_root_volume_is_a_change_too(world: SimpleNamespace) -> None:
    del world.machines["mine-broker-3"]
    other = {**OLD, "root_gib": 32.0}
    assert "while node 3 is down" in refusal(OLD, other)
    of_earlier_release = {key: value for key, value in OLD.items() if key != "root_gib"}
    assert refusal(of_earlier_release, OLD) == ""
    assert not Called(AwsTurnKind()).differs(of_earlier_release, OLD)
    assert Called(AwsTurnKind()).differs(OLD, other)


def test_the_node_that_is_down_itself_is_replaced(world: SimpleNamespace) -> None:
    del world.machines["mine-broker-3"]
    third = ["b", "m7g.large", ""]
    assert refusal(props(["a", "m7g.large", ""], 3), props(third, 3)) == ""


def test_a_node_that_does_not_change_sends_no_request(world: SimpleNamespace) -> None:
    world.machines.clear()
    assert refusal(OLD, OLD) == ""
    assert refusal(OLD, props(["b", "m7g.large", ""], others=[])) == "", "a new cluster"
    assert world.asked == 0


def test_every_turn_that_is_granted_is_another() -> None:
    provider = Called(AwsTurnKind())
    first = provider.create(NEW).outs or {}
    second = provider.update(first, OLD).outs or {}
    assert first["granted"] and second["granted"] and first["granted"] != second["granted"]
    assert not provider.differs(first, {**NEW, "others": []})
    assert provider.differs(first, OLD)


TARGET = {"group": "arn", "address": "10.0.0.11", "port": 9094.0}


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What the balancer was asked, which serves the target at the first two looks."""
    made: list[Any] = []
    states = [["target 10.0.0.11:9094 is healthy"]] * 2 + [[]]
    monkeypatch.setattr(turns, "POLL", 0.0)
    monkeypatch.setattr(turns, "deregister", lambda *given: made.append(given))

    def still_served(*_: Any) -> list[str]:
        made.append("look")
        return states[made.count("look") - 1]

    monkeypatch.setattr(turns, "still_served", still_served)
    return made


def test_a_broker_has_left_the_bootstrap_before_it_stops(asked: list[Any]) -> None:
    provider = Called(AwsTurnKind(), {"settings": CONFIG})
    news = {**NEW, "shared_targets": [TARGET]}
    provider.create(news)
    provider.update(OLD, {**news, "others": []})
    assert asked == [], "a new node, and one of a cluster that is down as a whole"
    assert provider.update(OLD, news).outs["granted"]
    left = (CONFIG, "eu-central-1", [Target("arn", "10.0.0.11", 9094)])
    assert asked == [left, "look", "look", "look"]


def test_a_balancer_that_does_not_let_a_broker_go_is_named(
    asked: list[Any], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(turns, "LEAVING_SECONDS", -1.0)
    provider = Called(AwsTurnKind(), {"settings": CONFIG})
    assert provider.update(OLD, {**NEW, "shared_targets": [TARGET]}).outs["granted"]
    assert asked.count("look") == 1
    assert "target 10.0.0.11:9094 is healthy. The change goes on" in capsys.readouterr().out

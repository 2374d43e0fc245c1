"""When the wait for nodes waits: for the whole always, for one unless the cluster is new."""

from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import partial
from typing import Any

import pytest
from earshot_pulumi.aws import readiness
from earshot_pulumi.aws.machines import Machine
from earshot_pulumi.aws.readiness import AwaitedNode, AwsReadinessKind, wait_for
from earshot_pulumi.aws.targets import Target

from earshot.errors import EarshotError
from earshot.user_data.boot import NodeState
from tests.components.aws.test_readiness_reports import ONE, THREE, TWO, Parameters, report
from tests.components.called import Called


def props(*nodes: AwaitedNode, whole: bool = False, **changes: Any) -> dict[str, Any]:
    """As a provider receives them: a node is a float."""
    return {
        "nodes": [asdict(node) | {"node": float(node.node)} for node in nodes],
        "region": "eu-central-1",
        "deadline": -1.0,
        "whole": whole,
        "in_turn": True,
        **changes,
    }


OLDS: dict[str, Any] = {"nodes": []}
CONFIG = {"aws:profile": "the stack's"}


@pytest.fixture
def states() -> dict[str, str]:
    """The states of instances that do not run, by id."""
    return {}


@pytest.fixture
def parameters(monkeypatch: pytest.MonkeyPatch, states: dict[str, str]) -> dict[str, str]:
    """The parameters in SSM. EC2 has started every instance at 2000, and targets are unhealthy."""
    texts: dict[str, str] = {}

    def service(answer: Any) -> Any:
        def connected(config: Any, region: str, about: Any) -> Any:
            assert (config, region) == (CONFIG, "eu-central-1")
            return answer(about)

        return connected

    def look(ids: Sequence[str]) -> dict[str, Machine]:
        return {id: Machine(id, "", states.get(id, "running"), 2000.0) for id in ids}

    def unhealthy(target: Target) -> str:
        return f"{target.address}:{target.port} is unhealthy"

    answers = {"described": look, "unhealthy": unhealthy, "start": states.pop}
    for name, answer in answers.items():
        monkeypatch.setattr(readiness, name, service(answer))
    monkeypatch.setattr(readiness, "reader", lambda *at: partial(service(Parameters(texts)), *at))
    return texts


@pytest.fixture
def provider(parameters: dict[str, str]) -> Called:
    return Called(AwsReadinessKind(), {"settings": CONFIG})


def test_a_new_node_is_not_waited_for_alone(provider: Called) -> None:
    ready = provider.create(props(ONE))
    assert ready.id == "ready" and ready.outs == props(ONE)


def test_the_whole_is_waited_for(provider: Called, parameters: dict[str, str]) -> None:
    wanted = props(ONE, TWO, whole=True)
    parameters["/p/1"] = report(ONE)
    with pytest.raises(EarshotError, match="node"):
        provider.create(wanted)
    with pytest.raises(EarshotError, match="node"):
        provider.update(OLDS, wanted)
    parameters["/p/2"] = report(TWO)
    assert provider.create(wanted).outs == wanted
    assert provider.update(OLDS, wanted).outs == wanted


def test_the_whole_differs_if_an_instance_was_stopped_and_starts_it(
    provider: Called,
    parameters: dict[str, str],
    states: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(readiness, "wait_for", partial(wait_for, poll=0))
    wanted = props(ONE, TWO, whole=True, deadline=5.0)
    parameters |= {node.parameter: report(node, booted=2001) for node in (ONE, TWO)}
    states["i-2"] = "stopped"
    provider.check(wanted, wanted)
    assert provider.differs(wanted, wanted)
    assert not provider.differs(props(ONE), props(ONE)), "its own change waits for it"
    assert provider.update(wanted, wanted).outs == wanted and states == {}
    assert not provider.differs(wanted, wanted)


@pytest.mark.parametrize("others", [None, NodeState.STARTING, NodeState.FAILED])
def test_a_changed_node_is_waited_for_whatever_the_others_report(
    provider: Called, parameters: dict[str, str], others: NodeState | None
) -> None:
    """Also where their reports are lost, as by other hands or a throttled API."""
    if others is not None:
        parameters |= {node.parameter: report(node, others) for node in (TWO, THREE)}
    with pytest.raises(EarshotError, match=r"has sent no report|does not exist any more"):
        provider.update(OLDS, props(ONE))
    parameters["/p/1"] = report(ONE, booted=1000)
    with pytest.raises(EarshotError, match="of an earlier boot"):
        provider.update(OLDS, props(ONE))
    parameters["/p/1"] = report(ONE, booted=2001)
    assert provider.update(OLDS, props(ONE)).outs == props(ONE)


def test_a_changed_node_and_the_whole_wait_for_their_targets(
    provider: Called, parameters: dict[str, str]
) -> None:
    balanced = replace(ONE, targets=(Target("arn", "10.0.0.11", 9094),))
    parameters["/p/1"] = report(ONE, booted=2001)
    for wanted in (props(balanced), props(balanced, whole=True)):
        with pytest.raises(EarshotError, match=r"10\.0\.0\.11:9094 is unhealthy"):
            provider.update(OLDS, wanted)
    assert provider.create(props(balanced)).outs, "a new cluster has only the wait for the whole"


def test_a_changed_broker_is_in_the_bootstrap_again_before_it_is_waited_for(
    provider: Called, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[Any] = []
    monkeypatch.setattr(readiness, "register", lambda *arguments: calls.append(arguments))
    shared = [{"group": "arn", "address": "10.0.0.11", "port": 9094.0}]
    provider.create(props(ONE, shared_targets=shared))
    assert calls == [], "its attachment registers a new target"
    with pytest.raises(EarshotError, match=r"has sent no report|does not exist any more"):
        provider.update(OLDS, props(ONE, shared_targets=shared))
    assert calls == [(CONFIG, "eu-central-1", [Target("arn", "10.0.0.11", 9094)])]


def test_only_a_cluster_that_is_new_or_down_changes_without_a_wait(provider: Called) -> None:
    """`in_turn` is false until all nodes were in sync once, and where the stack file says so."""
    assert provider.update(OLDS, props(ONE, in_turn=False)).outs
    with pytest.raises(EarshotError):
        provider.update(OLDS, props(ONE, in_turn=False, whole=True))


@pytest.mark.parametrize(
    ("news", "is_changed"),
    [
        (props(ONE), False),
        (props(ONE, deadline=9.0), False),
        (props(ONE, in_turn=False), False),
        (props(TWO), True),
        (props(replace(ONE, hardware="m7g.xlarge")), True),
        (props(replace(ONE, granted="of another change")), True),
        (props(replace(ONE, targets=(Target("arn", "10.0.0.11", 9094),))), True),
        (props(ONE, whole=True), True),
    ],
)
def test_another_node_is_another_wait(
    news: dict[str, Any], is_changed: bool, provider: Called
) -> None:
    assert provider.differs(props(ONE), news) is is_changed
    assert provider.read(news) == news

"""When the wait for nodes waits: for the whole always, for one only where there is a quorum."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from components import owner
from components.aws import readiness
from components.aws.readiness import ReadinessProvider
from earshot.errors import EarshotError
from earshot.user_data.boot import NodeState
from tests.components.aws.test_reports import ONE, THREE, TWO, Parameters, report

VOTERS = ["/p/1", "/p/2", "/p/3"]


def props(*nodes: Any, whole: bool = False, **changed: Any) -> dict[str, Any]:
    shown = [
        {
            "node": float(item.node),
            "parameter": item.parameter,
            "instance": item.instance,
            "user_data": item.user_data,
        }
        for item in nodes
    ]
    return {
        "nodes": shown,
        "voters": VOTERS,
        "region": "eu-central-1",
        "deadline": -1.0,
        "whole": whole,
        **changed,
    }


OLDS: dict[str, Any] = {"nodes": []}


@pytest.fixture
def parameters(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """What can be read of SSM."""
    found: dict[str, str] = {}

    def reader(config: Any, region: str) -> Parameters:
        assert (config, region) == ("the stack's", "eu-central-1")
        return Parameters(found)

    monkeypatch.setattr(readiness, "reader", reader)
    monkeypatch.setattr(owner, "exit_with_parent", lambda: None)
    return found


@pytest.fixture
def provider(parameters: dict[str, str]) -> ReadinessProvider:
    made = ReadinessProvider()
    made.configure(SimpleNamespace(config="the stack's"))
    return made


def test_a_new_node_is_not_waited_for_alone(provider: ReadinessProvider) -> None:
    made = provider.create(props(ONE))
    assert made.id == "ready" and made.outs == props(ONE)


def test_the_whole_is_waited_for(provider: ReadinessProvider, parameters: dict[str, str]) -> None:
    wanted = props(ONE, TWO, whole=True)
    parameters["/p/1"] = report(ONE)
    for step in (
        lambda: provider.create(wanted),
        lambda: provider.update("id", OLDS, wanted),
    ):
        with pytest.raises(EarshotError, match=r"^\n"):
            step()
    parameters["/p/2"] = report(TWO)
    assert provider.create(wanted).outs == wanted
    assert provider.update("id", OLDS, wanted).outs == wanted


def test_a_changed_node_is_waited_for_where_the_others_are_a_quorum(
    provider: ReadinessProvider, parameters: dict[str, str]
) -> None:
    parameters |= {"/p/2": report(TWO, NodeState.STARTING), "/p/3": report(THREE, NodeState.FAILED)}
    assert provider.update("id", OLDS, props(ONE)).outs == props(ONE), "one voter is no quorum"
    parameters["/p/3"] = report(THREE)
    with pytest.raises(EarshotError, match=r"^\n"):
        provider.update("id", OLDS, props(ONE))
    parameters["/p/1"] = report(ONE)
    assert provider.update("id", OLDS, props(ONE)).outs == props(ONE)


@pytest.mark.parametrize(
    ("changed", "again"),
    [
        (props(ONE), False),
        (props(ONE, deadline=9.0), False),
        (props(ONE, voters=[]), False),
        (props(TWO), True),
        (props(ONE, whole=True), True),
    ],
)
def test_another_node_is_another_wait(
    changed: dict[str, Any], again: bool, provider: ReadinessProvider
) -> None:
    assert provider.diff("id", props(ONE), changed).changes is again
    read = provider.read("id", changed)
    assert (read.id, read.outs) == ("id", changed)

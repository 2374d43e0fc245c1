"""Inputs of `Listeners` that no value can mend later."""

from __future__ import annotations

from typing import Any

import pulumi
import pytest
from earshot_pulumi.gate import PROVIDER_TYPE
from earshot_pulumi.given.listeners import Listeners, _check_words
from earshot_pulumi.judge import judge
from earshot_pulumi.provider.kind import InvalidInputs
from pulumi.runtime import mocks

from tests.components.aws.registered import Answers, Engine


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"vantage": "moon"}, "vantage: found moon; allowed: machine, network, vpc, elsewhere"),
        (
            {"nodes": {"1": {"container": {"names": []}}}},
            "nodes.1.container: found with vantage elsewhere; allowed: with vantage network",
        ),
        ({"declared": {"x": "y"}}, "declared: found scope x; allowed: controller, internal"),
    ],
)
def test_each_problem_names_the_component_and_its_input(
    changes: dict[str, Any], message: str
) -> None:
    args: Any = {"nodes": {}, "listeners": [], **changes}
    with pytest.raises(pulumi.RunError) as caught:
        _check_words("kafka", args)
    assert str(caught.value).startswith(f"kafka: {message}")


def judged(**node: Any) -> list[str]:
    """What the gate of one broker in a container shows or refuses, by the first lines."""
    answers = Answers()
    engine = Engine(answers)
    mocks.set_mocks(answers, "program", "stack", False, monitor=engine)
    args: Any = {
        "vantage": "network",
        "listeners": [
            {"name": "INTERNAL", "port": 19092, "scopes": ["internal"]},
            {"name": "HOST", "port": 9092, "scopes": ["host"]},
        ],
        "nodes": {"1": {"internal": "kafka-1", "host": "localhost", **node}},
    }
    pulumi.runtime.test(lambda: Listeners("kafka", args).approved)()  # type: ignore[no-untyped-call]
    lines: list[str] = []
    try:
        judge(engine.one(PROVIDER_TYPE).inputs, lambda text, _: lines.append(text))
    except InvalidInputs as error:
        lines.append(str(error).strip())
    return lines


def test_without_its_container_a_listener_is_unknown_and_the_remedy_names_the_input() -> None:
    (shown,) = [text for text in judged() if "KL006" in text]
    assert "the containers of node 1: not known yet" in shown
    assert "state `nodes.ID.container`" in shown


def test_a_stated_container_is_compared_with_its_listeners() -> None:
    fitting = {"names": ["kafka-1"], "ports": {"9092": 9092}}
    assert all(
        "is taken on its declaration: container" in text for text in judged(container=fitting)
    )
    wrong = {"names": ["kafka-1"], "ports": {"9092": 39092}}
    assert (
        "advertises localhost:9092, and the published port is 39092" in judged(container=wrong)[-1]
    )
    other = judged(container={**fitting, "names": ["other"]})[-1]
    assert "advertises kafka-1:19092, and the container publishes no port for 19092" in other

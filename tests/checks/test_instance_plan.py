"""User data held against the plan that was checked."""

from collections.abc import Mapping

import pytest

from earshot.checks.instances import disagreements
from earshot.listeners.properties import NodeSettings
from earshot.listeners.render import settings
from earshot.sources.user_data import UserDataFile
from tests.user_data.nodes import cluster, node

PLAN = cluster(node(1), node(2))
VALUES = settings(PLAN, node(1))


def reported(changed: Mapping[str, str]) -> list[str]:
    values = {key: value for key, value in {**VALUES, **changed}.items() if value}
    return list(disagreements(PLAN, UserDataFile("f", NodeSettings(values))))


def test_what_is_rendered_agrees_in_any_order() -> None:
    assert reported({}) == []
    turned = ", ".join(reversed(VALUES["advertised.listeners"].split(",")))
    assert reported({"advertised.listeners": turned}) == []


@pytest.mark.parametrize("key", ["listeners", "advertised.listeners"])
@pytest.mark.parametrize("value", ["A://b9.example.com:9092", "A:/x", ""])
def test_other_listeners_are_told_with_both_texts(key: str, value: str) -> None:
    (text,) = reported({key: value})
    assert f"node 1: f has {key}={value or '(nothing)'}," in text
    assert text.endswith(VALUES[key])


def test_a_node_that_the_plan_has_not() -> None:
    assert reported({"node.id": "7"}) == [
        "f sets up node 7, and the plan that was checked has 1, 2"
    ]


def test_a_list_that_cannot_be_read_to_its_end_agrees_with_no_other() -> None:
    text = VALUES["listeners"] + ",X:/x"
    (said,) = reported({"listeners": text})
    assert said == (
        f"node 1: f has listeners={text}, and the plan that was checked {VALUES['listeners']}"
    )

"""User data held against the plan that was judged."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from earshot.listeners.properties import Settings
from earshot.listeners.render import settings
from earshot.rules.instance_plan import disagreements
from earshot.user_data.written import Written
from tests.user_data.nodes import cluster, node

PLAN = cluster(node(1), node(2))
VALUES = settings(PLAN, node(1))


def told(changed: Mapping[str, str]) -> list[str]:
    values = {key: value for key, value in {**VALUES, **changed}.items() if value}
    return list(disagreements(PLAN, Written("f", Settings(values))))


def test_what_is_rendered_agrees_in_any_order() -> None:
    assert told({}) == []
    turned = ", ".join(reversed(VALUES["advertised.listeners"].split(",")))
    assert told({"advertised.listeners": turned}) == []


@pytest.mark.parametrize("key", ["listeners", "advertised.listeners"])
@pytest.mark.parametrize("value", ["A://b9.example.com:9092", "A:/x", ""])
def test_other_listeners_are_told_with_both_texts(key: str, value: str) -> None:
    (text,) = told({key: value})
    assert f"node 1: f has {key}={value or '(nothing)'}," in text
    assert text.endswith(VALUES[key])


def test_a_node_that_the_plan_has_not() -> None:
    assert told({"node.id": "7"}) == ["f sets up node 7, and the plan that was judged has 1, 2"]

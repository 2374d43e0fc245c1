from __future__ import annotations

import pytest
from hypothesis import given, settings

from earshot.facts.cluster import ClusterFacts
from earshot.listeners.model import ClusterPlan
from earshot.listeners.properties import NodeSettings
from earshot.listeners.terms import Role
from earshot.rules.evaluate import evaluate
from earshot.rules.kl001_grammar import READERS, RULE, problems
from earshot.rules.registry import FindingState
from tests.listeners.clusters import plans


@settings(max_examples=40)
@given(plans())
def test_has_nothing_against_a_plan(cluster: ClusterPlan) -> None:
    assert evaluate(ClusterFacts.of(cluster), [RULE]) == ()


def test_names_the_node_by_its_role() -> None:
    values = {"process.roles": "controller", "listeners": "CONTROLLER://c_1:9093"}
    (found,) = evaluate(ClusterFacts(None, {9: NodeSettings(values)}), [RULE])
    assert (found.node, found.role, found.listener) == (9, Role.CONTROLLER, "CONTROLLER")
    assert (found.inputs, found.state) == (("listeners",), FindingState.VIOLATED)


def test_says_the_same_of_every_node_that_has_it() -> None:
    values = {"controller.quorum.voters": "9@c_9:9093"}
    found = evaluate(ClusterFacts(None, {id: NodeSettings(values) for id in (1, 2, 3)}), [RULE])
    assert [item.node for item in found] == [1, 2, 3]


@pytest.mark.parametrize("key", READERS)
def test_an_empty_setting_is_a_problem_of_its_own(key: str) -> None:
    assert [error for _, error in problems(key, "")]


def test_other_settings_are_nobody_s_grammar() -> None:
    assert list(problems("num.partitions", "")) == []

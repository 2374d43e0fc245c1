from __future__ import annotations

import re

import pytest

from earshot.listeners.model import Role
from earshot.listeners.properties import Settings
from earshot.rules import RULES, Facts, Rule, Severity, State
from earshot.rules.registry import holds_for
from tests.rules.examples import HERE, load


@pytest.mark.parametrize(
    ("specifier", "version", "holds"),
    [
        (">=3.9", "3.9.0", True),
        (">=3.9", "3.8.2", False),
        (">=3.9", "3.10.0", True),
        (">=3.9,<4.2", "4.1.1", True),
        (">=3.9,<4.2", "4.2.0", False),
        ("==4.1", "4.1.1", True),
        ("!=4.1", "4.1.1", False),
        (">4.1", "4.1.1", False),
        ("<=4.1", "4.1.1", True),
        (">=4.1.1", "4.1.0", False),
        (">= 4", "4.0.0-rc1", True),
    ],
)
def test_versions(specifier: str, version: str, holds: bool) -> None:
    assert holds_for(specifier, version) is holds


@pytest.mark.parametrize(("specifier", "version"), [("4.1", "4.1.1"), ("~=4", "4.1"), (">=4", "x")])
def test_what_is_no_version_is_refused(specifier: str, version: str) -> None:
    with pytest.raises(ValueError, match="version"):
        holds_for(specifier, version)


def test_ids_are_distinct_and_in_order() -> None:
    ids = [rule.id for rule in RULES]
    assert ids == sorted(set(ids))


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_a_rule_says_all_that_a_finding_needs(rule: Rule) -> None:
    assert re.fullmatch(r"KL\d{3}", rule.id)
    assert rule.title and rule.remedy and not rule.title.endswith(".")
    assert rule.reason.endswith(".") and ". " not in rule.reason, "one sentence"
    assert re.fullmatch(r"https://\S+", rule.source)
    assert holds_for(rule.kafka, "4.1.1")


def test_a_finding_takes_remedy_source_and_severity_from_its_rule() -> None:
    rule = Rule("KL999", "T", "R.", "mend it", "https://example.com", lambda facts: ())
    found = rule.finding("seen", "wanted", node=2, listener="EXTERNAL")
    assert found.line == (
        "broker 2, listener EXTERNAL: seen - expected wanted - mend it [KL999] https://example.com"
    )
    assert str(found) == (
        "broker 2, listener EXTERNAL: seen [KL999]\n"
        "  expected: wanted\n"
        "  to mend it: mend it\n"
        "  source: https://example.com"
    )
    assert (found.severity, found.state) == (Severity.ERROR, State.VIOLATED)
    other = rule.finding("a", "b", severity=Severity.WARNING, remedy="c", role=Role.CONTROLLER)
    assert other.line == "cluster: a - expected b - c [KL999] https://example.com"
    assert other.severity is Severity.WARNING


def test_a_node_gives_a_finding_its_id_and_role() -> None:
    facts, _ = load(HERE / "KL011" / "fail" / "nobody_to_ask.yaml")
    assert facts.plan is not None
    subjects = [RULES[0].finding("", "", node=node).subject for node in facts.plan.nodes]
    assert subjects == ["broker 1", "controller 10001"]


def test_a_version_that_is_none_leaves_no_rule_out() -> None:
    settings = {1: Settings({}, {"kafka_version": "latest"})}
    facts = Facts(None, placement="docker", settings=settings)
    assert facts.kafka_version == "latest"
    assert [rule.silent(facts) for rule in RULES if rule.judges == "settings"] == ["", ""]

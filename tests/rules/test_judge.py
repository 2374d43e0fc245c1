from __future__ import annotations

from dataclasses import replace

import pytest

from earshot.listeners.model import Scope
from earshot.listeners.parse import Settings
from earshot.names.evidence import Evidence, EvidenceKind
from earshot.rules import RULES, Facts, Rule, judge, remarks, unjudged
from tests.rules.examples import HERE, files, load

EMPTY = Facts(plan=None)


def rule(id: str, kafka: str = ">=3.9") -> Rule:
    def check(facts: Facts) -> list[object]:
        return [made.finding("seen", "wanted")]

    made = Rule(id, "T", "R.", "M", "https://example.com", check, kafka=kafka)  # type: ignore[arg-type]
    return made


def test_a_rule_for_other_versions_is_left_out_and_named() -> None:
    facts, _ = load(HERE / "KL011" / "pass" / "every_name_resolves.yaml")
    old, new = rule("KL901", "<4"), rule("KL902", ">=4")
    assert [found.rule for found in judge(facts, [old, new])] == ["KL902"]
    assert unjudged(facts, [old, new]) == ((old, "holds for Kafka <4, and this is 4.1.1"),)


def test_an_unknown_version_is_judged_by_every_rule() -> None:
    facts, _ = load(HERE / "KL011" / "pass" / "every_name_resolves.yaml")
    assert facts.plan is not None
    facts = replace(facts, plan=facts.plan.model_copy(update={"kafka_version": ""}))
    assert unjudged(facts, [rule("KL901", "<4")]) == ()


def test_without_a_plan_its_rules_are_left_out_and_named() -> None:
    rules = [item for item in RULES if item.judges == "plan"]
    assert judge(EMPTY, rules) == ()
    assert unjudged(EMPTY, rules) == tuple(
        (item, "the settings cannot be read as a plan") for item in rules
    )


def test_rules_over_settings_need_settings() -> None:
    item = replace(rule("KL903"), judges="settings")
    assert unjudged(EMPTY, [item]) == ((item, "no node's settings are known"),)
    known = Facts(plan=None, settings={1: Settings({}, {"kafka_version": "4.1.1"})})
    assert known.kafka_version == "4.1.1"
    assert [found.rule for found in judge(known, [item])] == ["KL903"]


@pytest.mark.parametrize(
    "path", files("KL011") + files("KL012"), ids=lambda path: "/".join(path.parts[-3:])
)
def test_judging_twice_says_the_same(path: object) -> None:
    facts, _ = load(path)  # type: ignore[arg-type]
    assert judge(facts) == judge(facts)


def test_remarks_name_what_was_accepted_without_a_lookup() -> None:
    facts, _ = load(HERE / "KL011" / "pass" / "declared_and_waived.yaml")
    declared, waived = remarks(facts)
    assert declared == (
        "listener INTERNAL (scope internal): kafka-1 is taken on its declaration: alias kafka-1 "
        "on network kafka; not looked up: no resolver of scope internal can be asked from here"
    )
    assert waived == (
        "listener PARTNER (scope external): kafka.partner.example is waived: "
        "only the partner's own DNS has it"
    )


def test_live_evidence_needs_no_remark() -> None:
    facts, _ = load(HERE / "KL011" / "pass" / "every_name_resolves.yaml")
    assert remarks(facts) == ()


def test_evidence_is_found_by_listener_scope_and_host() -> None:
    facts, _ = load(HERE / "KL011" / "fail" / "not_looked_up.yaml")
    assert facts.plan is not None
    listener = facts.plan.nodes[0].listeners[0]
    assert facts.evidence_for(listener, Scope.INTERNAL) is None
    shown = Evidence(EvidenceKind.DECLARED, None, "alias")
    facts = replace(facts, evidence={("INTERNAL", Scope.INTERNAL, "localhost"): shown})
    assert facts.evidence_for(listener, Scope.INTERNAL) is shown
    assert facts.evidence_for(listener, Scope.HOST) is None


def test_waivers_have_no_case() -> None:
    facts, _ = load(HERE / "KL011" / "pass" / "declared_and_waived.yaml")
    assert facts.waived("KAFKA.partner.EXAMPLE") == "only the partner's own DNS has it"
    assert facts.waived("kafka-1") == ""

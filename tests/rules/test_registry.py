import re
from typing import Any

import pytest

from earshot.facts.cloud import Instance
from earshot.facts.cluster import ClusterFacts
from earshot.listeners.model import ClusterPlan, Listener, Node
from earshot.listeners.properties import NodeSettings
from earshot.listeners.terms import Role, Scope, UnknownHost
from earshot.names.evidence import Evidence, EvidenceKind
from earshot.names.lookup import Diagnosis, Lookup
from earshot.rules.evaluate import RULES, evaluate, rules_at
from earshot.rules.rule import (
    MAX_TEXT,
    AppliedAt,
    Finding,
    FindingState,
    Rule,
    Severity,
)
from earshot.topology.container import Container
from tests.rules.plan_examples import HERE, load

CALLED_BY_NAME = {"KL002", "KL014", "KL018"}
CALLED_FOR = {
    AppliedAt.FILE: {"deployment", "objections"},
    AppliedAt.PODS: {"deployment", "objections"},
    AppliedAt.REPLICAS: {"deployment"},
    AppliedAt.CONTAINER: {"deployment", "plan"},
    AppliedAt.CONTAINERS: {"deployment"},
    AppliedAt.INSTANCE: {"plan"},
    AppliedAt.INSTANCES: {"plan", "instances"},
}
"""What a rule needs to be applied by the checks of a place that name no rule."""


@pytest.mark.parametrize(
    ("version", "applies"),
    [("3.9.0", True), ("3.8.2", False), ("3.10.0", True), ("4.0.0-rc1", True), ("4", True)],
)
def test_a_rule_applies_from_its_oldest_release_on(version: str, applies: bool) -> None:
    rule = Rule("KL999", "T", "R.", "fix it", "https://example.com", needs="settings")
    facts = ClusterFacts(None, settings={1: NodeSettings({}, {"kafka_version": version})})
    assert rule.applies(facts) is applies


def test_ids_are_distinct_and_in_order() -> None:
    ids = [rule.id for rule in RULES]
    assert ids == sorted(set(ids))


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_a_rule_says_all_that_a_finding_needs(rule: Rule) -> None:
    assert re.fullmatch(r"KL\d{3}", rule.id)
    assert rule.title and rule.remedy and not rule.title.endswith(".")
    assert rule.reason.endswith(".") and ". " not in rule.reason, "one sentence"
    assert re.fullmatch(r"https://\S+", rule.source)
    assert re.fullmatch(r">=\d+\.\d+", rule.kafka)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_a_rule_is_called_wherever_it_is_applied(rule: Rule) -> None:
    needs = "objections" if rule.objections is not None else rule.needs
    for place in rule.applied_at:
        if rule.id not in CALLED_BY_NAME and place in CALLED_FOR:
            assert needs in CALLED_FOR[place], f"no check applies {rule.id} to {place}"


def test_the_texts_of_a_finding_have_a_limit() -> None:
    long = "a" * 5_000_000
    finding = RULES[0].finding(f"has the host {long}", long, long)
    texts = (finding.observed, finding.expected, finding.remedy)
    assert [len(text) for text in texts] == [MAX_TEXT] * 3
    assert finding.observed.endswith("... (5,000,013 characters)")


def test_a_finding_takes_remedy_source_and_severity_from_its_rule() -> None:
    rule = Rule("KL999", "T", "R.", "fix it", "https://example.com", lambda facts: ())
    finding = rule.finding("seen", "wanted", node=2, listener="EXTERNAL")
    assert finding.line == (
        "broker 2, listener EXTERNAL: seen - expected wanted - fix it [KL999] https://example.com"
    )
    assert str(finding) == (
        "broker 2, listener EXTERNAL: seen [KL999]\n"
        "  expected: wanted\n"
        "  fix: fix it\n"
        "  source: https://example.com"
    )
    assert (finding.severity, finding.state) == (Severity.ERROR, FindingState.VIOLATED)
    other = rule.finding("a", "b", severity=Severity.WARNING, remedy="c", role=Role.CONTROLLER)
    assert other.line == "cluster: a - expected b - c [KL999] https://example.com"
    assert other.severity is Severity.WARNING


def test_a_node_gives_a_finding_its_id_and_role() -> None:
    facts, _ = load(HERE / "KL011" / "fail" / "nobody_to_ask.yaml")
    assert facts.plan is not None
    subjects = [RULES[0].finding("", "", node=node).subject for node in facts.plan.nodes]
    assert subjects == ["broker 1", "controller 10001"]


def test_a_version_that_is_none_leaves_no_rule_out() -> None:
    settings = {1: NodeSettings({}, {"kafka_version": "latest"})}
    facts = ClusterFacts(None, placement="docker", settings=settings)
    assert facts.kafka_version == "latest"
    assert all(rule.applies(facts) for rule in RULES if rule.needs == "settings")


def test_every_rule_that_has_examples_is_registered_and_the_other_way_round() -> None:
    assert [rule.id for rule in RULES] == sorted(path.name for path in HERE.glob("KL*"))
    assert len(RULES) >= 13


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_rules_about_hosts_say_which_are_not_known_yet(rule: Rule) -> None:
    listener = Listener(
        name="OUT",
        scopes=(Scope.EXTERNAL,),
        bind_port=9092,
        host=UnknownHost(what="Elastic IP"),
        port=9092,
    )
    plan = ClusterPlan(
        kafka_version="4.1.1",
        inter_broker="OUT",
        controller="CONTROLLER",
        replication_factor=1,
        min_insync_replicas=1,
        nodes=(Node(id=1, roles=(Role.BROKER,), listeners=(listener,)),),
    )
    findings = evaluate(ClusterFacts.of(plan, "aws"), [rule])
    about_hosts = rule.reads_hosts and rule.applies(ClusterFacts.of(plan, "aws"))
    unknown = [finding.observed for finding in findings if finding.state is FindingState.UNKNOWN]
    assert ("hosts are not known yet: broker 1 OUT" in unknown) is about_hosts


INSTANCES = {1: Instance()}


@pytest.mark.parametrize(
    ("needs", "given", "applies"),
    [
        ("plan", {}, False),
        ("settings", {}, False),
        ("settings", {"settings": {1: NodeSettings({})}}, True),
        ("containers", {}, False),
        ("containers", {"containers": {1: Container("k")}}, True),
        ("instances", {}, False),
        ("instances", {"instances": INSTANCES}, False),
        ("instances", {"plan": True}, False),
        ("instances", {"plan": True, "instances": INSTANCES}, True),
        ("certificates", {"plan": True}, False),
        ("certificates", {"plan": True, "certificates": {1: None}}, True),
        ("plan", {"plan": True}, True),
    ],
)
def test_a_rule_applies_where_what_it_is_about_is_there(
    needs: Any, given: dict[str, Any], applies: bool
) -> None:
    plan = load(HERE / "KL011" / "fail" / "nobody_to_ask.yaml")[0].plan
    rule = Rule("KL999", "T", "R.", "m", "https://example.com", lambda facts: (), needs=needs)
    facts = ClusterFacts(**{**given, "plan": plan if "plan" in given else None})
    assert rule.applies(facts) is applies


def test_the_first_of_many_hosts_that_are_not_known_yet_are_named() -> None:
    def reported(count: int, only: str | None = None) -> list[str]:
        listener = Listener(
            name="OUT",
            scopes=(Scope.EXTERNAL,),
            bind_port=9092,
            host=UnknownHost(what="Elastic IP"),
            port=9092,
        )
        plan = ClusterPlan(
            kafka_version="4.1.1",
            inter_broker="OUT",
            controller="CONTROLLER",
            replication_factor=1,
            min_insync_replicas=1,
            nodes=tuple(
                Node(id=id, roles=(Role.BROKER,), listeners=(listener,)) for id in range(count)
            ),
        )
        return [finding.observed for finding in RULES[0].pending(ClusterFacts(plan), only)]

    three = "hosts are not known yet: broker 0 OUT, broker 1 OUT, broker 2 OUT"
    assert reported(3) == reported(3, "OUT") == [three]
    assert reported(5) == [f"{three} and 2 more"]
    assert reported(3, "IN") == []
    assert list(RULES[0].pending(ClusterFacts(None))) == []


def test_a_finding_holds_all_that_it_is_given() -> None:
    rule = Rule("KL999", "T", "R.", "m", "https://example.com", lambda facts: ())
    finding = rule.finding(
        "seen",
        "wanted",
        node=7,
        listener="OUT",
        scope=Scope.EXTERNAL,
        host="h",
        evidence=Evidence(
            EvidenceKind.NONE, Lookup("h", "192.0.2.53", Diagnosis.TIMEOUT), "it timed out"
        ),
        state=FindingState.UNKNOWN,
        inputs=("a",),
        role=Role.CONTROLLER,
        container="k",
    )
    assert finding == Finding(
        rule="KL999",
        severity=Severity.ERROR,
        observed="seen",
        expected="wanted",
        remedy="m",
        source="https://example.com",
        state=FindingState.UNKNOWN,
        node=7,
        role=Role.CONTROLLER,
        listener="OUT",
        scope=Scope.EXTERNAL,
        host="h",
        resolver="192.0.2.53",
        diagnosis=Diagnosis.TIMEOUT,
        inputs=("a",),
        container="k",
    )
    assert finding.subject == "container k, controller 7, listener OUT (scope external)"


def test_every_rule_is_applied_somewhere_and_pods_are_files() -> None:
    for rule in RULES:
        assert rule.applied_at, rule.id
        assert AppliedAt.FILE in rule.applied_at or AppliedAt.PODS not in rule.applied_at, rule.id
        assert rule.check or rule.objections, rule.id
    assert {rule.id for rule in RULES} >= {
        rule.id for place in AppliedAt for rule in rules_at(place)
    }
    weights = [rule.weight for rule in RULES if rule.objections]
    assert len(set(weights)) == len(weights), "of all advice one is the heaviest"

from collections.abc import Mapping
from dataclasses import replace

import pytest

from earshot.facts.cluster import ClusterFacts
from earshot.listeners.properties import NodeSettings
from earshot.listeners.terms import Scope
from earshot.names.evidence import Evidence, EvidenceKey, EvidenceKind
from earshot.names.lookup import Diagnosis, Lookup
from earshot.placement.plan import NodeNames, plan
from earshot.rules.evaluate import RULES, evaluate, remarks
from earshot.rules.rule import Finding, Rule
from earshot.topology.container import Container
from tests.config.read import read_local
from tests.rules.plan_examples import HERE, files, load

EMPTY = ClusterFacts(plan=None)


def rule(id: str, oldest: tuple[int, int] = (3, 9)) -> Rule:
    def check(facts: ClusterFacts) -> list[object]:
        return [made.finding("seen", "wanted")]

    made = Rule(id, "T", "R.", "M", "https://example.com", check, oldest=oldest)  # type: ignore[arg-type]
    return made


def test_a_rule_for_other_versions_is_left_out_and_named() -> None:
    facts, _ = load(HERE / "KL011" / "pass" / "every_name_resolves.yaml")
    old, new = rule("KL901", (5, 0)), rule("KL902", (4, 0))
    assert [found.rule for found in evaluate(facts, [old, new])] == ["KL902"]
    assert [item.applies(facts) for item in (old, new)] == [False, True]


def test_every_rule_applies_to_an_unknown_version() -> None:
    facts, _ = load(HERE / "KL011" / "pass" / "every_name_resolves.yaml")
    assert facts.plan is not None
    facts = replace(facts, plan=facts.plan.model_copy(update={"kafka_version": ""}))
    assert rule("KL901", (5, 0)).applies(facts)


def test_without_a_plan_its_rules_are_left_out() -> None:
    rules = [item for item in RULES if item.needs == "plan"]
    assert evaluate(EMPTY, rules) == ()
    assert not any(item.applies(EMPTY) for item in rules)


def test_rules_over_settings_need_settings() -> None:
    item = replace(rule("KL903"), needs="settings")
    assert evaluate(EMPTY, [item]) == ()
    known = ClusterFacts(plan=None, settings={1: NodeSettings({}, {"kafka_version": "4.1.1"})})
    assert known.kafka_version == "4.1.1"
    assert [found.rule for found in evaluate(known, [item])] == ["KL903"]


@pytest.mark.parametrize(
    "path", files("KL011") + files("KL012"), ids=lambda path: "/".join(path.parts[-3:])
)
def test_checking_twice_says_the_same(path: object) -> None:
    facts, _ = load(path)  # type: ignore[arg-type]
    assert evaluate(facts) == evaluate(facts)


@pytest.mark.parametrize(("example", "expected"), [
    ("declared_and_waived",
     [("listener INTERNAL (scope internal): kafka-1 is taken on its declaration: alias kafka-1 "
       "on network kafka; not looked up: no resolver of scope internal can be asked from here"),
      ("listener PARTNER (scope external): kafka.partner.example is waived: "
       "only the partner's own DNS has it")]),
    ("known_to_the_second_network",
     [("listener EXTERNAL (scope external): kafka-1.vpn.example is not resolved by every DNS "
       "server: 192.0.2.53: nxdomain")]),
    ("every_name_resolves", []),
])  # fmt: skip
def test_remarks_name_what_was_not_resolved_by_every_server(
    example: str, expected: list[str]
) -> None:
    facts, _ = load(HERE / "KL011" / "pass" / f"{example}.yaml")
    assert list(remarks(facts)) == expected


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
    assert facts.waiver_reason("KAFKA.partner.EXAMPLE") == "only the partner's own DNS has it"
    assert facts.waiver_reason("kafka-1") == ""


def checked(
    evidence: Mapping[tuple[Scope, int], Evidence], waived: Mapping[str, str]
) -> tuple[str, ...]:
    """The remarks on brokers 1 to 3, whose names are k-1 to k-3 for everybody."""
    listeners = [
        {"name": "INTERNAL", "port": 19092, "scopes": "internal"},
        {"name": "EXTERNAL", "port": 9092, "scopes": "external"},
    ]
    spec = read_local({"placement": "local", "brokers": 3, "listeners": listeners})
    names = {
        id: NodeNames(hosts=dict.fromkeys(Scope, f"k-{id}"), machine=f"m{id}")
        for id in spec.node_ids
    }
    found = {(scope.upper(), scope, f"k-{id}"): evidence[scope, id] for scope, id in evidence}
    return remarks(replace(ClusterFacts.of(plan(spec, names)), evidence=found, waivers=waived))


def test_each_scope_of_a_name_is_accepted_for_its_own_reason() -> None:
    alias = Evidence(EvidenceKind.DECLARED, None, why="alias k-1 on network kafka")
    lacks = Lookup("k-1", "192.0.2.54", Diagnosis.NXDOMAIN)
    both = Lookup("k-1", "two servers", Diagnosis.OK, ("10.0.0.1",), each=(lacks,))
    partly = Evidence(EvidenceKind.LIVE, both, "")
    assert checked({(Scope.INTERNAL, 1): alias, (Scope.EXTERNAL, 1): partly}, {}) == (
        (
            "listener INTERNAL (scope internal): k-1 is taken on its declaration: "
            "alias k-1 on network kafka"
        ),
        (
            "listener EXTERNAL (scope external): k-1 is not resolved by every DNS server: "
            "192.0.2.54: nxdomain"
        ),
    )


def test_names_that_one_server_lacks_are_one_remark() -> None:
    found = {}
    for id in (1, 2):
        lacks = Lookup(f"k-{id}", "192.0.2.54", Diagnosis.NXDOMAIN)
        both = Lookup(f"k-{id}", "two servers", Diagnosis.OK, ("10.0.0.1",), each=(lacks,))
        found[Scope.EXTERNAL, id] = Evidence(EvidenceKind.LIVE, both, "")
    assert checked(found, {}) == (
        (
            "listener EXTERNAL (scope external): k-1, k-2 are not resolved by every DNS server: "
            "192.0.2.54: nxdomain"
        ),
    )


def test_names_with_reasons_of_their_own_are_remarks_of_their_own() -> None:
    tickets = {"k-1": "ticket 1", "k-2": "ticket 2", "k-3": "ticket 2"}
    everywhere = (
        "listener INTERNAL (scope internal), listener EXTERNAL (scope external), "
        "listener CONTROLLER (scope controller)"
    )
    assert checked({}, tickets) == (
        f"{everywhere}: k-1 is waived: ticket 1",
        f"{everywhere}: k-2, k-3 are waived: ticket 2",
    )


def test_a_hundred_names_that_were_accepted_alike_are_one_remark() -> None:
    spec = read_local({"placement": "local", "brokers": 100})
    local = {Scope.CONTROLLER: "localhost", Scope.HOST: "localhost"}
    names = {
        id: NodeNames(hosts={Scope.INTERNAL: f"k-{id}", **local}, machine=f"m{id}")
        for id in spec.node_ids
    }
    evidence: dict[EvidenceKey, Evidence] = {
        ("INTERNAL", Scope.INTERNAL, f"k-{id}"): Evidence(
            EvidenceKind.DECLARED, None, why=f"alias k-{id} of 10.0.0.{id}"
        )
        for id in spec.node_ids
    }
    assert remarks(replace(ClusterFacts.of(plan(spec, names)), evidence=evidence)) == (
        (
            "listener INTERNAL (scope internal): k-1, k-2, k-3 and 97 more are taken on their "
            "declarations: alias k-1 of 10.0.0.1 (k-1; the others alike)"
        ),
    )


def test_a_declaration_of_several_reasons_and_evidence_without_a_lookup() -> None:
    alias = {
        (Scope.INTERNAL, id): Evidence(EvidenceKind.DECLARED, None, why="the same record")
        for id in (1, 2)
    }
    nothing = {(Scope.EXTERNAL, 1): Evidence(EvidenceKind.NONE, None, why="nobody was asked")}
    assert checked({**alias, **nothing}, {}) == (
        (
            "listener INTERNAL (scope internal): k-1, k-2 are taken on their declarations: "
            "the same record"
        ),
    )


def test_a_waiver_outweighs_what_was_shown() -> None:
    alias = {(Scope.INTERNAL, 1): Evidence(EvidenceKind.DECLARED, None, why="a record")}
    waived = checked(alias, {"k-1": "ticket 1"})
    assert [text.partition("): k-1 ")[2] for text in waived] == ["is waived: ticket 1"]


def test_a_finding_names_the_container_of_its_node() -> None:
    def check(facts: ClusterFacts) -> list[Finding]:
        return [made.finding("seen", "wanted", node=node) for node in (1, 2, None)]

    made = Rule("KL999", "T", "R.", "M", "https://example.com", check, needs="containers")
    facts = ClusterFacts(plan=None, containers={1: Container("k1")})
    assert [item.container for item in evaluate(facts, [made])] == ["k1", "", ""]

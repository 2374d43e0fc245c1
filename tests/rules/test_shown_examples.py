"""The examples that `earshot rules` and docs/rules.md show, checked where their rule is applied."""

import re
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import pytest

from earshot.certificates.names import SubjectNames
from earshot.certificates.shown import ShownCertificate
from earshot.checks.containers import evidence
from earshot.facts.cloud import Instance
from earshot.facts.cluster import ClusterFacts
from earshot.facts.connected import ConnectedVpc
from earshot.facts.security_groups import Ingress
from earshot.lint.check import check
from earshot.listeners.model import ForwardingPath, Front, Node
from earshot.listeners.properties import read_properties
from earshot.listeners.terms import Scope, Strategy
from earshot.names.evidence import gather
from earshot.names.policy import ResolverPolicy
from earshot.rules.evaluate import RULES, evaluate
from earshot.rules.examples import FOLDER, example_of
from earshot.rules.rule import AppliedAt, Finding, FindingState, Rule
from earshot.sources.container import facts_of
from earshot.sources.instance import instance_facts
from earshot.sources.user_data import UserDataFile
from tests.doubles.resolvers import TableAsked
from tests.rules.deployment_examples import services

OF_A_PLAN = tuple(rule for rule in RULES if AppliedAt.FILE not in rule.applied_at)
SERVER = "192.0.2.53"
POLICY = ResolverPolicy(resolvers={Scope.INTERNAL: (SERVER,), Scope.EXTERNAL: (SERVER,)})


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_the_bad_one_breaks_its_rule_and_no_other(rule: Rule, tmp_path: Path) -> None:
    shown = example_of(rule.id)
    assert {finding.rule for finding in violated(rule, shown.bad, shown.form, tmp_path)} == {
        rule.id
    }


@pytest.mark.parametrize("rule", OF_A_PLAN, ids=lambda rule: rule.id)
def test_a_rule_about_plans_checks_no_file(rule: Rule, tmp_path: Path) -> None:
    shown = example_of(rule.id)
    file = tmp_path / f"example.{shown.form}"
    file.write_text(shown.bad)
    assert rule.id not in {item.finding.rule for item in check(file, {}).mistakes}


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_the_good_one_breaks_none(rule: Rule, tmp_path: Path) -> None:
    shown = example_of(rule.id)
    assert [*violated(rule, shown.good, shown.form, tmp_path)] == []
    file = tmp_path / f"pasted.{shown.form}"
    file.write_text(shown.good)
    assert check(file, {}).mistakes == ()


def test_each_example_file_belongs_to_a_rule() -> None:
    names = [path.name for path in FOLDER.iterdir() if path.suffix in (".yaml", ".properties")]
    forms = {rule.id: example_of(rule.id).form for rule in RULES}
    assert sorted(names) == sorted(
        f"{id}.{kind}.{form}" for id, form in forms.items() for kind in ("bad", "good")
    )


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_an_example_is_short_and_both_are_nearly_the_same(rule: Rule) -> None:
    shown = example_of(rule.id)
    bad, good = (text.splitlines() for text in (shown.bad, shown.good))
    assert max(len(bad), len(good)) <= 14
    assert len(set(good) - set(bad)) in (1, 2)


def test_a_rule_without_an_example_is_named() -> None:
    with pytest.raises(FileNotFoundError, match=r"No example: .*KL999\.bad\.yaml"):
        example_of("KL999")


def violated(rule: Rule, text: str, form: str, folder: Path) -> Iterable[Finding]:
    """What is certainly wrong with an example, where its rule is applied."""
    if AppliedAt.FILE in rule.applied_at:
        file = folder / f"example.{form}"
        file.write_text(text)
        checked = check(file, {})
        assert checked.kind
        found = [item.finding for item in checked.mistakes]
    else:
        facts = of_compose(text) if form == "yaml" else of_properties(text)
        assert rule.applies(facts)
        found = [*evaluate(facts, OF_A_PLAN)]
    return [item for item in found if item.state is FindingState.VIOLATED]


def of_compose(text: str) -> ClusterFacts:
    """The facts about the one container of a Compose file."""
    (service,) = services(text)
    facts = facts_of(service.container)
    # as the DNS of a Compose network answers, and the machine
    answers = {SERVER: {service.name: ("172.18.0.2",)}, "system": {"localhost": ("127.0.0.1",)}}
    asked = TableAsked(answers)
    return replace(facts, evidence=evidence(facts, POLICY, asked))


def of_properties(text: str) -> ClusterFacts:
    """The facts about brokers on instances, each block of ``text`` being the properties of one."""
    alone = [
        instance_facts(UserDataFile("", read_properties(block))) for block in text.split("\n\n")
    ]
    settings = {id: item for facts in alone for id, item in facts.settings.items()}
    plans = [facts.plan for facts in alone if facts.plan is not None]
    if not plans:
        return ClusterFacts(plan=None, settings=settings, placement="aws")
    nodes = tuple(forwarded(node, text) for it in plans for node in it.nodes)
    plan = plans[0].model_copy(update={"nodes": nodes})
    answers = [item.split() for item in said(text, "what the clients' DNS server answers")]
    asked = TableAsked({SERVER: {name: (address,) for name, address in answers}})
    addresses = said(text, "the broker's own addresses")
    shown = said(text, "its certificate is for")
    return ClusterFacts(
        plan=plan,
        settings=settings,
        placement="aws",
        addresses=dict.fromkeys(settings, tuple(addresses)) if addresses else {},
        evidence=gather(plan, POLICY, "aws", asked=asked),
        instances=dict.fromkeys(settings, instance_of(text)),
        certificates={id: certificate_for(shown, id) for id in settings} if shown else {},
        connected=connected_by(text),
    )


def connected_by(text: str) -> tuple[ConnectedVpc, ...]:
    """The other VPC that the comment of an example speaks of, with the zone kafka.example.com."""
    return tuple(
        ConnectedVpc(
            "analytics",
            item.split()[0],
            "10.60.0.0/16",
            "kafka.example.com",
            item in ASSOCIATED,
            True,
        )
        for item in said(text, "another VPC with clients")
    )


def certificate_for(names: list[str], id: int) -> ShownCertificate:
    """One of the node's own, with nothing wrong but perhaps its names."""
    ends = datetime(9999, 1, 1, tzinfo=UTC)
    return ShownCertificate(SubjectNames.of_hosts(names), ends, ends, str(id))


def instance_of(text: str) -> Instance:
    """The instance that the comments of an example speak of."""
    let_in = [item.split(" from ") for item in said(text, "its security group lets in")]
    ingress = [Ingress(int(port), int(port), ip_network(range)) for port, range in let_in]
    elastic = said(text, "its instance has the Elastic IP")
    return Instance(
        ingress=tuple(ingress) or None,
        elastic=tuple(item for item in elastic if item != "none") if elastic else None,
    )


ASSOCIATED = ("vpc-0123abcd with the private zone kafka.example.com",)
PATHS: dict[str, dict[str, Any]] = {
    "ends TLS": {"ends_tls": True},
    "passes TLS on": {},
    "drops idle connections after 350 seconds": {"idle_seconds": 350},
    "drops idle connections after 660 seconds": {"idle_seconds": 660},
}


def forwarded(node: Node, text: str) -> Node:
    """``node`` with the forwarder of its listener EXTERNAL that a comment describes."""
    stated = said(text, "what forwards the connections of EXTERNAL")
    if not stated:
        return node
    path = ForwardingPath(**{k: v for item in stated for k, v in PATHS[item].items()})
    front = Front(strategy=Strategy.GIVEN, path=path)
    listeners = tuple(
        it.model_copy(update={"front": front}) if it.name == "EXTERNAL" else it
        for it in node.listeners
    )
    return node.model_copy(update={"listeners": listeners})


def said(text: str, what: str) -> list[str]:
    """The list in a comment of an example; empty without such a comment."""
    found = re.search(rf"^# {what}: (.+)$", text, re.MULTILINE)
    return found[1].split(", ") if found else []

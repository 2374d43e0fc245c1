"""KL007 over the groups that a plan gives: they pass, and with one thing changed they do not."""

from collections.abc import Callable
from dataclasses import replace
from ipaddress import ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from earshot.facts.cloud import Instance
from earshot.facts.cluster import ClusterFacts
from earshot.facts.security_groups import (
    Clients,
    Ingress,
    IpRange,
    Members,
    UnknownSource,
    ingress_of,
    security_groups,
)
from earshot.listeners.model import ClusterPlan
from earshot.listeners.terms import Role
from earshot.rules.evaluate import evaluate
from earshot.rules.kl007_security_groups import RULE
from earshot.rules.kl009_lasting_address import RULE as LASTING
from earshot.rules.rule import Finding, FindingState
from tests.aws.plans import ONE_LISTENER, TWO_LISTENERS, node, plan

VPC = ip_network("10.0.0.0/16")
Rules = tuple[Ingress, ...]


def made_of(brokers: int, separate: bool, one: bool) -> ClusterPlan:
    listeners = ONE_LISTENER if one else TWO_LISTENERS
    roles = (Role.BROKER,) if separate else (Role.BROKER, Role.CONTROLLER)
    nodes = [node(id, listeners, roles) for id in range(1, brokers + 1)]
    return plan(*nodes, *[node(10001, roles=(Role.CONTROLLER,))] * separate)


def found(
    made: ClusterPlan, clients: Clients, change: Callable[[Rules], Rules] = lambda rules: rules
) -> tuple[Finding, ...]:
    groups = security_groups(made, clients)
    instances = {item.id: Instance(change(ingress_of(item, groups))) for item in made.nodes}
    return evaluate(
        replace(ClusterFacts.of(made, "aws"), instances=instances, clients=clients), [RULE]
    )


offices = st.integers(0, 255).map(lambda number: ip_network(f"203.0.{number}.0/24"))
inside = st.sampled_from([VPC, Members("apps"), Members("jobs"), ip_network("10.1.0.0/16")])
plans = st.builds(made_of, st.integers(1, 4), st.booleans(), st.booleans())
clients = st.builds(
    Clients,
    internal=st.lists(inside, min_size=1, max_size=3, unique=True).map(tuple),
    external=st.lists(offices, min_size=1, max_size=3, unique=True).map(tuple),
)


@given(plans, clients)
def test_the_groups_of_a_plan_pass(made: ClusterPlan, clients: Clients) -> None:
    assert found(made, clients) == ()


@given(plans, clients, st.data())
def test_a_rule_less_is_found(made: ClusterPlan, clients: Clients, data: st.DataObject) -> None:
    rules = ingress_of(made.nodes[0], security_groups(made, clients))
    lost = data.draw(st.sampled_from(rules))
    findings = found(made, clients, lambda all: tuple(rule for rule in all if rule != lost))
    assert {finding.state for finding in findings} == {FindingState.VIOLATED}
    assert all(str(lost.source) in finding.observed for finding in findings)
    assert all(f"port {lost.first}" in finding.observed for finding in findings)


@given(plans, clients, st.sampled_from(["0.0.0.0/0", "::/0", "198.51.100.0/24", "0.0.0.0/1"]))
def test_a_stranger_more_is_found(made: ClusterPlan, clients: Clients, text: str) -> None:
    stranger = Ingress(0, 65535, ip_network(text))
    findings = found(made, clients, lambda all: (*all, stranger))
    listeners = [item for node in made.nodes for item in node.listeners]
    assert len(findings) == len(listeners)
    assert all(text in item.observed for item in findings)


@given(plans, clients)
def test_other_ports_are_not_a_listeners(made: ClusterPlan, clients: Clients) -> None:
    ssh = Ingress(22, 22, ip_network("0.0.0.0/0"))
    assert found(made, clients, lambda all: (*all, ssh)) == ()


@given(plans, clients)
def test_what_cannot_be_read_is_neither_violated_nor_passed(
    made: ClusterPlan, clients: Clients
) -> None:
    blank = Ingress(0, 65535, UnknownSource("the group's rules"))
    findings = found(made, clients, lambda all: (blank,))
    assert {finding.state for finding in findings} == {FindingState.UNKNOWN}
    assert found(made, clients, lambda all: (*all, blank)) == ()


@pytest.mark.parametrize("pieces", [["10.0.0.0/17"], ["10.0.0.0/18", "10.0.128.0/17"]])
def test_a_part_of_the_clients_is_not_all(pieces: list[str]) -> None:
    parts: list[IpRange] = [ip_network(text) for text in pieces]
    clients = Clients(internal=(VPC,), external=(ip_network("203.0.113.0/24"),))

    def cut(rules: Rules) -> Rules:
        kept = tuple(rule for rule in rules if rule.source != VPC)
        return (*kept, *(Ingress(19092, 19092, part) for part in parts))

    (finding,) = found(made_of(1, False, False), clients, cut)
    assert finding.observed == "no security group opens port 19092 to 10.0.0.0/16"


@pytest.mark.parametrize(("one", "closed"), [(True, {"PLAINTEXT"}), (False, {"EXTERNAL"})])
def test_a_lone_broker_needs_rules_only_for_clients_outside(one: bool, closed: set[str]) -> None:
    made = made_of(1, separate=False, one=one)
    findings = evaluate(replace(ClusterFacts.of(made, "aws"), instances={1: Instance(())}), [RULE])
    assert {item.listener for item in findings} == closed


def test_without_instances_both_rules_are_left_out() -> None:
    facts = ClusterFacts.of(made_of(1, False, False), "aws")
    assert evaluate(facts, [RULE, LASTING]) == ()
    assert not RULE.applies(facts) and not LASTING.applies(facts)

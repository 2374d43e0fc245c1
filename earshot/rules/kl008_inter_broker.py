"""KL008: the inter-broker listener has the scope internal, at a private address."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from earshot.facts.cluster import ClusterFacts
from earshot.facts.settings import has_lone_quorum
from earshot.listeners.address import bracketed
from earshot.listeners.terms import Scope
from earshot.names.kinds import NameKind, kind_of
from earshot.placement_registry import on_this_machine
from earshot.rules.rule import AppliedAt, Finding, Rule, Severity
from earshot.topology.container import is_loopback

if TYPE_CHECKING:
    from earshot.listeners.model import Listener, Node


def check(facts: ClusterFacts) -> Iterator[Finding]:
    if facts.plan is None:
        return
    name = facts.plan.inter_broker
    for node in facts.plan.brokers:
        listener = node.listener(name)
        if listener is None:
            continue
        if Scope.INTERNAL in listener.scopes or _is_single_node(facts, node, listener):
            yield from _public(facts, node, listener)
            continue
        yield RULE.finding(
            f"is the inter-broker listener, and it is for {', '.join(listener.scopes)}",
            "an inter-broker listener of scope internal",
            node=node,
            listener=name,
        )


def _is_single_node(facts: ClusterFacts, node: Node, listener: Listener) -> bool:
    """Whether the node connects only to itself, as with apache/kafka's defaults.

    KL003 reports other nodes at loopback addresses.
    """
    settings = facts.settings.get(node.id)
    has_own_quorum = settings is not None and has_lone_quorum(settings.values)
    return has_own_quorum or is_loopback(str(listener.host))


def _public(facts: ClusterFacts, node: Node, listener: Listener) -> Iterator[Finding]:
    if on_this_machine(facts.placement) or not listener.known:
        return
    evidence = facts.evidence_for(listener, Scope.INTERNAL)
    host = str(listener.host)
    for text in facts.advertised_addresses(listener, Scope.INTERNAL):
        if kind_of(text) is NameKind.PUBLIC_ADDRESS:
            name = bracketed(text) if text == host else f"{host}, which resolves to {text}"
            yield RULE.finding(
                f"brokers reach each other at {name}, {NameKind.PUBLIC_ADDRESS}",
                "an address of the broker network, where traffic stays inside and is not billed",
                node=node,
                listener=listener,
                scope=Scope.INTERNAL,
                evidence=evidence,
                severity=Severity.WARNING,
                remedy="advertise a private name or address on the inter-broker listener",
            )
            return


RULE = Rule(
    id="KL008",
    title="The inter-broker listener uses the internal scope",
    reason="Replication over public names leaves the broker network: it costs, and rules that "
    "name security groups do not match it.",
    remedy="let `inter_broker` name a listener of scope internal that every broker has",
    source="https://kafka.apache.org/documentation/#brokerconfigs_inter.broker.listener.name",
    check=check,
    inputs=("inter.broker.listener.name", "listeners", "scopes", "evidence"),
    applied_at=(AppliedAt.PLAN, AppliedAt.INSTANCE),
)

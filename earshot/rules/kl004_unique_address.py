"""KL004: every advertised host:port belongs to one listener of one broker."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from earshot.facts.cluster import ClusterFacts
from earshot.listeners.terms import Strategy
from earshot.names.kinds import NameKind, ip_of, kind_of
from earshot.names.reachability import location_of
from earshot.placement_registry import ClientLocation
from earshot.rules.rule import AppliedAt, Finding, Rule, label
from earshot.topology.container import folded

if TYPE_CHECKING:
    from earshot.listeners.model import Listener, Node

_EXPECTED = "a host:port of its own for every listener of every node"


def check(facts: ClusterFacts) -> Iterator[Finding]:
    """Compares addresses as written, and then, between nodes, as resolved by the evidence."""
    same_text: set[tuple[int, str]] = set()
    holders: dict[tuple[str, int], tuple[Node, Listener]] = {}
    for node in facts.nodes:
        for listener in node.listeners:
            if not listener.known:
                continue
            address = listener.advertised
            other, first = holders.setdefault(
                (folded(address.host), address.port), (node, listener)
            )
            if first is not listener:
                same_text.add((node.id, listener.name))
                yield RULE.finding(
                    f"advertises {address}, as does {label(other)} for {first.name}",
                    _EXPECTED,
                    node=node,
                    listener=listener,
                )
    yield from _after_resolution(facts, same_text)


def _after_resolution(facts: ClusterFacts, reported: set[tuple[int, str]]) -> Iterator[Finding]:
    # at another location a private address may be another machine
    holders: dict[tuple[ClientLocation | None, str, int], tuple[Node, Listener]] = {}
    for node, listener, scope in facts.advertised():
        if listener.forwarded and listener.front and listener.front.strategy is Strategy.SNI:
            continue  # the forwarder selects the broker by name
        evidence = facts.evidence_for(listener, scope)
        for text in evidence.addresses if evidence is not None else ():
            public = kind_of(text) is NameKind.PUBLIC_ADDRESS
            location = None if public else location_of(scope, facts.placement)
            key = (location, str(ip_of(text)), listener.port)
            other, first = holders.setdefault(key, (node, listener))
            if other is node or (node.id, listener.name) in reported:
                continue
            reported.add((node.id, listener.name))
            yield RULE.finding(
                f"advertises {_resolved(listener, text)}, and {label(other)} advertises "
                f"{_resolved(first, text)} for {first.name}",
                _EXPECTED,
                node=node,
                listener=listener,
                scope=scope,
                evidence=evidence,
            )


def _resolved(listener: Listener, address: str) -> str:
    if ip_of(str(listener.host)) is not None:
        return str(listener.advertised)
    return f"{listener.advertised} (resolves to {address})"


RULE = Rule(
    id="KL004",
    title="Every advertised host:port belongs to one listener of one broker",
    reason="Under KRaft no broker notices that another advertises the same address, and requests "
    "reach the wrong one.",
    remedy="give each its own name or port",
    source="https://kafka.apache.org/documentation/#brokerconfigs_advertised.listeners",
    check=check,
    inputs=("advertised.listeners", "evidence"),
    applied_at=(AppliedAt.PLAN, AppliedAt.INSTANCES),
    reads_hosts=True,
)

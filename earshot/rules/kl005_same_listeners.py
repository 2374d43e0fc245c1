"""KL005: every broker has the same listeners."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from earshot.facts.cluster import ClusterFacts
from earshot.rules.registry import Finding, Rule, label

if TYPE_CHECKING:
    from earshot.listeners.model import Listener, Node


def check(facts: ClusterFacts) -> Iterator[Finding]:
    """Names, and for each name its protocol and scopes, against the first broker that has it."""
    if facts.plan is None:
        return
    firsts: dict[str, tuple[Node, Listener]] = {}
    for node in facts.plan.brokers:
        for listener in node.listeners:
            if listener.name != facts.plan.controller:
                firsts.setdefault(listener.name, (node, listener))
    for node in facts.plan.brokers:
        held = {item.name: item for item in node.listeners}
        for name, (first, model) in firsts.items():
            mine = held.get(name)
            if mine is None:
                observed = f"is missing; the broker has {', '.join(held)}"
                expected = f"{name}, which {label(first)} has"
            elif _terms(mine) != _terms(model):
                observed, expected = f"is {_terms(mine)}", f"{_terms(model)}, as on {label(first)}"
            else:
                continue
            yield RULE.finding(observed, expected, node=node, listener=name)


def _terms(listener: Listener) -> str:
    return f"{listener.protocol} for {'+'.join(sorted(listener.scopes))}"


RULE = Rule(
    id="KL005",
    title="Every broker has the same listeners",
    reason="A client that came in on a listener cannot find the brokers that lack it: Kafka "
    "answers LISTENER_NOT_FOUND for their partitions.",
    remedy="give every broker the same listeners, with the same protocols and scopes",
    source="https://kafka.apache.org/protocol#protocol_error_codes",
    check=check,
    inputs=("listeners", "listener.security.protocol.map", "scopes"),
)

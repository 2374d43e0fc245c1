"""KL025: time-outs and limits of brokers fit the forwarder in front of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING

from earshot.facts.cluster import ClusterFacts
from earshot.rules.rule import Finding, Rule, Severity

if TYPE_CHECKING:
    from earshot.listeners.model import Listener, Node

IDLE = "connections.max.idle.ms"
IDLE_DEFAULT = 600_000
"""Kafka's default, for brokers. Its clients close their own idle connections after 540 s."""
PER_ADDRESS = "max.connections.per.ip"
UNLIMITED = 2**31 - 1


def check(facts: ClusterFacts) -> Iterator[Finding]:
    """One finding per listener and setting, as brokers have the same settings."""
    reported: set[tuple[str, tuple[str, ...]]] = set()
    for node in facts.nodes:
        settings = facts.settings.get(node.id)
        if not node.is_broker or settings is None:
            continue
        for listener in node.listeners:
            for finding in _findings(node, listener, settings.values):
                if (listener.name, finding.inputs) not in reported:
                    reported.add((listener.name, finding.inputs))
                    yield finding


def _findings(node: Node, listener: Listener, values: Mapping[str, str]) -> Iterator[Finding]:
    path, idle = listener.path, _number(values.get(IDLE), IDLE_DEFAULT)
    # a negative value closes no connection
    finding = partial(RULE.finding, node=node, listener=listener.name)
    if path.idle_seconds is not None and not 0 <= idle <= path.idle_seconds * 1000:
        yield finding(
            f"its forwarder drops them after {path.idle_seconds} s without "
            f"traffic, and the broker keeps them for {_seconds(idle)}",
            "a forwarder that keeps connections for as long as the broker, so that clients "
            "see each end",
            f"raise its idle time-out, or set {IDLE} in `extra` below {path.idle_seconds}000",
            inputs=(IDLE, "forwarding"),
        )
    limit = _number(values.get(PER_ADDRESS), UNLIMITED)
    if not path.keeps_client_address and limit < UNLIMITED:
        yield finding(
            f"{PER_ADDRESS} is {limit}, and its forwarder does not keep the "
            "clients' addresses: all clients together have that limit",
            "a limit for each client",
            "keep the clients' addresses on the way, or limit clients by user (quotas)",
            inputs=(PER_ADDRESS, "forwarding"),
        )


def _number(text: str | None, otherwise: int) -> int:
    try:
        return otherwise if text is None else int(text)
    except ValueError:  # KL002 reports it
        return otherwise


def _seconds(milliseconds: int) -> str:
    return "ever" if milliseconds < 0 else f"{milliseconds / 1000:g} s"


RULE = Rule(
    id="KL025",
    title="Time-outs and limits of brokers suit the forwarder in front of them",
    reason="A connection that is dropped on the way without a word fails at the next request, and "
    "a limit by address counts the forwarder's.",
    remedy="let the forwarder keep connections and addresses, or set the brokers accordingly",
    source="https://kafka.apache.org/documentation/#brokerconfigs_connections.max.idle.ms",
    check=check,
    inputs=(IDLE, PER_ADDRESS, "forwarding"),
    severity=Severity.WARNING,
)

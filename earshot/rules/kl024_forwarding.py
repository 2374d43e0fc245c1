"""KL024: a forwarder passes each connection to its broker, with TLS unchanged."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from earshot.facts.cluster import ClusterFacts
from earshot.listeners.listed import by_key
from earshot.listeners.terms import Scope
from earshot.rules.rule import Finding, Rule

if TYPE_CHECKING:
    from earshot.listeners.model import ClusterPlan, Listener


def check(facts: ClusterFacts) -> Iterator[Finding]:
    """Checks each listener once, as all brokers have the same path."""
    plan = facts.plan
    if plan is None:
        return
    listeners = (listener for node in plan.nodes for listener in node.listeners)
    by_name = by_key((listener.name, listener) for listener in listeners)
    for name in plan.listener_names:
        yield from _listener_findings(plan, by_name[name][0], len(by_name[name]))


def _listener_findings(plan: ClusterPlan, listener: Listener, brokers: int) -> Iterator[Finding]:
    path, name = listener.path, listener.name
    if path.ends_tls:
        lost = "clients see another certificate than the broker's"
        if not listener.protocol.tls:
            lost = "clients must use TLS, and the contract says " + listener.protocol
        yield RULE.finding(
            f"its forwarder ends TLS: {lost}, and certificates of clients never reach the broker",
            "TLS that ends at the broker",
            "let it forward TCP unchanged (at a Network Load Balancer a TCP listener, not a TLS "
            "one), and let the broker have the certificate for the advertised names",
            listener=name,
        )
    if not path.per_broker and brokers > 1:
        yield RULE.finding(
            f"its forwarder spreads them over {brokers} brokers, whichever address a client chose",
            "an address for each broker that leads to this broker alone",
            "give each broker a port (strategy port) or a name that TLS shows (strategy sni), and "
            "forward each to its broker; one address for all is good for the bootstrap alone",
            listener=name,
        )
    if not path.hairpins and (reason := _reaches_itself(plan, listener)):
        yield RULE.finding(
            f"its forwarder drops those that come from the broker's own machine, and {reason}",
            "a listener that its machine's processes reach directly",
            "give these clients a listener of their own with strategy own, or do not keep the "
            "clients' addresses on the way",
            listener=name,
        )


def _reaches_itself(plan: ClusterPlan, listener: Listener) -> str:
    """The reason why a process on a broker's machine connects to that broker, or empty."""
    if listener.name == plan.inter_broker:
        return "brokers connect to themselves, too, as coordinators of transactions"
    if Scope.HOST in listener.scopes:
        return "the listener is for processes on that machine"
    return ""


RULE = Rule(
    id="KL024",
    title="A forwarder passes each connection to its broker, with its TLS",
    reason="A balancer that chooses the broker, ends TLS or drops a broker's own connections lets "
    "the bootstrap succeed and what follows fail.",
    remedy="forward each advertised address to its broker, TCP unchanged",
    source="https://docs.aws.amazon.com/elasticloadbalancing/latest/network/"
    "load-balancer-troubleshooting.html",
    check=check,
    inputs=("advertised.listeners", "listener.security.protocol.map", "scopes", "forwarding"),
)

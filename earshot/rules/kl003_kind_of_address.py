"""KL003: no advertised address leads clients nowhere or to themselves."""

from collections.abc import Iterator

from earshot.facts.cluster import ClusterFacts
from earshot.listeners.address import bracketed
from earshot.listeners.terms import Scope
from earshot.names.kinds import NameKind, kind_of
from earshot.names.reachability import TABLE, Expectation, location_of, outlook
from earshot.placement_registry import ClientLocation
from earshot.rules.rule import AppliedAt, Finding, Rule, Severity

NEVER = frozenset({NameKind.ANY_ADDRESS, NameKind.LINK_LOCAL_ADDRESS, NameKind.RESERVED_ADDRESS})
"""Errors for every scope."""
_LOOPBACK = frozenset({NameKind.LOOPBACK_ADDRESS, NameKind.LOCALHOST})
_CONFINED = frozenset({NameKind.PRIVATE_ADDRESS, NameKind.SHARED_ADDRESS})
"""A warning for scope external: they may work through a VPN."""


def check(facts: ClusterFacts) -> Iterator[Finding]:
    """Checks the host and the addresses that it resolves to by the evidence."""
    for node, listener, scope in facts.advertised():
        if not listener.known:
            continue
        host = str(listener.host)
        evidence = facts.evidence_for(listener, scope)
        location = location_of(scope, facts.placement)
        addresses = facts.advertised_addresses(listener, scope)
        kinds = [(kind_of(text), text) for text in addresses]
        if listener.front is not None and listener.front.group:
            # the stack's own balancer, which is internal on purpose
            kinds = [(kind, text) for kind, text in kinds if kind not in _CONFINED]
        graded = [
            (severity, kind, text)
            for kind, text in kinds
            if (severity := _severity(kind, scope, location)) is not None
        ]
        # localhost and 127.0.0.1 are one mistake, and an error is reported before a warning
        graded.sort(key=lambda entry: entry[0] is not Severity.ERROR)
        for severity, kind, text in graded[:1]:
            name = bracketed(text) if text == host else f"{host}, which resolves to {text}"
            yield RULE.finding(
                f"advertises {name}, {kind}: {TABLE[kind].note}",
                f"an address that leads clients {location} to this broker",
                node=node,
                listener=listener,
                scope=scope,
                evidence=evidence,
                remedy=_remedy(kind, scope),
                severity=severity,
            )


def _severity(kind: NameKind, scope: Scope, location: ClientLocation) -> Severity | None:
    at_itself = kind in _LOOPBACK and outlook(kind, location).reaches is Expectation.ITSELF
    if kind in NEVER or at_itself:
        return Severity.ERROR
    if kind in _CONFINED and scope is Scope.EXTERNAL:
        return Severity.WARNING
    return None


def _remedy(kind: NameKind, scope: Scope) -> str:
    if kind is NameKind.ANY_ADDRESS:
        return "bind to it, and advertise the broker's own name"
    if kind in _CONFINED:
        return "advertise a public name, or keep it where all clients are inside that network"
    return f"advertise a name of the broker that means something to clients of scope {scope}"


RULE = Rule(
    id="KL003",
    title="No advertised address leads clients nowhere or to themselves",
    reason="Kafka itself refuses little more than the literal 0.0.0.0: with any other loopback or "
    "any-address clients connect to their own machine.",
    remedy="advertise a name of the broker that means something to the listener's clients",
    source="https://www.rfc-editor.org/rfc/rfc6890",
    check=check,
    inputs=("advertised.listeners", "scopes", "placement", "evidence"),
    applied_at=(AppliedAt.PLAN, AppliedAt.INSTANCE, AppliedAt.INSTANCES),
    reads_hosts=True,
)

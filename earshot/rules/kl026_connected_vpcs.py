"""KL026: clients in connected VPCs resolve the brokers' names, and have routes to the brokers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from earshot.facts.cluster import ClusterFacts
from earshot.listeners.listed import shortened
from earshot.listeners.terms import Scope, UnknownHost
from earshot.names.kinds import ip_of
from earshot.rules.rule import Finding, FindingState, Rule

if TYPE_CHECKING:
    from earshot.facts.connected import ConnectedVpc
    from earshot.listeners.model import Listener

_SEEN = "a name that the VPC's own resolver knows"
_ROUTES = "a route from the brokers' subnets to the VPC's range, and one back"


def check(facts: ClusterFacts) -> Iterator[Finding]:
    """Checks the routes of each VPC, and the names of each listener of scope internal.

    KL007 checks that security groups admit the VPC's range.
    """
    for vpc in facts.connected:
        yield from _routes(vpc)
        for name, hosts in _listeners(facts).items():
            yield from _names(facts, vpc, name, hosts)


def _routes(vpc: ConnectedVpc) -> Iterator[Finding]:
    if vpc.is_routed is None:
        yield RULE.finding(
            f"whether routes lead to {_shown(vpc)} and back is not known",
            _ROUTES,
            f"state it as `connected.{vpc.name}.routed`",
            state=FindingState.UNKNOWN,
            inputs=("routes",),
        )
    elif not vpc.is_routed:
        yield RULE.finding(
            f"no routes lead to {_shown(vpc)} and back",
            _ROUTES,
            "add them to the route tables of both VPCs' subnets, to the peering connection or "
            "Transit Gateway",
            inputs=("routes",),
        )


def _names(
    facts: ClusterFacts,
    vpc: ConnectedVpc,
    listener: str,
    hosts: Mapping[str | UnknownHost, Listener],
) -> Iterator[Finding]:
    """The findings about the names in ``hosts``, one per cause."""
    causes: dict[tuple[FindingState, str], list[str]] = {}
    has_unknown = any(isinstance(host, UnknownHost) for host in hosts)
    if has_unknown and not vpc.resolver and (zone_cause := _cause_in_zone(vpc)):
        # records of a zone that does not exist yet
        causes[zone_cause] = [f"names of {vpc.zone}"]
    for host, host_listener in hosts.items():
        if isinstance(host, UnknownHost) or ip_of(host) or facts.waiver_reason(host):
            continue
        if zone_cause := _cause(vpc, host, host_listener):
            causes.setdefault(zone_cause, []).append(host)
    for (state, cause), names in causes.items():
        observed = f"clients in {_shown(vpc)} do not resolve {shortened(names)}: {cause}"
        remedy = _remedy(vpc)
        if state is FindingState.UNKNOWN:
            observed = f"whether clients in {_shown(vpc)} resolve {shortened(names)} is not known: "
            observed += cause
            remedy = f"use naming zone, or name a resolver (`connected.{vpc.name}.resolver`)"
        yield RULE.finding(
            observed,
            _SEEN,
            remedy,
            listener=listener,
            scope=Scope.INTERNAL,
            state=state,
            inputs=("advertised.listeners", "zones"),
        )


def _cause(vpc: ConnectedVpc, host: str, listener: Listener) -> tuple[FindingState, str] | None:
    """The reason why ``host`` does not resolve in ``vpc``, or why that is unknown; else None."""
    lookup = vpc.lookups.get(host.lower())
    if lookup is not None and lookup.answered:
        diagnosis = f"{lookup.diagnosis} at {lookup.resolver}"
        return None if lookup.ok else (FindingState.VIOLATED, diagnosis)
    if lookup is not None:
        return FindingState.UNKNOWN, f"{lookup.resolver} did not answer"
    if vpc.zone and host.lower().endswith(f".{vpc.zone}"):
        return _cause_in_zone(vpc)
    if listener.front is not None and listener.front.group:
        return None  # AWS's own names of balancers resolve everywhere
    return FindingState.UNKNOWN, "no resolver of that VPC can be asked"


def _cause_in_zone(vpc: ConnectedVpc) -> tuple[FindingState, str] | None:
    """Like `_cause`, for names in the private zone of ``vpc``."""
    if not vpc.zone or vpc.is_associated:
        return None
    if vpc.is_associated is None:
        return FindingState.UNKNOWN, f"nothing says whether the zone {vpc.zone} is associated"
    return FindingState.VIOLATED, f"the private zone {vpc.zone} is not associated with it"


def _listeners(facts: ClusterFacts) -> dict[str, dict[str | UnknownHost, Listener]]:
    """The hosts of each listener of scope internal, by listener name."""
    by_host: dict[str, dict[str | UnknownHost, Listener]] = {}
    for node in facts.plan.brokers if facts.plan is not None else ():
        for listener in node.listeners:
            if Scope.INTERNAL in listener.scopes:
                by_host.setdefault(listener.name, {}).update(
                    dict.fromkeys(listener.hosts, listener)
                )
    return by_host


def _shown(vpc: ConnectedVpc) -> str:
    return f"{vpc.id} ({vpc.name})"


def _remedy(vpc: ConnectedVpc) -> str:
    if vpc.zone:
        return (
            f"associate the private zone with the VPC (`connected.{vpc.name}.associate: true`, or "
            "`aws route53 associate-vpc-with-hosted-zone`)"
        )
    return "use naming zone: its private zone can be associated with the VPC"


RULE = Rule(
    id="KL026",
    title="Clients in connected VPCs resolve the brokers' names, and routes lead there and back",
    reason="Peering and Transit Gateways carry packets alone: a private zone that is not "
    "associated with the clients' VPC does not resolve there.",
    remedy="associate the private zone with the VPC, and add routes to both",
    source="https://docs.aws.amazon.com/Route53/latest/DeveloperGuide/hosted-zones-private.html",
    check=check,
    inputs=("advertised.listeners", "zones", "routes"),
    needs="connected",
    reads_hosts=True,
)

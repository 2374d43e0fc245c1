"""KL007: security groups open each listener's port to its clients, and to no others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from earshot.facts.cluster import ClusterFacts
from earshot.facts.security_groups import (
    WORLD,
    Clients,
    Ingress,
    IpRange,
    Members,
    Source,
    SourceSet,
    UnknownSource,
    admitted_sources,
)
from earshot.listeners.terms import Scope
from earshot.names.kinds import NameKind, kind_of
from earshot.rules.rule import AppliedAt, Finding, FindingState, Rule

if TYPE_CHECKING:
    from earshot.listeners.model import ClusterPlan, Listener, Node

_MISLED = (
    "advertise a name or an address that they reach by a listener of scope external, or take these "
    "rules away"
)
_INSIDE = (NameKind.PRIVATE_ADDRESS, NameKind.SHARED_ADDRESS)


def check(facts: ClusterFacts) -> Iterator[Finding]:
    """Checks each listener of every node with known groups.

    If the clients are stated, they and no others must have access. Otherwise some client must have
    access, the whole internet must not, and internal ports must not be open to public addresses.
    """
    plan = facts.plan
    compared: dict[tuple[object, ...], _Access] = {}  # many nodes have the same groups
    for node in plan.nodes if plan is not None else ():
        instance = facts.instances.get(node.id)
        if plan is None or instance is None or instance.ingress is None:
            continue
        for listener in node.listeners:
            key = (listener.name, listener.bind_port, listener.scopes, instance.ingress)
            if key not in compared:
                rules = tuple(r for r in instance.ingress if r.opens(listener.bind_port))
                compared[key] = _compare(plan, listener, rules, facts.clients)
            yield from _findings(node, listener, compared[key])


@dataclass(frozen=True)
class _Access:
    """The access that rules give to one listener's port."""

    strangers: tuple[Ingress, ...]
    """Rules that admit others than its clients."""
    expected: str
    missing: str
    """The clients without access, or an empty string."""
    unread: tuple[Ingress, ...]
    clients_known: bool = True
    """Whether the clients are stated; otherwise they follow from the scopes."""


def _compare(
    plan: ClusterPlan, listener: Listener, rules: tuple[Ingress, ...], clients: Clients | None
) -> _Access:
    unread = tuple(rule for rule in rules if isinstance(rule.source, UnknownSource))
    if clients is None:
        strangers = tuple(rule for rule in rules if _is_stranger(rule.source, listener))
        who = " and ".join(listener.scopes)
        expected = f"clients of scope {who}, by their own ranges or groups"
        closed = _is_closed(plan, listener, rules)
        missing = f"anybody, and clients of scope {who} need it" if closed else ""
        return _Access(strangers, expected, missing, unread, clients_known=False)
    planned = admitted_sources(plan, listener, clients)
    within, lets_in = SourceSet(planned), SourceSet(rule.source for rule in rules)
    has_vpc = any(map(_inside, within.ranges))

    def is_stranger(source: Source) -> bool:
        # members of a group may have any address of the VPC
        if isinstance(source, UnknownSource) or (isinstance(source, Members) and has_vpc):
            return False
        return not within.has(source)

    return _Access(
        tuple(rule for rule in rules if is_stranger(rule.source)),
        _listed(planned) or "none: a machine's own traffic needs no rule",
        _listed(source for source in planned if not lets_in.has(source)),
        unread,
    )


def _is_closed(plan: ClusterPlan, listener: Listener, rules: tuple[Ingress, ...]) -> bool:
    """Whether no client has access although the listener needs one."""
    if any(not isinstance(rule.source, UnknownSource) for rule in rules):
        return False
    # the machine itself may be the only client
    between = listener.name in (plan.controller, plan.inter_broker)
    is_single_node = len(plan.nodes) == 1 and between and Scope.EXTERNAL not in listener.scopes
    return not is_single_node and not set(listener.scopes) <= {Scope.HOST}


def _is_stranger(source: Source, listener: Listener) -> bool:
    """Whether ``source`` must not have access, whatever the stated clients."""
    if not isinstance(source, IpRange):
        return False
    return source.prefixlen == 0 or not (Scope.EXTERNAL in listener.scopes or _inside(source))


def _inside(source: IpRange) -> bool:
    """Whether a VPC, or a network connected to it, can have these addresses."""
    ends = (source.network_address, source.broadcast_address)
    # IPv6 ranges of VPCs are public addresses
    return source.version == 6 or all(kind_of(str(end)) in _INSIDE for end in ends)


def _findings(node: Node, listener: Listener, access: _Access) -> Iterator[Finding]:
    port = listener.bind_port
    misled = Scope.EXTERNAL not in listener.scopes and not access.clients_known
    sent = f"; clients from there are sent to {listener.host}" if misled else ""
    if access.strangers:
        yield RULE.finding(
            f"port {port} is open to more than its clients: {_listed(access.strangers)}{sent}",
            access.expected,
            node=node,
            listener=listener.name,
            remedy=_MISLED if misled else _narrow(listener, access.strangers),
        )
    if access.missing:
        observed, remedy = f"no security group opens port {port} to {access.missing}", ""
        if access.unread:
            observed = f"port {port} is not known to be open to {access.missing}: "
            observed += f"{_listed(access.unread)} cannot be read"
            remedy = (
                "nothing where the update makes it known; else name ranges or groups in the rule"
            )
        yield RULE.finding(
            observed,
            f"a rule for TCP port {port} that lets them in",
            remedy,
            node=node,
            listener=listener.name,
            state=FindingState.UNKNOWN if access.unread else FindingState.VIOLATED,
        )


def _narrow(listener: Listener, strangers: tuple[Ingress, ...]) -> str:
    world = any(str(rule.source) in WORLD for rule in strangers)
    if world and Scope.EXTERNAL in listener.scopes:
        return "name the clients' own ranges; the world must be asked for in so many words"
    return "take these rules away, or name these clients among the listener's"


def _listed(items: Iterable[object]) -> str:
    return ", ".join(map(str, items))


RULE = Rule(
    id="KL007",
    title="Security groups open each listener's port to its clients, and to no more",
    reason="A port that no group opens swallows connections without a word, and one open to all "
    "shows the broker to every port scan.",
    remedy="open the port to the clients of the listener's scopes, by range or by group",
    source="https://docs.aws.amazon.com/vpc/latest/userguide/security-group-rules.html",
    check=check,
    inputs=("listeners", "scopes", "security groups", "clients"),
    needs="instances",
    applied_at=(AppliedAt.PLAN, AppliedAt.INSTANCES),
)

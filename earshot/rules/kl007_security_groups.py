"""KL007: security groups open each listener's port to its clients, and to no more."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from ipaddress import IPv4Network, IPv6Network, collapse_addresses

from earshot.aws.groups import (
    WORLD,
    Clients,
    Ingress,
    IpRange,
    Members,
    Source,
    Unread,
    admitted,
)
from earshot.listeners.model import ClusterPlan, Listener, Node, Scope
from earshot.names.kinds import NameKind, kind_of
from earshot.rules.facts import Facts
from earshot.rules.finding import Finding, State
from earshot.rules.registry import Rule

INPUTS = ("listeners", "scopes", "security groups", "clients")
_INSIDE = (NameKind.PRIVATE_ADDRESS, NameKind.SHARED_ADDRESS)


def check(facts: Facts) -> Iterator[Finding]:
    """Per listener of every node whose groups are known.

    Where it was said who the clients are, they and nobody else must come in. Where it was not,
    somebody must, the world must not, and an internal port must not be open to public addresses.
    """
    for node in facts.plan.nodes if facts.plan is not None else ():
        instance = facts.instances.get(node.id)
        if facts.plan is None or instance is None or instance.ingress is None:
            continue
        for listener in node.listeners:
            rules = [rule for rule in instance.ingress if rule.opens(listener.bind_port)]
            yield from _too_wide(facts, facts.plan, node, listener, rules)
            yield from _too_narrow(facts, facts.plan, node, listener, rules)


def _too_wide(
    facts: Facts, plan: ClusterPlan, node: Node, listener: Listener, rules: list[Ingress]
) -> Iterator[Finding]:
    if facts.clients is None:
        strangers = [rule for rule in rules if _is_stranger(rule.source, listener)]
        expected = f"clients of scope {_scopes(listener)}, by their own ranges or groups"
    else:
        wanted = admitted(plan, listener, facts.clients)
        strangers = [rule for rule in rules if not _within(rule.source, wanted)]
        expected = _listed(wanted) if wanted else "nobody: a machine's own traffic needs no rule"
    if strangers:
        yield RULE.finding(
            f"port {listener.bind_port} is open to more than its clients: "
            f"{', '.join(map(str, strangers))}",
            expected,
            node=node,
            listener=listener.name,
            remedy=_narrow(listener, strangers),
            inputs=INPUTS,
        )


def _narrow(listener: Listener, strangers: list[Ingress]) -> str:
    world = [rule.source for rule in strangers if str(rule.source) in WORLD]
    if world and Scope.EXTERNAL in listener.scopes:
        return (
            f"name the clients' own ranges; or, if it is really meant for the world, name "
            f"{world[0]} among them"
        )
    return "take these rules away, or name these clients among the listener's"


def _too_narrow(
    facts: Facts, plan: ClusterPlan, node: Node, listener: Listener, rules: list[Ingress]
) -> Iterator[Finding]:
    unread = [rule for rule in rules if isinstance(rule.source, Unread)]
    missing = _missing(facts.clients, plan, listener, rules)
    if not missing:
        return
    yield RULE.finding(
        f"port {listener.bind_port} is not known to be open to {missing}: "
        f"{', '.join(map(str, unread))} cannot be read"
        if unread
        else f"no security group opens port {listener.bind_port} to {missing}",
        f"a rule for TCP port {listener.bind_port} that lets them in",
        node=node,
        listener=listener.name,
        state=State.UNKNOWN if unread else State.VIOLATED,
        remedy="nothing where the update makes it known; else name ranges or groups in the rule"
        if unread
        else "",
        inputs=INPUTS,
    )


def _missing(
    clients: Clients | None, plan: ClusterPlan, listener: Listener, rules: list[Ingress]
) -> str:
    """Who cannot come in, as a text; empty where everybody can, as far as it was said."""
    if clients is not None:
        wanted = admitted(plan, listener, clients)
        return _listed(source for source in wanted if not _covered(source, rules))
    if any(not isinstance(rule.source, Unread) for rule in rules):
        return ""
    alone = len(plan.nodes) == 1 and listener.name in (plan.controller, plan.inter_broker)
    if alone or set(listener.scopes) <= {Scope.HOST}:
        return ""  # perhaps nobody but the machine itself comes in
    return f"anybody, and clients of scope {_scopes(listener)} need it"


def _is_stranger(source: Source, listener: Listener) -> bool:
    """Wrong whoever the clients are."""
    if not isinstance(source, IPv4Network | IPv6Network):
        return False
    if source.prefixlen == 0:
        return True
    return Scope.EXTERNAL not in listener.scopes and not _inside(source)


def _inside(source: IpRange) -> bool:
    """Whether a VPC, or what is joined to it, can have these addresses."""
    ends = (source.network_address, source.broadcast_address)
    # an IPv6 range of a VPC is public by its number
    return source.version == 6 or all(kind_of(str(end)) in _INSIDE for end in ends)


def _within(source: Source, wanted: Iterable[IpRange | Members]) -> bool:
    if isinstance(source, Unread):
        return True  # cannot be told; what it may lack is said elsewhere
    ranges = [item for item in wanted if not isinstance(item, Members)]
    if isinstance(source, Members):
        # a group's members are of the VPC
        return source in wanted or any(_inside(item) for item in ranges)
    return _subnet_of_any(source, ranges)


def _covered(source: IpRange | Members, rules: Iterable[Ingress]) -> bool:
    sources = [rule.source for rule in rules]
    if isinstance(source, Members):
        return source in sources
    return _subnet_of_any(source, [s for s in sources if not isinstance(s, Members | Unread)])


def _subnet_of_any(source: IpRange, ranges: Iterable[IpRange]) -> bool:
    listed = list(ranges)
    if isinstance(source, IPv4Network):
        joined4 = collapse_addresses(item for item in listed if isinstance(item, IPv4Network))
        return any(source.subnet_of(item) for item in joined4)
    joined6 = collapse_addresses(item for item in listed if isinstance(item, IPv6Network))
    return any(source.subnet_of(item) for item in joined6)


def _listed(sources: Iterable[object]) -> str:
    return ", ".join(map(str, sources))


def _scopes(listener: Listener) -> str:
    return " and ".join(listener.scopes)


RULE = Rule(
    id="KL007",
    title="Security groups open each listener's port to its clients, and to no more",
    reason="A port that no group opens swallows connections without a word, and one open to all "
    "offers the broker to everybody who scans for it.",
    remedy="open the port to the clients of the listener's scopes, by range or by group",
    source="https://docs.aws.amazon.com/vpc/latest/userguide/security-group-rules.html",
    check=check,
    judges="instances",
)

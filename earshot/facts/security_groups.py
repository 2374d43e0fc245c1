"""The sources of ingress rules, and the security groups that a plan needs: clients per port.

Brokers are in the group `brokers`, controllers in `controllers`, combined nodes in both. Source:
the VPC guide on security group rules (a rule that names a group matches its members' private
addresses) and on quotas.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network, collapse_addresses, ip_address, ip_network
from typing import TYPE_CHECKING

from earshot.errors import EarshotError
from earshot.listeners.listed import by_key
from earshot.listeners.terms import Scope

if TYPE_CHECKING:
    from earshot.listeners.model import ClusterPlan, Listener, Node


IpRange = IPv4Network | IPv6Network

BROKERS = "brokers"
CONTROLLERS = "controllers"
BALANCER = "balancer"
"""The group of the balancer that the stack makes."""
MAX_RULES = 60
"""AWS's default quota of inbound rules per group, for IPv4 and IPv6 each; a named group counts for
both."""
WORLD = ("0.0.0.0/0", "::/0")
_WIDEST = {4: 8, 6: 16}
"""No single owner was ever given more: a wider range names no single client."""


@dataclass(frozen=True)
class Members:
    """The members of a security group, by the group's name or id."""

    group: str

    def __str__(self) -> str:
        return f"group {self.group}"


@dataclass(frozen=True)
class UnknownSource:
    """A source without known addresses: a value that is not known yet, a prefix list."""

    what: str

    def __str__(self) -> str:
        return self.what


Source = IpRange | Members | UnknownSource


class SourceSet:
    """The addresses and groups of several sources together."""

    def __init__(self, sources: Iterable[Source]) -> None:
        listed = list(sources)
        self._members = {source for source in listed if isinstance(source, Members)}
        self.ranges = [source for source in listed if isinstance(source, IpRange)]
        four = collapse_addresses(part for part in self.ranges if isinstance(part, IPv4Network))
        six = collapse_addresses(part for part in self.ranges if isinstance(part, IPv6Network))
        # joined, they lie apart and in order: by number, for there may be many
        self._ends = {4: list(map(_bounds, four)), 6: list(map(_bounds, six))}

    def has(self, source: IpRange | Members) -> bool:
        """Whether the group, or every address of the range, is among them."""
        if isinstance(source, Members):
            return source in self._members
        first, last = _bounds(source)
        ends = self._ends[source.version]
        index = bisect_right(ends, first, key=lambda pair: pair[0]) - 1
        return index >= 0 and last <= ends[index][1]


def _bounds(ip_range: IpRange) -> tuple[int, int]:
    return int(ip_range.network_address), int(ip_range.broadcast_address)


@dataclass(frozen=True)
class Clients:
    """The clients of each scope, without the nodes themselves."""

    internal: tuple[IpRange | Members, ...] = ()
    """The VPC's ranges, security groups, or both."""
    external: tuple[IpRange, ...] = ()
    """Ranges of clients outside the VPC; the whole internet only if stated explicitly."""


def read_range(text: str) -> IpRange:
    """Parses a range of clients' addresses; a single address is a range of one.

    Raises EarshotError for any other text, for bits beyond the prefix, and for a range too wide
    for one owner. The whole internet is `0.0.0.0/0` or `::/0`.
    """
    what = f"client range {text!r}"
    allowed = "an IPv4 or IPv6 range, as in 203.0.113.0/24"
    try:
        network = ip_network(text, strict=False)
    except ValueError:
        raise EarshotError(what, observed="is no range", allowed=allowed) from None
    if text in WORLD:
        return network
    address = ip_address(text.partition("/")[0])
    if network.prefixlen < network.max_prefixlen and address != network.network_address:
        observed = "has bits set beyond its prefix"
        remedy = f"write {network}, or {address} for the one address"
    elif network.prefixlen < (widest := _WIDEST[network.version]):
        observed = f"names no single client: no network is larger than a /{widest}"
        remedy = "name the clients' own ranges; the world must be asked for in so many words"
    else:
        return network
    raise EarshotError(what, observed=observed, allowed=allowed, remedy=remedy)


@dataclass(frozen=True)
class Ingress:
    """A rule that opens the TCP ports ``first`` to ``last`` to ``source``."""

    first: int
    last: int
    source: Source
    why: str = ""
    """The rule's description."""

    def opens(self, port: int) -> bool:
        return self.first <= port <= self.last

    def __str__(self) -> str:
        ports = str(self.first) if self.first == self.last else f"{self.first}-{self.last}"
        return f"{ports} from {self.source}"


@dataclass(frozen=True)
class SecurityGroup:
    """One security group with its rules, in the order of the plan."""

    name: str
    ingress: tuple[Ingress, ...]


def groups_of(node: Node) -> tuple[str, ...]:
    """The names of the groups of ``node``."""
    roles = {BROKERS: node.is_broker, CONTROLLERS: node.is_controller}
    return tuple(group for group, carries in roles.items() if carries)


def admitted_sources(
    plan: ClusterPlan, listener: Listener, clients: Clients
) -> dict[IpRange | Members, str]:
    """The sources that may connect to ``listener``, each with the reason.

    Controller listeners admit nodes only, the inter-broker listener always admits brokers. Scope
    internal admits ``clients.internal``, scope external ``clients.external``. Scope host needs no
    rule: traffic within a machine passes no security group.
    """
    sources: dict[IpRange | Members, str] = {}
    if Scope.CONTROLLER in listener.scopes:
        sources[Members(BROKERS)] = "the quorum, from brokers"
        if any(not node.is_broker for node in plan.controllers):
            sources[Members(CONTROLLERS)] = "the quorum, from controllers"
    if listener.name == plan.inter_broker:
        sources[Members(BROKERS)] = "traffic between brokers"
    if listener.front is not None and listener.front.group:
        return sources | {Members(listener.front.group): "the balancer, for its clients"}
    return sources | _clients(listener, clients)


def _clients(listener: Listener, clients: Clients) -> dict[IpRange | Members, str]:
    sources: dict[IpRange | Members, str] = {}
    if Scope.INTERNAL in listener.scopes:
        sources |= dict.fromkeys(clients.internal, "clients of scope internal")
    if Scope.EXTERNAL in listener.scopes:
        sources |= dict.fromkeys(clients.external, "clients of scope external")
    return sources


def security_groups(plan: ClusterPlan, clients: Clients) -> tuple[SecurityGroup, ...]:
    """The groups of ``plan``: `brokers`, `controllers`, and that of a balancer.

    Raises EarshotError if a listener's scope has no clients, or a group exceeds `MAX_RULES`.
    """
    rules_by_group: dict[str, dict[tuple[int, Source], Ingress]] = {BROKERS: {}, CONTROLLERS: {}}
    for node in plan.nodes:
        for listener in node.listeners:
            _check_named(listener, clients)
            holder = CONTROLLERS if listener.name == plan.controller else BROKERS
            port = listener.bind_port
            for source, reason in admitted_sources(plan, listener, clients).items():
                rule = Ingress(port, port, source, f"{listener.name}: {reason}")
                rules_by_group[holder].setdefault((port, source), rule)
    listeners = (listener for node in plan.brokers for listener in node.listeners)
    if any(listener.front and listener.front.group for listener in listeners):
        rules = _balancer_rules(plan, clients)
        rules_by_group[BALANCER] = {(rule.first, rule.source): rule for rule in rules}
    groups = tuple(
        SecurityGroup(name, tuple(rules.values())) for name, rules in rules_by_group.items()
    )
    for group in groups:
        _check_quota(group)
    return groups


def _balancer_rules(plan: ClusterPlan, clients: Clients) -> Iterator[Ingress]:
    """The rules of a balancer's group: clients, at the ports of brokers and bootstraps."""
    listeners = (listener for node in plan.brokers for listener in node.listeners)
    by_name = by_key((listener.name, listener) for listener in listeners)
    for name in plan.listener_names:
        listener, front = by_name[name][0], by_name[name][0].front
        if front is None or not front.group:
            continue
        bootstrap = {front.bootstrap.port} if front.bootstrap else set[int]()
        ports = sorted({own.port for own in by_name[name]} | bootstrap)
        starts = [port for port in ports if port - 1 not in ports]
        ends = [port for port in ports if port + 1 not in ports]
        for first, last in zip(starts, ends, strict=True):  # a rule per range, for quotas count
            for source, reason in _clients(listener, clients).items():
                yield Ingress(first, last, source, f"{name}: {reason}")


def ingress_of(node: Node, groups: Iterable[SecurityGroup]) -> tuple[Ingress, ...]:
    """The rules of ``groups`` that apply to ``node``."""
    carried = groups_of(node)
    return tuple(rule for group in groups if group.name in carried for rule in group.ingress)


def _check_named(listener: Listener, clients: Clients) -> None:
    if listener.front is not None and listener.front.private_link:
        return  # the endpoint service's principals are its clients
    for scope, named in ((Scope.INTERNAL, clients.internal), (Scope.EXTERNAL, clients.external)):
        if scope in listener.scopes and not named:
            raise EarshotError(
                f"clients of scope {scope}",
                observed=f"no client is named, and {listener.name} is for them",
                allowed="the VPC's range, security groups, or both"
                if scope is Scope.INTERNAL
                else "ranges of addresses; the world only in so many words",
                remedy=f"name them, or take the scope {scope} from {listener.name}",
            )


def _check_quota(group: SecurityGroup) -> None:
    for version, other in ((4, IPv6Network), (6, IPv4Network)):
        rules = [rule for rule in group.ingress if not isinstance(rule.source, other)]
        if len(rules) > MAX_RULES:
            raise EarshotError(
                f"security group {group.name}",
                observed=f"needs {len(rules)} rules for IPv{version}",
                allowed=f"{MAX_RULES}, AWS's default quota of inbound rules per group",
                remedy="join the clients' ranges into fewer and wider ones",
            )

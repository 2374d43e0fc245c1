"""Security groups that follow from a plan: per listener's port, who may come in; nothing else.

Every broker carries the group `brokers`, every controller `controllers`, a combined node both.
Source: the VPC guide on security group rules and on quotas.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network
from typing import TYPE_CHECKING

from earshot.errors import EarshotError
from earshot.facts.clients import Clients, IpRange, Members, Source
from earshot.listeners.terms import Scope

if TYPE_CHECKING:
    from earshot.listeners.model import ClusterPlan, Listener, Node

BROKERS = "brokers"
CONTROLLERS = "controllers"
MAX_RULES = 60
"""AWS's default quota of inbound rules per group, for IPv4 and IPv6 each; a named group counts for
both."""


@dataclass(frozen=True)
class Ingress:
    """TCP ports, from ``first`` to ``last``, that a group opens to ``source``."""

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
    """One security group: what it lets in, in the order of the plan."""

    name: str
    ingress: tuple[Ingress, ...]


def groups_of(node: Node) -> tuple[str, ...]:
    """The groups that ``node`` carries."""
    return (
        *((BROKERS,) if node.is_broker else ()),
        *((CONTROLLERS,) if node.is_controller else ()),
    )


def admitted(
    plan: ClusterPlan, listener: Listener, clients: Clients
) -> dict[IpRange | Members, str]:
    """Who may come in on ``listener``, each with the reason.

    Controllers are for nodes alone. Scope internal is for ``clients.internal``, scope external
    for ``clients.external``; scope host needs nobody let in, for a machine's own traffic passes no
    security group. The inter-broker listener is for the brokers whatever else it is for.
    """
    found: dict[IpRange | Members, str] = {}
    if Scope.CONTROLLER in listener.scopes:
        found[Members(BROKERS)] = "the quorum, from brokers"
        if any(not node.is_broker for node in plan.controllers):
            found[Members(CONTROLLERS)] = "the quorum, from controllers"
    if listener.name == plan.inter_broker:
        found[Members(BROKERS)] = "traffic between brokers"
    if Scope.INTERNAL in listener.scopes:
        found |= dict.fromkeys(clients.internal, "clients of scope internal")
    if Scope.EXTERNAL in listener.scopes:
        found |= dict.fromkeys(clients.external, "clients of scope external")
    return found


def security_groups(plan: ClusterPlan, clients: Clients) -> tuple[SecurityGroup, ...]:
    """The groups of ``plan``: `brokers`, then `controllers`.

    Raises EarshotError for a listener of scope external or internal without any clients named,
    and where a group needs more rules than AWS's quota has.
    """
    found: dict[str, dict[tuple[int, Source], Ingress]] = {BROKERS: {}, CONTROLLERS: {}}
    for node in plan.nodes:
        for listener in node.listeners:
            _check_named(listener, clients)
            holder = CONTROLLERS if listener.name == plan.controller else BROKERS
            port = listener.bind_port
            for source, reason in admitted(plan, listener, clients).items():
                rule = Ingress(port, port, source, f"{listener.name}: {reason}")
                found[holder].setdefault((port, source), rule)
    groups = tuple(SecurityGroup(name, tuple(rules.values())) for name, rules in found.items())
    for group in groups:
        _check_quota(group)
    return groups


def ingress_of(node: Node, groups: Iterable[SecurityGroup]) -> tuple[Ingress, ...]:
    """What ``groups`` let in to ``node``."""
    carried = groups_of(node)
    return tuple(rule for group in groups if group.name in carried for rule in group.ingress)


def _check_named(listener: Listener, clients: Clients) -> None:
    for scope, named in ((Scope.INTERNAL, clients.internal), (Scope.EXTERNAL, clients.external)):
        if scope in listener.scopes and not named:
            raise EarshotError(
                f"clients of scope {scope}",
                observed=f"nobody is named, and {listener.name} is for them",
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

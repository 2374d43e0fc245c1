"""Decides whether brokers can be restarted from one plan to another, one at a time.

A broker connects to another through the listener in its own `inter.broker.listener.name`, at the
address that the other has registered for it. During a rolling restart some brokers run the old plan
and some the new one. So each must offer the listener that the others use, at an address that is
meant for brokers.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from earshot.listeners.model import ClusterPlan, Listener, Node
from earshot.listeners.terms import Protocol, Scope


@dataclass(frozen=True)
class Takeover:
    """A port of a node that changes from one listener to another in a single restart."""

    node: int
    port: int
    old: str
    new: str


def rolls(running: Iterable[ClusterPlan], target: ClusterPlan) -> bool:
    """True if brokers that run any of the plans ``running`` can be restarted with ``target``.

    A step must not both add and remove listeners, as clients need a time in which every broker
    serves both.
    """
    return not clashes(target) and all(_rolls(plan, target) for plan in running)


def _rolls(current: ClusterPlan, target: ClusterPlan) -> bool:
    old_names, new_names = set(current.listener_names), set(target.listener_names)
    return (
        reaches(current, target)
        and reaches(target, current)
        and not (new_names - old_names and old_names - new_names)
        and not any(takeovers(current, target))
    )


def reaches(plan: ClusterPlan, other_plan: ClusterPlan) -> bool:
    """True if a broker that runs ``plan`` reaches those that run ``other_plan``."""
    if len({node.id for each_plan in (plan, other_plan) for node in each_plan.brokers}) == 1:
        return True
    name = plan.inter_broker
    own_protocols = protocols(plan, name)
    return (
        len(own_protocols) == 1
        and own_protocols == protocols(other_plan, name)
        and all(node.listener(name) for node in other_plan.brokers)
        and (is_internal(other_plan, name) or not is_internal(plan, name))
    )


def is_internal(plan: ClusterPlan, name: str) -> bool:
    """True if the listener ``name`` of every broker has scope internal."""
    return all(
        Scope.INTERNAL in listener.scopes for listener in of_brokers(plan) if listener.name == name
    )


def protocols(plan: ClusterPlan, name: str) -> set[Protocol]:
    """The protocols of the listener ``name``: one for all brokers, or none without the listener."""
    return {listener.protocol for listener in of_brokers(plan) if listener.name == name}


def of_brokers(plan: ClusterPlan) -> Iterator[Listener]:
    """The client listeners of every broker."""
    for node in plan.brokers:
        yield from (listener for listener in node.listeners if listener.name != plan.controller)


def takeovers(current: ClusterPlan, target: ClusterPlan) -> Iterator[Takeover]:
    """Ports that another listener of the same node gets.

    A client with the old address would reach the new listener, and get addresses that are not meant
    for it.
    """
    nodes = {node.id: node for node in current.nodes}
    for node in target.nodes:
        if node.id in nodes:
            old_ports, new_ports = _ports(nodes[node.id]), _ports(node)
            takeovers_of_node = (
                Takeover(node.id, key[1], old_ports[key], name)
                for key, name in new_ports.items()
                if old_ports.get(key, name) != name
            )
            yield from dict.fromkeys(takeovers_of_node)


def _ports(node: Node) -> dict[tuple[bool, int], str]:
    """The listener by (is advertised to clients outside, port), for bound and advertised ports."""
    ports = {(False, listener.bind_port): listener.name for listener in node.listeners}
    for listener in node.listeners:
        if {Scope.HOST, Scope.EXTERNAL} & set(listener.scopes):
            ports[(True, listener.port)] = listener.name
    return ports


def clashes(plan: ClusterPlan) -> bool:
    """True if two listeners of a node bind the same port."""
    return any(
        port_count > 1
        for node in plan.nodes
        for port_count in Counter(listener.bind_port for listener in node.listeners).values()
    )

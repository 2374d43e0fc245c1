"""Whether brokers can be restarted from one plan to another, one at a time.

A broker connects to another one through the listener that its own `inter.broker.listener.name`
names, at the address that the other has registered for it. While brokers are restarted in turn,
some run the old plan and some the new one, so each must offer what the others use, at an address
that is meant for brokers.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from earshot.listeners.model import ClusterPlan, Listener, Node
from earshot.listeners.terms import Protocol, Scope


@dataclass(frozen=True)
class Takeover:
    """A port of a node that one listener leaves to another in a single restart."""

    node: int
    port: int
    old: str
    new: str


def rolls(before: Iterable[ClusterPlan], after: ClusterPlan) -> bool:
    """Whether brokers that run any of the plans ``before`` can be restarted with ``after``.

    Nothing is added and taken away in one go: clients that must move would find no moment in which
    every broker serves both.
    """
    return not clashes(after) and all(_rolls(plan, after) for plan in before)


def _rolls(before: ClusterPlan, after: ClusterPlan) -> bool:
    old, new = set(before.listener_names), set(after.listener_names)
    return (
        reaches(before, after)
        and reaches(after, before)
        and not (new - old and old - new)
        and not any(takeovers(before, after))
    )


def reaches(one: ClusterPlan, other: ClusterPlan) -> bool:
    """Whether a broker that runs ``one`` reaches those that run ``other``."""
    if len({node.id for plan in (one, other) for node in plan.brokers}) == 1:
        return True
    name = one.inter_broker
    used = protocols(one, name)
    return (
        len(used) == 1
        and used == protocols(other, name)
        and all(node.listener(name) for node in other.brokers)
        and (is_internal(other, name) or not is_internal(one, name))
    )


def is_internal(plan: ClusterPlan, name: str) -> bool:
    """Whether the listener ``name`` of every broker is for brokers, too."""
    return all(
        Scope.INTERNAL in listener.scopes for listener in of_brokers(plan) if listener.name == name
    )


def protocols(plan: ClusterPlan, name: str) -> set[Protocol]:
    """Those of the listener ``name``: one for all brokers, or none where no broker has it."""
    return {listener.protocol for listener in of_brokers(plan) if listener.name == name}


def of_brokers(plan: ClusterPlan) -> Iterator[Listener]:
    """The client listeners of every broker."""
    for node in plan.brokers:
        yield from (listener for listener in node.listeners if listener.name != plan.controller)


def takeovers(before: ClusterPlan, after: ClusterPlan) -> Iterator[Takeover]:
    """Ports that another listener of the same node gets.

    A client that still knows the old address would be answered by the new listener, and sent on to
    addresses that are not meant for it.
    """
    nodes = {node.id: node for node in before.nodes}
    for node in after.nodes:
        if node.id in nodes:
            old_ports, wanted = _ports(nodes[node.id]), _ports(node)
            taken = (
                Takeover(node.id, key[1], old_ports[key], name)
                for key, name in wanted.items()
                if old_ports.get(key, name) != name
            )
            yield from dict.fromkeys(taken)


def _ports(node: Node) -> dict[tuple[bool, int], str]:
    """The listener at each port, of the node itself, and of where clients outside find it."""
    ports = {(False, listener.bind_port): listener.name for listener in node.listeners}
    for item in node.listeners:
        if {Scope.HOST, Scope.EXTERNAL} & set(item.scopes):
            ports[(True, item.port)] = item.name
    return ports


def clashes(plan: ClusterPlan) -> bool:
    """Whether two listeners of one node want one port."""
    return any(
        most > 1
        for node in plan.nodes
        for most in Counter(listener.bind_port for listener in node.listeners).values()
    )

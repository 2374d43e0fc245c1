"""Reads the known parts of nodes and listeners in a preview that does not know all inputs."""

from collections.abc import Mapping, Sequence
from typing import Any

import pulumi

from earshot.listeners.model import ClusterPlan, Node
from earshot.listeners.terms import Role, UnknownHost
from earshot_pulumi.provider.kind import Inputs, Properties

HOSTS = ("internal", "host", "external", "controller")
"""Inputs of a node with a host."""
IN_PARTS = ("addresses", "container", "ports")
"""Inputs of a node whose known parts are checked in a preview."""


def has_unknown_roles(node: Any) -> bool:
    """True if the roles of ``node``, or the whole node, are unknown."""
    return is_unknown(node) or (
        isinstance(node, Mapping) and pulumi.contains_unknowns(node.get("roles"))
    )


def possible_roles(nodes: Any) -> Sequence[Sequence[Role]]:
    """The roles to try for all nodes whose roles are unknown; the first is the default."""
    if isinstance(nodes, Mapping) and any(map(has_unknown_roles, nodes.values())):
        return ((), (Role.CONTROLLER,), (Role.BROKER, Role.CONTROLLER))
    return ((),)


def known_node(id: str, node: Any, roles: Sequence[Role]) -> Any:
    """``node`` with a marker for each unknown host, without its other unknown values.

    A node whose roles are unknown gets ``roles``, and a marker for every host.
    """
    if not (isinstance(node, Mapping) or is_unknown(node)):
        return node
    known_values: Properties = {}
    for key, value in {} if is_unknown(node) else node.items():
        if key in HOSTS:
            marker = UnknownHost(f"nodes.{id}.{key}")
            known_values[key] = marker if pulumi.contains_unknowns(value) else value
        elif not pulumi.contains_unknowns(value):
            known_values[key] = value
        elif key in IN_PARTS and not is_unknown(parts := known_parts(value)):
            known_values[key] = parts
    container = known_values.get("container")
    if isinstance(container, Mapping) and "names" not in container and "names" in node["container"]:
        del known_values["container"]
    if has_unknown_roles(node):
        path = f"nodes.{id}" if is_unknown(node) else f"nodes.{id}.roles"
        known_values |= {**dict.fromkeys(HOSTS, UnknownHost(path)), "roles": roles}
    return known_values


def without_guesses(plan: ClusterPlan, nodes: Inputs) -> ClusterPlan:
    """``plan`` with a marker for each host of a node whose roles or ports are unknown.

    With unknown roles, it is unknown which listeners the node has; with unknown ports, which
    addresses it advertises, also with a host from `advertised`.
    """
    return plan.model_copy(
        update={"nodes": tuple(_without_guesses(node, nodes[str(node.id)]) for node in plan.nodes)}
    )


def _without_guesses(node: Node, inputs: Any) -> Node:
    if has_unknown_roles(inputs):
        path = f"nodes.{node.id}" if is_unknown(inputs) else f"nodes.{node.id}.roles"
    elif pulumi.contains_unknowns(inputs.get("ports")):
        path = f"nodes.{node.id}.ports"
    else:
        return node
    listeners = tuple(
        listener
        if isinstance(listener.host, UnknownHost)
        else listener.model_copy(update={"host": UnknownHost(path)})
        for listener in node.listeners
    )
    return node.model_copy(update={"listeners": listeners})


def known_parts(value: Any) -> Any:
    """``value`` without its unknown parts; unknown if nothing is left."""
    if isinstance(value, Mapping):
        all_parts = {key: known_parts(part) for key, part in value.items()}
        parts: Any = {key: part for key, part in all_parts.items() if not is_unknown(part)}
    elif isinstance(value, list | tuple):
        parts = [part for part in map(known_parts, value) if not is_unknown(part)]
    else:
        return value
    return parts if parts or not value else pulumi.UNKNOWN


def addressed(listeners: Any) -> Any:
    """``listeners`` with a marker for each unknown host of an address strategy."""
    if not isinstance(listeners, list | tuple):
        return listeners
    marked_listeners: list[Any] = []
    for listener in listeners:
        address = listener.get("address") if isinstance(listener, Mapping) else None
        if isinstance(address, Mapping) and is_unknown(address.get("host")):
            name = listener.get("name")
            host = UnknownHost(f"listeners.{name}.address.host")
            listener = {**listener, "address": {**address, "host": host}}
        marked_listeners.append(listener)
    return marked_listeners


def is_unknown(value: object) -> bool:
    """True if ``value`` is unknown as a whole."""
    return isinstance(value, pulumi.output.Unknown)

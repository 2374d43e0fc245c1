"""Corrects the record of a stack's changes by the settings that nodes run with. Pure.

A record may be lost, or restored from a copy that is older than the brokers. Then the nodes' own
settings decide the plan that the next change begins with.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from earshot.errors import AddressError
from earshot.listeners.grammar import parse_entries
from earshot.listeners.listed import numbered
from earshot.listeners.model import ClusterPlan, Listener, Node
from earshot.listeners.properties import NodeSettings
from earshot.listeners.render import settings
from earshot.listeners.terms import Protocol, Scope
from earshot.transition.memory import ChangeMemory

_LISTENERS, _ADVERTISED = "listeners", "advertised.listeners"
_MAP: Final = "listener.security.protocol.map"
_KEYS: Final = (
    _LISTENERS,
    _ADVERTISED,
    _MAP,
    "inter.broker.listener.name",
    "controller.listener.names",
)
"""The settings that decide which steps a change takes."""


def corrected(
    memory: ChangeMemory,
    target: ClusterPlan,
    observed: Mapping[int, NodeSettings],
    has_served: bool = False,
) -> tuple[ChangeMemory, str]:
    """``memory`` corrected by the running nodes, and a message about the difference, or "".

    ``observed`` are the settings of running nodes by id. A node whose settings cannot be read, or
    that no recorded plan has, is ignored. ``has_served`` is true for a cluster that an update saw
    serving: if it has no record, the record was lost.
    """
    if memory.complete is None:
        return _unrecorded(memory, target, observed) if has_served else (memory, "")
    remembered = (memory.complete, *memory.begun)
    ids = {node.id for plan in remembered for node in plan.nodes}
    running_settings = {
        id: node_settings
        for id, node_settings in observed.items()
        if id in ids and _ADVERTISED in node_settings.values
    }
    differing_ids = sorted(
        id
        for id, node_settings in running_settings.items()
        if not any(_is_run(plan, id, node_settings) for plan in remembered)
    )
    if not differing_ids:
        return memory, ""
    try:
        running_plan = _running_plan(
            memory.complete, target, {id: running_settings[id] for id in differing_ids}
        )
    except (AddressError, KeyError, ValueError):
        return memory, ""  # earshot has not written these settings
    still = [
        plan
        for plan in remembered
        if any(
            _is_run(plan, id, node_settings)
            for id, node_settings in running_settings.items()
            if id not in differing_ids
        )
    ]
    complete, *begun = (*still, running_plan)
    done_steps = memory.done if still else 0
    nodes = f"{numbered('node', differing_ids)} run{'s' if len(differing_ids) == 1 else ''}"
    listeners_text = ", ".join(map(str, running_plan.node(differing_ids[0]).listeners))
    return ChangeMemory(complete=complete, begun=tuple(begun), done=done_steps), (
        f"{nodes} other listeners than those that are remembered of the last change: "
        f"{listeners_text}; this update begins with what runs"
    )


def _unrecorded(
    memory: ChangeMemory, target: ClusterPlan, observed: Mapping[int, NodeSettings]
) -> tuple[ChangeMemory, str]:
    """The plan of the running nodes as the complete one, and a message if it is not ``target``."""
    ids = {node.id for node in target.nodes}
    running_settings = {
        id: node_settings
        for id, node_settings in sorted(observed.items())
        if id in ids and _ADVERTISED in node_settings.values
    }
    if not running_settings:
        return memory, ""
    try:
        running_plan = _running_plan(target, target, running_settings)
    except (AddressError, KeyError, ValueError):
        return memory, ""  # earshot has not written these settings
    if running_plan == target:
        return memory, ""
    return ChangeMemory(complete=running_plan), (
        "the record of the last change is lost or cannot be read; this update begins with the "
        "listeners that run"
    )


def _running_plan(
    last_plan: ClusterPlan, target: ClusterPlan, running_settings: Mapping[int, NodeSettings]
) -> ClusterPlan:
    """The plan of running nodes: ``target``, or else ``last_plan`` with their listeners.

    Raises KeyError, ValueError or AddressError for settings that earshot has not written.
    """
    ids = {node.id for node in target.nodes}
    if all(
        id in ids and _is_run(target, id, node_settings)
        for id, node_settings in running_settings.items()
    ):
        return target
    nodes = tuple(
        _node(node, running_settings[node.id]) if node.id in running_settings else node
        for node in last_plan.nodes
    )
    values = next(iter(running_settings.values())).values
    protocols = _protocols(values)
    controller = values["controller.listener.names"]
    return last_plan.model_copy(
        update={
            "nodes": nodes,
            "inter_broker": values.get("inter.broker.listener.name", last_plan.inter_broker),
            "controller": controller,
            "controller_protocol": protocols.get(controller, last_plan.controller_protocol),
        }
    )


def _node(last_node: Node, settings: NodeSettings) -> Node:
    """``last_node`` with the listeners in ``settings``."""
    bound = dict(parse_entries(settings.values[_LISTENERS]))
    advertised = dict(parse_entries(settings.values[_ADVERTISED]))
    protocols, scopes = _protocols(settings.values), _scopes(settings.notes)
    listeners = []
    for name, address in bound.items():
        last_listener, advertised_address = last_node.listener(name), advertised.get(name, address)
        has_same_protocol = last_listener is not None and last_listener.protocol is protocols[name]
        listener_scopes = scopes.get(name) or (
            last_listener.scopes if last_listener else (Scope.INTERNAL,)
        )
        listeners.append(
            Listener(
                name=name,
                protocol=protocols[name],
                scopes=listener_scopes,
                bind_host=address.host,
                bind_port=address.port,
                host=advertised_address.host,
                port=advertised_address.port,
                mechanism=last_listener.mechanism if last_listener and has_same_protocol else None,
                client_auth=last_listener.client_auth
                if last_listener and has_same_protocol
                else None,
                front=last_listener.front
                if last_listener and (last_listener.host, last_listener.port) == advertised_address
                else None,
            )
        )
    return last_node.model_copy(update={"listeners": tuple(listeners)})


def _is_run(plan: ClusterPlan, id: int, settings_found: NodeSettings) -> bool:
    """True if the node ``id`` runs with the listeners that ``plan`` has for it."""
    node = next((candidate for candidate in plan.nodes if candidate.id == id), None)
    return node is not None and _entries(settings(plan, node)) == _entries(settings_found.values)


def _entries(values: Mapping[str, str]) -> list[frozenset[str]]:
    """The listeners in ``values``, in any order."""
    return [frozenset(values.get(key, "").split(",")) for key in _KEYS]


def _protocols(values: Mapping[str, str]) -> dict[str, Protocol]:
    pairs = (entry.split(":") for entry in values[_MAP].split(","))
    return {name: Protocol(protocol) for name, protocol in pairs}


def _scopes(notes: Mapping[str, str]) -> dict[str, tuple[Scope, ...]]:
    pairs = (entry.split(":") for entry in notes.get("scopes", "").split(",") if ":" in entry)
    return {name: tuple(map(Scope, scopes.split("+"))) for name, scopes in pairs}

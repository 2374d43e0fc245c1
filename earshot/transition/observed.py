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
    memory: ChangeMemory, target: ClusterPlan, observed: Mapping[int, NodeSettings]
) -> tuple[ChangeMemory, str]:
    """``memory`` corrected by the running nodes, and a message about the difference, or "".

    ``observed`` are the settings of running nodes by id. A node whose settings cannot be read, or
    that no recorded plan has, is ignored.
    """
    if memory.complete is None:
        return memory, ""
    remembered = (memory.complete, *memory.begun)
    ids = {node.id for plan in remembered for node in plan.nodes}
    running = {
        id: node_settings
        for id, node_settings in observed.items()
        if id in ids and _ADVERTISED in node_settings.values
    }
    others = sorted(
        id
        for id, node_settings in running.items()
        if not any(_is_run(plan, id, node_settings) for plan in remembered)
    )
    if not others:
        return memory, ""
    try:
        runs = _runs(memory.complete, target, {id: running[id] for id in others})
    except (AddressError, KeyError, ValueError):
        return memory, ""  # earshot has not written these settings
    still = [
        plan
        for plan in remembered
        if any(
            _is_run(plan, id, node_settings)
            for id, node_settings in running.items()
            if id not in others
        )
    ]
    complete, *begun = (*still, runs)
    done = memory.done if still else 0
    nodes = f"{numbered('node', others)} run{'s' if len(others) == 1 else ''}"
    shown = ", ".join(map(str, runs.node(others[0]).listeners))
    return ChangeMemory(complete=complete, begun=tuple(begun), done=done), (
        f"{nodes} other listeners than those that are remembered of the last change: {shown}; this "
        "update begins with what runs"
    )


def _runs(
    last: ClusterPlan, target: ClusterPlan, running: Mapping[int, NodeSettings]
) -> ClusterPlan:
    """The plan of ``running`` nodes: ``target``, or else ``last`` with their listeners.

    Raises KeyError, ValueError or AddressError for settings that earshot has not written.
    """
    ids = {node.id for node in target.nodes}
    if all(
        id in ids and _is_run(target, id, node_settings) for id, node_settings in running.items()
    ):
        return target
    nodes = tuple(
        _node(node, running[node.id]) if node.id in running else node for node in last.nodes
    )
    values = next(iter(running.values())).values
    protocols = _protocols(values)
    controller = values["controller.listener.names"]
    return last.model_copy(
        update={
            "nodes": nodes,
            "inter_broker": values.get("inter.broker.listener.name", last.inter_broker),
            "controller": controller,
            "controller_protocol": protocols.get(controller, last.controller_protocol),
        }
    )


def _node(last: Node, settings: NodeSettings) -> Node:
    """``last`` with the listeners in ``settings``."""
    bound = dict(parse_entries(settings.values[_LISTENERS]))
    advertised = dict(parse_entries(settings.values[_ADVERTISED]))
    protocols, scopes = _protocols(settings.values), _scopes(settings.notes)
    listeners = []
    for name, address in bound.items():
        before, at = last.listener(name), advertised.get(name, address)
        same = before is not None and before.protocol is protocols[name]
        listener_scopes = scopes.get(name) or (before.scopes if before else (Scope.INTERNAL,))
        listeners.append(
            Listener(
                name=name,
                protocol=protocols[name],
                scopes=listener_scopes,
                bind_host=address.host,
                bind_port=address.port,
                host=at.host,
                port=at.port,
                mechanism=before.mechanism if before and same else None,
                client_auth=before.client_auth if before and same else None,
                front=before.front if before and (before.host, before.port) == at else None,
            )
        )
    return last.model_copy(update={"listeners": tuple(listeners)})


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

"""`plan`: from a cluster's spec and the names that were provisioned to the listeners of every node.

Pure and deterministic: the same spec and names give the same plan, in the same order.
A name that is not known yet stays a typed marker; what is unknown is a host, never the plan.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from earshot.errors import EarshotError
from earshot.listeners.address import Address
from earshot.listeners.model import (
    ANY_IPV4,
    ClusterPlan,
    Listener,
    Node,
    Role,
    Scope,
    UnknownHost,
)
from earshot.listeners.spec import ListenerSpec, LocalSpec, override


@dataclass(frozen=True)
class NodeNames:
    """What a placement provisioned for one node before it starts."""

    hosts: Mapping[Scope, str | UnknownHost]
    """A name for each scope that the node's listeners serve."""
    binds: Mapping[Scope, str] = field(default_factory=dict)
    """The interface to bind for a scope; default: all interfaces."""
    machine: str = ""
    """Nodes of one machine share its ports; an empty text means a machine of its own."""
    port_offset: int = 0
    """Nodes that share a machine take consecutive ports."""
    log_dir: str = "/var/lib/kafka/data"
    addresses: tuple[str, ...] = ()
    """The node's own IP addresses, where they are known: what its names must resolve to."""


def plan(spec: LocalSpec, names: Mapping[int, NodeNames]) -> ClusterPlan:
    """The listeners of every node of ``spec``.

    ``names`` holds one entry per id of ``spec.node_ids``. Raises EarshotError where a name for a
    scope is missing or a port leaves the range 1 to 65535.
    """
    nodes = tuple(_node(spec, id, names[id]) for id in spec.node_ids)
    _check_ports(nodes, names)
    return ClusterPlan(
        kafka_version=spec.kafka_version,
        inter_broker=spec.inter_broker_name,
        controller=spec.controllers.name,
        controller_protocol=spec.controllers.protocol,
        replication_factor=spec.replicas,
        min_insync_replicas=spec.min_insync,
        extra=tuple(sorted(spec.extra.items())),
        nodes=nodes,
    )


def _node(spec: LocalSpec, id: int, names: NodeNames) -> Node:
    roles: list[Role] = []
    listeners: list[Listener] = []
    if id in spec.broker_ids:
        roles.append(Role.BROKER)
        listeners += [_listener(item, id, names) for item in spec.listeners]
    if id in spec.controller_ids:
        roles.append(Role.CONTROLLER)
        quorum = ListenerSpec.model_construct(
            name=spec.controllers.name,
            port=spec.controllers.port,
            scopes=(Scope.CONTROLLER,),
            protocol=spec.controllers.protocol,
            bind=None,
            advertised={},
        )
        listeners.append(_listener(quorum, id, names))
    return Node(id=id, roles=tuple(roles), listeners=tuple(listeners), log_dir=names.log_dir)


def _listener(item: ListenerSpec, id: int, names: NodeNames) -> Listener:
    # a listener for several scopes advertises the name of the widest: everybody must resolve it
    widest = item.scopes[-1]
    port = item.port + names.port_offset
    if port > 65535:
        raise EarshotError(
            f"listener {item.name}, node {id}",
            observed=f"port {item.port} + {names.port_offset} = {port}",
            allowed="ports up to 65535",
            remedy=f"choose a lower port for {item.name}",
        )
    host, advertised_port = names.hosts.get(widest), port
    if id in item.advertised:
        chosen = override(item.advertised[id])
        host, advertised_port = chosen if isinstance(chosen, Address) else (chosen, port)
    if host is None:
        raise EarshotError(
            f"listener {item.name}, node {id}",
            observed=f"has the scope {widest}, for which this placement provisioned no name",
            allowed=", ".join(names.hosts),
        )
    return Listener(
        name=item.name,
        protocol=item.protocol,
        scopes=item.scopes,
        bind_host=item.bind or names.binds.get(widest, ANY_IPV4),
        bind_port=port,
        host=host,
        port=advertised_port,
    )


def _check_ports(nodes: tuple[Node, ...], names: Mapping[int, NodeNames]) -> None:
    taken: dict[tuple[str, int], str] = {}
    for node in nodes:
        machine = names[node.id].machine or f"node {node.id}"
        for item in node.listeners:
            holder = taken.setdefault((machine, item.bind_port), f"{item.name} of node {node.id}")
            if holder != f"{item.name} of node {node.id}":
                raise EarshotError(
                    f"port {item.bind_port} of {machine}",
                    observed=f"is claimed by {holder} and by {item.name} of node {node.id}",
                    allowed="one listener of one node per port; nodes of one machine take "
                    "consecutive ports, beginning at each listener's `port`",
                    remedy="move the listeners' ports further apart",
                )

"""Plans the listeners of every node from a cluster's spec and the provisioned names.

Deterministic and without input or output: the same spec and names give the same plan, in the same
order. A host that is not known yet is an `UnknownHost`. Everything else of the plan is known.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from earshot.certificates.shown import ShownCertificate
from earshot.config.addresses import AddressSpec
from earshot.config.cluster import ClusterSpec
from earshot.config.listener import ListenerSpec, override
from earshot.errors import EarshotError
from earshot.facts.cloud import Cloud
from earshot.listeners.address import MAX_PORT, Address
from earshot.listeners.model import ClusterPlan, ForwardingPath, Listener, Node
from earshot.listeners.terms import ANY_IPV4, Role, Scope, Strategy, UnknownHost
from earshot.placement.node_container import NodeContainer

LOCALHOST = "localhost"
LOOPBACK = "127.0.0.1"


@dataclass(frozen=True)
class NodeNames:
    """The names and ports that a placement provisioned for one node before its start."""

    hosts: Mapping[Scope, str | UnknownHost]
    """A name for each scope that the node's listeners serve."""
    binds: Mapping[Scope, str] = field(default_factory=dict)
    """The interface to bind for a scope; default: all interfaces. A listener binds all interfaces
    if its scopes have different ones."""
    machine: str = ""
    """Nodes of one machine share its ports; an empty text means a separate machine."""
    port_offset: int = 0
    """The node's offset to each listener's port: nodes of one machine use consecutive ports."""
    published: Mapping[str, int] = field(default_factory=dict)
    """The advertised port by listener, if it differs from the port that the listener binds."""
    log_dir: str = "/var/lib/kafka/data"
    rack: str = ""
    """The rack (availability zone) of the node; empty if all nodes are in one."""
    addresses: tuple[str, ...] = ()
    """The node's own IP addresses, if known. Its names must resolve to one of them."""


@dataclass(frozen=True)
class PlannedBalancer:
    """A load balancer of the stack, with a port per broker."""

    host: str | UnknownHost
    path: ForwardingPath
    group: str
    """The name of its security group."""
    private_link: bool = False
    """True if clients connect through endpoints in their own VPCs."""


@dataclass(frozen=True, kw_only=True)
class PlacementPlan:
    """The plan of a spec, and further facts of its placement. Mappings have node ids as keys."""

    plan: ClusterPlan
    names: Mapping[int, NodeNames]
    notes: tuple[str, ...]
    """Notes for the user about the names."""
    containers: Mapping[int, NodeContainer] = field(default_factory=dict)
    """Empty if nodes are not containers."""
    certificates: Mapping[int, ShownCertificate] = field(default_factory=dict)
    """Node certificates that were not issued by earshot."""

    @property
    def addresses(self) -> dict[int, tuple[str, ...]]:
        """Each node's own addresses, if the placement knows them."""
        return {}

    @property
    def cloud(self) -> Cloud | None:
        """The networks and security groups of nodes that are EC2 instances; None for others."""
        return None

    def machine_of(self, node_id: int) -> str:
        """The label of a node's machine, if there are several machines; else empty."""
        return ""

    def container_of(self, node_id: int) -> str:
        """The name of a node's container, with its host's if there are several; else empty."""
        return ""


def plan(
    spec: ClusterSpec, names: Mapping[int, NodeNames], balancer: PlannedBalancer | None = None
) -> ClusterPlan:
    """The listeners of every node of ``spec``.

    ``names`` has one entry per id of ``spec.node_ids``. ``balancer`` forwards to the listeners in
    ``spec.balanced``. Raises EarshotError if a name for a node or scope is missing, a port is above
    65535, or two listeners have one port of the same machine.
    """
    quorum = ListenerSpec.model_construct(  # only this listener may have the scope controller
        name=spec.controllers.name,
        port=spec.controllers.port,
        scopes=(Scope.CONTROLLER,),
        protocol=spec.controllers.protocol,
        bind=None,
        advertised={},
        address=AddressSpec(),
    )
    nodes = []
    for id in spec.node_ids:
        if id not in names:
            raise EarshotError(f"node {id}", observed="this placement provisioned no names for it")
        roles: list[Role] = []
        specs: list[ListenerSpec] = []
        if id in spec.ids:
            roles.append(Role.BROKER)
            specs += spec.listeners
        if id in spec.controller_ids:
            roles.append(Role.CONTROLLER)
            specs.append(quorum)
        listeners = tuple(
            _listener(
                listener_spec,
                id,
                names[id],
                balancer if listener_spec.name in spec.balanced else None,
            )
            for listener_spec in specs
        )
        nodes.append(
            Node(
                id=id,
                roles=tuple(roles),
                listeners=listeners,
                log_dir=names[id].log_dir,
                rack=names[id].rack if id in spec.ids else "",
            )
        )
    _check_ports(nodes, names)
    return ClusterPlan(
        kafka_version=spec.kafka_version,
        inter_broker=spec.inter_broker_name,
        controller=spec.controllers.name,
        controller_protocol=spec.controllers.protocol,
        replication_factor=spec.replicas,
        min_insync_replicas=spec.min_insync,
        extra=tuple(sorted(spec.extra.items())),
        nodes=tuple(nodes),
    )


def _listener(
    spec: ListenerSpec, id: int, names: NodeNames, balancer: PlannedBalancer | None
) -> Listener:
    port = spec.port + names.port_offset
    if port > MAX_PORT:
        raise EarshotError(
            f"listener {spec.name}, node {id}",
            observed=f"port {spec.port} + {names.port_offset} = {port}",
            allowed=f"ports up to {MAX_PORT}",
            remedy=f"choose a lower port for {spec.name}",
        )
    published_port = names.published.get(spec.name, port)
    host, advertised_port = _advertised(spec, id, names, published_port, balancer)
    binds = {names.binds.get(scope, ANY_IPV4) for scope in spec.scopes}
    forwarder = spec.address.front(host, advertised_port)
    if forwarder is not None and balancer is not None:
        forwarder = forwarder.model_copy(
            update={
                "group": balancer.group,
                "path": forwarder.path or balancer.path,
                "private_link": balancer.private_link,
            }
        )
    return Listener(
        name=spec.name,
        protocol=spec.protocol,
        scopes=spec.scopes,
        bind_host=spec.bind or (binds.pop() if len(binds) == 1 else ANY_IPV4),
        bind_port=port,
        host=host,
        port=advertised_port,
        mechanism=spec.mechanism,
        client_auth=spec.client_auth,
        front=forwarder,
    )


def _advertised(
    listener: ListenerSpec, id: int, names: NodeNames, port: int, balancer: PlannedBalancer | None
) -> tuple[str | UnknownHost, int]:
    """The advertised host and port; connections to ``port`` of the node reach the broker."""
    address = listener.address
    if address.strategy is Strategy.PORT:
        forwarder_host = address.host or (balancer.host if balancer else None)
        assert forwarder_host is not None  # the spec has checked it
        return forwarder_host, address.port_of(id)
    if address.strategy is Strategy.SNI:
        return address.name_of(id), address.port or listener.port
    if id in listener.advertised:
        override_address = override(listener.advertised[id])
        return (
            override_address if isinstance(override_address, Address) else (override_address, port)
        )
    # the name for the last scope, the widest, is the one that all clients of the listener resolve
    widest = listener.scopes[-1]
    if widest not in names.hosts:
        raise EarshotError(
            f"listener {listener.name}, node {id}",
            observed=f"has the scope {widest}, for which this placement provisioned no name",
            allowed=", ".join(names.hosts),
            remedy=f"name the host under the listener's `advertised`, as {id}: HOST",
        )
    return names.hosts[widest], port


def _check_ports(nodes: Iterable[Node], names: Mapping[int, NodeNames]) -> None:
    owners: dict[tuple[str, int], str] = {}
    for node in nodes:
        machine = names[node.id].machine or f"node {node.id}"
        claims = [
            (listener.bind_port, f"{listener.name} of node {node.id}")
            for listener in node.listeners
        ]
        for listener in node.listeners:
            # containers and instances do not share ports, even with equal names
            is_local = names[node.id].machine and listener.host in names[node.id].hosts.values()
            if listener.forwarded and is_local:
                claims.append(
                    (listener.port, f"what forwards to {listener.name} of node {node.id}")
                )
        for port, claim in claims:
            owner = owners.setdefault((machine, port), claim)
            if owner is not claim:
                raise EarshotError(
                    f"port {port} of {machine}",
                    observed=f"is claimed by {owner} and by {claim}",
                    allowed="one listener of one node per port; nodes of one machine use "
                    "consecutive ports, beginning at each listener's `port`",
                    remedy="move the listeners' ports further apart",
                )

"""Plans brokers in containers, with the inputs of each container.

Source for the resolution of container names: https://docs.docker.com/engine/network/ (user-defined
networks).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from earshot.config.docker import DockerSpec
from earshot.config.docker_host import DockerHost
from earshot.errors import EarshotError
from earshot.listeners.address import MAX_PORT
from earshot.listeners.images import IMAGE_NOTE
from earshot.listeners.model import ClusterPlan, Node
from earshot.listeners.render import environment
from earshot.listeners.security import token_options
from earshot.listeners.terms import Scope, UnknownHost
from earshot.placement.node_container import DATA, KEYS, NodeContainer
from earshot.placement.plan import LOCALHOST, LOOPBACK, NodeNames, PlacementPlan, plan
from earshot.placement.secured import secured
from earshot.topology.container import PublishedPort

if TYPE_CHECKING:
    from earshot.certificates.node_pem import NodeCertificate

CLEANER_HEAP = 512
"""The minimum heap (MiB) for Kafka's default buffer of the log cleaner (128 MiB)."""
SMALL_CLEANER = {"log.cleaner.dedupe.buffer.size": "2097152"}


@dataclass(frozen=True, kw_only=True)
class DockerPlan(PlacementPlan):
    """The plan of a docker spec, with its containers."""

    hosts: tuple[DockerHost, ...]

    def machine_of(self, node_id: int) -> str:
        has_several_hosts = len(self.hosts) > 1
        return self.hosts[self.containers[node_id].host].name if has_several_hosts else ""

    def container_of(self, node_id: int) -> str:
        container, machine = self.containers[node_id], self.machine_of(node_id)
        return f"{container.name} on {machine}" if machine else container.name


def planned(spec: DockerSpec, stack: str, state: Path) -> DockerPlan:
    """The plan of ``spec`` as stack ``stack``, with its files in ``state``. Raises EarshotError."""
    return plan_docker(spec, stack, state / "kafka")


def plan_docker(spec: DockerSpec, stack: str, root: Path = Path()) -> DockerPlan:
    """The plan of ``spec`` as stack ``stack``. Raises EarshotError.

    ``root`` is the folder of the stack's cluster, whose project contains certificates of other
    authorities.
    """
    docker_node_names = docker_names(spec)
    spec_with_defaults = spec.model_copy(
        update={"extra": _small_heap_settings(spec.heap) | spec.extra}
    )
    secured_plan = secured(
        plan(spec_with_defaults, docker_node_names.names), spec.security, root, KEYS
    )
    _check_subjects(secured_plan.node_certificates)
    ports = {
        id: tuple(node_ports.values()) for id, node_ports in docker_node_names.published.items()
    }
    containers = _containers(spec, stack, secured_plan.plan, ports)
    notes = (*docker_node_names.notes, *secured_plan.notes)
    return DockerPlan(
        plan=secured_plan.plan,
        names=docker_node_names.names,
        notes=notes,
        containers=containers,
        hosts=spec.hosts,
        certificates=secured_plan.certificates,
    )


def _check_subjects(nodes: Mapping[int, NodeCertificate]) -> None:
    """Checks the subjects for `super.users`, which brokers get in a variable."""
    for id, node in nodes.items():
        if "\\" in node.principal:
            raise EarshotError(
                f"the certificate of node {id}",
                observed=f"is for {node.principal}, whose backslash the images would remove",
                allowed='subjects without the characters , = + < > # " and \\ in their texts',
                remedy="have the certificate issued for another subject",
            )


def plan_step(
    spec: DockerSpec,
    stack: str,
    target: DockerPlan,
    step: ClusterPlan,
    published: Mapping[int, Iterable[PublishedPort]],
) -> DockerPlan:
    """The plan of ``step``, a step of the change to ``target``, which is the plan of ``spec``.

    Former listeners keep their host ports, which are in ``published`` by node id. Raises
    EarshotError if another listener needs such a port, or ``spec`` lacks a node of ``step``.
    """
    if step == target.plan:
        return target
    ports = {}
    for node in step.nodes:
        if node.id not in target.containers:
            raise EarshotError(
                f"node {node.id}",
                observed="is part of an interrupted step, and no longer in the stack file",
                remedy="add it again and apply that, then remove it",
            )
        ports[node.id] = tuple(_ports_at(node, target, published.get(node.id, ())))
    containers = _containers(spec, stack, step, ports)
    _check_step_ports(step, containers, spec.hosts)
    return replace(target, plan=step, containers=containers)


def _containers(
    spec: DockerSpec, stack: str, plan: ClusterPlan, ports: Mapping[int, tuple[PublishedPort, ...]]
) -> dict[int, NodeContainer]:
    containers, network = {}, network_name(stack)
    for node in plan.nodes:
        name = spec.name_of(node.id)
        values = environment(plan, node)
        if options := token_options(dict(plan.extra)):
            values["KAFKA_OPTS"] = " ".join(options)  # the images' scripts do not remove quotes
        containers[node.id] = NodeContainer(
            node_id=node.id,
            host=spec.host_of[node.id],
            name=name,
            network=network_of(spec, stack),
            volume=f"{network}-{name}",
            image=spec.image_name,
            ports=ports[node.id],
            environment={
                **values,
                IMAGE_NOTE: spec.image_name,  # the container's `image` is an id
                "KAFKA_HEAP_OPTS": f"-Xms{spec.heap} -Xmx{spec.heap}",
            },
            # container names have no underscore, so no data volume has this name
            keys=f"{network}-{name}_keys" if spec.security else "",
        )
    return containers


def _ports_at(
    node: Node, target: DockerPlan, published: Iterable[PublishedPort]
) -> Iterator[PublishedPort]:
    """The published ports of ``node`` at a step: those of ``target`` for its listeners, those in
    ``published`` for former listeners."""
    former_ports = list(published)
    for listener in node.listeners:
        is_new = target.plan.node(node.id).listener(listener.name) == listener
        ports = target.containers[node.id].ports if is_new else former_ports
        yield from (port for port in ports if port.container_port == listener.bind_port)


def _check_step_ports(
    step: ClusterPlan, containers: Mapping[int, NodeContainer], hosts: Sequence[DockerHost]
) -> None:
    claims: dict[tuple[int, int | None], str] = {}
    for id, container in containers.items():
        for port in container.ports:
            listeners = step.node(id).listeners
            name = next(
                listener.name for listener in listeners if listener.bind_port == port.container_port
            )
            claim = f"{name} of node {id}"
            first_claim = claims.setdefault((container.host, port.host_port), claim)
            if first_claim is not claim:
                raise EarshotError(
                    f"port {port.host_port} of Docker host {hosts[container.host].name}",
                    observed=f"is needed by {first_claim} and by {claim}, which exist at the same "
                    "time while listeners change",
                    allowed="ports that no listener has now; nodes of one host use consecutive "
                    "ports, beginning at each listener's `port`",
                    remedy="choose another `port` (or `published`) for the new listener; nothing "
                    "was changed",
                )


def network_of(spec: DockerSpec, stack: str) -> str:
    """The name of the brokers' network: the user's, or the stack's own."""
    return spec.network or network_name(stack)


def network_name(stack: str) -> str:
    """The name of the stack's own network, on each Docker host."""
    return f"earshot-{stack}"


def _small_heap_settings(heap: str) -> dict[str, str]:
    size = int(heap[:-1]) * (1024 if heap.endswith("g") else 1)
    return {} if size >= CLEANER_HEAP else SMALL_CLEANER


@dataclass(frozen=True)
class DockerNames:
    """The names and published ports of every node, and notes for the user."""

    names: dict[int, NodeNames]
    published: dict[int, dict[str, PublishedPort]]
    """Published ports by node id and listener name."""
    notes: tuple[str, ...] = ()


def docker_names(spec: DockerSpec) -> DockerNames:
    """The names of every node of ``spec``.

    On one Docker host, scopes internal and controller use the container's name, scope host uses
    `localhost`, and scope external the host's `external`; the last two have a published port.
    Several hosts share no network: there internal and controller use the name of the Docker host
    (`between_hosts`) with a published port, and scope host has no name. Each of several hosts is a
    rack, so that replicas are spread over hosts. Raises EarshotError if two listeners need one port
    of a host.
    """
    has_several_hosts = len(spec.hosts) > 1
    names: dict[int, NodeNames] = {}
    published: dict[int, dict[str, PublishedPort]] = {}
    for index, host in enumerate(spec.hosts):
        # brokers before controllers, so that their ports do not depend on the controllers
        nodes = [id for id in spec.node_ids if spec.host_of[id] == index]
        for position, id in enumerate(nodes):
            published[id] = dict(_published(spec, id, position, has_several_hosts))
            names[id] = NodeNames(
                hosts=_hosts(spec, id, host, has_several_hosts),
                published={name: port.host_port or 0 for name, port in published[id].items()},
                log_dir=DATA,
                rack=host.name if has_several_hosts else "",
            )
    _check_ports(spec, published)
    node_ids = spec.node_ids
    return DockerNames(
        {id: names[id] for id in node_ids},
        {id: published[id] for id in node_ids},
        tuple(_notes(spec)),
    )


def _hosts(
    spec: DockerSpec, id: int, host: DockerHost, has_several_hosts: bool
) -> dict[Scope, str | UnknownHost]:
    internal_host = (host.between_hosts if has_several_hosts else None) or spec.name_of(id)
    hosts: dict[Scope, str | UnknownHost] = {
        Scope.CONTROLLER: internal_host,
        Scope.INTERNAL: internal_host,
    }
    if not has_several_hosts:
        hosts[Scope.HOST] = LOCALHOST
    if host.external is not None:
        hosts[Scope.EXTERNAL] = host.external
    return hosts


def _published(
    spec: DockerSpec, id: int, position: int, has_several_hosts: bool
) -> Iterator[tuple[str, PublishedPort]]:
    if id in spec.ids:
        for listener in spec.listeners:
            if (
                has_several_hosts
                or id in listener.published
                or set(listener.scopes) & {Scope.HOST, Scope.EXTERNAL}
            ):
                port = listener.published.get(id, listener.port + position)
                # only processes of the host use a listener of scope host
                ip = LOOPBACK if not has_several_hosts and listener.scopes == (Scope.HOST,) else ""
                yield listener.name, PublishedPort(listener.port, port, ip)
    if has_several_hosts and id in spec.controller_ids:
        port = spec.controllers.port
        yield spec.controllers.name, PublishedPort(port, port + position)


def _check_ports(spec: DockerSpec, published: dict[int, dict[str, PublishedPort]]) -> None:
    claims: dict[tuple[int, int], str] = {}
    for id, ports in published.items():
        for listener, published_port in ports.items():
            claim, port = f"{listener} of node {id}", published_port.host_port or 0
            host = spec.hosts[spec.host_of[id]].name
            if port > MAX_PORT:
                raise EarshotError(
                    f"listener {listener}, node {id}",
                    observed=f"would be published on port {port} of host {host}",
                    allowed=f"ports up to {MAX_PORT}",
                    remedy=f"choose a lower port for {listener}",
                )
            first_claim = claims.setdefault((spec.host_of[id], port), claim)
            if first_claim is not claim:
                raise EarshotError(
                    f"port {port} of Docker host {host}",
                    observed=f"is claimed by {first_claim} and by {claim}",
                    allowed="one listener of one node per port; nodes of one host use consecutive "
                    "ports, beginning at each listener's `port`",
                    remedy="move the listeners' ports further apart, or set `published`",
                )


def _notes(spec: DockerSpec) -> Iterator[str]:
    (first_host, *other_hosts) = spec.hosts
    if other_hosts or first_host.external is not None:
        return
    if not any(Scope.EXTERNAL in listener.scopes for listener in spec.listeners):
        host_listeners = [
            listener.name for listener in spec.listeners if Scope.HOST in listener.scopes
        ]
        yield (
            f"{', '.join(host_listeners) or 'every listener'}: not for clients outside the Docker "
            "host, which has no name for them; set it in `hosts[0].external`"
        )

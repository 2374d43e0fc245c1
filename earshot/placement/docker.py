"""The plan of brokers that are containers, down to the inputs of each container.

What each of their names means at each place: https://docs.docker.com/engine/network/ (user-defined
networks).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from earshot.config.docker import DockerHost, DockerSpec
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
    from earshot.certificates.given import GivenNode

ROOMY = 512
"""MiB of heap in which Kafka's own default for the log cleaner (128 MiB) has room."""
SMALL_CLEANER = {"log.cleaner.dedupe.buffer.size": "2097152"}


@dataclass(frozen=True, kw_only=True)
class DockerPlan(PlacementPlan):
    """The plan of a docker spec, with its containers."""

    hosts: tuple[DockerHost, ...]

    def machine_of(self, node_id: int) -> str:
        several = len(self.hosts) > 1
        return self.hosts[self.containers[node_id].host].name if several else ""

    def container_of(self, node_id: int) -> str:
        container, named = self.containers[node_id], self.machine_of(node_id)
        return f"{container.name} on {named}" if named else container.name


def planned(spec: DockerSpec, stack: str, state: Path) -> DockerPlan:
    """The plan of ``spec`` as stack ``stack``, with its files in ``state``. Raises EarshotError."""
    return plan_docker(spec, stack, state / "kafka")


def plan_docker(spec: DockerSpec, stack: str, root: Path = Path()) -> DockerPlan:
    """The plan of ``spec`` as stack ``stack``. Raises EarshotError.

    ``root`` is the folder of the stack's cluster, whose project contains certificates of other
    authorities.
    """
    named = docker_names(spec)
    settled = spec.model_copy(update={"extra": _small(spec.heap) | spec.extra})
    secured_plan = secured(plan(settled, named.names), spec.security, root, KEYS)
    _check_subjects(secured_plan.given)
    ports = {id: tuple(node_ports.values()) for id, node_ports in named.published.items()}
    containers = _containers(spec, stack, secured_plan.plan, ports)
    notes = (*named.notes, *secured_plan.notes)
    return DockerPlan(
        plan=secured_plan.plan,
        names=named.names,
        notes=notes,
        containers=containers,
        hosts=spec.hosts,
        certificates=secured_plan.certificates,
    )


def _check_subjects(given: Mapping[int, GivenNode]) -> None:
    """Checks the subjects for `super.users`, which brokers get in a variable."""
    for id, node in given.items():
        if "\\" in node.principal:
            raise EarshotError(
                f"the certificate of node {id}",
                observed=f"is for {node.principal}, and images would take the backslash away",
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
    """``target``, the plan of ``spec``, with the listeners of ``step`` of a change to it.

    Former listeners keep their host ports in ``published``, by node id. Raises EarshotError if
    another listener needs such a port, or ``spec`` lacks a node of ``step``.
    """
    if step == target.plan:
        return target
    ports = {}
    for node in step.nodes:
        if node.id not in target.containers:
            raise EarshotError(
                f"node {node.id}",
                observed="is part of a step that was interrupted, and the stack's file has it no "
                "more",
                remedy="put it back and apply that, then take it away",
            )
        ports[node.id] = tuple(_ports_at(node, target, published.get(node.id, ())))
    containers = _containers(spec, stack, step, ports)
    _check_side_by_side(step, containers, spec.hosts)
    return replace(target, plan=step, containers=containers)


def _containers(
    spec: DockerSpec, stack: str, plan: ClusterPlan, ports: Mapping[int, tuple[PublishedPort, ...]]
) -> dict[int, NodeContainer]:
    containers, own = {}, network_name(stack)
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
            volume=f"{own}-{name}",
            image=spec.image_name,
            ports=ports[node.id],
            environment={
                **values,
                IMAGE_NOTE: spec.image_name,  # its container is given the image's id
                "KAFKA_HEAP_OPTS": f"-Xms{spec.heap} -Xmx{spec.heap}",
            },
            # container names have no underscore, so that no data volume has this name
            keys=f"{own}-{name}_keys" if spec.security else "",
        )
    return containers


def _ports_at(
    node: Node, target: DockerPlan, published: Iterable[PublishedPort]
) -> Iterator[PublishedPort]:
    """The published ports of ``node``, which has listeners of ``target`` and former ones."""
    old = list(published)
    for listener in node.listeners:
        is_new = target.plan.node(node.id).listener(listener.name) == listener
        ports = target.containers[node.id].ports if is_new else old
        yield from (port for port in ports if port.container_port == listener.bind_port)


def _check_side_by_side(
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
            holder = claims.setdefault((container.host, port.host_port), claim)
            if holder is not claim:
                raise EarshotError(
                    f"port {port.host_port} of Docker host {hosts[container.host].name}",
                    observed=f"is wanted by {holder} and by {claim}, which are there side by side "
                    "while listeners change",
                    allowed="ports that no listener has now; nodes of one host take consecutive "
                    "ports, beginning at each listener's `port`",
                    remedy="choose another `port` (or `published`) for the new listener; nothing "
                    "was touched",
                )


def network_of(spec: DockerSpec, stack: str) -> str:
    """The network of the brokers' containers."""
    return spec.network or network_name(stack)


def network_name(stack: str) -> str:
    """The brokers' network on each of their hosts."""
    return f"earshot-{stack}"


def _small(heap: str) -> dict[str, str]:
    size = int(heap[:-1]) * (1024 if heap.endswith("g") else 1)
    return {} if size >= ROOMY else SMALL_CLEANER


@dataclass(frozen=True)
class DockerNames:
    """Per node its names and the ports of its host, and what a user should know about them."""

    names: dict[int, NodeNames]
    published: dict[int, dict[str, PublishedPort]]
    """By node id and listener, the port of the host that leads to it."""
    notes: tuple[str, ...] = ()


def docker_names(spec: DockerSpec) -> DockerNames:
    """The names of every node of ``spec``; pure.

    On one host, scopes internal and controller get the container's name, host gets `localhost`
    and external the host's `external`, both with a published port. On several hosts, whose
    networks do not span them, internal and controller get the name of the host and a published
    port too, and each host is a rack, so that replicas are spread over hosts. Raises EarshotError
    where two listeners want one port of a host.
    """
    apart = len(spec.hosts) > 1
    names: dict[int, NodeNames] = {}
    published: dict[int, dict[str, PublishedPort]] = {}
    for index, host in enumerate(spec.hosts):
        # on each host brokers come first, so that their ports do not depend on the controllers'
        nodes = [id for id in spec.node_ids if spec.host_of[id] == index]
        for turn, id in enumerate(nodes):
            published[id] = dict(_published(spec, id, turn, apart))
            names[id] = NodeNames(
                hosts=_hosts(spec, id, host, apart),
                published={name: port.host_port or 0 for name, port in published[id].items()},
                log_dir=DATA,
                rack=host.name if apart else "",
            )
    _check_ports(spec, published)
    ordered = spec.node_ids
    return DockerNames(
        {id: names[id] for id in ordered},
        {id: published[id] for id in ordered},
        tuple(_notes(spec)),
    )


def _hosts(
    spec: DockerSpec, id: int, host: DockerHost, apart: bool
) -> dict[Scope, str | UnknownHost]:
    inside = (host.between_hosts if apart else None) or spec.name_of(id)
    hosts: dict[Scope, str | UnknownHost] = {Scope.CONTROLLER: inside, Scope.INTERNAL: inside}
    if not apart:
        hosts[Scope.HOST] = LOCALHOST
    if host.external is not None:
        hosts[Scope.EXTERNAL] = host.external
    return hosts


def _published(
    spec: DockerSpec, id: int, turn: int, apart: bool
) -> Iterator[tuple[str, PublishedPort]]:
    if id in spec.ids:
        for listener in spec.listeners:
            if (
                apart
                or id in listener.published
                or set(listener.scopes) & {Scope.HOST, Scope.EXTERNAL}
            ):
                port = listener.published.get(id, listener.port + turn)
                # only processes of the host use a listener of scope host
                ip = LOOPBACK if not apart and listener.scopes == (Scope.HOST,) else ""
                yield listener.name, PublishedPort(listener.port, port, ip)
    if apart and id in spec.controller_ids:
        port = spec.controllers.port
        yield spec.controllers.name, PublishedPort(port, port + turn)


def _check_ports(spec: DockerSpec, published: dict[int, dict[str, PublishedPort]]) -> None:
    taken: dict[tuple[int, int], str] = {}
    for id, ports in published.items():
        for listener, item in ports.items():
            claim, port = f"{listener} of node {id}", item.host_port or 0
            host = spec.hosts[spec.host_of[id]].name
            if port > MAX_PORT:
                raise EarshotError(
                    f"listener {listener}, node {id}",
                    observed=f"would be published on port {port} of host {host}",
                    allowed=f"ports up to {MAX_PORT}",
                    remedy=f"choose a lower port for {listener}",
                )
            holder = taken.setdefault((spec.host_of[id], port), claim)
            if holder is not claim:
                raise EarshotError(
                    f"port {port} of Docker host {host}",
                    observed=f"is claimed by {holder} and by {claim}",
                    allowed="one listener of one node per port; nodes of one host take consecutive "
                    "ports, beginning at each listener's `port`",
                    remedy="move the listeners' ports further apart, or set `published`",
                )


def _notes(spec: DockerSpec) -> Iterator[str]:
    (first, *others) = spec.hosts
    if others or first.external is not None:
        return
    if not any(Scope.EXTERNAL in listener.scopes for listener in spec.listeners):
        host_listeners = [
            listener.name for listener in spec.listeners if Scope.HOST in listener.scopes
        ]
        yield (
            f"{', '.join(host_listeners) or 'every listener'}: not for clients "
            "beyond the Docker host, which "
            "has no name for them; `hosts[0].external` gives it one"
        )

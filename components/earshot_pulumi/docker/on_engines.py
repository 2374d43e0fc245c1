"""The containers, volumes and networks on a stack's engines, and why they prevent an update.

Labels on containers and volumes identify a stack's objects, as data outlives the stack's state.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from earshot.config.docker_host import DockerHost
from earshot.engine import DockerObject
from earshot.errors import EarshotError
from earshot.listeners.model import ClusterPlan
from earshot.listeners.render import voters
from earshot.placement.node_container import NodeContainer
from earshot.topology.container import PublishedPort
from earshot_pulumi.docker import labels
from earshot_pulumi.docker.container_address import ContainerAddress, Engines, asking
from earshot_pulumi.properties import read, write
from earshot_pulumi.provider.kind import Properties
from earshot_pulumi.refusals import moving_controllers, other_voters
from earshot_pulumi.unknown_inputs import is_marker


class _Labelled:
    labels: Mapping[str, str]

    @property
    def node(self) -> int:
        return labels.node_id(self.labels)


@dataclass(frozen=True)
class EngineContainer(_Labelled):
    """A container as an engine lists it."""

    host: str
    id: str
    name: str
    image: str
    running: bool
    labels: Mapping[str, str] = field(default_factory=dict)
    ports: tuple[PublishedPort, ...] = ()


@dataclass(frozen=True)
class EngineVolume(_Labelled):
    host: str
    name: str
    labels: Mapping[str, str] = field(default_factory=dict)


class EngineNetwork(EngineVolume):
    pass


@dataclass(frozen=True)
class EngineObjects:
    """The objects on all hosts of a stack, whether its own or not."""

    containers: tuple[EngineContainer, ...] = ()
    volumes: tuple[EngineVolume, ...] = ()
    networks: tuple[EngineNetwork, ...] = ()


@dataclass(frozen=True)
class TargetStack:
    """The target of an update: a stack's plan, its containers and their hosts."""

    stack: str
    deployment: str
    cluster_id: str
    """Empty until the preflight has decided it."""
    plan: ClusterPlan
    containers: Mapping[int, NodeContainer]
    hosts: tuple[DockerHost, ...]
    network: str = ""
    """The existing network that its containers join; empty if the stack creates one."""

    @classmethod
    def from_props(cls, props: Properties) -> TargetStack:
        """Read from a resource's inputs."""
        containers = {container["node_id"]: container for container in props["containers"]}
        return read(cls, {**props, "containers": containers})

    def to_props(self) -> Properties:
        """The inputs of a resource, without the containers' environment."""
        props: Properties = write(self)
        del props["deployment"]  # the update generates it
        if not self.network:
            del props["network"]  # as in states of earlier releases
        return props | {
            "containers": [
                {**container, "environment": {}} for container in props["containers"].values()
            ]
        }

    @property
    def used_hosts(self) -> list[int]:
        """The indexes of hosts that have nodes, sorted."""
        return sorted({container.host for container in self.containers.values()})

    def host_of(self, id: int) -> str:
        return self.hosts[self.containers[id].host].name

    def address_of(self, id: int, root: Path | None = None) -> ContainerAddress:
        """``root`` is the folder with the keys of a secured cluster."""
        container = self.containers[id]
        return ContainerAddress.of(
            self.plan, self.plan.node(id), container, self.hosts[container.host], root
        )

    def owns(self, own: Mapping[str, str]) -> bool:
        """True if the labels ``own`` are those of this deployment."""
        return own.get(labels.DEPLOYMENT) == self.deployment


def hosts_of(props: Properties) -> tuple[DockerHost, ...]:
    """The Docker hosts in a resource's inputs; empty without inputs."""
    return tuple(DockerHost.model_validate(host) for host in props.get("hosts", ()))


def can_be_asked(props: Properties) -> bool:
    """True if all engines in a resource's inputs are known; a preview may not know them yet."""
    return not any(is_marker(host.engine) for host in hosts_of(props))


def look(engines: Engines, hosts: Iterable[DockerHost]) -> EngineObjects:
    """The objects on the engines of ``hosts``. Raises EarshotError if one does not answer."""
    containers: list[EngineContainer] = []
    volumes: list[EngineVolume] = []
    networks: list[EngineNetwork] = []
    for host in hosts:
        api = engines.of(host).api
        with asking(f"Docker host {host.name}", host):
            containers += [
                _container(host.name, container) for container in api.containers(all=True)
            ]
            for volume in api.volumes()["Volumes"] or ():
                volumes.append(EngineVolume(host.name, volume["Name"], _labels(volume)))
            for network in api.networks():
                networks.append(EngineNetwork(host.name, network["Name"], _labels(network)))
    return EngineObjects(tuple(containers), tuple(volumes), tuple(networks))


def described(
    engines: Engines,
    hosts: Iterable[DockerHost],
    objects: EngineObjects,
    is_own: Callable[[Mapping[str, str]], bool],
) -> Iterator[tuple[EngineContainer, DockerHost, Properties]]:
    """Each running container of ``objects`` whose labels are ``is_own``, with its host and its
    engine's description. Raises EarshotError if an engine fails."""
    by_name = {host.name: host for host in hosts}
    for container in objects.containers:
        host = by_name.get(container.host)
        if host is not None and container.running and is_own(container.labels):
            description = engines.inspect(f"Docker host {host.name}", host, container.id)
            if description is not None:
                yield container, host, description


def of_stack(stack: str) -> Callable[[Mapping[str, str]], bool]:
    """A predicate: True if labels are those of a deployment of ``stack``."""
    return lambda own: own.get(labels.STACK) == stack


def listed_name(listing: DockerObject) -> str:
    """The name of a container that an engine lists; part of its id if it has none."""
    names: list[str] = listing["Names"] or [listing["Id"][:12]]
    return names[0].lstrip("/")


def _labels(listing: DockerObject) -> dict[str, str]:
    """The labels of an object that an engine lists. Raises TypeError if they are no texts."""
    own: dict[str, str] = listing["Labels"] or {}
    if not isinstance(own, dict) or not all(isinstance(text, str) for text in own.values()):
        raise TypeError("the labels are no texts")
    return own


def _container(host: str, listing: DockerObject) -> EngineContainer:
    return EngineContainer(
        host=host,
        id=listing["Id"],
        name=listed_name(listing),
        image=listing["Image"],
        running=listing["State"] in ("running", "restarting", "paused"),
        labels=_labels(listing),
        ports=tuple(
            PublishedPort(port["PrivatePort"], port["PublicPort"], port.get("IP", ""), port["Type"])
            for port in listing["Ports"] or ()
            if port.get("PublicPort")
        ),
    )


def problems(target: TargetStack, objects: EngineObjects) -> Iterator[str]:
    """Why ``target`` must not be applied to the engines with ``objects``, one message each.

    `volume_data` checks removed brokers.
    """
    yield from _taken_names(target, objects)
    yield from _foreign_data(target, objects)
    if target.cluster_id:  # else `identity` decides the id in this run
        planned = spots(target.hosts, target.containers.values())
        yield from another_clusters_data(target.stack, target.cluster_id, planned, objects)
    yield from _moved_controllers(target, objects)
    yield from _taken_ports(target, objects)


def _taken_names(target: TargetStack, objects: EngineObjects) -> Iterator[str]:
    planned = {(target.host_of(id), node.name): id for id, node in target.containers.items()}
    for container in objects.containers:
        id = planned.get((container.host, container.name))
        if id is not None and not target.owns(container.labels):
            owner = _whose(container.labels, f"a container of the image {container.image}")
            yield (
                f"the name {container.name} of node {id} is taken on Docker host "
                f"{container.host} by {owner}. "
                f"Remove it (`docker rm --force {container.name}` leaves its volumes), or choose "
                f"another name: `names: {{{id}: …}}`"
            )
    names = {node.network for node in target.containers.values()} - {target.network}
    for network in objects.networks:
        if network.name in names and not target.owns(network.labels):
            yield (
                f"the network {network.name} exists on Docker host {network.host} and is "
                f"{_whose(network.labels, 'not of this stack')}. "
                f"Remove it (`docker network rm {network.name}`), or name the stack otherwise"
            )


def check_network(engines: Engines, target: TargetStack) -> None:
    """Raises EarshotError if a host lacks the existing network that the containers join."""
    if not target.network:
        return
    for host in (target.hosts[index] for index in target.used_hosts):
        with asking(f"Docker host {host.name}", host):
            names = {network["Name"] for network in engines.of(host).api.networks()}
        if target.network not in names:
            raise EarshotError(
                f"network: {target.network}",
                observed=f"Docker host {host.name} has no network of this name",
                remedy=f"make it (`docker network create {target.network}`), or leave `network` "
                "out, and the stack makes one",
            )


def _whose(own: Mapping[str, str], otherwise: str) -> str:
    if stack := own.get(labels.STACK):
        return f"another deployment of a stack {stack}, whose state is kept elsewhere or was lost"
    return otherwise


def _foreign_data(target: TargetStack, objects: EngineObjects) -> Iterator[str]:
    planned = {
        (target.host_of(id), container.volume): id for id, container in target.containers.items()
    }
    ids = tuple(sorted(node.id for node in target.plan.controllers))
    quorums: dict[tuple[int, ...], None] = {}
    for volume in objects.volumes:
        id = planned.get((volume.host, volume.name))
        if id is None:
            continue
        subject = f"volume {volume.name} on Docker host {volume.host}"
        if volume.labels.get(labels.STACK) != target.stack or volume.node != id:
            yield (
                f"{subject} is there already and does not hold node {id} of stack {target.stack}. "
                "Name the stack or the node otherwise, or remove the volume if it is no "
                "longer needed"
            )
        elif voter_ids := labels.ids_of_voters(volume.labels):
            quorums[voter_ids] = None
    for voter_ids in quorums.keys() - {ids}:
        yield other_voters(voter_ids, ids, "`data: delete` and `pulumi destroy`")


Spot = tuple[str, str, int]
"""A Docker host's name, a volume's name, and the id of the node with its data there."""


def spots(hosts: Sequence[DockerHost], containers: Iterable[NodeContainer]) -> set[Spot]:
    return {
        (hosts[container.host].name, container.volume, container.node_id)
        for container in containers
    }


def own_volumes(
    stack: str, planned: Collection[Spot], objects: EngineObjects
) -> Iterator[EngineVolume]:
    """Volumes of ``stack`` at ``planned`` spots; `problems` refuses those of other stacks."""
    for volume in objects.volumes:
        at = (volume.host, volume.name, volume.node)
        if at in planned and volume.labels.get(labels.STACK) == stack:
            yield volume


def held_by_cluster(
    stack: str, planned: Collection[Spot], objects: EngineObjects
) -> dict[str, list[EngineVolume]]:
    """Volumes of ``stack`` at ``planned`` spots, by the cluster id of their data."""
    by_cluster: dict[str, list[EngineVolume]] = {}
    for volume in own_volumes(stack, planned, objects):
        by_cluster.setdefault(labels.cluster_id_of(volume.labels), []).append(volume)
    return by_cluster


def another_clusters_data(
    stack: str, cluster_id: str | None, planned: Collection[Spot], objects: EngineObjects
) -> Iterator[str]:
    """One message for each other cluster with data in the volumes of cluster ``cluster_id``.

    None means a new cluster.
    """
    for id, volumes in held_by_cluster(stack, planned, objects).items():
        if id == cluster_id:
            continue
        where = ", ".join(f"{volume.name} on Docker host {volume.host}" for volume in volumes)
        names = [
            container.name
            for container in objects.containers
            if container.labels.get(labels.STACK) == stack
        ]
        yield (
            f"{where}: data of cluster {id}, which a stack called {stack} has made, of this "
            f"checkout or another; this one is {cluster_id or 'a new one'}. "
            + (f"Containers of such a stack are there: {', '.join(names)}. " if names else "")
            + f"To take it over, write `cluster_id: {id}` into the stack's file; if it is no "
            "longer needed, remove the volumes (`docker volume rm`); else name the stack otherwise"
        )


def _moved_controllers(target: TargetStack, objects: EngineObjects) -> Iterator[str]:
    after = voters(target.plan)
    if is_marker(after):
        return  # unknown in a preview
    for container in objects.containers:
        before = container.labels.get(labels.VOTERS, after)
        if (
            target.owns(container.labels)
            and container.running
            and before != after
            and _ids(before) == _ids(after)
        ):
            yield moving_controllers(
                before,
                after,
                "Stop the cluster first (`pulumi destroy`; data is kept)",
            )
            return


def _taken_ports(target: TargetStack, objects: EngineObjects) -> Iterator[str]:
    for id, container in target.containers.items():
        for port in container.ports:
            for other in objects.containers:
                clashing = next(
                    (published for published in other.ports if _clash(published, port)), None
                )
                is_this_node = target.owns(other.labels) and other.node == id
                if clashing is None or other.host != target.host_of(id) or is_this_node:
                    continue
                whose = f", node {other.node} of this stack" if target.owns(other.labels) else ""
                yield (
                    f"port {port.host_port} of Docker host {other.host}, for node {id}, is taken "
                    f"by container {other.name}{whose}. Free the port, or choose another `port` "
                    "(or `published`) for the listener"
                )


def _clash(published: PublishedPort, port: PublishedPort) -> bool:
    anywhere = {"", "0.0.0.0", "::"}
    same = published.host_ip == port.host_ip or anywhere & {published.host_ip, port.host_ip}
    return (
        bool(same) and published.host_port == port.host_port and published.protocol == port.protocol
    )


def _ids(quorum: str) -> set[str]:
    return {entry.partition("@")[0] for entry in quorum.split(",")}

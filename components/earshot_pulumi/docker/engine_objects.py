"""Lists the containers, volumes and networks on a stack's engines, and what prevents an update.

Labels on containers and volumes identify a stack's objects, because data outlives its state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from earshot.config.docker_host import DockerHost
from earshot.engine.connection import DockerObject
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
    """A container in an engine's list."""

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
    """All objects on the hosts of a stack, also those of others."""

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
    """The existing network of its containers; empty if the stack creates one."""

    @classmethod
    def from_props(cls, props: Properties) -> TargetStack:
        """Read from a resource's inputs."""
        containers = {container["node_id"]: container for container in props["containers"]}
        return read(cls, {**props, "containers": containers})

    def to_props(self) -> Properties:
        """The inputs of a resource, without the containers' environment."""
        props: Properties = write(self)
        del props["deployment"], props["cluster_id"]  # the preflight decides them
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

    def owns(self, object_labels: Mapping[str, str]) -> bool:
        """True if ``object_labels`` are those of this deployment."""
        return object_labels.get(labels.DEPLOYMENT) == self.deployment


def hosts_of(props: Properties) -> tuple[DockerHost, ...]:
    """The Docker hosts in a resource's inputs; empty without inputs."""
    return tuple(DockerHost.model_validate(host) for host in props.get("hosts", ()))


def can_be_asked(props: Properties) -> bool:
    """True if all engines in a resource's inputs are known. A preview may not know them yet."""
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
                volumes.append(EngineVolume(host.name, _name(volume), _labels(volume)))
            for network in api.networks():
                networks.append(EngineNetwork(host.name, _name(network), _labels(network)))
    return EngineObjects(tuple(containers), tuple(volumes), tuple(networks))


def of_stack(stack: str) -> Callable[[Mapping[str, str]], bool]:
    """A predicate: True if labels are those of a deployment of ``stack``."""
    return lambda object_labels: object_labels.get(labels.STACK) == stack


def listed_name(listing: DockerObject) -> str:
    """The name of a container that an engine lists; part of its id if it has none."""
    names: list[str] = listing["Names"] or [listing["Id"][:12]]
    return names[0].lstrip("/")


def _name(listing: DockerObject) -> str:
    """The name of a volume or network that an engine lists. Raises TypeError if it is no text."""
    name: str = listing["Name"]
    if not isinstance(name, str):
        raise TypeError("the name is no text")
    return name


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
    if target.cluster_id:  # otherwise `volume_data` decides the id in this run
        yield from another_clusters_data(target, target.cluster_id, objects)
    yield from _moved_controllers(target, objects)
    yield from _taken_ports(target, objects)


def _taken_names(target: TargetStack, objects: EngineObjects) -> Iterator[str]:
    planned = {(target.host_of(id), node.name): id for id, node in target.containers.items()}
    for container in objects.containers:
        id = planned.get((container.host, container.name))
        if id is not None and not target.owns(container.labels):
            owner = _owner(container.labels, f"a container of the image {container.image}")
            yield (
                f"the name {container.name} of node {id} is taken on Docker host {container.host} "
                f"by {owner}. Remove it (`docker rm --force {container.name}` leaves its volumes), "
                f"or choose another name: `names: {{{id}: …}}`"
            )
    names = {node.network for node in target.containers.values()} - {target.network}
    for network in objects.networks:
        if network.name in names and not target.owns(network.labels):
            yield (
                f"the network {network.name} exists on Docker host {network.host} and is "
                f"{_owner(network.labels, 'not of this stack')}. "
                f"Remove it (`docker network rm {network.name}`), or give the stack another name"
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
                remedy=f"create it (`docker network create {target.network}`), or leave out "
                "`network`: then the stack creates one",
            )


def _owner(object_labels: Mapping[str, str], default: str) -> str:
    if stack := object_labels.get(labels.STACK):
        return f"another deployment of a stack {stack}, whose state is kept elsewhere or was lost"
    return default


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
                f"{subject} exists already and is not of node {id} of stack {target.stack}. Give "
                "the stack or the node another name, or remove the volume if it is no longer needed"
            )
        elif voter_ids := labels.ids_of_voters(volume.labels):
            quorums[voter_ids] = None
    for voter_ids in quorums.keys() - {ids}:
        yield other_voters(voter_ids, ids)


def own_volumes(target: TargetStack, objects: EngineObjects) -> Iterator[EngineVolume]:
    """The nodes' existing volumes of the stack. `problems` refuses volumes of other stacks."""
    planned = {
        (target.host_of(id), container.volume, id) for id, container in target.containers.items()
    }
    for volume in objects.volumes:
        is_planned = (volume.host, volume.name, volume.node) in planned
        if is_planned and volume.labels.get(labels.STACK) == target.stack:
            yield volume


def held_by_cluster(target: TargetStack, objects: EngineObjects) -> dict[str, list[EngineVolume]]:
    """The nodes' existing volumes of the stack, by the cluster id of their data."""
    volumes_by_cluster: dict[str, list[EngineVolume]] = {}
    for volume in own_volumes(target, objects):
        volumes_by_cluster.setdefault(labels.cluster_id_of(volume.labels), []).append(volume)
    return volumes_by_cluster


def another_clusters_data(
    target: TargetStack, cluster_id: str | None, objects: EngineObjects
) -> Iterator[str]:
    """One message for each other cluster with data in the volumes of cluster ``cluster_id``.

    None means a new cluster.
    """
    stack = target.stack
    for id, volumes in held_by_cluster(target, objects).items():
        if id == cluster_id:
            continue
        volume_texts = ", ".join(
            f"{volume.name} on Docker host {volume.host}" for volume in volumes
        )
        names = [
            container.name
            for container in objects.containers
            if container.labels.get(labels.STACK) == stack
        ]
        yield (
            f"{volume_texts}: data of cluster {id}, of a stack {stack} in this checkout or another "
            f"one; the cluster of this stack is {cluster_id or 'a new one'}. "
            + (f"Containers of such a stack exist: {', '.join(names)}. " if names else "")
            + f"To use this data, write `cluster_id: {id}` into the stack's file; if it is no "
            "longer needed, remove the volumes (`docker volume rm`); otherwise give the stack "
            "another name"
        )


def _moved_controllers(target: TargetStack, objects: EngineObjects) -> Iterator[str]:
    planned_voters = voters(target.plan)
    if is_marker(planned_voters):
        return  # unknown in a preview
    for container in objects.containers:
        current_voters = container.labels.get(labels.VOTERS, planned_voters)
        if (
            target.owns(container.labels)
            and container.running
            and current_voters != planned_voters
            and _ids(current_voters) == _ids(planned_voters)
        ):
            yield moving_controllers(current_voters, planned_voters)
            return


def _taken_ports(target: TargetStack, objects: EngineObjects) -> Iterator[str]:
    for id, container in target.containers.items():
        for port in container.ports:
            for holder in objects.containers:
                clashing_port = next(
                    (published for published in holder.ports if _clash(published, port)), None
                )
                is_own = target.owns(holder.labels)
                is_this_node = is_own and holder.node == id
                if clashing_port is None or holder.host != target.host_of(id) or is_this_node:
                    continue
                ending = (
                    f", node {holder.node} of this stack. Choose a `port` (or `published`) "
                    "with which no node gets a port that another one has now"
                    if is_own
                    else ". Free the port, or choose another `port` (or `published`) for the "
                    "listener"
                )
                yield (
                    f"port {port.host_port} of Docker host {holder.host}, for node {id}, is taken "
                    f"by container {holder.name}{ending}"
                )


def _clash(published: PublishedPort, port: PublishedPort) -> bool:
    wildcards = {"", "0.0.0.0", "::"}
    ips = {published.host_ip, port.host_ip}
    shares_address = len(ips) == 1 or bool(wildcards & ips)
    return (
        shares_address
        and published.host_port == port.host_port
        and published.protocol == port.protocol
    )


def _ids(quorum: str) -> set[str]:
    return {voter.partition("@")[0] for voter in quorum.split(",")}

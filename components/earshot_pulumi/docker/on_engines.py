"""What must hold on the engines before a stack touches them, and what is on them.

Labels on containers and volumes are a stack's memory: data outlives the stack and its state.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from earshot.config.docker import DockerHost
from earshot.errors import EarshotError
from earshot.listeners.model import ClusterPlan
from earshot.listeners.render import voters
from earshot.placement.node_container import NodeContainer
from earshot.topology.container import PublishedPort
from earshot_pulumi.docker import labels
from earshot_pulumi.docker.container_address import ContainerAddress, Engines, asking
from earshot_pulumi.properties import read, write
from earshot_pulumi.refusals import moving_controllers, other_voters
from earshot_pulumi.unknown_inputs import is_marker


class _Labelled:
    labels: Mapping[str, str]

    @property
    def node(self) -> int:
        return int(self.labels.get(labels.NODE, "-1"))


@dataclass(frozen=True)
class SeenContainer(_Labelled):
    """A container as an engine lists it."""

    host: str
    id: str
    name: str
    image: str
    running: bool
    labels: Mapping[str, str] = field(default_factory=dict)
    ports: tuple[PublishedPort, ...] = ()


@dataclass(frozen=True)
class SeenVolume(_Labelled):
    host: str
    name: str
    labels: Mapping[str, str] = field(default_factory=dict)


class SeenNetwork(SeenVolume):
    pass


@dataclass(frozen=True)
class Seen:
    """What is on all hosts of a stack."""

    containers: tuple[SeenContainer, ...] = ()
    volumes: tuple[SeenVolume, ...] = ()
    networks: tuple[SeenNetwork, ...] = ()


@dataclass(frozen=True)
class WantedStack:
    """What a stack is to be."""

    stack: str
    deployment: str
    cluster_id: str
    """Empty before the preflight has decided it."""
    plan: ClusterPlan
    containers: Mapping[int, NodeContainer]
    hosts: tuple[DockerHost, ...]
    network: str = ""
    """The network of others that its containers join; empty where it makes one."""

    @classmethod
    def from_props(cls, props: Mapping[str, Any]) -> WantedStack:
        """Read from a resource's inputs."""
        containers = {it["node_id"]: it for it in props["containers"]}
        return read(cls, {**props, "containers": containers})

    def to_props(self) -> dict[str, Any]:
        """The properties, without the containers' environment, which is not needed here."""
        props: dict[str, Any] = write(self)
        del props["deployment"]  # the update makes it up
        if not self.network:
            del props["network"]  # as in states of earlier releases
        return props | {
            "containers": [{**it, "environment": {}} for it in props["containers"].values()]
        }

    @property
    def used_hosts(self) -> list[int]:
        """The indexes of hosts that have nodes."""
        return sorted({it.host for it in self.containers.values()})

    def host_of(self, id: int) -> str:
        return self.hosts[self.containers[id].host].name

    def address_of(self, id: int, root: Path | None = None) -> ContainerAddress:
        """``root`` is the folder with the keys of a secured cluster."""
        container = self.containers[id]
        return ContainerAddress.of(
            self.plan, self.plan.node(id), container, self.hosts[container.host], root
        )

    def owns(self, found: Mapping[str, str]) -> bool:
        """Whether these labels are of this deployment."""
        return found.get(labels.DEPLOYMENT) == self.deployment


def hosts_of(props: Mapping[str, Any]) -> tuple[DockerHost, ...]:
    """The Docker hosts in a resource's inputs; none where there are no inputs yet."""
    return tuple(DockerHost.model_validate(host) for host in props.get("hosts", ()))


def can_be_asked(props: Mapping[str, Any]) -> bool:
    """Whether all engines in a resource's inputs are known; a preview may not know them yet."""
    return not any(is_marker(host.engine) for host in hosts_of(props))


def look(engines: Engines, hosts: Iterable[DockerHost]) -> Seen:
    """What is on the engines of ``hosts``. Raises EarshotError where one does not answer."""
    containers: list[SeenContainer] = []
    volumes: list[SeenVolume] = []
    networks: list[SeenNetwork] = []
    for host in hosts:
        api = engines.of(host).api
        with asking(f"Docker host {host.name}", host):
            containers += (_container(host.name, it) for it in api.containers(all=True))
            for it in api.volumes()["Volumes"] or ():
                volumes.append(SeenVolume(host.name, it["Name"], it["Labels"] or {}))
            for it in api.networks():
                networks.append(SeenNetwork(host.name, it["Name"], it["Labels"] or {}))
    return Seen(tuple(containers), tuple(volumes), tuple(networks))


def described(
    engines: Engines,
    hosts: Iterable[DockerHost],
    seen: Seen,
    is_own: Callable[[Mapping[str, str]], bool],
) -> Iterator[tuple[SeenContainer, DockerHost, dict[str, Any]]]:
    """The running containers of ``seen`` whose labels are ``is_own``, as their engines describe
    them. Raises EarshotError where an engine fails."""
    by_name = {host.name: host for host in hosts}
    for found in seen.containers:
        host = by_name.get(found.host)
        if host is not None and found.running and is_own(found.labels):
            description = engines.inspect(f"Docker host {host.name}", host, found.id)
            if description is not None:
                yield found, host, description


def of_stack(stack: str) -> Callable[[Mapping[str, str]], bool]:
    """Whether labels are those of a deployment of ``stack``."""
    return lambda found: found.get(labels.STACK) == stack


def _container(host: str, found: Mapping[str, Any]) -> SeenContainer:
    return SeenContainer(
        host=host,
        id=found["Id"],
        name=found["Names"][0].lstrip("/") if found["Names"] else found["Id"][:12],
        image=found["Image"],
        running=found["State"] in ("running", "restarting", "paused"),
        labels=found["Labels"] or {},
        ports=tuple(
            PublishedPort(it["PrivatePort"], it["PublicPort"], it.get("IP", ""), it["Type"])
            for it in found["Ports"] or ()
            if it.get("PublicPort")
        ),
    )


def problems(wanted: WantedStack, seen: Seen) -> Iterator[str]:
    """Why ``wanted`` must not be applied over what is there; see `volume_data` for removed brokers.

    Each text says what was found, what is allowed and how to fix it.
    """
    yield from _taken_names(wanted, seen)
    yield from _foreign_data(wanted, seen)
    if wanted.cluster_id:  # else `identity` decides it in this run
        planned = spots(wanted.hosts, wanted.containers.values())
        yield from another_clusters_data(wanted.stack, wanted.cluster_id, planned, seen)
    yield from _moved_controllers(wanted, seen)
    yield from _taken_ports(wanted, seen)


def _taken_names(wanted: WantedStack, seen: Seen) -> Iterator[str]:
    planned = {(wanted.host_of(id), it.name): id for id, it in wanted.containers.items()}
    for found in seen.containers:
        id = planned.get((found.host, found.name))
        if id is not None and not wanted.owns(found.labels):
            yield (
                f"the name {found.name} of node {id} is taken on Docker host {found.host} by "
                f"{_whose(found.labels, f'a container of the image {found.image}')}. "
                f"Remove it (`docker rm --force {found.name}` leaves its volumes), or choose "
                f"another name: `names: {{{id}: …}}`"
            )
    names = {it.network for it in wanted.containers.values()} - {wanted.network}
    for network in seen.networks:
        if network.name in names and not wanted.owns(network.labels):
            yield (
                f"the network {network.name} exists on Docker host {network.host} and is "
                f"{_whose(network.labels, 'not of this stack')}. "
                f"Remove it (`docker network rm {network.name}`), or name the stack otherwise"
            )


def check_network(engines: Engines, wanted: WantedStack) -> None:
    """Raises EarshotError where the network that the stack's containers join is not there."""
    if not wanted.network:
        return
    for host in (wanted.hosts[it] for it in wanted.used_hosts):
        with asking(f"Docker host {host.name}", host):
            names = {it["Name"] for it in engines.of(host).api.networks()}
        if wanted.network not in names:
            raise EarshotError(
                f"network: {wanted.network}",
                observed=f"Docker host {host.name} has no network of this name",
                remedy=f"make it (`docker network create {wanted.network}`), or leave `network` "
                "out, and the stack makes one",
            )


def _whose(found: Mapping[str, str], otherwise: str) -> str:
    if stack := found.get(labels.STACK):
        return f"another deployment of a stack {stack}, whose state is kept elsewhere or was lost"
    return otherwise


def _foreign_data(wanted: WantedStack, seen: Seen) -> Iterator[str]:
    planned = {(wanted.host_of(id), it.volume): id for id, it in wanted.containers.items()}
    ids, quorums = labels.voter_ids(wanted.plan), dict[str, None]()
    for volume in seen.volumes:
        id = planned.get((volume.host, volume.name))
        if id is None:
            continue
        subject = f"volume {volume.name} on Docker host {volume.host}"
        if volume.labels.get(labels.STACK) != wanted.stack or volume.node != id:
            yield (
                f"{subject} is there already and does not hold node {id} of stack {wanted.stack}. "
                "Name the stack or the node otherwise, or remove the volume if it is no "
                "longer needed"
            )
        elif held := volume.labels.get(labels.VOTERS, ""):
            quorums[held] = None
    for held in quorums.keys() - {ids}:
        before, after = (map(int, text.split(",")) for text in (held, ids))
        yield other_voters(before, after, "`data: delete` and `pulumi destroy`")


Spot = tuple[str, str, int]
"""A Docker host's name, a volume's name, and the id of the node with its data there."""


def spots(hosts: Sequence[DockerHost], containers: Iterable[NodeContainer]) -> set[Spot]:
    return {(hosts[it.host].name, it.volume, it.node_id) for it in containers}


def own_volumes(stack: str, planned: Collection[Spot], seen: Seen) -> Iterator[SeenVolume]:
    """Volumes of ``stack`` at ``planned`` spots; those of other stacks or nodes are refused."""
    for volume in seen.volumes:
        at = (volume.host, volume.name, volume.node)
        if at in planned and volume.labels.get(labels.STACK) == stack:
            yield volume


def held_by_cluster(
    stack: str, planned: Collection[Spot], seen: Seen
) -> dict[str, list[SeenVolume]]:
    """Volumes of ``stack`` at ``planned`` spots, by the id of the cluster whose data they hold."""
    held: dict[str, list[SeenVolume]] = {}
    for volume in own_volumes(stack, planned, seen):
        held.setdefault(labels.cluster_id_of(volume.labels), []).append(volume)
    return held


def another_clusters_data(
    stack: str, cluster_id: str | None, planned: Collection[Spot], seen: Seen
) -> Iterator[str]:
    """One message for each other cluster with data where that of ``cluster_id`` would go.

    None means a new cluster.
    """
    for id, volumes in held_by_cluster(stack, planned, seen).items():
        if id == cluster_id:
            continue
        where = ", ".join(f"{it.name} on Docker host {it.host}" for it in volumes)
        names = [it.name for it in seen.containers if it.labels.get(labels.STACK) == stack]
        yield (
            f"{where}: data of cluster {id}, which a stack called {stack} has made, of this "
            f"checkout or another; this one is {cluster_id or 'a new one'}. "
            + (f"Containers of such a stack are there: {', '.join(names)}. " if names else "")
            + f"To take it over, write `cluster_id: {id}` into the stack's file; if it is no "
            "longer needed, remove the volumes (`docker volume rm`); else name the stack otherwise"
        )


def _moved_controllers(wanted: WantedStack, seen: Seen) -> Iterator[str]:
    now = voters(wanted.plan)
    if is_marker(now):
        return  # a preview does not know them
    for found in seen.containers:
        held = found.labels.get(labels.VOTERS, now)
        if wanted.owns(found.labels) and found.running and held != now and _ids(held) == _ids(now):
            yield moving_controllers(
                held,
                now,
                "Stop the cluster first (`pulumi destroy`; data is kept)",
            )
            return


def _taken_ports(wanted: WantedStack, seen: Seen) -> Iterator[str]:
    for id, container in wanted.containers.items():
        for port in container.ports:
            for found in seen.containers:
                held = next((it for it in found.ports if _clash(it, port)), None)
                is_this_node = wanted.owns(found.labels) and found.node == id
                if held is None or found.host != wanted.host_of(id) or is_this_node:
                    continue
                whose = f", node {found.node} of this stack" if wanted.owns(found.labels) else ""
                yield (
                    f"port {port.host_port} of Docker host {found.host}, for node {id}, is taken "
                    f"by container {found.name}{whose}. Free the port, or choose another `port` "
                    "(or `published`) for the listener"
                )


def _clash(held: PublishedPort, port: PublishedPort) -> bool:
    anywhere = {"", "0.0.0.0", "::"}
    same = held.host_ip == port.host_ip or anywhere & {held.host_ip, port.host_ip}
    return bool(same) and held.host_port == port.host_port and held.protocol == port.protocol


def _ids(quorum: str) -> set[str]:
    return {entry.partition("@")[0] for entry in quorum.split(",")}

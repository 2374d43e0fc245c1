"""What must hold on the engines before a stack touches them, told from what is there.

Containers and volumes carry the stack's labels; those are the memory, for data outlives a stack
and its state.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final

from components.docker import inquiry, labels
from components.docker.inquiry import METADATA_TOPIC, NoAnswer
from components.docker.place import Engines, Place, engine_failed
from components.refusals import goes_back, moving_controllers
from earshot.engine import said
from earshot.errors import EarshotError
from earshot.listeners.model import ClusterPlan
from earshot.listeners.render import voters
from earshot.placement import NodeContainer
from earshot.placement.docker_names import DATA
from earshot.rules.container import PublishedPort
from earshot.spec.docker import DockerHost

LISTING_SECONDS: Final = 60
SHOWN: Final = 5


@dataclass(frozen=True)
class SeenContainer:
    """A container as an engine lists it."""

    host: str
    id: str
    name: str
    image: str
    running: bool
    labels: Mapping[str, str] = field(default_factory=dict)
    ports: tuple[PublishedPort, ...] = ()

    @property
    def node(self) -> int:
        return int(self.labels.get(labels.NODE, "-1"))


@dataclass(frozen=True)
class SeenVolume:
    host: str
    name: str
    labels: Mapping[str, str] = field(default_factory=dict)

    @property
    def node(self) -> int:
        return int(self.labels.get(labels.NODE, "-1"))


@dataclass(frozen=True)
class SeenNetwork:
    host: str
    name: str
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Seen:
    """What is on all hosts of a stack."""

    containers: tuple[SeenContainer, ...] = ()
    volumes: tuple[SeenVolume, ...] = ()
    networks: tuple[SeenNetwork, ...] = ()


@dataclass(frozen=True)
class Wanted:
    """What a stack is to be."""

    stack: str
    deployment: str
    plan: ClusterPlan
    containers: Mapping[int, NodeContainer]
    hosts: tuple[DockerHost, ...]

    @classmethod
    def from_props(cls, props: Mapping[str, Any]) -> Wanted:
        """Out of a resource's inputs, where every number has become a float."""
        return cls(
            stack=props["stack"],
            deployment=props["deployment"],
            plan=ClusterPlan.model_validate(props["plan"]),
            containers={int(it["node_id"]): _node(it) for it in props["containers"]},
            hosts=hosts_of(props),
        )

    def to_props(self) -> dict[str, Any]:
        """Without the environment of the containers: nothing here depends on it."""
        listed = [asdict(replace(it, environment={})) for it in self.containers.values()]
        return {
            "stack": self.stack,
            "plan": self.plan.model_dump(mode="json"),
            "containers": listed,
            "hosts": [host.model_dump(mode="json") for host in self.hosts],
        }

    def host_of(self, id: int) -> str:
        return self.hosts[self.containers[id].host].name

    def place(self, id: int) -> Place:
        container = self.containers[id]
        return Place.of(self.plan, self.plan.node(id), container, self.hosts[container.host])

    def owns(self, found: Mapping[str, str]) -> bool:
        """Whether these labels are of this very deployment."""
        return found.get(labels.DEPLOYMENT) == self.deployment


def hosts_of(props: Mapping[str, Any]) -> tuple[DockerHost, ...]:
    """The Docker hosts in a resource's inputs; none where there are no inputs yet."""
    return tuple(DockerHost.model_validate(host) for host in props.get("hosts", ()))


def _node(props: Mapping[str, Any]) -> NodeContainer:
    ports = (
        {**it, "container_port": int(it["container_port"]), "host_port": int(it["host_port"])}
        for it in props["ports"]
    )
    numbers = {key: int(props[key]) for key in ("node_id", "host")}
    return NodeContainer(
        **{**props, **numbers, "ports": tuple(PublishedPort(**it) for it in ports)}
    )


def look(engines: Engines, hosts: Iterable[DockerHost]) -> Seen:
    """What is on the engines of ``hosts``. Raises EarshotError where one does not answer."""
    from docker.errors import DockerException

    containers: list[SeenContainer] = []
    volumes: list[SeenVolume] = []
    networks: list[SeenNetwork] = []
    for host in hosts:
        api = engines.of(host).api
        try:
            containers += (_container(host.name, it) for it in api.containers(all=True))
            for it in api.volumes()["Volumes"] or ():
                volumes.append(SeenVolume(host.name, it["Name"], it["Labels"] or {}))
            for it in api.networks():
                networks.append(SeenNetwork(host.name, it["Name"], it["Labels"] or {}))
        except (DockerException, OSError) as reason:
            raise engine_failed(f"Docker host {host.name}", host, reason) from None
    return Seen(tuple(containers), tuple(volumes), tuple(networks))


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


def problems(wanted: Wanted, seen: Seen) -> Iterator[str]:
    """Why ``wanted`` must not be applied over what is there; what is removed is asked elsewhere.

    Each text says what was found, what is allowed and how to mend it.
    """
    yield from _taken_names(wanted, seen)
    yield from _foreign_data(wanted, seen)
    yield from _moved_controllers(wanted, seen)
    yield from _taken_ports(wanted, seen)


def _taken_names(wanted: Wanted, seen: Seen) -> Iterator[str]:
    own = {(wanted.host_of(id), it.name): id for id, it in wanted.containers.items()}
    for found in seen.containers:
        id = own.get((found.host, found.name))
        if id is not None and not wanted.owns(found.labels):
            yield (
                f"the name {found.name} of node {id} is taken on Docker host {found.host} by "
                f"{_whose(found.labels, f'a container of the image {found.image}')}. "
                f"Remove it (`docker rm --force {found.name}` leaves its volumes), or choose "
                f"another name: `names: {{{id}: …}}`"
            )
    names = {it.network for it in wanted.containers.values()}
    for network in seen.networks:
        if network.name in names and not wanted.owns(network.labels):
            yield (
                f"the network {network.name} exists on Docker host {network.host} and is "
                f"{_whose(network.labels, 'not of this stack')}. "
                f"Remove it (`docker network rm {network.name}`), or name the stack otherwise"
            )


def _whose(found: Mapping[str, str], otherwise: str) -> str:
    if stack := found.get(labels.STACK):
        return f"another deployment of a stack {stack}, whose state is kept elsewhere or was lost"
    return otherwise


def _foreign_data(wanted: Wanted, seen: Seen) -> Iterator[str]:
    own = {(wanted.host_of(id), it.volume): id for id, it in wanted.containers.items()}
    ids = labels.voter_ids(wanted.plan)
    for volume in seen.volumes:
        id = own.get((volume.host, volume.name))
        if id is None:
            continue
        told = f"volume {volume.name} on Docker host {volume.host}"
        if volume.labels.get(labels.STACK) != wanted.stack or volume.node != id:
            yield (
                f"{told} is there already and does not hold node {id} of stack {wanted.stack}. "
                "Name the stack or the node otherwise, or remove the volume if nobody needs it"
            )
            continue
        if (held := volume.labels.get(labels.VOTERS, "")) != ids:
            yield (
                f"{told} was formatted for a quorum of {held} and would get one of {ids}: voters "
                "are in every node's data, and a static quorum cannot change them. Set "
                f"`controllers.count: {len(held.split(','))}` to keep them, or remove the data "
                f"with `make clean STACK={wanted.stack}`"
            )
        written = volume.labels.get(labels.KAFKA, "0.0")
        if goes_back(wanted.plan.kafka_version, written):
            yield (
                f"{told} was written by Kafka {written}, and {wanted.plan.kafka_version} is older; "
                "a KRaft cluster goes forward only. Keep the version, or remove the data with "
                f"`make clean STACK={wanted.stack}`"
            )


def _moved_controllers(wanted: Wanted, seen: Seen) -> Iterator[str]:
    now = voters(wanted.plan)
    for found in seen.containers:
        held = found.labels.get(labels.VOTERS, now)
        if wanted.owns(found.labels) and found.running and held != now and _ids(held) == _ids(now):
            yield moving_controllers(
                held,
                now,
                f"Stop the cluster first (`make down STACK={wanted.stack}`; data is kept)",
            )
            return


def _taken_ports(wanted: Wanted, seen: Seen) -> Iterator[str]:
    for id, container in wanted.containers.items():
        for port in container.ports:
            for found in seen.containers:
                held = next((it for it in found.ports if _clash(it, port)), None)
                mine = wanted.owns(found.labels) and found.node == id
                if held is None or found.host != wanted.host_of(id) or mine:
                    continue
                whose = f"node {found.node} of this stack" if wanted.owns(found.labels) else ""
                yield (
                    f"port {port.host_port} of Docker host {found.host}, for node {id}, is taken "
                    f"by container {found.name}{f', {whose}' if whose else ''}. Free the port, or "
                    "choose another `port` (or `published`) for the listener"
                )


def _clash(held: PublishedPort, port: PublishedPort) -> bool:
    anywhere = {"", "0.0.0.0", "::"}
    same = held.host_ip == port.host_ip or anywhere & {held.host_ip, port.host_ip}
    return bool(same) and held.host_port == port.host_port and held.protocol == port.protocol


def removed(wanted: Wanted, seen: Seen) -> dict[int, list[SeenContainer | SeenVolume]]:
    """Brokers that ``wanted`` has no more, with what is left of them on the engines."""
    staying = {node.id for node in wanted.plan.brokers}
    found: dict[int, list[SeenContainer | SeenVolume]] = {}
    for container in seen.containers:
        if wanted.owns(container.labels) and _was_broker(container.labels):
            found.setdefault(container.node, []).append(container)
    for volume in seen.volumes:
        if volume.labels.get(labels.STACK) == wanted.stack and _was_broker(volume.labels):
            found.setdefault(volume.node, []).append(volume)
    return {id: left for id, left in sorted(found.items()) if id not in staying}


def removal_problems(
    engines: Engines, wanted: Wanted, seen: Seen, hosts: Sequence[DockerHost]
) -> Iterator[str]:
    """Which brokers would be removed that still hold replicas; ``hosts`` are old and new ones.

    The brokers that run know; where none does, the data of the removed one tells.
    """
    gone = removed(wanted, seen)
    if not gone:
        return
    known = _told(engines, wanted, seen)
    for id, left in gone.items():
        try:
            if known is not None:
                held = [str(item) for item in known.held_by(id)]
            else:
                held = _on_disk(engines, left, hosts, wanted)
        except EarshotError as error:
            yield f"broker {id} would be removed, and nobody knows whether it is empty: {error}"
            continue
        if held:
            shown = ", ".join(held[:SHOWN])
            more = f" and {len(held) - SHOWN} more" if len(held) > SHOWN else ""
            yield (
                f"broker {id} would be removed and still holds {len(held)} replica(s): "
                f"{shown}{more}. Move them to the brokers that stay (kafka-reassign-partitions), "
                "or keep the broker"
            )


def _told(engines: Engines, wanted: Wanted, seen: Seen) -> inquiry.Metadata | None:
    """What a broker that stays and runs knows; None where none answers."""
    running = {it.node: it for it in seen.containers if wanted.owns(it.labels) and it.running}
    for node in wanted.plan.brokers:
        place = wanted.place(node.id)
        if node.id in running and place.can_tell:
            with contextlib.suppress(NoAnswer, EarshotError):
                return inquiry.metadata(engines.of(place), running[node.id].id, place.door)
    return None


def _on_disk(
    engines: Engines,
    left: Sequence[SeenContainer | SeenVolume],
    hosts: Sequence[DockerHost],
    wanted: Wanted,
) -> list[str]:
    """The `topic-partition` replicas in the volumes of a removed broker."""
    from docker.errors import DockerException

    volumes = [item for item in left if isinstance(item, SeenVolume)]
    found: set[str] = set()
    for volume in volumes:
        host = next(it for it in hosts if it.name == volume.host)
        image = next(iter(wanted.containers.values())).image
        try:
            listing = engines.of(host).containers.run(
                image,
                entrypoint=["ls", "-1", DATA],
                volumes={volume.name: {"bind": DATA, "mode": "ro"}},
                network_mode="none",
                remove=True,
            )
        except (DockerException, OSError) as reason:
            raise EarshotError(
                f"volume {volume.name} on Docker host {host.name}",
                observed=f"cannot be looked into: {said(reason)}",
                remedy=f"see that the engine has the image {image}, or remove the volume if "
                "nobody needs it",
            ) from None
        found |= set(replicas(listing.decode(errors="replace").split()))
    return sorted(found)


def replicas(names: Iterable[str]) -> list[str]:
    """Which folders of a node's data are replicas, the metadata log aside."""
    parted = ((name, *name.rpartition("-")) for name in names)
    return sorted(
        name
        for name, topic, _, number in parted
        if topic and number.isdigit() and topic != METADATA_TOPIC
    )


def _was_broker(found: Mapping[str, str]) -> bool:
    return "broker" in found.get(labels.ROLES, "").split(",")


def _ids(quorum: str) -> set[str]:
    return {entry.partition("@")[0] for entry in quorum.split(",")}

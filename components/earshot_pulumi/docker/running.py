"""Reads the Kafka settings of running containers, and checks a change of their listeners."""

import tarfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Final, Self

from earshot import sockets
from earshot.config.docker_host import DockerHost
from earshot.engine.failures import FAILURES
from earshot.errors import AddressError, EarshotError
from earshot.listeners.grammar import parse_entries
from earshot.listeners.properties import NodeSettings, read_environment
from earshot.listeners.security import node_name
from earshot.placement.node_container import KEYS
from earshot.sockets import Bound
from earshot.transition.refusal import STOP_FIRST
from earshot_pulumi import expired, listener_removal
from earshot_pulumi.docker import engine_objects, throwaway
from earshot_pulumi.docker.container_address import Engines
from earshot_pulumi.docker.engine_objects import (
    EngineContainer,
    EngineObjects,
    TargetStack,
    own_volumes,
)
from earshot_pulumi.docker.inner_listener import text_in
from earshot_pulumi.node_links import Links, unrollable
from earshot_pulumi.provider.kind import Properties
from earshot_pulumi.refusals import REMEMBER

_TABLES: Final = ("cat", "/proc/net/tcp", "/proc/net/tcp6")
_HEAD: Final = "local_address"


@dataclass(frozen=True)
class RunningNode:
    """A running container of a stack, from its engine's description."""

    container: EngineContainer
    host: DockerHost
    settings: NodeSettings
    """Kafka's settings in the container's environment."""
    gateways: tuple[str, ...] = ()
    """The host's addresses on the container's networks."""
    description: Properties = field(default_factory=dict)

    @classmethod
    def of(cls, container: EngineContainer, host: DockerHost, description: Properties) -> Self:
        variables = (text.partition("=") for text in description["Config"]["Env"] or ())
        networks = (description.get("NetworkSettings") or {}).get("Networks", {}).values()
        gateways = (network.get(key) for network in networks for key in ("Gateway", "IPv6Gateway"))
        settings = read_environment({name: value for name, _, value in variables})
        return cls(container, host, settings, tuple(filter(None, gateways)), description)

    @property
    def id(self) -> int:
        return self.container.node

    @property
    def values(self) -> Mapping[str, str]:
        return self.settings.values


def running(
    engines: Engines,
    hosts: Iterable[DockerHost],
    objects: EngineObjects,
    is_own: Callable[[Mapping[str, str]], bool],
) -> Iterator[RunningNode]:
    """The running containers of ``objects`` with labels that ``is_own`` accepts. Raises
    EarshotError if an engine fails."""
    hosts_by_name = {host.name: host for host in hosts}
    for container in objects.containers:
        host = hosts_by_name.get(container.host)
        if host is not None and container.running and is_own(container.labels):
            description = engines.inspect(f"Docker host {host.name}", host, container.id)
            if description is not None:
                yield RunningNode.of(container, host, description)


def settings_of_running(stack: str, hosts: Sequence[DockerHost]) -> dict[int, NodeSettings]:
    """Settings in the environment of each running container of ``stack``, by node id.

    Empty if an engine does not answer; the preflight reports that.
    """
    try:
        with Engines() as engines:
            objects = engine_objects.look(engines, hosts)
            nodes = running(engines, hosts, objects, engine_objects.of_stack(stack))
            return {node.id: node.settings for node in nodes}
    except EarshotError:
        return {}


@dataclass(frozen=True)
class _RemovedListener:
    """A listener that a change removes from a running container."""

    name: str
    ports: set[int]
    """The ports to which other nodes connect: the bound and the advertised one."""


def client_problems(
    engines: Engines, target: TargetStack, running: Sequence[RunningNode]
) -> Iterator[str]:
    """A message for each listener with connected clients that ``target`` removes, or whose
    protocol it changes.

    Connections from other nodes of the cluster do not count: a restarted broker reconnects.
    """
    planned_ids = {node.id for node in target.plan.brokers}
    removed_listeners = {
        node.container.id: listeners
        for node in running
        if node.id in planned_ids and (listeners := _removed_listeners(node, target))
    }
    if not removed_listeners:
        return
    # the source port of a connection between nodes also shows in the table of the connecting node
    tables = {node.container.id: _connections(engines, node) for node in running}
    node_ports = {(own.port, peer.port) for table in tables.values() for own, peer in table or ()}
    origins_by_listener: dict[str, Counter[str]] = {}
    for node in running:
        listeners, table = removed_listeners.get(node.container.id, {}), tables[node.container.id]
        if listeners and table is None:
            yield _clients_unknown(node, [listener.name for listener in listeners.values()])
        for own, peer in table or ():
            listener = listeners.get(own.port)
            if listener and not any((peer.port, port) in node_ports for port in listener.ports):
                is_host = peer.host in node.gateways
                origin = f"Docker host {node.host.name}" if is_host else peer.host
                origins_by_listener.setdefault(listener.name, Counter())[origin] += 1
    yield from listener_removal.problems(origins_by_listener, target.plan)


def _clients_unknown(node: RunningNode, names: Sequence[str]) -> str:
    return (
        f"{', '.join(names)} would be removed, and whether clients are connected is not known: the "
        f"sockets in container {node.container.name} on Docker host {node.host.name} cannot be "
        "listed. Check that it runs and is not paused, or set `remove: anyway`"
    )


def _removed_listeners(node: RunningNode, target: TargetStack) -> dict[int, _RemovedListener]:
    """The listeners that would be removed, by port of the container."""
    try:
        advertised = dict(parse_entries(node.values.get("advertised.listeners", "")))
        ports = listener_removal.removed_ports(node.values, target.plan, node.id)
    except AddressError:
        return {}  # earshot did not start the container with these settings
    return {
        port: _RemovedListener(
            name, {port, advertised[name].port} if name in advertised else {port}
        )
        for port, name in ports.items()
    }


def _connections(engines: Engines, node: RunningNode) -> list[tuple[Bound, Bound]] | None:
    """The connections in a container as (own address, peer); None if they cannot be listed."""
    try:
        container = engines.of(node.host).containers.get(node.container.id)
        _, output, _ = throwaway.whole_output(container, _TABLES)
    except FAILURES:
        return None
    text = output.decode(errors="replace")
    # `cat` fails without IPv6, which has no table then
    return list(sockets.connections(text)) if _HEAD in text else None


def link_problems(running: Iterable[RunningNode], target: TargetStack) -> list[str]:
    """Why ``running`` nodes could not connect to nodes restarted with the settings of ``target``.

    The settings of a running node are those in its container's environment.
    """
    nodes = list(running)
    links = {node.id: Links.of_settings(node.values) for node in nodes}
    messages = unrollable(links, Links.of_plan(target.plan), f"{REMEMBER}; or {STOP_FIRST}")
    is_removed = target.plan.security is None
    differing_nodes = [node for node in nodes if _is_secured(node) is is_removed]
    if len(differing_nodes) > 1 and not messages:
        verb = "removed" if is_removed else "added"
        messages.append(
            f"`security` would be {verb} while brokers run: restarted brokers and the others could "
            "not connect to each other, because only some of them would have certificates. "
            f"{STOP_FIRST.capitalize()}"
        )
    return messages


def _is_secured(node: RunningNode) -> bool:
    """True if a node uses a key store that `earshot_pulumi.docker.keys` has written."""
    store = node.values.get("ssl.keystore.location", "")
    return store.startswith(f"{KEYS}/") and store.endswith(f"{node_name(node.id)}.pem")


def expired_problems(
    engines: Engines, target: TargetStack, objects: EngineObjects, nodes: Iterable[RunningNode]
) -> Iterator[str]:
    """Why none of the running ``nodes`` of ``target`` can be restarted while others, whose
    certificates have expired, run."""
    running = {node.id: node for node in nodes}
    is_down = any(volume.node not in running for volume in own_volumes(target, objects))
    ends = expired_ends(engines, running.values())
    yield from expired.problems(ends, can_go_first=not is_down)


def expired_ends(engines: Engines, running: Iterable[RunningNode]) -> dict[int, datetime]:
    """The end of the certificate of each ``running`` container that has expired, by node id."""
    return expired.of_running(
        (node.id, node.values, partial(_text, engines, node.host, node.container.id))
        for node in running
    )


def _text(engines: Engines, host: DockerHost, container: str, path: str) -> str:
    """The text of a file in a container. Raises ValueError if it cannot be read."""
    try:
        return text_in(engines.of(host), container, path)
    except (tarfile.TarError, *FAILURES) as reason:
        raise ValueError(path) from reason

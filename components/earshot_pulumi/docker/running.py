"""Running containers: what they were started with, and what a change of listeners does to them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from docker.errors import DockerException

from earshot import sockets
from earshot.config.docker import DockerHost
from earshot.errors import AddressError, EarshotError
from earshot.listeners.grammar import parse_entries
from earshot.listeners.properties import NodeSettings, read_environment
from earshot.listeners.security import node_name
from earshot.placement.node_container import KEYS
from earshot.sockets import Bound
from earshot_pulumi import leaving
from earshot_pulumi.docker import on_engines
from earshot_pulumi.docker.container_address import Engines
from earshot_pulumi.docker.on_engines import Seen, SeenContainer, WantedStack
from earshot_pulumi.refusals import REMEMBER
from earshot_pulumi.rolling import Links, unrollable

_TABLES: Final = ("cat", "/proc/net/tcp", "/proc/net/tcp6")
_HEAD: Final = "local_address"


@dataclass(frozen=True)
class Running:
    """A container of this deployment that runs, as its engine describes it."""

    seen: SeenContainer
    host: DockerHost
    values: dict[str, str]
    """Kafka's settings in its environment."""
    gateways: tuple[str, ...]
    """The addresses that its host has on the container's networks."""


def running(engines: Engines, wanted: WantedStack, seen: Seen) -> Iterator[Running]:
    """Those of ``seen`` that belong to ``wanted``. Raises EarshotError where an engine fails."""
    for found, host, described in on_engines.described(engines, wanted.hosts, seen, wanted.owns):
        networks = (described.get("NetworkSettings") or {}).get("Networks", {}).values()
        gateways = (it.get(key) for it in networks for key in ("Gateway", "IPv6Gateway"))
        values = dict(_settings(described).values)
        yield Running(found, host, values, tuple(filter(None, gateways)))


def settings_of_running(stack: str, hosts: Sequence[DockerHost]) -> dict[int, NodeSettings]:
    """By id of each node of ``stack`` that runs, the settings in its container's environment.

    Empty where an engine does not answer: the preflight says so.
    """
    is_own = on_engines.of_stack(stack)
    try:
        with Engines() as engines:
            found = on_engines.described(engines, hosts, on_engines.look(engines, hosts), is_own)
            return {item.node: _settings(described) for item, _, described in found}
    except EarshotError:
        return {}


def _settings(described: Mapping[str, Any]) -> NodeSettings:
    """Kafka's settings in the environment of a container that its engine has ``described``."""
    entries = (entry.partition("=") for entry in described["Config"]["Env"] or ())
    return read_environment({name: value for name, _, value in entries})


@dataclass(frozen=True)
class _Going:
    """A port of a container that a change takes away."""

    listener: str
    ports: set[int]
    """Those by which others reach it: its own, and what it advertises."""


def client_problems(
    engines: Engines, wanted: WantedStack, running: Sequence[Running]
) -> Iterator[str]:
    """Listeners of ``running`` containers that ``wanted`` takes away, or gives another protocol,
    and that clients are connected to.

    Other nodes of the cluster are no clients: a broker that is restarted connects again.
    """
    staying = {node.id for node in wanted.plan.brokers}
    going = {
        it.seen.id: found
        for it in running
        if it.seen.node in staying and (found := _going(it, wanted))
    }
    if not going:
        return
    # a node that connects to another is seen in its own container, by the port that it comes from
    tables = {it.seen.id: _connections(engines, it) for it in running}
    from_nodes = {(own.port, peer.port) for table in tables.values() for own, peer in table or ()}
    used: dict[str, Counter[str]] = {}
    for it in running:
        ports, table = going.get(it.seen.id, {}), tables[it.seen.id]
        if ports and table is None:
            yield _clients_unknown(it, [item.listener for item in ports.values()])
        for own, peer in table or ():
            item = ports.get(own.port)
            if item and not any((peer.port, port) in from_nodes for port in item.ports):
                is_host = peer.host in it.gateways
                origin = f"Docker host {it.host.name}" if is_host else peer.host
                used.setdefault(item.listener, Counter())[origin] += 1
    yield from leaving.problems(used)


def _clients_unknown(it: Running, names: Sequence[str]) -> str:
    return (
        f"{', '.join(names)} would go, and whether clients are connected is not known: the sockets "
        f"in container {it.seen.name} on Docker host {it.host.name} cannot be listed. See that it "
        "runs and is not paused, or set `remove: anyway` in the stack's file"
    )


def _going(it: Running, wanted: WantedStack) -> dict[int, _Going]:
    """The listeners that would be removed, by port of the container."""
    try:
        advertised = dict(parse_entries(it.values.get("advertised.listeners", "")))
        found = leaving.leaving(it.values, wanted.plan, it.seen.node)
    except AddressError:
        return {}  # not what this program has started it with
    return {
        port: _Going(name, {port, advertised[name].port} if name in advertised else {port})
        for port, name in found.items()
    }


def _connections(engines: Engines, it: Running) -> list[tuple[Bound, Bound]] | None:
    """The connections in a container, each with its own end first; None is not known."""
    try:
        _, output = engines.of(it.host).containers.get(it.seen.id).exec_run(list(_TABLES))
    except (DockerException, OSError):
        return None
    text = output.decode(errors="replace")
    # without IPv6 there is one table alone, and `cat` fails
    return list(sockets.connections(text)) if _HEAD in text else None


def link_problems(running: Iterable[Running], wanted: WantedStack) -> list[str]:
    """Why they cannot; their own environment has the settings that they were started with."""
    found = list(running)
    links = {it.seen.node: Links.of_settings(it.values) for it in found}
    stop = "stop the cluster first (`pulumi destroy`; data is kept)"
    refused = unrollable(links, Links.of_plan(wanted.plan), f"{REMEMBER}; or {stop}")
    # whether the stack has issued what a node shows
    secured = [_shows_ours(it) for it in found]
    others = [it for it in secured if it is (wanted.plan.security is None)]
    if len(others) > 1 and not refused:
        what = "go" if wanted.plan.security is None else "come"
        refused.append(
            f"`security` would {what} while brokers run: those restarted first would ask for "
            "certificates that the others do not show, or show "
            f"none where the others ask. {stop[0].upper()}{stop[1:]}"
        )
    return refused


def _shows_ours(it: Running) -> bool:
    """Whether a node has a key store of the stack's; `earshot_pulumi.docker.keys` has the name."""
    store = it.values.get("ssl.keystore.location", "")
    return store.startswith(f"{KEYS}/") and store.endswith(f"{node_name(it.seen.node)}.pem")

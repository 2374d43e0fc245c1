"""Who is connected to a listener that a change takes away, by the sockets in each container."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from docker.errors import DockerException

from components import leaving
from components.docker.container_address import Engines
from components.docker.on_engines import WantedStack
from components.docker.settings import Running
from earshot import sockets
from earshot.errors import AddressError
from earshot.listeners.grammar import parse_entries
from earshot.sockets import Bound

_TABLES: Final = ("cat", "/proc/net/tcp", "/proc/net/tcp6")
_HEAD: Final = "local_address"


@dataclass(frozen=True)
class _Going:
    """A port of a container that a change takes away."""

    listener: str
    ports: set[int]
    """Those by which others reach it: its own, and what it advertises."""


def problems(engines: Engines, wanted: WantedStack, running: Sequence[Running]) -> Iterator[str]:
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
            yield _unknown(it, [item.listener for item in ports.values()])
        for own, peer in table or ():
            item = ports.get(own.port)
            if item and not any((peer.port, port) in from_nodes for port in item.ports):
                is_host = peer.host in it.gateways
                origin = f"Docker host {it.host.name}" if is_host else peer.host
                used.setdefault(item.listener, Counter())[origin] += 1
    yield from leaving.problems(used)


def _unknown(it: Running, names: Sequence[str]) -> str:
    return (
        f"{', '.join(names)} would go, and nobody knows whether clients are connected: the sockets "
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

"""A tunnel to one listener of a cluster: listens locally, and relays connections to the brokers."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from asyncio import StreamReader, StreamWriter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from earshot.errors import EarshotError
from earshot.files.open_files import raise_limit
from earshot.listeners.address import Address
from earshot.tunnel.places import (
    LOOPBACK,
    MAX_BROKERS,
    Ports,
    bound,
    loopback_addresses,
    write_hosts,
)
from earshot.tunnel.relay import RelayError, connection_failure, relay_rewriting, relay_unchanged
from earshot.tunnel.via import BUFFER, Via

MAX_CONNECTIONS: Final = 500
"""The maximum number of open connections. With ssh and kubectl each is a process."""
FILES_OF_CONNECTION: Final = 6
"""The files that one connection needs: its socket, and the pipes of its command."""
SPARE_FILES: Final = 64
CHECKED_AT_ONCE: Final = 8

Note = Callable[[str], None]


@dataclass(frozen=True)
class Route:
    """A local address, and the broker's address behind it; None for bootstrap at any broker."""

    local: Address
    broker: Address | None


@dataclass
class Tunnel:
    """A running tunnel."""

    via: Via
    brokers: Sequence[Address]
    note: Note
    bootstrap: str = ""
    routes: list[Route] = field(default_factory=list)
    hosts: Path | None = None
    """The hosts file with the brokers' names, if clients use these names."""
    problems: Mapping[Address, str] = field(default_factory=dict)
    """Why a broker cannot be reached, by its address."""
    _ports: Ports | None = None
    _bootstrap_order: list[Address] = field(default_factory=list)
    """The brokers in the order in which they are asked as bootstrap."""
    _servers: list[asyncio.Server] = field(default_factory=list)
    _starting: set[asyncio.Task[None]] = field(default_factory=set)
    _files: int = 0
    """The files that this process may open."""
    _connections: set[asyncio.Task[None]] = field(default_factory=set)
    _noted: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        needed = SPARE_FILES + MAX_BROKERS + MAX_CONNECTIONS * FILES_OF_CONNECTION
        self._files = raise_limit(needed)
        # clients may connect before all brokers have answered
        self._bootstrap_order = list(dict.fromkeys(self.brokers))

    async def with_ports(self, first_port: int) -> None:
        """Listens at a port of 127.0.0.1 for each broker, and rewrites answers."""
        self._ports = Ports(first_port, self._serve, min(MAX_BROKERS, self._files // 2))
        local_address = Address(LOOPBACK, first_port)
        self._serve(bound(local_address), None)
        for broker in self.brokers:
            self._ports.add(broker)
        self.bootstrap = str(local_address)
        await self._check_brokers(tls=False)

    async def with_addresses(self, folder: Path, seed: str, *, tls: bool) -> None:
        """Listens at the brokers' own ports of loopback addresses, and relays bytes unchanged."""
        names = loopback_addresses(self.brokers, seed)
        for broker in dict.fromkeys(self.brokers):
            local_address = Address(names[broker.host.lower()], broker.port)
            self._serve(bound(local_address), broker)
        self.hosts = folder / "hosts"
        write_hosts(self.hosts, names)
        self.bootstrap = ",".join(map(str, self.brokers))
        await self._check_brokers(tls=tls)

    async def close(self) -> None:
        for server in self._servers:
            server.close()
        for task in self._connections:
            task.cancel()
        await asyncio.gather(*self._connections)
        await self.via.close()

    async def _check_brokers(self, *, tls: bool) -> None:
        """Waits for the sockets, and asks every broker. Raises EarshotError if none answers."""
        await asyncio.gather(*self._starting)
        turn = asyncio.Semaphore(CHECKED_AT_ONCE)

        async def failure_of(broker: Address) -> str:
            async with turn:
                return await connection_failure(self.via, broker, tls=tls)

        brokers = list(dict.fromkeys(self.brokers))
        failures = await asyncio.gather(*map(failure_of, brokers))
        self.problems = {
            broker: failure for broker, failure in zip(brokers, failures, strict=True) if failure
        }
        self._bootstrap_order = sorted(brokers, key=lambda broker: broker in self.problems)
        if len(self.problems) == len(brokers):
            problems = "; ".join(
                f"{broker}: {failure}" for broker, failure in self.problems.items()
            )
            raise EarshotError(
                f"--via {self.via.text}",
                observed=f"no broker is reached from there: {problems}",
                remedy="the names must resolve, and the ports be open, on that machine",
            )

    def _serve(self, listening: socket.socket, broker: Address | None) -> None:
        self.routes.append(Route(Address(*listening.getsockname()[:2]), broker))

        async def accept(reader: StreamReader, writer: StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None
            try:
                if self._is_full():
                    self._say(f"a connection was refused: {len(self._connections)} are open")
                    return
                self._connections.add(task)
                await self._accepted(broker, reader, writer)
            except asyncio.CancelledError:
                pass  # the tunnel ends; Python 3.11 prints a trace for a cancelled connection
            finally:
                self._connections.discard(task)
                with contextlib.suppress(OSError):
                    writer.close()

        async def start() -> None:
            self._servers.append(await asyncio.start_server(accept, sock=listening, limit=BUFFER))

        task = asyncio.get_running_loop().create_task(start())
        self._starting.add(task)
        task.add_done_callback(self._starting.discard)

    async def _accepted(
        self, broker: Address | None, reader: StreamReader, writer: StreamWriter
    ) -> None:
        target = broker or self._bootstrap_order[0]
        try:
            if self._ports is not None:
                await relay_rewriting(self.via, target, self._ports.local, reader, writer)
            else:
                await relay_unchanged(self.via, target, reader, writer)
        except RelayError as fault:
            self._say(f"{target}: {fault}")
            if broker is None:  # the client retries, and gets another broker
                self._bootstrap_order.append(
                    self._bootstrap_order.pop(self._bootstrap_order.index(target))
                )

    def _is_full(self) -> bool:
        """True if another connection would exceed `MAX_CONNECTIONS` or the limit of open files."""
        number = len(self._connections)
        files = SPARE_FILES + len(self.routes) + (number + 1) * FILES_OF_CONNECTION
        return number >= MAX_CONNECTIONS or files > self._files

    def _say(self, text: str) -> None:
        """Passes ``text`` to `note` once: clients retry again and again."""
        if text not in self._noted:
            self._noted.add(text)
            self.note(text)


@contextlib.asynccontextmanager
async def tunnel(
    via: Via,
    brokers: Sequence[Address],
    folder: Path,
    note: Note,
    *,
    first: int | None,
    seed: str = "",
    tls: bool = False,
) -> AsyncIterator[Tunnel]:
    """Opens a tunnel to ``brokers``, and closes it at the end.

    With ``first`` it listens at ports from ``first`` on. Without it listens at loopback addresses,
    which depend on ``seed``; only then the listener may use ``tls``. ``folder`` is private. Raises
    EarshotError.
    """
    new_tunnel = Tunnel(via, brokers, note)
    try:
        await via.start(folder)
        if first is not None:
            await new_tunnel.with_ports(first)
        else:
            await new_tunnel.with_addresses(folder, seed, tls=tls)
        yield new_tunnel
    finally:
        await new_tunnel.close()

"""A tunnel with hostile peers: its notes, and its service to all others."""

import asyncio
import contextlib
import socket
import struct
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from earshot.listeners.address import Address
from earshot.tunnel.tunnel import Tunnel, tunnel
from earshot.tunnel.via import _Commands
from tests.doubles.peer import frame
from tests.e2e.ports import consecutive_ports
from tests.tunnel.test_relay import request, serving

BROKER = Address("kafka-1", 9092)
COPY = "exec 3<>/dev/tcp/127.0.0.1/$0; cat <&3 & cat >&3"


class CommandVia(_Commands):
    """A double: every address is a server of this process, reached by a command as with ssh."""

    def __init__(self, port: int) -> None:
        super().__init__("double:")
        self._port = port

    def command(self, address: Address) -> Sequence[str]:
        return ["bash", "-c", COPY, str(self._port), address.host]


@contextlib.asynccontextmanager
async def tunnel_to_broker(
    folder: Path, notes: list[str], host: bytes, wait: float = 0
) -> AsyncIterator[Tunnel]:
    """A tunnel to a broker that advertises ``host``, and takes ``wait`` seconds to answer."""

    async def broker(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            size = int.from_bytes(await reader.readexactly(4), "big")
            request = await reader.readexactly(size)
            await asyncio.sleep(wait)
            node = struct.pack(">iih", 1, 1, len(host)) + host + struct.pack(">i", 9092)
            writer.write(frame(request[4:8] + (b"\0" * 6 if request[1] == 18 else node)))

    first_port, *_ = consecutive_ports(1, 3)
    async with serving(broker) as port:
        via = CommandVia(port)
        async with tunnel(via, [BROKER], folder, notes.append, first=first_port) as new_tunnel:
            yield new_tunnel


async def metadata(port: int) -> bytes:
    """The start of the answer to a request for metadata; empty where the connection is ended."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request(3, 0))
    try:
        return await asyncio.wait_for(reader.read(100), 60)
    except ConnectionResetError:
        return b""
    finally:
        writer.close()


def test_a_host_that_no_command_takes_ends_one_connection(tmp_path: Path) -> None:
    notes: list[str] = []

    async def work() -> None:
        async with tunnel_to_broker(tmp_path, notes, b"a\0b") as open_tunnel:
            assert await metadata(open_tunnel.routes[0].local.port)
            assert await metadata(open_tunnel.routes[2].local.port) == b""
            assert await metadata(open_tunnel.routes[0].local.port)

    asyncio.run(work())
    assert notes == ["a\0b:9092: embedded null byte"]


def test_strangers_that_come_before_brokers_have_answered_take_no_connection_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("earshot.tunnel.tunnel.MAX_CONNECTIONS", 5)
    notes: list[str] = []

    async def strangers(open_tunnel: Tunnel, port: int) -> None:
        for _ in range(10):
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.close()
            await asyncio.sleep(0.02)
            async with asyncio.timeout(60):
                while open_tunnel._connections:
                    await asyncio.sleep(0.02)

    async def work() -> None:
        original_serve = Tunnel._serve
        tasks = []

        def serve(open_tunnel: Tunnel, listening: socket.socket, broker: Address | None) -> None:
            original_serve(open_tunnel, listening, broker)
            if broker is None:
                tasks.append(
                    asyncio.create_task(strangers(open_tunnel, listening.getsockname()[1]))
                )

        monkeypatch.setattr(Tunnel, "_serve", serve)
        async with tunnel_to_broker(tmp_path, notes, b"kafka-1", wait=1) as open_tunnel:
            await asyncio.gather(*tasks)
            assert b"127.0.0.1" in await metadata(open_tunnel.routes[0].local.port)

    asyncio.run(work())
    assert notes == []
    assert capfd.readouterr().err == ""


def test_an_open_connection_may_end(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    async def work() -> None:
        async with tunnel_to_broker(tmp_path, [], b"kafka-1") as open_tunnel:
            _, writer = await asyncio.open_connection("127.0.0.1", open_tunnel.routes[0].local.port)
            await asyncio.sleep(0.2)
        writer.close()

    asyncio.run(work())
    assert capfd.readouterr().err == ""


def test_a_tunnel_limits_its_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("earshot.tunnel.tunnel.raise_limit", lambda count: 80)
    notes: list[str] = []

    async def work() -> None:
        async with tunnel_to_broker(tmp_path, notes, b"kafka-1") as open_tunnel:
            ports = [open_tunnel.routes[0].local.port] * 3
            open_connections = [await asyncio.open_connection("127.0.0.1", port) for port in ports]
            await asyncio.sleep(0.2)
            for _, writer in open_connections:
                writer.close()

    asyncio.run(work())
    assert notes == ["a connection was refused: 2 are open"]

"""A tunnel with peers that mean no good: what it says, and that it serves all the others."""

import asyncio
import contextlib
import resource
import socket
import struct
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from earshot.listeners.address import Address
from earshot.tunnel.tunnel import Tunnel, files_to_open, tunnel
from earshot.tunnel.via import _Commands
from tests.e2e.ports import consecutive_ports
from tests.tunnel.test_relay import framed, request, serving

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
async def through(
    folder: Path, notes: list[str], host: bytes, wait: float = 0
) -> AsyncIterator[Tunnel]:
    """A tunnel to a broker that says it is at ``host``, and takes ``wait`` seconds to say so."""

    async def broker(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            size = int.from_bytes(await reader.readexactly(4), "big")
            asked = await reader.readexactly(size)
            await asyncio.sleep(wait)
            node = struct.pack(">iih", 1, 1, len(host)) + host + struct.pack(">i", 9092)
            writer.write(framed(asked[4:8] + (b"\0" * 6 if asked[1] == 18 else node)))

    first, *_ = consecutive_ports(1, 3)
    async with serving(broker) as port:
        via = CommandVia(port)
        async with tunnel(via, [BROKER], folder, notes.append, first=first) as made:
            yield made


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
        async with through(tmp_path, notes, b"a\0b") as made:
            assert await metadata(made.routes[0].local.port)
            assert await metadata(made.routes[2].local.port) == b""
            assert await metadata(made.routes[0].local.port)

    asyncio.run(work())
    assert notes == ["a\0b:9092: embedded null byte"]


def test_strangers_that_come_before_brokers_have_answered_take_no_connection_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("earshot.tunnel.tunnel.MOST_CONNECTIONS", 5)
    notes: list[str] = []

    async def strangers(made: Tunnel, port: int) -> None:
        for _ in range(10):
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.close()
            await asyncio.sleep(0.02)
            async with asyncio.timeout(60):
                while made._connections:
                    await asyncio.sleep(0.02)

    async def work() -> None:
        served = Tunnel._serve
        tasks = []

        def serve(made: Tunnel, listening: socket.socket, broker: Address | None) -> None:
            served(made, listening, broker)
            if broker is None:
                tasks.append(asyncio.create_task(strangers(made, listening.getsockname()[1])))

        monkeypatch.setattr(Tunnel, "_serve", serve)
        async with through(tmp_path, notes, b"kafka-1", wait=1) as made:
            await asyncio.gather(*tasks)
            assert b"127.0.0.1" in await metadata(made.routes[0].local.port)

    asyncio.run(work())
    assert notes == []
    assert capfd.readouterr().err == ""


def test_an_open_connection_may_end(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    async def work() -> None:
        async with through(tmp_path, [], b"kafka-1") as made:
            _, writer = await asyncio.open_connection("127.0.0.1", made.routes[0].local.port)
            await asyncio.sleep(0.2)
        writer.close()

    asyncio.run(work())
    assert capfd.readouterr().err == ""


def test_a_tunnel_limits_its_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("earshot.tunnel.tunnel.files_to_open", lambda: 80)
    notes: list[str] = []

    async def work() -> None:
        async with through(tmp_path, notes, b"kafka-1") as made:
            ports = [made.routes[0].local.port] * 3
            held = [await asyncio.open_connection("127.0.0.1", port) for port in ports]
            await asyncio.sleep(0.2)
            for _, writer in held:
                writer.close()

    asyncio.run(work())
    assert notes == ["a connection was refused: 2 are open"]


def test_the_limit_of_open_files_is_raised_as_far_as_it_may_be() -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (512, before[1]))
        assert files_to_open() > 512
        assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] == files_to_open()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)

"""Bytes that pass through a tunnel, and reasons that end a connection. `DirectVia` is a double."""

import asyncio
import contextlib
import struct
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from earshot.listeners.address import Address
from earshot.tunnel import relay
from earshot.tunnel.relay import RelayError, connection_failure, relay_rewriting, relay_unchanged
from earshot.tunnel.via import Stream, Via, ViaError
from tests.doubles.peer import frame

BROKER = Address("kafka-1.private", 9092)
Peer = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class DirectVia(Via):
    """A double: every address is a server of this process."""

    def __init__(self, port: int) -> None:
        super().__init__("double:")
        self._port = port

    async def open(self, address: Address) -> Stream:
        if not self._port:
            raise ViaError("Connection refused")
        return Stream(*await asyncio.open_connection("127.0.0.1", self._port))


@contextlib.asynccontextmanager
async def serving(peer: Peer) -> AsyncIterator[int]:
    """The port of a server that treats each connection as ``peer`` does."""

    connections: set[asyncio.Task[None]] = set()

    async def treat(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        connections.add(task)
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            await peer(reader, writer)
        writer.close()
        connections.discard(task)

    server = await asyncio.start_server(treat, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for task in connections:
            task.cancel()
        await asyncio.gather(*connections)
        await asyncio.sleep(0.01)  # a closed connection is gone in the next rounds of the loop


def local(address: Address) -> Address:
    return Address("127.0.0.1", 19093)


def exchange(peer: Peer, request_bytes: bytes, *, rewrites: bool = True) -> tuple[bytes, str]:
    """The answer to ``request_bytes``, and the reason why the tunnel ended the connection."""

    async def work() -> tuple[bytes, str]:
        why: list[str] = []

        async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                if rewrites:
                    await relay_rewriting(DirectVia(port), BROKER, local, reader, writer)
                else:
                    await relay_unchanged(DirectVia(port), BROKER, reader, writer)
            except RelayError as fault:
                why.append(str(fault))
            writer.close()

        async with serving(peer) as port, serving(accept) as tunnel_port:
            reader, writer = await asyncio.open_connection("127.0.0.1", tunnel_port)
            writer.write(request_bytes)
            answer = await asyncio.wait_for(reader.read(), 10)
            writer.close()
        return answer, "".join(why)

    return asyncio.run(work())


def request(key: int, version: int, number: int = 7, body: bytes = b"") -> bytes:
    content = struct.pack(">hhi", key, version, number) + body
    return struct.pack(">i", len(content)) + content


def broker_with_answer(answer: bytes) -> Peer:
    async def peer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(answer)
        await writer.drain()

    return peer


def test_bytes_pass_as_they_are_without_rewriting() -> None:
    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(await reader.readexactly(300_000))
        await writer.drain()

    client_bytes = bytes(range(250)) * 1200
    assert exchange(echo, client_bytes, rewrites=False) == (client_bytes, "")


def test_an_answer_without_addresses_passes_as_it_is() -> None:
    answer = frame(struct.pack(">i", 7) + b"\xff" * 100_000)
    assert exchange(broker_with_answer(answer), request(0, 9)) == (answer, "")


def test_an_answer_with_addresses_is_rewritten() -> None:
    node = struct.pack(">ih7si", 1, 7, b"kafka-1", 9092)
    local_node = struct.pack(">ih9si", 1, 9, b"127.0.0.1", 19093)
    start, end = struct.pack(">ii", 7, 1), struct.pack(">i", 0)
    answer = broker_with_answer(frame(start + node + end))
    assert exchange(answer, request(3, 0)) == (frame(start + local_node + end), "")


@pytest.mark.parametrize(
    ("client_bytes", "why"),
    [
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\x00\x00", "the client speaks TLS"),
        (struct.pack(">i", 4) + b"abcdefgh", "a request of 4 bytes"),
        (struct.pack(">i", -1) + b"abcdefgh", "a request of -1 bytes"),
        (request(0, 12), "version 12 of request 0"),
        (request(17, 0), "logs in as before Kafka 1.0"),
    ],
)
def test_a_client_that_would_bypass_the_tunnel_is_refused(client_bytes: bytes, why: str) -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    answer, end_reason = exchange(silent, client_bytes)
    assert answer == b"" and why in end_reason


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (struct.pack(">ii", 2**30, 7), "1,073,741,824 bytes"),
        (struct.pack(">ii", -5, 7), "-5 bytes"),
        (frame(struct.pack(">ii", 7, 2**31 - 1)), "entries in"),
    ],
)
def test_a_broker_that_lies_ends_its_own_connection(answer: bytes, why: str) -> None:
    client_answer, end_reason = exchange(broker_with_answer(answer), request(3, 0))
    assert client_answer == b"" and why in end_reason


def test_a_client_that_never_reads_answers_cannot_fill_the_memory() -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await reader.read(2**16):
            pass

    requests = b"".join(request(3, 0, number) for number in range(1001))
    assert "more than 1000 answers" in exchange(silent, requests)[1]


@pytest.mark.parametrize(
    ("answer", "tls", "why"),
    [
        (struct.pack(">ii", 10, 1), False, ""),
        (b"HTTP/1.1 400 Bad Request", False, "not a Kafka listener"),
        (b"", False, "closed the connection"),
        (bytes.fromhex("160303007a02"), True, ""),
        (bytes.fromhex("15030300020228"), True, ""),  # an alert: certificates are the client's
        (struct.pack(">ii", 10, 1), True, "does not speak TLS"),
        (b"", True, "closed the connection"),
    ],
)
def test_what_answers_is_asked_before_clients_come(answer: bytes, tls: bool, why: str) -> None:
    async def work() -> str:
        async with serving(broker_with_answer(answer)) as port:
            return await connection_failure(DirectVia(port), BROKER, tls=tls)

    failure = asyncio.run(work())
    assert why in failure and bool(failure) == bool(why)


@pytest.mark.parametrize("tls", [False, True])
def test_silence_is_no_answer(tls: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine between accepts the connection, and a firewall drops its packets."""
    monkeypatch.setattr(relay, "ANSWER_SECONDS", 0.2)

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await reader.read(2**16):
            pass

    async def work() -> str:
        async with serving(silent) as port:
            return await connection_failure(DirectVia(port), BROKER, tls=tls)

    assert asyncio.run(work()) == "no answer within 0.2 s"


def test_a_way_that_refuses_says_why() -> None:
    assert asyncio.run(connection_failure(DirectVia(0), BROKER, tls=True)) == "Connection refused"


def test_endless_small_answers_wait_for_a_client_that_reads_nothing() -> None:
    sent_bytes = 0

    async def broker(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent_bytes
        await reader.read(1)
        many_answers = frame(bytes(4)) * 100_000
        while sent_bytes < 400 * len(many_answers):
            writer.write(many_answers)
            await writer.drain()
            sent_bytes += len(many_answers)

    async def work() -> None:
        async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await relay_rewriting(DirectVia(port), BROKER, local, reader, writer)

        async with serving(broker) as port, serving(accept) as tunnel_port:
            _, writer = await asyncio.open_connection("127.0.0.1", tunnel_port)
            writer.write(request(0, 9))
            old_count, unchanged_looks = -1, 0
            async with asyncio.timeout(120):
                while unchanged_looks < 10:  # half a second in which nothing is taken
                    unchanged_looks = unchanged_looks + 1 if sent_bytes == old_count else 0
                    old_count = sent_bytes
                    await asyncio.sleep(0.05)
            writer.close()

    asyncio.run(work())
    assert sent_bytes < 64_000_000

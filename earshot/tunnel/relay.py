"""Relays a client's connection to a broker: bytes unchanged, or with Kafka's answers rewritten."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from asyncio import StreamReader, StreamWriter
from collections.abc import Callable, Coroutine
from typing import Final

from earshot.listeners.address import Address
from earshot.tunnel.rewriting import (
    API_VERSIONS,
    NEWEST,
    OLDEST,
    REWRITTEN,
    Local,
    RewriteError,
    rewritten,
)
from earshot.tunnel.via import Stream, Via, ViaError

MAX_BYTES: Final = 2**26
"""The maximum size of an answer that is read as a whole: 10 times the metadata of 100,000
partitions."""
MAX_PENDING: Final = 1000
"""The maximum number of unanswered requests of a client whose answers are rewritten."""
CHUNK: Final = 2**18
ANSWER_SECONDS: Final = 10.0
"""Time limit for the first answer of a broker."""

_HEADER: Final = 8
_TLS: Final = b"\x16\x03"
_TLS_ANSWERS: Final = (_TLS, b"\x15\x03")
"""The first bytes of a TLS peer: of a handshake, or of an alert."""
_CORRELATION: Final = b"\0\0\0\x01"

_Directions = Callable[[Stream], tuple[Coroutine[None, None, None], Coroutine[None, None, None]]]


class RelayError(Exception):
    """The tunnel ended the connection; the text has the reason."""


async def relay_unchanged(
    via: Via, address: Address, reader: StreamReader, writer: StreamWriter
) -> None:
    """Relays bytes both ways until one side ends. Raises RelayError if the broker cannot be
    reached."""
    await _relay_both_ways(via, address, writer, lambda stream: (
        _copied(reader, stream.writer), _copied(stream.reader, writer)
    ))  # fmt: skip


async def relay_rewriting(
    via: Via, address: Address, local: Local, reader: StreamReader, writer: StreamWriter
) -> None:
    """Relays requests unchanged, and answers with ``local`` addresses, until one side ends.

    Raises RelayError if the broker cannot be reached, or one side does not use Kafka's protocol.
    """
    pending: dict[int, tuple[int, int]] = {}
    await _relay_both_ways(via, address, writer, lambda stream: (
        _relay_requests(reader, stream.writer, pending),
        _relay_answers(stream.reader, writer, pending, local),
    ))  # fmt: skip


async def connection_failure(via: Via, address: Address, *, tls: bool) -> str:
    """Why no broker answers at ``address``, with or without ``tls``; empty if one does.

    A `Via` may accept a connection before it is connected to the broker, so only an answer counts.
    """
    try:
        stream = await via.open(address)
    except ViaError as fault:
        return str(fault)
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            if tls:
                stream.writer.write(_hello(address.host))
                if await stream.reader.readexactly(len(_TLS)) not in _TLS_ANSWERS:
                    return "the server does not speak TLS"
                return ""
            request = API_VERSIONS.to_bytes(2, "big") + b"\0\0" + _CORRELATION + b"\0\x07earshot"
            stream.writer.write(len(request).to_bytes(4, "big") + request)
            if (await stream.reader.readexactly(_HEADER))[4:] != _CORRELATION:
                return "the server is not a Kafka listener without TLS"
            return ""
    except TimeoutError:
        return f"no answer within {ANSWER_SECONDS:g} s"
    except (asyncio.IncompleteReadError, OSError):
        return await _complaint(stream) or "it closed the connection"
    finally:
        await stream.close()


def _hello(host: str) -> bytes:
    """The first message of a TLS client that asks for ``host``."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE  # nothing else is sent
    outgoing = ssl.MemoryBIO()
    client = context.wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname=host)
    with contextlib.suppress(ssl.SSLWantReadError):
        client.do_handshake()
    return outgoing.read()


async def _relay_both_ways(
    via: Via, address: Address, writer: StreamWriter, directions: _Directions
) -> None:
    try:
        stream = await via.open(address)
    except ViaError as fault:
        raise RelayError(str(fault)) from None
    tasks = [asyncio.ensure_future(direction) for direction in directions(stream)]
    try:
        finished_tasks, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in finished_tasks:
            try:
                await task
            except RewriteError as fault:
                raise RelayError(str(fault)) from None
            except OSError:
                pass  # one side closed its connection
        if (
            tasks[1] in finished_tasks
            and not writer.is_closing()
            and (complaint := await _complaint(stream))
        ):
            raise RelayError(complaint)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await stream.close()


async def _complaint(stream: Stream) -> str:
    """The error of the stream's command, after a short wait for its end; empty if it succeeded."""
    if stream.process is None:
        return ""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(0.2):
            await stream.process.wait()
            await asyncio.sleep(0.05)  # its last line
    if not stream.complaints or not stream.process.returncode:
        return ""
    return await stream.explained(stream.complaints[-1])


async def _copied(reader: StreamReader, writer: StreamWriter) -> None:
    while data := await reader.read(CHUNK):
        writer.write(data)
        await writer.drain()


async def _copy_rest(reader: StreamReader, writer: StreamWriter, size: int) -> bool:
    """Copies the next ``size`` bytes. False if the stream ends before."""
    while size > 0:
        data = await reader.read(min(size, CHUNK))
        if not data:
            return False
        size -= len(data)
        writer.write(data)
        await writer.drain()
    return True


async def _frame_start(reader: StreamReader, size: int) -> bytes | None:
    """The first ``size`` bytes of a frame; None if the peer closed the connection."""
    try:
        return await reader.readexactly(size)
    except asyncio.IncompleteReadError:
        return None


async def _relay_requests(
    reader: StreamReader, writer: StreamWriter, pending: dict[int, tuple[int, int]]
) -> None:
    while (start := await _frame_start(reader, 4 + _HEADER)) is not None:
        if start.startswith(_TLS):
            raise RewriteError("the client speaks TLS, and the listener has none")
        size = int.from_bytes(start[:4], "big", signed=True)
        if size < _HEADER:
            raise RewriteError(f"the client sent a request of {size} bytes")
        key, version = int.from_bytes(start[4:6], "big"), int.from_bytes(start[6:8], "big")
        if version > NEWEST.get(key, version) and key != API_VERSIONS:
            raise RewriteError(f"the client sent version {version} of request {key}")
        if version < OLDEST.get(key, version):
            raise RewriteError("the client logs in as before Kafka 1.0")
        if key in REWRITTEN:
            if len(pending) >= MAX_PENDING:
                raise RewriteError(f"the client waits for more than {MAX_PENDING} answers")
            # a broker answers an unknown version of ApiVersions in version 0
            supported_version = min(version, NEWEST[key])
            pending[int.from_bytes(start[8:12], "big")] = (key, supported_version)
        writer.write(start)
        await writer.drain()  # a peer that reads nothing must not fill the memory
        if not await _copy_rest(reader, writer, size - _HEADER):
            return


async def _relay_answers(
    reader: StreamReader, writer: StreamWriter, pending: dict[int, tuple[int, int]], local: Local
) -> None:
    while (start := await _frame_start(reader, _HEADER)) is not None:
        size = int.from_bytes(start[:4], "big", signed=True)
        if size < 4:
            raise RewriteError(f"the broker sent an answer of {size} bytes")
        request = pending.pop(int.from_bytes(start[4:], "big"), None)
        if request is None:
            writer.write(start)
            await writer.drain()
            if not await _copy_rest(reader, writer, size - 4):
                return
            continue
        if size > MAX_BYTES:
            raise RewriteError(f"the broker sent an answer of {size:,} bytes")
        try:
            frame = start[4:] + await reader.readexactly(size - 4)
        except asyncio.IncompleteReadError:
            return
        new_frame = rewritten(*request, frame, local)
        writer.write(len(new_frame).to_bytes(4, "big") + new_frame)
        await writer.drain()

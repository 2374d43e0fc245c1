"""A DNS server on loopback that takes its time: every name has an address of each family.

It runs in another process, so that it takes no time from the measured one.
"""

import asyncio
import multiprocessing
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from typing import Any

_HEADER = 12
_ADDRESSES = {1: bytes((192, 0, 2, 1)), 28: bytes.fromhex("20010db8000000000000000000000001")}
"""Data of the answers, by the number of the record's type."""
_RESPONSE = b"\x85\x80" + struct.pack(">4H", 1, 1, 0, 0)
"""Flags and counts of the header behind the id: an answer of authority, with one record."""
_TTL = 60


class _Slow(asyncio.DatagramProtocol):
    def __init__(self, seconds: float | None) -> None:
        self._seconds = seconds
        self._transport: Any = None

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def datagram_received(self, data: bytes, addr: Any) -> None:
        if self._seconds is not None:
            loop = asyncio.get_running_loop()
            loop.call_later(self._seconds, self._transport.sendto, _answer(data), addr)


def _answer(question: bytes) -> bytes:
    end = question.index(b"\0", _HEADER) + 5  # the name ends with its root; type and class follow
    (kind,) = struct.unpack(">H", question[end - 4 : end - 2])
    address = _ADDRESSES[kind]
    name = struct.pack(">H", 0xC000 | _HEADER)
    record = name + struct.pack(">HHIH", kind, 1, _TTL, len(address)) + address
    return question[:2] + _RESPONSE + question[_HEADER:end] + record


async def _serve(ready: Connection, seconds: float | None) -> None:
    loop = asyncio.get_running_loop()
    transport, _ = await loop.create_datagram_endpoint(
        lambda: _Slow(seconds), local_addr=("127.0.0.1", 0)
    )
    ready.send(transport.get_extra_info("sockname")[1])
    await asyncio.Event().wait()


def _run(ready: Connection, seconds: float | None) -> None:
    asyncio.run(_serve(ready, seconds))


@contextmanager
def slow_dns_server(seconds: float | None) -> Iterator[str]:
    """Yields `ip:port` of a server that takes ``seconds`` an answer; None never answers."""
    context = multiprocessing.get_context("spawn")
    parent_end, child_end = context.Pipe()
    process = context.Process(target=_run, args=(child_end, seconds), daemon=True)
    process.start()
    try:
        yield f"127.0.0.1:{parent_end.recv()}"
    finally:
        process.terminate()
        process.join()

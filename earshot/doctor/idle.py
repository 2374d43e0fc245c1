"""Connections that are idle for a while: whether what is between forgets them.

NAT gateways, load balancers and firewalls drop the state of a connection that carries nothing,
AWS's after 350 s, and tell neither end. A keep-alive on the broker prevents that.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import struct
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from earshot.doctor.probe import tls_context
from earshot.listeners.address import Address
from earshot.listeners.terms import Protocol
from earshot.validation.client import translate

LIMIT: Final = 64
"""Connections that are held at a time."""
ANSWER_SECONDS: Final = 5.0
"""For a connection to be made, and for an answer on it."""
_CORRELATION: Final = 350
_API_VERSIONS: Final = struct.pack(">ihhih", 10, 18, 0, _CORRELATION, -1)
"""The request that every listener answers, before a login too: key 18, version 0, no client id."""
_HEAD: Final = struct.Struct(">ii")


@dataclass(frozen=True)
class IdleConnection:
    """One connection, and what became of it."""

    address: Address
    error: str
    """Empty where the broker answered on it afterwards."""
    made: bool = True
    """Whether there was a connection at all."""

    def __str__(self) -> str:
        if not self.made:
            return f"{self.address}: no connection to hold ({self.error})"
        return f"{self.address}: {self.error or 'answered'}"


def hold(
    places: Sequence[tuple[Address, Protocol]], client: Mapping[str, str], seconds: float
) -> list[IdleConnection]:
    """What became of a connection to each of ``places`` that was idle for ``seconds``.

    ``client`` are Kafka's client properties. No more than `LIMIT` are held. Raises EarshotError for
    certificates and keys that cannot be read.
    """
    tls = any(protocol.tls for _, protocol in places)
    context = tls_context(translate(client)) if tls else None
    results: list[IdleConnection] = []
    with contextlib.ExitStack() as stack:
        waiting: list[tuple[Address, socket.socket]] = []
        for address, protocol in list(dict.fromkeys(places))[:LIMIT]:
            try:
                made = _connected(address, context if protocol.tls else None)
            # a broker may advertise what is no name and no port
            except (OSError, ValueError, OverflowError) as error:
                results.append(IdleConnection(address, _text(error), made=False))
                continue
            waiting.append((address, stack.enter_context(made)))
        if waiting:
            time.sleep(seconds)
        results += [IdleConnection(address, _asked(connection)) for address, connection in waiting]
    return results


def notes(results: Sequence[IdleConnection], seconds: float) -> Iterator[str]:
    """``results`` in words, for a report."""
    lost = [result for result in results if result.made and result.error]
    kept = [result for result in results if not result.error]
    if kept:
        yield f"{len(kept)} connections answered after {seconds:g} s without traffic"
    for connection in results:
        if connection.error:
            yield f"a connection that was idle for {seconds:g} s: {connection}"
    if lost:
        yield (
            "what is between forgets idle connections: set net.ipv4.tcp_keepalive_time on the "
            "brokers below its limit (AWS: 350 s). Brokers themselves close a connection after "
            "connections.max.idle.ms, 600 s by default"
        )


def _connected(address: Address, context: ssl.SSLContext | None) -> socket.socket:
    connection = socket.create_connection((address.host, address.port), timeout=ANSWER_SECONDS)
    if context is None:
        return connection
    try:
        return context.wrap_socket(connection, server_hostname=address.host)
    except BaseException:
        connection.close()
        raise


def _asked(connection: socket.socket) -> str:
    """Why the broker does not answer on ``connection``; empty where it does."""
    try:
        connection.sendall(_API_VERSIONS)
        answer = b""
        while len(answer) < _HEAD.size:
            part = connection.recv(_HEAD.size - len(answer))
            if not part:
                return "was closed meanwhile"
            answer += part
    except OSError as error:
        return _text(error)
    _, correlation = _HEAD.unpack(answer)
    return "" if correlation == _CORRELATION else "was answered by something that is no broker"


def _text(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "no answer"
    if isinstance(error, ConnectionResetError | BrokenPipeError):
        return "was reset"
    return (getattr(error, "strerror", None) or str(error)).lower()

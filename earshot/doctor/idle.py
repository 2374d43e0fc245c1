"""Tests whether the network drops idle connections.

NAT gateways, load balancers and firewalls forget a connection without traffic (AWS after 350 s)
and notify neither end. TCP keep-alive on the broker prevents that.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import struct
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

from earshot.doctor.probe import tls_context
from earshot.listeners.address import Address
from earshot.listeners.terms import Protocol
from earshot.validation.client import translate
from earshot.validation.deadline import Deadline
from earshot.validation.result import Cell
from earshot.validation.terms import Stage

LIMIT: Final = 64
"""The maximum number of connections held open."""
ANSWER_SECONDS: Final = 5.0
"""Time limit for connecting, and for an answer."""
_SILENT_STAGES: Final = (Stage.BOOTSTRAP, Stage.RESOLVE, Stage.TCP, Stage.SECURITY)
"""If one of these stages failed, the address answered no request."""
_CORRELATION: Final = 350
_API_VERSIONS: Final = struct.pack(">ihhih", 10, 18, 0, _CORRELATION, -1)
"""An ApiVersions request (key 18, version 0, no client id): answered even before a login."""
_HEAD: Final = struct.Struct(">ii")


@dataclass(frozen=True)
class IdleConnection:
    """The result for one idle connection."""

    address: Address
    error: str
    """Empty if the broker answered after the idle time."""
    is_connected: bool = True
    """False if the address did not accept a connection."""

    def __str__(self) -> str:
        if not self.is_connected:
            return f"{self.address}: no connection to hold ({self.error})"
        return f"{self.address}: {self.error or 'answered'}"


def answered(cells: Iterable[Cell]) -> list[Cell]:
    """The ``cells`` whose address answered a request. Others do not show an idle connection."""
    return [cell for cell in cells if cell.failed_stage not in _SILENT_STAGES]


def hold(
    places: Sequence[tuple[Address, Protocol]], client: Mapping[str, str], seconds: float
) -> list[IdleConnection]:
    """Connects to each of ``places``, waits for ``seconds``, and tests each connection.

    ``client`` are Kafka's client properties. At most `LIMIT` places are tested. Raises EarshotError
    for certificates and keys that cannot be read.
    """
    tls = any(protocol.tls for _, protocol in places)
    context = tls_context(translate(client)) if tls else None
    chosen = list(dict.fromkeys(places))[:LIMIT]

    def attempt(place: tuple[Address, Protocol]) -> socket.socket | IdleConnection:
        address, protocol = place
        try:
            return _connect(address, context if protocol.tls else None)
        # a broker may advertise an invalid name or port
        except (OSError, ValueError, OverflowError) as error:
            return IdleConnection(address, _error_text(error), is_connected=False)

    results: list[IdleConnection] = []
    connections: list[tuple[Address, socket.socket]] = []
    with (
        contextlib.ExitStack() as stack,
        ThreadPoolExecutor(LIMIT, thread_name_prefix="idle") as pool,
    ):
        for (address, _), connection in zip(chosen, pool.map(attempt, chosen), strict=True):
            if isinstance(connection, IdleConnection):
                results.append(connection)
            else:
                connections.append((address, stack.enter_context(connection)))
        if connections:
            time.sleep(seconds)
        errors = pool.map(_answer_failure, [connection for _, connection in connections])
        results += map(IdleConnection, [address for address, _ in connections], errors)
    return results


def notes(results: Sequence[IdleConnection], seconds: float) -> Iterator[str]:
    """Notes about ``results`` for a report."""
    lost_connections = [result for result in results if result.is_connected and result.error]
    kept_connections = [result for result in results if not result.error]
    if kept_connections:
        yield f"{len(kept_connections)} connections answered after {seconds:g} s without traffic"
    for connection in results:
        if connection.error:
            yield f"a connection that was idle for {seconds:g} s: {connection}"
    if lost_connections:
        yield (
            "the network drops idle connections: set net.ipv4.tcp_keepalive_time on the "
            "brokers below its limit (AWS: 350 s). Brokers themselves close a connection after "
            "connections.max.idle.ms, 600 s by default"
        )


def _connect(address: Address, context: ssl.SSLContext | None) -> socket.socket:
    connection = socket.create_connection((address.host, address.port), timeout=ANSWER_SECONDS)
    if context is None:
        return connection
    try:
        return context.wrap_socket(connection, server_hostname=address.host)
    except BaseException:
        connection.close()
        raise


def _answer_failure(connection: socket.socket) -> str:
    """Why the broker does not answer on ``connection``; empty if it does."""
    end = Deadline(ANSWER_SECONDS)
    try:
        connection.sendall(_API_VERSIONS)
        answer = b""
        while len(answer) < _HEAD.size:
            if not (seconds_left := end.left()):
                return "no answer"
            connection.settimeout(seconds_left)
            chunk = connection.recv(_HEAD.size - len(answer))
            if not chunk:
                return "was closed meanwhile"
            answer += chunk
    except OSError as error:
        return _error_text(error)
    _, correlation = _HEAD.unpack(answer)
    return "" if correlation == _CORRELATION else "was answered by something other than a broker"


def _error_text(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "no answer"
    if isinstance(error, ConnectionResetError | BrokenPipeError):
        return "was reset"
    return (getattr(error, "strerror", None) or str(error)).lower()

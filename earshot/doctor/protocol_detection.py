"""Detects the protocol of a listener that returned no metadata: TLS, SASL, or not Kafka.

Runs only after a failure. A Kafka listener with SASL answers a SaslHandshake with its enabled
mechanisms; a listener without SASL answers with an error. A controller listener supports requests
that no broker supports, and no metadata request. An HTTP server answers a HEAD request.
"""

import contextlib
import socket
import ssl
from dataclasses import dataclass
from typing import Final

from earshot.listeners.listed import clipped
from earshot.listeners.terms import Protocol
from earshot.validation.client import Failure
from earshot.validation.deadline import Deadline
from earshot.validation.wire import (
    CONTROLLER_REQUESTS,
    ILLEGAL_SASL_STATE,
    METADATA,
    UNSUPPORTED_MECHANISM,
    Exchange,
    ExchangeError,
    foreign_server,
    request_keys,
    sasl_handshake,
)

_MAX_LIST: Final = 200
"""The maximum number of characters for the mechanisms in a message."""
CONTROLLER: Final = Failure(
    "controller", "a controller's listener answers there, which serves brokers, not clients"
)


@dataclass(frozen=True)
class DetectedProtocol:
    """The detected protocol of a listener. Unknown parts are None."""

    tls: bool | None = None
    mechanisms: tuple[str, ...] | None = None
    """The enabled SASL mechanisms; empty without SASL."""
    foreign: Failure | None = None
    """The kind of server, if it is not a Kafka listener for clients."""

    def other_than(self, expected_protocol: Protocol) -> str:
        """The protocol as text if it differs from ``expected_protocol``; empty if it may match."""
        tls = expected_protocol.tls if self.tls is None else self.tls
        sasl = expected_protocol.sasl if self.mechanisms is None else bool(self.mechanisms)
        if (tls, sasl) == (expected_protocol.tls, expected_protocol.sasl):
            return ""
        if self.mechanisms is None and not self.tls:
            return "it speaks no TLS"
        if self.mechanisms is None:
            return "it speaks TLS"
        actual_protocol = next(
            protocol for protocol in Protocol if (protocol.tls, protocol.sasl) == (tls, sasl)
        )
        names = clipped(", ".join(self.mechanisms), _MAX_LIST)
        return f"it speaks {actual_protocol}{f' ({names})' if names else ''}"


def detect_protocol(peer: tuple[str, int], limit: float) -> DetectedProtocol:
    """Detects the protocol at ``peer`` (IP address, port), within ``limit`` seconds."""
    end = Deadline(limit)
    with contextlib.suppress(OSError), _connect(peer, end) as connection:
        detected = _ask(connection, False, end.within(limit / 3))
        if detected is not None:
            return detected
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE  # no secret is sent
    with (
        contextlib.suppress(OSError),
        _connect(peer, end) as connection,
        context.wrap_socket(connection) as tls_connection,
    ):
        # a listener may require a client certificate first
        return _ask(tls_connection, True, end.within(limit / 3)) or DetectedProtocol(True)
    return DetectedProtocol(foreign=_http_server(peer, end))


def _connect(peer: tuple[str, int], end: Deadline) -> socket.socket:
    return socket.create_connection(peer, max(0.05, end.left(end.seconds / 3)))


def _ask(connection: socket.socket, tls: bool, end: Deadline) -> DetectedProtocol | None:
    """The protocol by the answers on ``connection``; None if they do not show it."""
    exchange = Exchange(connection, end)
    try:
        supported_keys = request_keys(exchange)
        if METADATA not in supported_keys and supported_keys & CONTROLLER_REQUESTS:
            return DetectedProtocol(tls, foreign=CONTROLLER)
        error, enabled_mechanisms = sasl_handshake(exchange, "earshot")
    except ExchangeError as error:
        is_foreign = error.failure.error in ("http", "not-kafka")
        return DetectedProtocol(tls, foreign=error.failure) if is_foreign else None
    if error not in (UNSUPPORTED_MECHANISM, ILLEGAL_SASL_STATE):
        return None
    return DetectedProtocol(tls, enabled_mechanisms)


def _http_server(peer: tuple[str, int], end: Deadline) -> Failure | None:
    """The HTTP server at ``peer``, or None. Some servers answer only after a whole line."""
    with contextlib.suppress(OSError), _connect(peer, end) as connection:
        connection.sendall(b"HEAD / HTTP/1.0\r\n\r\n")
        line = connection.recv(60)
        if line.startswith(b"HTTP"):
            return foreign_server(line).failure
    return None

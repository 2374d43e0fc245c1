"""What a listener speaks that gave no metadata: TLS or not, a login or not, or no clients' Kafka.

Asked only where something failed. A Kafka listener with a login answers a SaslHandshake with the
mechanisms that it has enabled; one without says that it expects none. A controller's listener
takes requests that no broker takes, and no metadata request. An HTTP server answers a HEAD.
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
    CONTROLLERS_OWN,
    METADATA,
    Exchange,
    ExchangeError,
    foreign,
    mechanisms,
    request_keys,
)

_UNSUPPORTED_MECHANISM: Final = 33
_ILLEGAL_STATE: Final = 34
_LONGEST_LIST: Final = 200
"""Characters of the mechanisms that are written out."""
CONTROLLER: Final = Failure(
    "controller", "a controller's listener answers there: it serves brokers and no clients"
)


@dataclass(frozen=True)
class SpokenSecurity:
    """What is known of it; None where it is not."""

    tls: bool | None = None
    mechanisms: tuple[str, ...] | None = None
    """Of the login that it asks for; empty where it asks for none."""
    foreign: Failure | None = None
    """What it is, where it is no listener for clients."""

    def other_than(self, expected: Protocol) -> str:
        """What it speaks instead of ``expected``, in words; empty where that may be right."""
        tls = expected.tls if self.tls is None else self.tls
        sasl = expected.sasl if self.mechanisms is None else bool(self.mechanisms)
        if (tls, sasl) == (expected.tls, expected.sasl):
            return ""
        if self.mechanisms is None and not self.tls:
            return "it speaks no TLS"
        if self.mechanisms is None:
            return "it speaks TLS"
        actual = next(
            protocol for protocol in Protocol if (protocol.tls, protocol.sasl) == (tls, sasl)
        )
        names = clipped(", ".join(self.mechanisms), _LONGEST_LIST)
        return f"it speaks {actual}{f' ({names})' if names else ''}"


def spoken(peer: tuple[str, int], limit: float) -> SpokenSecurity:
    """What the listener at ``peer`` (address, port) speaks; ``limit`` in seconds, for it all."""
    end = Deadline(limit)
    with contextlib.suppress(OSError), _connected(peer, end) as plain:
        known = _asked(plain, False, end.within(limit / 3))
        if known is not None:
            return known
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE  # nothing is confided
    with (
        contextlib.suppress(OSError),
        _connected(peer, end) as plain,
        context.wrap_socket(plain) as secured,
    ):
        # it may want to see a certificate first
        return _asked(secured, True, end.within(limit / 3)) or SpokenSecurity(True)
    return SpokenSecurity(foreign=_http(peer, end))


def _connected(peer: tuple[str, int], end: Deadline) -> socket.socket:
    return socket.create_connection(peer, max(0.05, end.left(end.seconds / 3)))


def _asked(connection: socket.socket, tls: bool, end: Deadline) -> SpokenSecurity | None:
    """What the peer says of itself; None where it is not known to be Kafka's or anything else."""
    exchange = Exchange(connection, end)
    try:
        keys = request_keys(exchange)
        if METADATA not in keys and keys & CONTROLLERS_OWN:
            return SpokenSecurity(tls, foreign=CONTROLLER)
        error, enabled = mechanisms(exchange, "earshot")
    except ExchangeError as error:
        text = error.failure.error in ("http", "not-kafka")
        return SpokenSecurity(tls, foreign=error.failure) if text else None
    if error not in (_UNSUPPORTED_MECHANISM, _ILLEGAL_STATE):
        return None
    return SpokenSecurity(tls, enabled)


def _http(peer: tuple[str, int], end: Deadline) -> Failure | None:
    """What answers there, where that is a server of HTTP: some wait for a whole line first."""
    with contextlib.suppress(OSError), _connected(peer, end) as connection:
        connection.sendall(b"HEAD / HTTP/1.0\r\n\r\n")
        line = connection.recv(60)
        if line.startswith(b"HTTP"):
            return foreign(line).failure
    return None

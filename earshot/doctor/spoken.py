"""What a listener speaks that gave no metadata: TLS or not, a login or not.

Asked only where something failed. A Kafka listener with a login answers a SaslHandshake with the
mechanisms that it has enabled; one without says that it expects none.
Source: https://kafka.apache.org/protocol (SaslHandshake, version 1).
"""

import contextlib
import socket
import ssl
import struct
import time
from dataclasses import dataclass
from typing import Final

from earshot.listeners.terms import Protocol

_SASL_HANDSHAKE: Final = 17
_UNSUPPORTED_MECHANISM: Final = 33
_ILLEGAL_STATE: Final = 34
_LONGEST: Final = 4096
"""Bytes of an answer; a server that announces more is no Kafka."""


@dataclass(frozen=True)
class Spoken:
    """What is known of it; None where it is not."""

    tls: bool | None = None
    mechanisms: tuple[str, ...] | None = None
    """Of the login that it asks for; empty where it asks for none."""

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
        actual = next(item for item in Protocol if (item.tls, item.sasl) == (tls, sasl))
        enabled = f" ({', '.join(self.mechanisms)})" if self.mechanisms else ""
        return f"it speaks {actual}{enabled}"


def spoken(peer: tuple[str, int], limit: float) -> Spoken:
    """What the listener at ``peer`` (address, port) speaks; ``limit`` in seconds, for it all."""
    end = time.monotonic() + limit
    with contextlib.suppress(OSError), socket.create_connection(peer, _left(end)) as plain:
        mechanisms = _mechanisms(plain, end)
        if mechanisms is not None:
            return Spoken(False, mechanisms)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE  # nothing is confided
    try:
        plain = socket.create_connection(peer, _left(end))
        with plain, context.wrap_socket(plain) as secured:
            with contextlib.suppress(OSError):  # it may want to see a certificate first
                return Spoken(True, _mechanisms(secured, end))
            return Spoken(True)
    except OSError:
        return Spoken()


def _mechanisms(connection: socket.socket, end: float) -> tuple[str, ...] | None:
    """What a listener of Kafka has enabled, or None where the answer is not Kafka's."""
    wanted = b"earshot"
    body = struct.pack(">hhih", _SASL_HANDSHAKE, 1, 1, -1) + struct.pack(">h", len(wanted)) + wanted
    connection.settimeout(_left(end) / 2)
    connection.sendall(struct.pack(">i", len(body)) + body)
    try:
        with connection.makefile("rb") as received:
            (size,) = struct.unpack(">i", received.read(4))
            if not 10 <= size <= _LONGEST:
                return None
            content = received.read(size)
        id, error, count = struct.unpack_from(">ihi", content)
        if id != 1 or error not in (_UNSUPPORTED_MECHANISM, _ILLEGAL_STATE):
            return None
        found, at = [], 10
        for _ in range(count):
            (length,) = struct.unpack_from(">H", content, at)
            (name,) = struct.unpack_from(f"{length}s", content, at + 2)
            found.append(name.decode())
            at += 2 + length
    except (struct.error, UnicodeDecodeError):
        return None
    return tuple(found)


def _left(end: float) -> float:
    return max(0.05, end - time.monotonic())

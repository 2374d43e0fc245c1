"""What a listener speaks that gave no metadata, against sockets that answer as listeners do."""

from __future__ import annotations

import contextlib
import socket
import ssl
import struct
import threading
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from earshot.certificates.authority import Subject, issue, new_authority
from earshot.doctor.spoken import Spoken, spoken
from earshot.listeners.terms import Protocol
from tests.certificates.handshakes import server_context


def answer(error: int, *mechanisms: str) -> bytes:
    """The response to a SaslHandshake."""
    body = struct.pack(">ihi", 1, error, len(mechanisms))
    for item in mechanisms:
        body += struct.pack(">h", len(item)) + item.encode()
    return struct.pack(">i", len(body)) + body


LOGIN = answer(33, "PLAIN", "SCRAM-SHA-512")
NO_LOGIN = answer(34)


@contextlib.contextmanager
def listener(said: bytes, context: ssl.SSLContext | None = None) -> Iterator[int]:
    """A port that answers ``said`` to whatever it is asked, and speaks TLS with ``context``."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(0.1)
        done = threading.Event()

        def serve() -> None:
            while not done.is_set():
                with contextlib.suppress(OSError):
                    connection, _ = listening.accept()
                    connection.settimeout(2)
                    with connection:
                        if context is None:
                            _exchange(connection, said)
                        else:
                            with context.wrap_socket(connection, server_side=True) as secured:
                                _exchange(secured, said)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield listening.getsockname()[1]
        finally:
            done.set()
            thread.join()


def _exchange(connection: socket.socket, said: bytes) -> None:
    if connection.recv(100)[4:8] == b"\x00\x11\x00\x01":  # a SaslHandshake, version 1
        connection.sendall(said)


@pytest.fixture(scope="module")
def tls() -> ssl.SSLContext:
    now = datetime.now(UTC)
    return server_context(issue(new_authority("t", now), Subject("n", "n"), ["b1"], 1, now))


@pytest.mark.parametrize("secured", [False, True])
@pytest.mark.parametrize(
    ("said", "mechanisms"), [(LOGIN, ("PLAIN", "SCRAM-SHA-512")), (NO_LOGIN, ())]
)
def test_a_listener_of_kafka_says_what_it_speaks(
    secured: bool, said: bytes, mechanisms: tuple[str, ...], tls: ssl.SSLContext
) -> None:
    with listener(said, tls if secured else None) as port:
        assert spoken(("127.0.0.1", port), 5) == Spoken(secured, mechanisms)


@pytest.mark.parametrize(
    "said",
    [
        b"",
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        struct.pack(">i", 2**31 - 1),
        LOGIN[:-1],
        struct.pack(">iihi", 10, 1, 33, 2**31 - 1),
        struct.pack(">iihih", 12, 1, 33, 1, -2),
        struct.pack(">iihi", 10, 2, 33, 0),
    ],
)
def test_whoever_is_no_kafka_tells_nothing_of_a_login(said: bytes, tls: ssl.SSLContext) -> None:
    with listener(said, tls) as port:
        assert spoken(("127.0.0.1", port), 5) == Spoken(True)
    with listener(said) as port:
        assert spoken(("127.0.0.1", port), 5) == Spoken()


def test_nobody_tells_nothing() -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        assert spoken(closed.getsockname(), 1) == Spoken()


@pytest.mark.parametrize(
    ("known", "expected", "reported"),
    [
        (Spoken(), Protocol.SASL_SSL, ""),
        (Spoken(True), Protocol.SSL, ""),
        (Spoken(True), Protocol.PLAINTEXT, "it speaks TLS"),
        (Spoken(True, ()), Protocol.PLAINTEXT, "it speaks SSL"),
        (Spoken(False, ()), Protocol.SASL_SSL, "it speaks PLAINTEXT"),
        (Spoken(True, ("PLAIN",)), Protocol.SSL, "it speaks SASL_SSL (PLAIN)"),
        (Spoken(True, ("PLAIN",)), Protocol.SASL_SSL, ""),
    ],
)
def test_only_what_is_known_to_be_another_protocol_is_told(
    known: Spoken, expected: Protocol, reported: str
) -> None:
    assert known.other_than(expected) == reported

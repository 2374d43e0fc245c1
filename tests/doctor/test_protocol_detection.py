"""What a listener speaks that gave no metadata, against sockets that answer as listeners do."""

import contextlib
import socket
import ssl
import struct
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

import pytest

from earshot.certificates.authority import Subject, issue, new_authority
from earshot.doctor.protocol_detection import CONTROLLER, DetectedProtocol, detect_protocol
from earshot.listeners.terms import Protocol
from tests.certificates.handshakes import server_context
from tests.doubles.closed_port import closed_port
from tests.doubles.peer import Peer, Reply, kafka, listening, raw, reply, text


def mechanisms(error: int, *names: str) -> bytes:
    """The answer to a SaslHandshake."""
    return struct.pack(">hi", error, len(names)) + b"".join(map(text, names))


def versions(*keys: int) -> bytes:
    """The answer to an ApiVersions request."""
    return struct.pack(">hi", 0, len(keys)) + b"".join(
        struct.pack(">hhh", key, 0, 9) for key in keys
    )


LOGIN = mechanisms(33, "PLAIN", "SCRAM-SHA-512")
NO_LOGIN = mechanisms(34)
OF_BROKER = {18: reply(versions(0, 1, 3, 17, 18))}


@contextlib.contextmanager
def listener(replies: Mapping[int, Reply], context: ssl.SSLContext | None = None) -> Iterator[int]:
    """A port that answers requests by ``replies``, and speaks TLS with ``context``."""

    def serve(connection: socket.socket, peer: Peer, number: int) -> None:
        if context is None:
            return kafka(replies)(connection, peer, number)
        with context.wrap_socket(connection, server_side=True) as secured:
            kafka(replies)(secured, peer, number)

    with listening(serve) as peer:
        yield peer.address.port


@pytest.fixture(scope="module")
def tls() -> ssl.SSLContext:
    now = datetime.now(UTC)
    return server_context(issue(new_authority("t", now), Subject("n", "n"), ["b1"], 1, now))


@pytest.mark.parametrize("secured", [False, True])
@pytest.mark.parametrize(
    ("said", "mechanisms"), [(LOGIN, ("PLAIN", "SCRAM-SHA-512")), (NO_LOGIN, ())]
)
def test_kafka_is_detected(
    secured: bool, said: bytes, mechanisms: tuple[str, ...], tls: ssl.SSLContext
) -> None:
    with listener(OF_BROKER | {17: reply(said)}, tls if secured else None) as port:
        assert detect_protocol(("127.0.0.1", port), 60) == DetectedProtocol(secured, mechanisms)


@pytest.mark.parametrize("secured", [False, True])
def test_a_controllers_listener_is_named(secured: bool, tls: ssl.SSLContext) -> None:
    replies = {18: reply(versions(1, 17, 18, 52, 53, 62, 63)), 17: reply(NO_LOGIN)}
    with listener(replies, tls if secured else None) as port:
        assert detect_protocol(("127.0.0.1", port), 60) == DetectedProtocol(
            secured, foreign=CONTROLLER
        )


BAD = b"HTTP/1.1 400 Bad Request\r\n\r\n"


@pytest.mark.parametrize("waits", [False, True])
def test_a_web_server_is_named(waits: bool) -> None:
    def serve(connection: socket.socket, peer: Peer, number: int) -> None:
        if not waits or connection.recv(4) == b"HEAD":
            connection.sendall(BAD)
        connection.recv(1000)

    with listening(serve) as peer:
        known = detect_protocol(peer.address, 3)
    assert known.foreign is not None and known.foreign.error == "http"
    assert "HTTP/1.1 400 Bad Request" in known.foreign.text


@pytest.mark.parametrize(
    "said",
    [
        reply(b""),
        raw(struct.pack(">i", 14) + b"\0\0\0\x09" + LOGIN),  # answers another request
        reply(LOGIN[:-1]),
        reply(struct.pack(">hi", 33, 2**31 - 1)),
        reply(struct.pack(">hih", 33, 1, -2)),
    ],
)
def test_a_login_that_cannot_be_read_is_none_of_kafkas(said: Reply) -> None:
    with listener(OF_BROKER | {17: said}) as port:
        known = detect_protocol(("127.0.0.1", port), 3)
    assert known.mechanisms is None
    assert known.foreign is not None and known.foreign.error == "not-kafka"


def test_who_says_nothing_tells_nothing(tls: ssl.SSLContext) -> None:
    with listener({}, tls) as port:
        assert detect_protocol(("127.0.0.1", port), 3) == DetectedProtocol(True)
    with listener({}) as port:
        assert detect_protocol(("127.0.0.1", port), 3) == DetectedProtocol()


def test_a_closed_port_tells_nothing() -> None:
    with closed_port() as address:
        assert detect_protocol(address, 1) == DetectedProtocol()


@pytest.mark.parametrize(
    ("known", "expected", "reported"),
    [
        (DetectedProtocol(), Protocol.SASL_SSL, ""),
        (DetectedProtocol(True), Protocol.SSL, ""),
        (DetectedProtocol(True), Protocol.PLAINTEXT, "it speaks TLS"),
        (DetectedProtocol(True, ()), Protocol.PLAINTEXT, "it speaks SSL"),
        (DetectedProtocol(False, ()), Protocol.SASL_SSL, "it speaks PLAINTEXT"),
        (DetectedProtocol(True, ("PLAIN",)), Protocol.SSL, "it speaks SASL_SSL (PLAIN)"),
        (DetectedProtocol(True, ("PLAIN",)), Protocol.SASL_SSL, ""),
    ],
)
def test_other_protocol_is_named(
    known: DetectedProtocol, expected: Protocol, reported: str
) -> None:
    assert known.other_than(expected) == reported

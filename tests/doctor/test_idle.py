"""Idle connections, to listeners of the test's own."""

import contextlib
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from earshot.doctor import idle
from earshot.doctor.idle import IdleConnection, answered, hold, notes
from earshot.listeners.address import Address
from earshot.listeners.terms import Protocol
from earshot.validation.result import Cause
from earshot.validation.terms import Stage
from tests.doubles.closed_port import closed_port
from tests.report import samples

REQUEST = 14
"""Bytes, its length included."""


def answers(connection: socket.socket) -> None:
    request = connection.recv(REQUEST, socket.MSG_WAITALL)
    key, version, correlation = struct.unpack_from(">hhi", request, 4)
    assert (key, version) == (18, 0)
    connection.sendall(struct.pack(">iih", 6, correlation, 0))


def closes(connection: socket.socket) -> None:
    pass


def resets(connection: socket.socket) -> None:
    connection.recv(1)  # earlier, the reset can overtake the end of the client's connect
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def forgets(connection: socket.socket) -> None:
    """As what is between does: the other end learns nothing."""
    connection.recv(REQUEST, socket.MSG_WAITALL)
    connection.recv(1)


def drips(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while True:
            connection.sendall(b"\0")
            time.sleep(0.2)


def speaks_otherwise(connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 400 Bad Request")


@contextlib.contextmanager
def listener(does: Callable[[socket.socket], None]) -> Iterator[Address]:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                does(connection)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield Address("127.0.0.1", server.getsockname()[1])
        thread.join(60)
        assert not thread.is_alive()


@pytest.mark.parametrize(
    ("does", "error"),
    [
        (answers, ""),
        (closes, "was closed meanwhile|was reset"),
        (resets, "was reset"),
        (forgets, "no answer"),
        (drips, "no answer"),
        (speaks_otherwise, "was answered by something other than a broker"),
    ],
)
def test_what_became_of_a_connection_is_told(
    does: Callable[[socket.socket], None], error: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(idle, "ANSWER_SECONDS", 0.5 if does in (forgets, drips) else 60)
    with listener(does) as address:
        (connection,) = hold([(address, Protocol.PLAINTEXT)], {}, 0.0 if does is drips else 0.2)
    assert connection.is_connected and connection.error in error.split("|")
    lines = list(notes([connection], 0.2))
    assert ("1 connections answered" in lines[0]) == (not connection.error)
    assert any("tcp_keepalive_time" in line for line in lines) is bool(connection.error)


def test_silent_brokers_are_waited_for_together(monkeypatch: pytest.MonkeyPatch) -> None:
    together = threading.Barrier(3, timeout=30)

    def silence(connection: socket.socket) -> str:
        together.wait()  # one after the other, they would never meet here
        return "no answer"

    monkeypatch.setattr(idle, "_answer_failure", silence)
    with listener(closes) as one, listener(closes) as two, listener(closes) as three:
        found = hold([(address, Protocol.PLAINTEXT) for address in (one, two, three)], {}, 0.0)
    assert [it.error for it in found] == ["no answer"] * 3


def test_where_there_is_no_connection_nothing_is_forgotten() -> None:
    with closed_port() as address:  # a wait would last longer than a test may
        (connection,) = hold([(address, Protocol.PLAINTEXT)], {}, 3600)
    assert not connection.is_connected
    refused = f"{address}: no connection to hold (connection refused)"
    assert list(notes([connection], 60)) == [f"a connection that was idle for 60 s: {refused}"]


@pytest.mark.parametrize("address", [Address("a" * 70, 9092), Address("localhost", 99999)])
def test_what_no_client_can_connect_to_is_no_fault_of_ours(address: Address) -> None:
    (connection,) = hold([(address, Protocol.PLAINTEXT)], {}, 3600)
    assert not connection.is_connected and connection.error


def test_connections_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Address] = []

    def connected(address: Address, _: object) -> socket.socket:
        made.append(address)
        raise ConnectionRefusedError

    monkeypatch.setattr(idle, "_connect", connected)
    places = [(Address("127.0.0.1", port), Protocol.PLAINTEXT) for port in range(1, 1000)]
    connections = hold([*places, *places], {}, 60)
    assert len(connections) == len(made) == idle.LIMIT
    assert isinstance(connections[0], IdleConnection)


def test_addresses_that_never_answered_are_left_out() -> None:
    cause = Cause(kind="refused", observed="a", expected="b", remedy="c")
    good = samples.cell("EXTERNAL", 1)
    cells = [good, *(samples.failed(good, stage, cause) for stage in Stage)]
    stages = [cell.failed_stage for cell in answered(cells)]
    assert stages == [None, Stage.METADATA, Stage.PRODUCE, Stage.CONSUME]

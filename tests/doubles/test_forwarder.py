"""The double of a balancer, with servers that say who they are."""

import contextlib
import socket
import threading
import time
from collections.abc import Iterator

import pytest

from tests.doubles.closed_port import closed_port
from tests.doubles.forwarder import Forwarder, forwarding, ports_of
from tests.e2e.ports import consecutive_ports

pytestmark = [pytest.mark.combination]
HOST = "127.0.0.1"


@contextlib.contextmanager
def server(name: bytes) -> Iterator[int]:
    """Answers each connection with its name; its port."""
    with socket.create_server((HOST, 0)) as listening:

        def answer(connection: socket.socket) -> None:
            # a health check is a connection that ends at once
            with connection, contextlib.suppress(OSError):
                connection.sendall(name)
                connection.recv(1)

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = listening.accept()
                    threading.Thread(target=answer, args=(connection,), daemon=True).start()

        threading.Thread(target=serve, daemon=True).start()
        yield listening.getsockname()[1]


def greeting_at(port: int) -> bytes:
    with socket.create_connection((HOST, port), timeout=10) as connection:
        return connection.recv(10)


def test_a_port_leads_to_its_target_and_to_no_dead_one() -> None:
    (base,) = consecutive_ports(4, 1)
    with server(b"one") as first_port, server(b"two") as second_port, closed_port() as dead_target:
        targets = {1: (HOST, first_port), 2: (HOST, second_port), 3: dead_target}
        forwarder = Forwarder(by_port=ports_of(targets, base))
        with forwarding(forwarder):
            assert [greeting_at(base + id) for id in (1, 2)] == [b"one", b"two"]
            assert greeting_at(base + 3) == b""
            while len(forwarder.healthy) < len(targets):
                time.sleep(0.01)
            assert not forwarder.healthy[dead_target]
            assert {greeting_at(base) for _ in range(6)} == {b"one", b"two"}


def test_a_silent_connection_is_dropped() -> None:
    (base,) = consecutive_ports(4, 1)
    with server(b"one") as server_port:
        forwarder = Forwarder(by_port=ports_of({1: (HOST, server_port)}, base), idle_seconds=1)
        with (
            forwarding(forwarder),
            socket.create_connection((HOST, base + 1), timeout=10) as connection,
        ):
            assert connection.recv(10) == b"one"
            assert connection.recv(10) == b""
            assert forwarder.dropped == 1

"""The double of a balancer, with servers that say who they are."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.doubles.certificates import self_signed
from tests.doubles.forwarder import Forwarder, forwarding, ports_of
from tests.e2e.ports import consecutive_ports, free_ports

pytestmark = [pytest.mark.combination]
HOST = "127.0.0.1"


@contextlib.contextmanager
def server(name: bytes, context: ssl.SSLContext | None = None) -> Iterator[int]:
    """Answers each connection with its name; its port."""
    with socket.create_server((HOST, 0)) as listening:

        def answer(accepted: socket.socket) -> None:
            # a health check is a connection that ends at once, also in the middle of TLS
            with (
                accepted,
                contextlib.suppress(OSError),
                contextlib.closing(
                    context.wrap_socket(accepted, server_side=True) if context else accepted
                ) as connection,
            ):
                connection.sendall(name)
                connection.recv(1)

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    accepted, _ = listening.accept()
                    threading.Thread(target=answer, args=(accepted,), daemon=True).start()

        threading.Thread(target=serve, daemon=True).start()
        yield listening.getsockname()[1]


def said(port: int, name: str = "", context: ssl.SSLContext | None = None) -> bytes:
    with socket.create_connection((HOST, port), timeout=10) as plain:
        if context is None:
            return plain.recv(10)
        with context.wrap_socket(plain, server_hostname=name) as secured:
            return secured.recv(10)


def test_a_port_leads_to_its_target_and_a_dead_one_to_nobody() -> None:
    (base,) = consecutive_ports(4, 1)
    (dead,) = free_ports(1)
    with server(b"one") as first, server(b"two") as second:
        targets = {1: (HOST, first), 2: (HOST, second), 3: (HOST, dead)}
        with forwarding(Forwarder(by_port=ports_of(targets, base))):
            assert [said(base + id) for id in (1, 2)] == [b"one", b"two"]
            time.sleep(0.5)  # health checks
            assert said(base + 3) == b""
            assert {said(base) for _ in range(6)} == {b"one", b"two"}


def test_a_name_leads_to_its_target_and_an_unknown_one_to_nobody(tmp_path: Path) -> None:
    names = ("one.test", "two.test")
    pem = self_signed(tmp_path, ",".join(f"DNS:{name}" for name in names))
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(pem)
    client = ssl.create_default_context()
    client.check_hostname, client.verify_mode = False, ssl.CERT_NONE
    (port,) = free_ports(1)
    with server(b"one", context) as first, server(b"two", context) as second:
        by_name = {names[0]: [(HOST, first)], names[1]: [(HOST, second)]}
        with forwarding(Forwarder(by_name={port: by_name})):
            assert [said(port, name, client) for name in names] == [b"one", b"two"]
            with pytest.raises((ssl.SSLError, ConnectionError)):
                said(port, "other.test", client)


def test_a_silent_connection_is_dropped() -> None:
    (base,) = consecutive_ports(4, 1)
    with server(b"one") as first:
        forwarder = Forwarder(by_port=ports_of({1: (HOST, first)}, base), idle_seconds=0.3)
        with (
            forwarding(forwarder),
            socket.create_connection((HOST, base + 1), timeout=10) as connection,
        ):
            assert connection.recv(10) == b"one"
            assert connection.recv(10) == b""
            assert forwarder.dropped == 1

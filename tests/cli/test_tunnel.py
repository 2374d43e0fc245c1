"""How `earshot tunnel` ends. A double of kubectl runs here what a pod would run."""

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from earshot.cli.tunnel import _addresses_text
from earshot.listeners.address import Address
from earshot.tunnel.tunnel import Route, Tunnel
from earshot.tunnel.via import read_via
from tests.doubles.peer import Peer, kafka, listening, reply
from tests.e2e.ports import free_ports

KUBECTL = '#!/bin/bash\nwhile [ "$1" != "--" ]; do shift; done\nshift\nexec "$@"\n'
HONEST = kafka({18: reply(b"\0\0" + b"\0" * 4)})


def silent(connection: socket.socket, peer: Peer, number: int) -> None:
    connection.recv(1000)
    connection.recv(1000)


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "kubectl").write_text(KUBECTL)
    (tmp_path / "kubectl").chmod(0o755)
    return {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}


def command(peer: Peer) -> list[str]:
    (port,) = free_ports(1)
    words = f"tunnel --via kubectl:a/b --bootstrap {peer.address} --port {port}"
    return [sys.executable, "-m", "earshot", *words.split()]


def wait_for(peer: Peer) -> None:
    end = time.monotonic() + 120
    while not peer.connections:
        assert time.monotonic() < end
        time.sleep(0.02)


def listens(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


def test_a_broker_that_is_not_reached_is_shown_with_the_reason(
    environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", environment["PATH"])
    brokers = [Address("kafka-1.internal", 9092), Address("kafka-2.internal", 9092)]
    routes = [
        Route(Address("127.0.0.1", 19092 + i), broker) for i, broker in enumerate([None, *brokers])
    ]
    tunnel = Tunnel(
        read_via("kubectl:a/b"),
        brokers,
        print,
        "127.0.0.1:19092",
        routes,
        problems={brokers[1]: "refused"},
    )
    lines = _addresses_text(tunnel, "tunnel").splitlines()
    assert lines[1:4] == [
        "  127.0.0.1:19092  bootstrap",
        "  127.0.0.1:19093  kafka-1.internal:9092",
        "  127.0.0.1:19094  kafka-2.internal:9092  NOT REACHED: refused",
    ]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_tunnel_that_was_never_ready_ends_with_the_signal_s_code(
    number: signal.Signals, environment: dict[str, str]
) -> None:
    with listening(silent) as peer:
        child = subprocess.Popen(command(peer), stdout=subprocess.PIPE, env=environment, text=True)
        wait_for(peer)
        child.send_signal(number)
        out, _ = child.communicate(timeout=120)
    assert (child.returncode, out) == (128 + number, "")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_tunnel_that_was_ready_ends_with_0(
    number: signal.Signals, environment: dict[str, str]
) -> None:
    with listening(HONEST) as peer:
        child = subprocess.Popen(command(peer), stdout=subprocess.PIPE, env=environment, text=True)
        assert child.stdout is not None
        while not child.stdout.readline().startswith("ready"):
            assert child.poll() is None
        child.send_signal(number)
        assert child.wait(120) == 0
        child.stdout.close()


def test_a_tunnel_runs_on_when_its_reader_has_left(environment: dict[str, str]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with listening(HONEST) as peer:
        words = command(peer)
        child = subprocess.Popen(words, stdout=writing, env=environment)
        os.close(writing)
        wait_for(peer)
        time.sleep(1)  # it writes that it is ready
        while not listens(int(words[-1])):
            assert child.poll() is None
            time.sleep(0.1)
        child.terminate()
        assert child.wait(120) == 0

"""Whether an engine answers, asked of sockets that behave and misbehave."""

from __future__ import annotations

import shutil
import socket
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from toolchain import docker_engine
from toolchain.docker_engine import address, answers


@contextmanager
def listening(reply: bytes) -> Iterator[str]:
    """A Unix socket that gives ``reply`` to the first request; its address as Docker writes it."""
    folder = Path(tempfile.mkdtemp(prefix="sock-", dir="/tmp"))  # a short path: see sun_path
    path = folder / "docker.sock"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen()

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(4096)
                connection.sendall(reply)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"unix://{path}"
            thread.join(10)
        finally:
            shutil.rmtree(folder)


def test_the_variable_wins_over_the_default() -> None:
    assert address({"DOCKER_HOST": "tcp://10.0.0.1:2376"}) == "tcp://10.0.0.1:2376"
    assert address({"DOCKER_HOST": ""}) == "unix:///var/run/docker.sock"
    assert address({}) == "unix:///var/run/docker.sock"


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nOK", True),
        (b"HTTP/1.1 500 Server Error\r\nContent-Length: 0\r\n\r\n", False),
        (b"not a Docker engine\r\n", False),
        (b"", False),
    ],
)
def test_an_engine_says_that_it_is_well(reply: bytes, expected: bool) -> None:
    with listening(reply) as where:
        assert answers(where) is expected


def test_nobody_answers_where_there_is_no_socket(tmp_path: Path) -> None:
    assert not answers(f"unix://{tmp_path}/docker.sock")


def test_a_socket_of_a_dead_engine(tmp_path: Path) -> None:
    path = tmp_path / "s"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
    assert not answers(f"unix://{path}")


def test_a_silent_engine_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(docker_engine, "PING_SECONDS", 0.05)
    path = tmp_path / "s"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen()
        assert not answers(f"unix://{path}")


@pytest.mark.parametrize(("script", "expected"), [("exit 0", True), ("exit 1", False)])
def test_other_addresses_are_left_to_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, expected: bool
) -> None:
    command = tmp_path / "docker"
    command.write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/asked\n{script}\n')
    command.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert answers("ssh://me@far") is expected
    assert (tmp_path / "asked").read_text().startswith("--host ssh://me@far version")


def test_without_the_command_line_nobody_knows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert not answers("tcp://127.0.0.1:1")

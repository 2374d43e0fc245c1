"""The way to an engine at `ssh://`, through a double of ssh that stays on this machine."""

import os
import socket
import tempfile
from pathlib import Path

import psutil
import pytest

from earshot.engine.connection import connect
from earshot.engine.ssh import CONNECT_SECONDS, ssh_command, tunnel
from earshot.errors import EarshotError
from earshot.placement.standpoint import CandidateEngine
from tests.e2e.docker_engine import Engine

SSH = """#!/bin/sh
echo "$@" >> "{folder}/calls"
while [ "$1" != "--" ]; do shift; done
shift 2
{act}
"""


@pytest.fixture
def ssh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of an ssh that runs its command here."""
    return with_ssh(tmp_path, monkeypatch, 'exec "$@"')


def with_ssh(folder: Path, monkeypatch: pytest.MonkeyPatch, act: str) -> Path:
    double = folder / "ssh"
    double.write_text(SSH.format(folder=folder, act=act))
    double.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    return folder


@pytest.mark.parametrize(
    ("address", "rest"),
    [
        ("ssh://devbox", ["--", "devbox"]),
        ("ssh://me@devbox:2222", ["-l", "me", "-p", "2222", "--", "devbox"]),
        ("ssh://[2001:db8::1]", ["--", "2001:db8::1"]),
    ],
)
def test_ssh_gets_the_host_and_prompts_for_nothing(
    address: str, rest: list[str], ssh: Path
) -> None:
    limit = f"ConnectTimeout={CONNECT_SECONDS}"
    quietly = ["-o", "BatchMode=yes", "-o", limit, "-T"]
    assert ssh_command(address) == [str(ssh / "ssh"), *quietly, *rest]


def test_a_machine_without_ssh_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/none")
    with pytest.raises(EarshotError, match="apt-get install openssh-client"):
        ssh_command("ssh://devbox")


def test_a_path_too_long_for_a_socket_is_one_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ssh: Path
) -> None:
    folder = tmp_path / ("x" * 100)
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    with pytest.raises(EarshotError, match="TMPDIR"), tunnel("ssh://devbox"):
        pass


def test_the_error_of_ssh_is_the_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with_ssh(tmp_path, monkeypatch, 'echo "Permission denied (publickey)." >&2; exit 255')
    with pytest.raises(EarshotError) as caught, connect(CandidateEngine(engine="ssh://me@devbox")):
        pass
    assert caught.value.object == "Docker engine at ssh://me@devbox"
    assert caught.value.observed == "does not answer (Permission denied (publickey).)"


def test_bytes_arrive_and_no_process_remains(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_ssh(tmp_path, monkeypatch, "exec cat")
    children = {child.pid for child in psutil.Process().children()}
    with tunnel("ssh://devbox") as way, socket.socket(socket.AF_UNIX) as client:
        path = way.address.removeprefix("unix://")
        client.connect(path)
        client.sendall(b"ping")
        assert client.recv(4) == b"ping"
    assert {child.pid for child in psutil.Process().children()} == children
    assert not Path(path).parent.exists()
    assert "docker system dial-stdio" in (tmp_path / "calls").read_text()


def test_an_ssh_that_does_not_end_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_ssh(tmp_path, monkeypatch, "trap '' TERM; echo up; exec sleep 600")
    monkeypatch.setattr("earshot.engine.ssh.END_SECONDS", 0.1)
    children = {child.pid for child in psutil.Process().children()}
    with tunnel("ssh://devbox") as way, socket.socket(socket.AF_UNIX) as client:
        client.connect(way.address.removeprefix("unix://"))
        assert client.recv(2) == b"up"
    assert {child.pid for child in psutil.Process().children()} == children


@pytest.mark.e2e
def test_an_engine_answers_through_ssh(
    docker_engine: Engine, ssh: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", docker_engine.address)  # over there
    with connect(CandidateEngine(engine="ssh://devbox")) as client:
        assert client.info()["ID"] == docker_engine.run("info", "--format", "{{.ID}}").strip()

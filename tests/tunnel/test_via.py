"""The values of `--via`: the commands that they run, and refused values."""

import asyncio
import gc
import os
import signal
import socket
import subprocess
import time
from pathlib import Path

import psutil
import pytest

from earshot.errors import EarshotError
from earshot.listeners.address import Address
from earshot.tunnel.via import PASS_ON, KubectlVia, SshVia, ViaError, read_via
from tests.doubles.peer import Peer, listening

BROKER = Address("kafka-1.private", 9092)


@pytest.fixture(autouse=True)
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ssh", "kubectl", "aws", "session-manager-plugin"):
        (tmp_path / name).touch(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))


def test_ssh_takes_user_and_port() -> None:
    via = read_via("ssh://me@bastion:2222")
    assert isinstance(via, SshVia)
    command = via.command(Address("2001:db8::1", 9092))
    assert command[command.index("-W") + 1] == "[2001:db8::1]:9092"
    assert command[-6:] == ["-l", "me", "-p", "2222", "--", "bastion"]


def test_ssh_tells_the_reason_of_a_refused_connection_at_the_login() -> None:
    via = SshVia("ssh://h")
    via._reasons.extend([(1.0, "connect failed: No route to host"), (2.0, "unknown host")] * 2)
    session_refused = "Stdio forwarding request failed: Session open refused by peer"

    def explained(since: float, complaint: str) -> str:
        return asyncio.run(via.explained(since, complaint))

    assert explained(0.0, session_refused) == "connect failed: No route to host or unknown host"
    assert explained(1.5, session_refused) == "unknown host"
    assert explained(3.0, session_refused) == session_refused
    assert explained(0.0, "Connection closed") == "Connection closed"


def test_ssh_waits_for_the_reason_if_the_command_ends_before() -> None:
    async def late() -> str:
        via = SshVia("ssh://h")
        explained = asyncio.create_task(via.explained(1.0, "Session open refused by peer"))
        await asyncio.sleep(0)
        assert not explained.done()
        via._reasons.append((2.0, "unknown host"))
        return await explained

    assert asyncio.run(late()) == "unknown host"


def test_kubectl_runs_bash_in_the_pod() -> None:
    via = read_via("kubectl:kafka/client-0")
    assert isinstance(via, KubectlVia)
    command = via.command(BROKER)
    assert command[1:7] == ["exec", "-i", "-n", "kafka", "client-0", "--"]
    assert command[-2:] == ["kafka-1.private", "9092"]


@pytest.mark.parametrize(
    "text",
    [
        "", "bastion", "ssh://", "ssh://h:99999", "ssh://h:x", "ssh://u:secret@h", "ssh://h/path",
        "kubectl:", "kubectl:pod", "kubectl:a/b/c", "kubectl:-n/x", "kubectl:A/b", "ssm:",
        "ssm:bastion", "ssm:--target", "http://h",
    ],
)  # fmt: skip
def test_what_is_no_way_is_refused(text: str) -> None:
    with pytest.raises(EarshotError, match="allowed: ssh://") as refusal:
        read_via(text)
    assert "secret" not in str(refusal.value)


@pytest.mark.parametrize("text", ["ssh://-oProxyCommand=x", "ssh://h", "ssh://-h:1"])
def test_a_host_is_never_an_option_of_ssh(text: str) -> None:
    command = list(SshVia(text).command(BROKER))
    assert command[command.index("--") + 1 :] == [text.removeprefix("ssh://").lower().split(":")[0]]


@pytest.mark.parametrize(
    ("text", "tool"), [("ssh://h", "ssh"), ("kubectl:a/b", "kubectl"), ("ssm:i-0123456789", "aws")]
)
def test_missing_tool(
    text: str, tool: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / tool).unlink()
    with pytest.raises(EarshotError, match=f"there is no {tool} on PATH"):
        read_via(text)


def test_a_session_ends_with_what_it_has_started(tmp_path: Path) -> None:
    """`aws ssm start-session` leaves the port to a plugin, which outlives it."""
    child = tmp_path / "child"
    script = f"#!/bin/sh\n/bin/sleep 600 & echo $! > {child}\necho Waiting for connections\nwait\n"
    (tmp_path / "aws").write_text(script)

    async def work() -> int:
        via = read_via("ssm:i-0123456789")
        with pytest.raises(ViaError):  # the double forwards no port
            await via.open(BROKER)
        await via.close()
        return int(child.read_text())

    pid = asyncio.run(work())
    end = time.monotonic() + 60
    while _is_alive(pid):
        assert time.monotonic() < end, "the double of the plugin outlives the session"
        time.sleep(0.02)


@pytest.mark.parametrize("on_sigterm", ["exit", ""])
def test_a_login_ends_although_a_child_keeps_its_standard_error(
    on_sigterm: str, tmp_path: Path, recwarn: pytest.WarningsRecorder
) -> None:
    """A ProxyCommand is such a child; the login may also ignore SIGTERM."""
    gc.collect()  # what other tests left behind
    recwarn.clear()
    child, control = tmp_path / "child", tmp_path / "ssh-control"
    control.mkdir()
    script = f"#!/bin/sh\ntrap '{on_sigterm}' TERM\n/bin/sleep 600 & echo $! > {child}\n"
    (tmp_path / "ssh").write_text(f"{script}: > {control}/ssh\nwhile wait; do :; done\n")

    async def work() -> None:
        via = read_via("ssh://bastion")
        await via.start(control)
        async with asyncio.timeout(60):
            await via.close()

    try:
        asyncio.run(work())
        gc.collect()  # a transport that is still open warns when it is deleted
        assert not [warning.message for warning in recwarn]
    finally:
        os.kill(int(child.read_text()), signal.SIGKILL)


def _is_alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _session(number: int) -> list[int]:
    """The processes of session ``number`` that still run."""
    running = []
    for process in psutil.process_iter(["status"]):
        try:
            if os.getsid(process.pid) == number and process.info["status"] != "zombie":
                running.append(process.pid)
        except ProcessLookupError:
            continue
    return running


@pytest.mark.parametrize("first_to_end", ["broker, at once", "broker", "client"])
def test_a_pipe_ends_with_either_side(first_to_end: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", os.defpath)

    def serve(connection: socket.socket, peer: Peer, number: int) -> None:
        if first_to_end == "broker, at once":
            return
        connection.sendall(connection.recv(100))
        if first_to_end == "client":
            connection.recv(100)

    with listening(serve) as peer:
        for _ in range(20):
            command = ["bash", "-c", PASS_ON, "bash", "127.0.0.1", str(peer.address.port)]
            with subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
            ) as child:
                assert child.stdin is not None and child.stdout is not None
                try:
                    if first_to_end != "broker, at once":
                        child.stdin.write(b"bytes")
                        child.stdin.flush()
                        assert child.stdout.read(5) == b"bytes"
                    if first_to_end == "client":
                        child.stdin.close()
                    assert child.wait(60) == 0
                finally:
                    child.kill()
            end = time.monotonic() + 60
            while _session(child.pid):
                assert time.monotonic() < end
                time.sleep(0.02)

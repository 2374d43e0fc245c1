"""A command whose process crashes in native code: what is known is shown, and it never passes."""

import contextlib
import os
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from earshot.cli import child_process
from earshot.cli.ending import GRACE
from earshot.report.json import read_report
from earshot.validation.terms import Verdict
from tests.doubles import peer as doubles
from tests.doubles.peer import broker, kafka, listening, reply

PATIENCE = 120.0
Guarded = tuple[subprocess.Popen[str], psutil.Process]
API_VERSIONS, METADATA = 18, 3
METADATA_VERSION = 12
NO_SUCH_COUNT = b"\0"
"""A compact array's length: null, which librdkafka takes for -1 brokers."""
PATIENT = "from earshot.cli import ending; ending._grace = 100"
"""A busy machine takes long to clean up."""
WAITING = """
import os, sys, time
from earshot.cli import child_process, prepare
child_process.guarded([])
prepare()
try:
    print(os.getpid(), flush=True)
    time.sleep(600)
except KeyboardInterrupt:
    time.sleep(0.3)  # a second SIGINT does not end this
    print("cleaned up", flush=True)
    sys.exit(130)
"""


def crashing(connection: socket.socket, peer: doubles.Peer, number: int) -> None:
    """An honest broker, but that it lists -1 brokers to librdkafka."""
    honest = broker(1, {1: peer.address})
    ranges = ((0, 7), (1, 4), (METADATA, METADATA_VERSION), (API_VERSIONS, 0), (19, 4), (20, 3))
    versions = b"".join(struct.pack(">hhh", key, 0, most) for key, most in ranges)
    supported = struct.pack(">hi", 0, len(ranges)) + versions

    def api_versions(connection: socket.socket, request: bytes) -> None:
        version = struct.unpack_from(">h", request, 2)[0]
        reply(struct.pack(">h", 35) + supported[2:] if version else supported)(connection, request)

    def metadata(connection: socket.socket, request: bytes) -> None:
        version = struct.unpack_from(">h", request, 2)[0]
        if version < METADATA_VERSION:
            honest[METADATA](connection, request)
        else:  # no tagged fields, 0 ms throttled, brokers, cluster, controller, topics
            content = b"\0" + struct.pack(">i", 0) + NO_SUCH_COUNT + b"\2C" + struct.pack(">i", 1)
            reply(content + b"\1\0")(connection, request)

    kafka(honest | {API_VERSIONS: api_versions, METADATA: metadata})(connection, peer, number)


def earshot(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "earshot", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def test_a_doctor_that_a_broker_crashes_shows_what_it_knows(tmp_path: Path) -> None:
    output = tmp_path / "report.json"
    with listening(crashing) as peer:
        done = earshot("doctor", "--bootstrap", str(peer.address), "-o", str(output))
    assert done.returncode == 3
    assert "error: earshot doctor: ended by SIGSEGV" in done.stderr
    assert "INCONCLUSIVE" in done.stdout and "ended by SIGSEGV" in done.stdout
    report = read_report(output.read_text(), "report")
    assert report.verdict is Verdict.INCONCLUSIVE and len(report.cells) == 1


def test_a_validation_that_a_broker_crashes_is_inconclusive() -> None:
    with listening(crashing) as peer:
        done = earshot("validate", "--bootstrap", str(peer.address), "--records", "0")
    assert done.returncode == 3
    assert "error: earshot validate: ended by SIGSEGV" in done.stderr
    assert "PASS" not in done.stdout


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["doctor", "--bootstrap", "a:1"], True),
        (["--debug", "validate"], True),
        (["lint", "doctor"], False),
        (["--help"], False),
        ([], False),
    ],
)
def test_commands_that_use_librdkafka_are_guarded(words: list[str], expected: bool) -> None:
    assert child_process.may_crash(words) is expected


@pytest.fixture
def guarded() -> Iterator[Guarded]:
    """A guarded process that waits, and its child."""
    command = [sys.executable, "-c", PATIENT + WAITING]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        yield parent, psutil.Process(int(parent.stdout.readline()))
        parent.kill()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_is_forwarded(number: int, guarded: Guarded) -> None:
    parent, child = guarded
    assert child.pid != parent.pid
    parent.send_signal(number)
    assert parent.wait(PATIENCE) == 128 + number
    assert not child.is_running()


def test_a_terminal_that_signals_both_leaves_time_to_clean_up(guarded: Guarded) -> None:
    parent, child = guarded
    parent.send_signal(signal.SIGINT)
    time.sleep(0.1)
    with contextlib.suppress(ProcessLookupError):  # on a busy machine it has ended by now
        os.kill(child.pid, signal.SIGINT)
    output, _ = parent.communicate(timeout=PATIENCE)
    assert (parent.returncode, output) == (130, "cleaned up\n")


def test_the_child_does_not_outlive_a_killed_parent(guarded: Guarded) -> None:
    parent, child = guarded
    parent.kill()
    parent.wait(PATIENCE)
    child.wait(PATIENCE)


def test_the_child_of_a_killed_parent_has_time_to_clean_up() -> None:
    waiting = WAITING.replace("KeyboardInterrupt", "SystemExit").replace("0.3", str(GRACE + 1))
    command = [sys.executable, "-c", waiting]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None and parent.stdout.readline()
        parent.kill()
        assert parent.stdout.read() == "cleaned up\n"  # until the child ends


def test_a_child_that_is_killed_is_no_crash(guarded: Guarded) -> None:
    parent, child = guarded
    child.kill()
    assert parent.wait(PATIENCE) == 128 + signal.SIGKILL

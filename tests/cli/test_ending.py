"""How a command ends: told to, late, or with a peer that has it start too much."""

import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import psutil
import pytest

from earshot.cli import ending
from earshot.cli.ending import INCONCLUSIVE, RunningCommand, ended_by
from earshot.listeners.address import Address
from tests.doubles import peer as doubles
from tests.doubles.peer import broker, kafka, listening, metadata, reply
from toolchain.paths import ROOT

PATIENCE = 120.0
"""Seconds after which a command counts as hanging, also on a busy machine."""

PATIENT = """
import sys
from earshot.cli import ending, main
ending._grace = ending.TELL_SECONDS = 100
main()
"""
"""The command with time to clean up and to print, however busy the machine is."""

HANGING = """
import ctypes, sys, threading, time
from earshot import cli
from earshot.cli import ending

cli.prepare()

def tell(reason):
    print("known:", reason, flush=True)
    return 1

kind = sys.argv[1]
ending.TELL_SECONDS = 0.4 if kind == "mute" else 100
most = 5 if kind == "threads" else 1000
if kind == "threads":
    for _ in range(20):
        threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
if kind == "mute":
    tell = lambda reason: time.sleep(600)
with ending.ended_by(tell, 0.3 if kind == "late" else 600, lambda: most):
    print("begun", flush=True)
    library, mutex = ctypes.CDLL(None), ctypes.create_string_buffer(64)
    library.pthread_mutex_lock(mutex)
    try:
        library.pthread_mutex_lock(mutex)  # for ever; no handler of Python's runs meanwhile
    except KeyboardInterrupt:
        sys.exit(130)
"""


def ended(command: Sequence[str], number: int | None, cue: str = "begun") -> tuple[int, str]:
    """The exit code of ``command``, which gets the signal ``number``, and its output after ``cue``.

    Fails if it does not end."""
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        assert child.stdout is not None
        while cue and cue not in child.stdout.readline():
            assert child.poll() is None
        time.sleep(0.2 if cue else 0.0)
        if number is not None:
            child.send_signal(number)
        output, _ = child.communicate(timeout=PATIENCE)
        return child.returncode, output
    finally:
        child.kill()


@pytest.mark.parametrize(
    ("kind", "number", "code", "output"),
    [
        ("hung", signal.SIGTERM, 143, "known: terminated\n"),
        ("hung", signal.SIGINT, 130, "known: interrupted\n"),
        ("hung", signal.SIGHUP, 129, "known: terminal closed\n"),
        ("late", None, 1, "known: it did not end by its deadline, so its process was ended\n"),
        ("threads", None, 1, "threads: a peer listed more brokers than it had\n"),
        ("mute", signal.SIGTERM, 143, ""),
    ],
)
def test_native_code_that_hangs_does_not_hold_up_the_end(
    kind: str, number: int | None, code: int, output: str
) -> None:
    cue = "begun" if number else ""
    exit_code, printed = ended([sys.executable, "-c", HANGING, kind], number, cue)
    assert exit_code == code and output in printed and printed.count("known") <= 1


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_doctor_that_is_interrupted_tells_what_it_knows(number: int, tmp_path: Path) -> None:
    output, released = tmp_path / "report.json", threading.Event()

    def silent(connection: socket.socket, peer: doubles.Peer, number: int) -> None:
        released.wait(250)

    with listening(silent) as peer:
        command = [sys.executable, "-c", PATIENT, "doctor", "--bootstrap", str(peer.address)]
        command += ["--deadline", "600", "-o", str(output)]
        child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        while not _has_socket(child.pid):
            assert child.poll() is None
            time.sleep(0.05)
        child.send_signal(number)
        out, errors = child.communicate(timeout=PATIENCE)
        released.set()
    word = ending.STOPPED[signal.Signals(number)]
    assert child.returncode == 128 + number
    assert f"not decided: {word}" in out and "INCONCLUSIVE, 0 of 1 cell passed" in out
    assert errors in ("", f"{word}\n")
    assert f"not decided: {word}" in output.read_text()


def test_an_interrupted_command_has_two_seconds() -> None:
    """On a busy machine the measured time depends on other processes."""
    assert ending.GRACE + ending.TELL_SECONDS < 2


def test_nohup_keeps_a_command_when_its_terminal_is_closed() -> None:
    code = "import os, signal\nfrom earshot import cli\ncli.prepare()\n"
    code += "os.kill(os.getpid(), signal.SIGHUP)\nprint('runs on')"
    command = ["nohup", sys.executable, "-c", code]
    ran = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert (ran.returncode, ran.stdout) == (0, "runs on\n")


def _has_socket(pid: int) -> bool:
    """Whether the child of the process ``pid`` has a socket: its imports are done."""
    try:
        children = psutil.Process(pid).children()
        folders = [Path(f"/proc/{child.pid}/fd") for child in children]
        links = [str(file.readlink()) for folder in folders for file in folder.iterdir()]
    except (OSError, psutil.Error):
        return False
    return any(link.startswith("socket:") for link in links)


def two_faced(connection: socket.socket, peer: doubles.Peer, number: int) -> None:
    """An honest broker, but that it lists ten thousand brokers to librdkafka."""
    honest = broker(1, {1: peer.address})
    many = {id: Address("127.0.0.1", 1 + id) for id in range(2, 10_000)} | {1: peer.address}
    versions = [(key, 0, most) for key, most in ((0, 7), (1, 4), (3, 2), (18, 0), (19, 4), (20, 3))]
    supported = struct.pack(">hi", 0, len(versions))
    supported += b"".join(struct.pack(">hhh", *it) for it in versions)

    def own(connection: socket.socket, request: bytes) -> None:
        reply(metadata(many if asked_before else {1: peer.address}))(connection, request)

    def api_versions(connection: socket.socket, request: bytes) -> None:
        asked_before.append(True)
        # the answer to an unknown version has version 0, with an error
        version = struct.unpack_from(">h", request, 2)[0]
        refusal = struct.pack(">h", 35) + supported[2:]
        reply(refusal if version else supported)(connection, request)

    asked_before: list[bool] = []
    kafka(honest | {3: own, 18: api_versions})(connection, peer, number)


def test_a_peer_that_lies_to_librdkafka_alone_is_left_at_once() -> None:
    with listening(two_faced) as peer:
        command = [sys.executable, "-m", "earshot", "doctor", "--bootstrap", str(peer.address)]
        code, output = ended([*command, "--deadline", "60"], None, "")
    assert code == 3
    assert "threads: a peer listed more brokers than it had" in output
    assert "not decided" in output


@pytest.mark.parametrize(
    "command",
    [
        ("doctor", "--contract"),
        ("validate", "--contract"),
        ("report",),
        ("adopt",),
        ("lint",),
        ("doctor", "--bootstrap", "127.0.0.1:1", "--client-config"),
    ],
)
@pytest.mark.parametrize("number", ending.STOPPED)
def test_every_command_ends_where_a_file_does_not(
    command: tuple[str, ...], number: int, tmp_path: Path
) -> None:
    ends_at((*command, "docker-compose.yml"), tmp_path / "docker-compose.yml", number)


@pytest.mark.parametrize(
    "command", [("plan",), ("client", "--user", "app", "--listener", "EXTERNAL", "--output", "new")]
)
def test_every_command_ends_where_a_stack_file_does_not(
    command: tuple[str, ...], tmp_path: Path
) -> None:
    shutil.copy(ROOT / "Pulumi.yaml", tmp_path)
    (tmp_path / "stacks").mkdir()
    ends_at(
        (*command, "--stack", "local"), tmp_path / "stacks" / "Pulumi.local.yaml", signal.SIGTERM
    )


def ends_at(command: tuple[str, ...], fifo: Path, number: int) -> None:
    """``command``, run in the project of ``fifo``, ends by a signal while it reads from there."""
    os.mkfifo(fifo)
    child = subprocess.Popen(
        [sys.executable, "-m", "earshot", *command],
        cwd=fifo.parent.parent if fifo.parent.name == "stacks" else fifo.parent,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    with fifo.open("w"):  # until it reads
        child.send_signal(number)
        output, _ = child.communicate(timeout=PATIENCE)
    assert (child.returncode, output) == (128 + number, f"{ending.STOPPED[number]}\n")


DEAF = """
import sys, time
from earshot import cli
from earshot.cli import ending

cli.prepare()
print("begun", flush=True)
while True:
    try:
        time.sleep(600)
    except (KeyboardInterrupt, SystemExit):
        pass  # as a finalizer does
"""


@pytest.mark.parametrize("number", ending.STOPPED)
def test_a_command_whose_signal_was_lost_ends_with_the_reason(number: int) -> None:
    expected = (128 + number, f"{ending.STOPPED[number]}\n")
    assert ended([sys.executable, "-c", DEAF], number) == expected


def work(most: int = 1000, seconds: float = 60.0) -> tuple[RunningCommand, list[str]]:
    reasons: list[str] = []

    def report(reason: str) -> int:
        reasons.append(reason)
        return 1

    return RunningCommand(report, time.monotonic() + seconds, lambda: most), reasons


def test_results_are_reported_once_and_a_command_becomes_overdue() -> None:
    command, reasons = work()
    assert (command.stop("terminated"), command.stop("late")) == (1, INCONCLUSIVE)
    assert reasons == ["terminated"]
    assert work()[0].overdue() == ""
    assert "deadline" in work(seconds=-1)[0].overdue()
    assert "threads" in work(most=0)[0].overdue()


@pytest.mark.parametrize(
    ("end", "expected"),
    [
        (KeyboardInterrupt(), ["interrupted"]),
        (SystemExit(143), ["terminated"]),
        (SystemExit(2), []),
        (ValueError(), []),
    ],
)
def test_only_an_interrupted_command_reports_at_its_end(
    end: BaseException, expected: list[str]
) -> None:
    reasons: list[str] = []

    def report(reason: str) -> int:
        reasons.append(reason)
        return 0

    with pytest.raises(type(end)), ended_by(report, 60, lambda: 1000):
        raise end
    assert reasons == expected
    with ended_by(report, 60, lambda: 1000):
        pass
    assert reasons == expected and ending._work is None

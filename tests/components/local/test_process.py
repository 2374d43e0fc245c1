"""Identity of processes, ports and logs; what Kafka itself does is tested end to end."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from components.local import process
from components.local.process import Launch, Record


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    """A process that does nothing and dies with the test."""
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    yield child
    child.kill()
    child.wait()


def write_record(directory: Path, pid: int, started: float, digest: str = "d") -> None:
    directory.mkdir(parents=True, exist_ok=True)
    record = {"pid": pid, "started": started, "digest": digest}
    (directory / "process.json").write_text(json.dumps(record))


def test_a_living_process_is_recognised(tmp_path: Path, sleeper: subprocess.Popen[bytes]) -> None:
    write_record(tmp_path, sleeper.pid, psutil.Process(sleeper.pid).create_time())
    record = process.running(tmp_path)
    assert record is not None and record.pid == sleeper.pid


def test_a_pid_that_was_given_to_another_process_is_not_ours(
    tmp_path: Path, sleeper: subprocess.Popen[bytes]
) -> None:
    write_record(tmp_path, sleeper.pid, psutil.Process(sleeper.pid).create_time() - 5)
    assert process.running(tmp_path) is None
    assert process.stop(tmp_path) is False
    assert sleeper.poll() is None


def test_a_dead_process_does_not_run(tmp_path: Path, sleeper: subprocess.Popen[bytes]) -> None:
    write_record(tmp_path, sleeper.pid, psutil.Process(sleeper.pid).create_time())
    sleeper.kill()
    sleeper.wait()
    assert process.running(tmp_path) is None


def test_a_zombie_does_not_run(tmp_path: Path) -> None:
    child = subprocess.Popen([sys.executable, "-c", ""])
    started = psutil.Process(child.pid).create_time()
    with contextlib.suppress(psutil.TimeoutExpired):
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    write_record(tmp_path, child.pid, started)
    assert process.running(tmp_path) is None
    child.wait()


@pytest.mark.parametrize("text", ["", "{", "[]", '{"pid": 1}', '{"pid": 1, "more": 2}'])
def test_an_unreadable_record_is_no_record(tmp_path: Path, text: str) -> None:
    (tmp_path / "process.json").write_text(text)
    assert process.read_record(tmp_path) is None


def test_stop_ends_the_recorded_process(tmp_path: Path, sleeper: subprocess.Popen[bytes]) -> None:
    write_record(tmp_path, sleeper.pid, psutil.Process(sleeper.pid).create_time())
    assert process.stop(tmp_path) is True
    assert not psutil.pid_exists(sleeper.pid)


def test_stop_kills_what_ignores_the_polite_signal(tmp_path: Path) -> None:
    code = "import signal, time; signal.signal(15, signal.SIG_IGN); print(1, flush=True)"
    child = subprocess.Popen(
        [sys.executable, "-c", f"{code}; time.sleep(60)"], stdout=subprocess.PIPE
    )
    assert child.stdout is not None and child.stdout.readline()
    child.stdout.close()
    write_record(tmp_path, child.pid, psutil.Process(child.pid).create_time())
    assert process.stop(tmp_path, grace=0.2) is True
    assert not psutil.pid_exists(child.pid)
    child.wait()


def test_an_unrecorded_node_is_found_by_its_command_line(tmp_path: Path) -> None:
    properties = str(tmp_path / "server.properties")
    command = [sys.executable, "-c", "import time; time.sleep(60)", "kafka.Kafka", properties]
    child = subprocess.Popen(command)
    try:
        found = process.unrecorded(tmp_path)
        assert found is not None and found.pid == child.pid
        assert process.unrecorded(tmp_path / "other") is None
        assert process.stop(tmp_path) is True
    finally:
        child.kill()
        child.wait()


def test_the_holder_of_a_port_is_named() -> None:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        port = listening.getsockname()[1]
        (holder,) = process.holders([("127.0.0.1", port)])
        assert holder.pid == os.getpid()
        assert f"port {port} is in use by pid {os.getpid()} (" in str(holder)
        assert process.holders([("0.0.0.0", port)]), "the wildcard overlaps with every address"
        assert not process.holders([("127.0.0.2", port)]), "another address does not"
    assert not process.holders([("127.0.0.1", port)])


def test_the_holder_of_another_user_has_no_pid() -> None:
    assert str(process.Holder(9092, None, "")) == "port 9092 is in use by a process of another user"


def launch(**changes: object) -> Launch:
    values: dict[str, object] = {
        "id": 1,
        "directory": Path("/d"),
        "properties": "a=b",
        "heap": "256m",
        "kafka_version": "4.1.1",
        "java": Path("/java"),
        "jars": (),
    }
    return Launch(**(values | changes))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "change", [{"properties": "a=c"}, {"heap": "1g"}, {"kafka_version": "4.2.0"}]
)
def test_what_needs_a_restart_changes_the_digest(change: dict[str, object]) -> None:
    assert launch(**change).digest != launch().digest


@pytest.mark.parametrize("change", [{"java": Path("/other")}, {"jars": (Path("/cache/a.jar"),)}])
def test_a_moved_cache_needs_no_restart(change: dict[str, object]) -> None:
    assert launch(**change).digest == launch().digest


def test_the_incarnation_tells_two_processes_of_one_pid_apart() -> None:
    assert Record(7, 1.25, "d").incarnation != Record(7, 2.25, "d").incarnation


def test_last_words_leave_stack_frames_out(tmp_path: Path) -> None:
    (tmp_path / "server.log").write_text("one\n\tat a.b.C(D.java:1)\n\ntwo\n")
    (tmp_path / "console.log").write_text("OutOfMemoryError\n")
    words = process.last_words(tmp_path)
    assert words.splitlines() == [
        "  server.log: one",
        "  server.log: two",
        "  console.log: OutOfMemoryError",
    ]


def test_a_node_without_logs_says_so(tmp_path: Path) -> None:
    assert process.last_words(tmp_path) == "  (it wrote no log)"

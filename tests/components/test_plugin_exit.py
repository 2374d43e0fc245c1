"""A provider's process ends with the process above it; so does a guarded command."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

CHILD = """
import time
from earshot_pulumi import plugin_exit
plugin_exit.exit_with_parent()
print("ready", flush=True)
time.sleep(600)
"""
PARENT = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", sys.argv[1]])
print(child.pid, flush=True)
time.sleep(600)
"""


CHILDREN = """
import subprocess, sys, threading, time
from earshot_pulumi import plugin_exit
sleep = [sys.executable, "-c", "import time; time.sleep(600)"]
own, broker = subprocess.Popen(sleep), subprocess.Popen(sleep, start_new_session=True)
print(own.pid, broker.pid, flush=True)
plugin_exit.end(0)
"""


def test_children_end_with_it_but_not_what_has_a_session_of_its_own() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", CHILDREN], stdout=subprocess.PIPE, text=True, process_group=0
    ) as plugin:
        assert plugin.stdout is not None
        own, broker = map(psutil.Process, map(int, plugin.stdout.readline().split()))
        assert plugin.wait(120) == 0
        psutil.wait_procs([own], 120)
        try:
            assert not own.is_running() or own.status() == psutil.STATUS_ZOMBIE
            assert broker.is_running()
        finally:
            broker.kill()


@pytest.mark.parametrize("send", [signal.SIGKILL, signal.SIGTERM])
def test_it_ends_with_its_parent(send: signal.Signals) -> None:
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, CHILD], stdout=subprocess.PIPE, text=True
    )
    assert parent.stdout is not None
    child = psutil.Process(int(parent.stdout.readline()))
    try:
        assert parent.stdout.readline() == "ready\n"
        os.kill(parent.pid, send)
        parent.wait()
        end = time.monotonic() + 120
        while child.is_running() and child.status() != psutil.STATUS_ZOMBIE:
            assert time.monotonic() < end, "the child outlives its parent"
            time.sleep(0.1)
    except psutil.NoSuchProcess:
        pass
    finally:
        parent.stdout.close()
        if child.is_running():
            child.kill()


def test_a_guarded_command_ends_with_its_standard_input(tmp_path: Path) -> None:
    fifo = tmp_path / "contract.json"
    os.mkfifo(fifo)  # the command waits here for a contract that never comes
    command = [
        sys.executable,
        "-m",
        "earshot.cli.ends_with_stdin",
        "doctor",
        "--contract",
        str(fifo),
    ]
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert child.stdin is not None and child.stderr is not None
    writer = None
    while writer is None:
        assert child.poll() is None
        with contextlib.suppress(OSError):  # until the command reads
            writer = os.open(fifo, os.O_WRONLY | os.O_NONBLOCK)
        time.sleep(0.02)
    child.stdin.close()
    try:
        assert child.wait(120) == 128 + signal.SIGTERM
        assert "Traceback" not in child.stderr.read()
    finally:
        os.close(writer)
        child.kill()
        child.stderr.close()


def test_a_guarded_command_runs_like_any_other() -> None:
    command = [sys.executable, "-m", "earshot.cli.ends_with_stdin", "rules"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        assert "KL011" in child.stdout.read()
        assert child.wait() == 0

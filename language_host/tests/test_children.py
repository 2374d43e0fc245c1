"""Processes of the host, and their end."""

import os
import subprocess
import time
from pathlib import Path

import pytest
from pulumi_python_host.children import Children


def start(children: Children, script: str, cwd: Path) -> subprocess.Popen[bytes]:
    return children.start(["sh", "-c", script], cwd=cwd, environment=os.environ, piped=True)


def test_stop_reaches_grandchildren(tmp_path: Path) -> None:
    children = Children()
    with start(children, "sleep 60 & echo $!; wait", tmp_path) as child:
        assert child.stdout is not None
        grandchild = int(child.stdout.readline())
        children.stop(child)
        assert child.returncode is not None
    await_end(grandchild)


def test_a_child_that_ignores_sigterm_is_killed(tmp_path: Path) -> None:
    children = Children()
    with start(children, "trap '' TERM; echo ready; while :; do sleep 1; done", tmp_path) as child:
        assert child.stdout is not None
        child.stdout.readline()
        children.stop(child, grace=0.1)
        assert child.returncode == -9


def test_nothing_starts_after_the_end(tmp_path: Path) -> None:
    children = Children()
    children.stop_all()
    with pytest.raises(ChildProcessError):
        start(children, "true", tmp_path)


def await_end(pid: int) -> None:
    end = time.monotonic() + 30
    while time.monotonic() < end:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return
        stat = Path(f"/proc/{pid}/stat")
        if stat.exists() and stat.read_text().rpartition(")")[2].split()[0] == "Z":
            return
        time.sleep(0.05)
    raise AssertionError(f"process {pid} still runs")

"""A provider's process ends with the process above it, after its last acts."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

CHILD = """
import pathlib, sys, time
from components import owner
owner.exit_with_parent()
owner.last_act(lambda: pathlib.Path(sys.argv[1]).write_text("done"))
taken_back = owner.last_act(lambda: pathlib.Path(sys.argv[1] + ".back").write_text("done"))
taken_back()
print("ready", flush=True)
time.sleep(60)
"""
PARENT = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", sys.argv[1], sys.argv[2]])
print(child.pid, flush=True)
time.sleep(60)
"""


@pytest.mark.parametrize("send", [signal.SIGKILL, signal.SIGTERM])
def test_it_ends_with_its_parent(tmp_path: Path, send: signal.Signals) -> None:
    mark = tmp_path / "mark"
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, CHILD, str(mark)], stdout=subprocess.PIPE, text=True
    )
    assert parent.stdout is not None
    child = psutil.Process(int(parent.stdout.readline()))
    try:
        assert parent.stdout.readline() == "ready\n"
        os.kill(parent.pid, send)
        parent.wait()
        end = time.monotonic() + 20
        while child.is_running() and child.status() != psutil.STATUS_ZOMBIE:
            assert time.monotonic() < end, "the child outlives its parent"
            time.sleep(0.1)
    except psutil.NoSuchProcess:
        pass
    finally:
        parent.stdout.close()
        if child.is_running():
            child.kill()
    assert mark.read_text() == "done"
    assert not (tmp_path / "mark.back").exists()

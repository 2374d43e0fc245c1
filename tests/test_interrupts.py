"""Interrupts of tests that several processes share."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.interrupts import marked
from toolchain.paths import ROOT

PATIENCE = 60
TESTS = """
import os, pathlib, subprocess, time
import pytest

HERE = pathlib.Path(__file__).parent

@pytest.fixture(scope="session")
def made():
    mark = HERE / f"made-{os.getpid()}"
    mark.touch()
    yield
    mark.unlink()
    late = {**os.environ, "LATE": str(HERE)}
    subprocess.Popen(["sleep", "600"], start_new_session=True, env=late)
    (HERE / f"ended-{os.getpid()}").touch()

@pytest.mark.parametrize("one", range(2))
def test_long(made, one):
    time.sleep(300)
"""


@pytest.mark.e2e
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_to_the_first_process_lets_all_clean_up(
    tmp_path: Path, number: signal.Signals
) -> None:
    (tmp_path / "test_long.py").write_text(TESTS)
    flags = ("-n", "2", "-p", "tests.interrupts", "-p", "no:cacheprovider", f"--rootdir={tmp_path}")
    environment = {key: value for key, value in os.environ.items() if "XDIST" not in key}
    with (tmp_path / "log").open("wb") as log:
        run = subprocess.Popen(
            [sys.executable, "-m", "pytest", *flags, str(tmp_path)],
            cwd=tmp_path,
            env=environment | {"PYTHONPATH": str(ROOT)},
            stdout=log,
            stderr=subprocess.STDOUT,
        )
        try:
            end = time.monotonic() + PATIENCE
            while len(list(tmp_path.glob("made-*"))) < 2:
                assert time.monotonic() < end and run.poll() is None, log.name
                time.sleep(0.1)
            run.send_signal(number)
            assert run.wait(PATIENCE) == pytest.ExitCode.INTERRUPTED
        finally:
            run.kill()
            run.wait()
    assert len(list(tmp_path.glob("ended-*"))) == 2, (tmp_path / "log").read_text()
    assert not list(tmp_path.glob("made-*"))
    assert not marked("LATE", str(tmp_path)), "started while it all ended"

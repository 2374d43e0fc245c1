"""Steps of the set-up: signs of life, and one clear message when a command fails."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from earshot.errors import EarshotError
from toolchain import progress


def run(tmp_path: Path, script: str) -> None:
    progress.run(
        ["sh", "-c", script], log=tmp_path / "step.log", failure="The step", remedy="try again"
    )


def test_output_goes_to_the_log(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    run(tmp_path, "echo one; echo two >&2")
    assert (tmp_path / "step.log").read_text() == "one\ntwo\n"
    assert capfd.readouterr() == ("", "")


def test_long_step_shows_its_last_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "TICK_SECONDS", 0.05)
    run(tmp_path, "echo compiling; sleep 0.3")
    assert "compiling" in capsys.readouterr().out


def test_failure_quotes_the_end_of_the_log(tmp_path: Path) -> None:
    with pytest.raises(EarshotError) as caught:
        run(tmp_path, "for i in $(seq 50); do echo line $i; done; exit 3")
    message = str(caught.value)
    assert message.startswith("The step: sh ended with status 3")
    assert "line 50" in message
    assert "line 20\n" not in message
    assert f"try again (full output: {tmp_path / 'step.log'})" in message


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interruption_ends_the_command_too(tmp_path: Path, number: signal.Signals) -> None:
    pid_file = tmp_path / "pid"
    code = f"""
from pathlib import Path
from toolchain import command, progress
command.end_on_sigterm()
progress.run(["sh", "-c", "echo $$ > {pid_file}.new; mv {pid_file}.new {pid_file}; sleep 60"],
             log=Path("{tmp_path}/log"), failure="f", remedy="r")
"""
    with subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE) as process:
        while not pid_file.exists():
            assert process.poll() is None
        process.send_signal(number)
        process.communicate(timeout=30)
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid_file.read_text()), 0)


def test_an_interruption_in_the_middle_of_a_start_ends_what_has_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[subprocess.Popen[bytes]] = []
    popen = subprocess.Popen

    def interrupted(*args: Any, **options: Any) -> subprocess.Popen[bytes]:
        started.append(popen(*args, **options))
        signal.raise_signal(signal.SIGINT)
        return started[0]

    monkeypatch.setattr(subprocess, "Popen", interrupted)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with pytest.raises(KeyboardInterrupt):
        progress.run(["sleep", "60"], log=tmp_path / "log", failure="f", remedy="r")
    assert started[0].returncode == -signal.SIGTERM

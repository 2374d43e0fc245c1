"""Progress on a terminal and in a log."""

import os
import pty
import re
import subprocess
import sys

import pytest

from earshot.cli.progress import steps

PROGRAM = (
    "from earshot.cli.progress import steps\n"
    "with steps() as step:\n"
    "    step('first [bold]step')\n"
    "    step('second step')\n"
)


def on_terminal(term: str) -> str:
    """What PROGRAM writes to a terminal of the kind ``term``."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": term}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], stderr=theirs, env=environment, timeout=60
    )
    os.close(theirs)
    assert done.returncode == 0
    text = os.read(ours, 65536).decode()
    os.close(ours)
    return text


def test_a_terminal_gets_a_live_line_and_keeps_what_was_done() -> None:
    text = on_terminal("xterm")
    assert re.search(r"first \[bold\]step \(\d+\.\d s\)", text)
    assert re.search(r"second step \(\d+\.\d s\)", text)
    assert re.search(r"second step(?! \()", text)  # the live line itself
    assert "\x1b[2K" in text  # which was taken away again


def test_a_dumb_terminal_gets_lines() -> None:
    assert on_terminal("dumb").split("\r\n") == ["first [bold]step", "second step", ""]


def test_a_log_gets_a_line_per_step(capsys: pytest.CaptureFixture[str]) -> None:
    with steps() as step:
        step("first")
        step("second")
    assert capsys.readouterr().err == "first\nsecond\n"


def test_the_run_goes_on_if_its_progress_cannot_be_written() -> None:
    program = f"{PROGRAM}print('the result')"
    words = ["bash", "-c", f'{sys.executable} -c "$0" 2> /dev/full', program]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, "the result\n")

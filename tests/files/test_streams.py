import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from earshot.files import streams


@pytest.mark.parametrize(
    ("closed", "lost"), [(">&-", "stdout"), ("2>&-", "stderr"), (">&- 2>&-", "both"), ("<&-", "")]
)
def test_no_file_gets_the_number_of_a_closed_stream(closed: str, lost: str, tmp_path: Path) -> None:
    """Nor what is printed here and by a child."""
    code = (
        "import os, subprocess, sys\n"
        "from earshot.files import streams\n"
        "streams.repair()\n"
        "file = open(sys.argv[1], 'w')\n"
        "os.set_inheritable(file.fileno(), True)\n"
        "print('printed', flush=True)\n"
        "print('complained', file=sys.stderr, flush=True)\n"
        "subprocess.run('echo child; echo child >&2', shell=True, close_fds=False, check=True)\n"
        "print(file.fileno() > 2, sys.stdin.read(), file=file)\n"
    )
    file = tmp_path / "file"
    process = subprocess.run(
        ["bash", "-c", f'"$0" -c "$1" "$2" {closed}', sys.executable, code, str(file)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    assert process.returncode == 0
    assert file.read_text() == "True \n"
    assert process.stdout == ("" if lost in ("stdout", "both") else "printed\nchild\n")
    assert process.stderr == ("" if lost in ("stderr", "both") else "complained\nchild\n")


def test_a_stream_that_another_program_made_non_blocking_loses_nothing() -> None:
    """Neither a long output whose reader is slow, nor the end of an input."""
    code = (
        "import sys, time\n"
        "from earshot.files import streams\n"
        "streams.repair()\n"
        "print(sys.stdin.read() * 100_000, end='', flush=True)\n"
    )
    (given, source), (sink, taken) = os.pipe(), os.pipe()
    for stream in (given, taken):
        os.set_blocking(stream, False)
    process = subprocess.Popen([sys.executable, "-c", code], stdin=given, stdout=taken)
    os.close(given)
    os.close(taken)
    with os.fdopen(source, "wb") as written, os.fdopen(sink, "rb") as read:
        time.sleep(0.3)
        written.write(b"ab")
        written.close()
        time.sleep(0.3)
        assert len(read.read()) == 200_000
    assert process.wait() == 0


@pytest.mark.parametrize(
    ("width", "kept"),
    [("0", True), ("80", True), ("9999", True), ("100000", False), ("9" * 20, False), ("x", True)],
)
def test_a_width_that_no_terminal_has_is_ignored(
    width: str, kept: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", width)
    streams.ignore_absurd_width()
    assert (os.environ.get("COLUMNS") == width) == kept

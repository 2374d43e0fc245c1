"""Steps of the set-up: signs of life, and one clear message when a command fails."""

import contextlib
import errno
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
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


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("names", ["a", "ab"], ids=["one command", "jobs side by side"])
def test_an_interruption_ends_all_commands(
    tmp_path: Path, number: signal.Signals, names: str
) -> None:
    code = f"""
from pathlib import Path
from toolchain import command, progress
command.end_on_sigterm()
def job(name):
    return lambda: progress.run(
        ["sh", "-c", f"echo $$ > {tmp_path}/{{name}}.new; mv {tmp_path}/{{name}}.new "
         f"{tmp_path}/{{name}}; sleep 600"], log=Path(f"{tmp_path}/{{name}}.log"),
        failure="f", remedy="r")
jobs = {{name: job(name) for name in {names!r}}}
progress.together(jobs) if len(jobs) > 1 else jobs["a"]()
"""
    files = [tmp_path / name for name in names]
    with subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE) as process:
        while not all(file.exists() for file in files):
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(number)
        process.communicate(timeout=120)
    for file in files:
        with pytest.raises(ProcessLookupError):
            os.kill(int(file.read_text()), 0)


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


def job(folder: Path, script: str, name: str = "step") -> Callable[[], None]:
    def run() -> None:
        progress.run(["sh", "-c", script], log=folder / f"{name}.log", failure=name, remedy="r")

    return run


def test_jobs_run_side_by_side_and_say_whose_lines_theirs_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    meeting = threading.Barrier(2, timeout=120)

    def meet(word: str) -> Callable[[], None]:
        def say() -> None:
            meeting.wait()
            progress.say(word)

        return say

    progress.together({"one": meet("first"), "two": meet("second")})
    progress.say("after\x1b[2Jwards")

    *lines, last = capsys.readouterr().out.splitlines()
    assert (sorted(lines), last) == (["[one] first", "[two] second"], "after\\u001b[2Jwards")


def test_the_first_error_ends_the_commands_of_the_others(tmp_path: Path) -> None:
    started = tmp_path / "started"
    wait_for_it = f"while [ ! -e {started} ]; do sleep 0.05; done; exit 3"
    others = job(tmp_path, f"touch {started}; exec sleep 600", "others")
    with pytest.raises(EarshotError, match=r"^failing: sh ended with status 3"):
        progress.together({"a": others, "b": job(tmp_path, wait_for_it, "failing")})


def test_a_job_begins_no_command_after_another_has_failed(tmp_path: Path) -> None:
    failed = threading.Event()

    def fails() -> None:
        try:
            raise EarshotError("one", observed="failed")
        finally:
            failed.set()

    def goes_on() -> None:
        failed.wait(120)
        while True:  # until the group has noticed
            job(tmp_path, "true")()
            (tmp_path / "ran").touch()

    with pytest.raises(EarshotError, match="one: failed"):
        progress.together({"a": fails, "b": goes_on})


def test_an_interrupt_that_wakes_no_thread_is_noticed(tmp_path: Path) -> None:
    """As one does that arrives just before the main thread sleeps."""
    finished = tmp_path / "finished"

    def interrupt_while_the_main_thread_sleeps() -> None:
        time.sleep(0.3)
        signal.pthread_kill(threading.get_ident(), signal.SIGINT)
        job(tmp_path, f"sleep 600; touch {finished}")()

    with pytest.raises(KeyboardInterrupt):
        progress.together({"a": interrupt_while_the_main_thread_sleeps})
    assert not finished.exists()


def test_an_impatient_user_leaves_no_command_behind(tmp_path: Path) -> None:
    """More interruptions while commands that do not listen are ended."""
    code = f"""
from pathlib import Path
from toolchain import command, progress
command.end_on_sigterm()
progress.STOP_SECONDS = 1
def job(name):
    return lambda: progress.run(
        ["sh", "-c", f"trap 'touch {tmp_path}/{{name}}.told' TERM; "
         f"echo $$ > {tmp_path}/{{name}}.new; "
         f"mv {tmp_path}/{{name}}.new {tmp_path}/{{name}}; while :; do sleep 0.1; done"],
        log=Path(f"{tmp_path}/{{name}}.log"), failure="f", remedy="r")
progress.together({{"a": job("a"), "b": job("b")}})
"""
    files = [tmp_path / "a", tmp_path / "b"]
    with subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE) as process:
        try:
            while not all(file.exists() for file in files):
                assert process.poll() is None
                time.sleep(0.01)
            process.send_signal(signal.SIGINT)
            while not any(file.with_suffix(".told").exists() for file in files):
                assert process.poll() is None
                time.sleep(0.01)
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=120)
            for file in files:
                with pytest.raises(ProcessLookupError):
                    os.kill(int(file.read_text()), 0)
        finally:
            process.kill()
            for file in files:
                with contextlib.suppress(OSError, ValueError):
                    os.killpg(int(file.read_text()), signal.SIGKILL)


FREE_SPACE = "free space on that disk, then run the same command again"


def test_an_error_that_names_no_file_is_one_message(capsys: pytest.CaptureFixture[str]) -> None:
    def act() -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    assert progress.exit_status(act, "go on") == 2
    assert capsys.readouterr().err == f"No space left on device\n  fix: {FREE_SPACE}\n"


def test_a_full_output_is_one_message() -> None:
    code = "from toolchain.progress import exit_status, say; import sys; "
    code += "sys.exit(exit_status(lambda: say('word') or 0, 'go on'))"
    with Path("/dev/full").open("w") as full:
        process = subprocess.run(
            [sys.executable, "-c", code], stdout=full, stderr=subprocess.PIPE, text=True
        )
    reported = f"No space left on device\n  fix: {FREE_SPACE}\n"
    assert (process.returncode, process.stderr) == (2, reported)


@pytest.mark.parametrize(
    "closed", [">&-", "2>&-", "<&- >&- 2>&-", "| true", "2>&1 >/dev/full | true"]
)
def test_a_stream_that_takes_nothing_leaves_no_trace_and_the_exit_code(closed: str) -> None:
    code = (
        "import sys, time\n"
        "from earshot.errors import EarshotError\n"
        "from toolchain import progress\n"
        "def act():\n"
        "    time.sleep(0.3)\n"
        "    progress.say('a step')\n"
        "    progress.say('another')\n"
        "    raise EarshotError('the thing', observed='is broken')\n"
        "sys.exit(progress.exit_status(act, 'again'))\n"
    )
    words = f'"$0" -c "$1" {closed}; exit ${{PIPESTATUS[0]}}'
    process = subprocess.run(
        ["bash", "-c", words, sys.executable, code], capture_output=True, text=True
    )
    assert process.returncode == 2 and "Traceback" not in process.stderr

"""One line per step, and a sign of life from whatever takes longer than a few seconds."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from earshot.errors import EarshotError

# On a terminal one line is redrawn; elsewhere (CI logs) a line appears now and then.
TICK_SECONDS = 1.0 if sys.stdout.isatty() else 10.0
SHOWN_LINES = 15
STOP_SECONDS = 10


def say(text: str) -> None:
    """Print one line, at once."""
    print(text, flush=True)


@contextlib.contextmanager
def step(text: str) -> Iterator[None]:
    """Say what begins, and how long it took if that was noticeable."""
    say(f"{text} ...")
    begin = time.monotonic()
    yield
    if (seconds := time.monotonic() - begin) >= 2:
        say(f"  done in {seconds:.0f} s")


def run(
    command: Sequence[str | Path],
    *,
    log: Path,
    failure: str,
    remedy: str,
    cwd: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> None:
    """Run ``command`` with its output in ``log``, ticking with the last line of it.

    The command leads a process group and ends with this process's own interruption. Raises
    EarshotError with ``failure``, the log's last lines and ``remedy``.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    child: subprocess.Popen[bytes] | None = None
    with log.open("wb") as file:
        try:
            with _interrupts_held_back():
                child = subprocess.Popen(
                    command,
                    cwd=cwd,
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    stdout=file,
                    stderr=subprocess.STDOUT,
                    process_group=0,
                )
            code = _wait(child, log)
        except BaseException:
            if child is not None:
                _stop(child)
            raise
    if code != 0:
        lines = "".join(f"\n    {line}" for line in _tail(log, SHOWN_LINES))
        raise EarshotError(
            failure,
            observed=f"{Path(command[0]).name} ended with status {code}; its last lines:{lines}",
            remedy=f"{remedy} (full output: {log})",
        )


@contextlib.contextmanager
def _interrupts_held_back() -> Iterator[None]:
    """Until the end of the block: one in the middle of a start would lose what has started."""
    heard: list[int] = []
    own = threading.current_thread() is threading.main_thread()
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    held = {number: it for number, it in handlers.items() if own and callable(it)}
    for number in held:
        signal.signal(number, lambda number, _: heard.append(number))
    try:
        yield
    finally:
        for number, handler in held.items():
            signal.signal(number, handler)
        if heard:
            signal.raise_signal(heard[0])


def _wait(child: subprocess.Popen[bytes], log: Path) -> int:
    begin = time.monotonic()
    width = 0
    while True:
        try:
            code = child.wait(TICK_SECONDS)
            break
        except subprocess.TimeoutExpired:
            seconds = time.monotonic() - begin
            last = (_tail(log, 1) or [""])[0]
            line = f"  {seconds:.0f} s  {last}"[:100]
            if sys.stdout.isatty():
                print(f"\r{line:<{width}}", end="", flush=True)
                width = len(line)
            else:
                say(line)
    if width:
        print(f"\r{'':<{width}}\r", end="", flush=True)
    return code


def _stop(child: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGTERM)
    try:
        child.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()


def _tail(log: Path, count: int) -> list[str]:
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - 8192))
        text = file.read().decode(errors="replace")
    return [line.rstrip() for line in text.splitlines() if line.strip()][-count:]

"""Prints one line per step, and repeated progress lines for long steps.

Steps may run in parallel: each line then begins with the name of its step.
"""

import contextlib
import errno
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from contextvars import ContextVar
from pathlib import Path
from typing import TextIO

from earshot import cache, streams
from earshot.errors import EarshotError, remedy_of

# On a terminal one line is redrawn; elsewhere (CI logs) each tick prints a new line.
TICK_SECONDS = 1.0 if sys.stdout is not None and sys.stdout.isatty() else 10.0
SHARED_TICK_SECONDS = 10.0
"""For parallel steps, which cannot redraw one line."""
SHOWN_LINES = 15
STOP_SECONDS = 10
INTERRUPTED = 130
STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
INTERRUPT_SECONDS = 1.0
"""How long an interrupt of parallel steps may go unnoticed."""
POLL_SECONDS = 0.2
"""How long the end of another parallel step may go unnoticed."""
_label: ContextVar[str] = ContextVar("label", default="")
"""The prefix of this thread's lines."""


def say(text: str) -> None:
    """Print one line, at once."""
    try:
        print(f"{_label.get()}{text}", flush=True)
    except OSError as reason:
        # what was begun goes on where no reader is left: a terminal that was closed, `| head`
        if reason.errno not in (errno.EIO, errno.EPIPE):
            raise
        _silence(sys.stdout)


def exit_status(act: Callable[[], int], again: str, prefix: str = "") -> int:
    """What ``act`` returns; where it fails or is interrupted, one message, and its status.

    ``again`` says after an interrupt how to go on.
    """
    streams.open_closed()
    try:
        return act()
    except EarshotError as error:
        _complain(f"{prefix}{error}")
        return error.exit_code
    except OSError as reason:  # a checkout of another user, a full disk, a closed stderr
        named = f"{reason.filename}: " if reason.filename is not None else ""
        try:
            sys.stdout.flush()
        except OSError:
            _silence(sys.stdout)
        _complain(f"{prefix}{named}{reason.strerror or reason}{_remedy(reason)}")
        return EarshotError.exit_code
    except KeyboardInterrupt:
        _complain(f"\ninterrupted; {again}")
        return INTERRUPTED


def _complain(text: str) -> None:
    """Print ``text`` on stderr, where that takes it."""
    try:
        print(text, file=sys.stderr, flush=True)
    except OSError:
        _silence(sys.stderr)


def _silence(stream: TextIO) -> None:
    """Python writes at its end what is left of the output, and would say that it cannot."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _remedy(reason: OSError) -> str:
    """A line about a limit of this machine, or a cache that cannot be written; empty for the rest.

    Where the cache is on a read-only file system, as HOME may be, another place is easier to have.
    """
    lifted = remedy_of(reason)
    if lifted and reason.errno != errno.EROFS:
        return f"\n  fix: {lifted}"
    try:
        folder, failed = cache.root(), Path(reason.filename or "")
    except EarshotError:  # no home: what it has to do with it is said where it is looked for
        return ""
    if not (failed.is_relative_to(folder) or folder.is_relative_to(failed)):
        return f"\n  fix: {lifted}" if lifted else ""
    return "\n  fix: let XDG_CACHE_HOME name a folder, absolute, that this user can write"


class Cancelled(Exception):
    """A job of `together` ends because another one failed or the set-up was interrupted."""


_ending = threading.Event()
"""Ends the commands of all jobs of `together`."""


def together(jobs: Mapping[str, Callable[[], object]]) -> None:
    """Do all ``jobs``, by the name that their lines begin with, in parallel.

    The first error or an interrupt ends the commands of the others and is raised.
    """

    def do(name: str, job: Callable[[], object]) -> None:
        _label.set(f"[{name}] ")
        job()

    with ThreadPoolExecutor(len(jobs)) as pool:
        waiting = {pool.submit(do, name, job) for name, job in jobs.items()}
        try:
            while waiting:
                # an interrupt that arrives just before the main thread sleeps does not wake it up
                ended, waiting = wait(waiting, INTERRUPT_SECONDS, return_when=FIRST_COMPLETED)
                for job in ended:
                    job.result()
        except BaseException:
            _ending.set()
            with _interrupts_held_back():
                wait(waiting)
            raise
        finally:
            _ending.clear()


@contextlib.contextmanager
def step(text: str) -> Iterator[None]:
    """Print what begins, and how long it took if that was 2 s or more."""
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
    """Run ``command`` with its output in ``log``, and print its last line now and then.

    The command leads a process group, and an interrupt of this process ends it. Raises EarshotError
    with ``failure``, the log's last lines and ``remedy``.
    """
    if _ending.is_set():
        raise Cancelled
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
            code = _shown_to_its_end(child, log)
        except BaseException:
            if child is not None:
                with _interrupts_held_back():
                    _stop(child)
            raise
    if code != 0:
        lines = "".join(f"\n    {line}" for line in _tail(log, SHOWN_LINES))
        raise EarshotError(
            failure,
            observed=f"{Path(command[0]).name} ended with status {code}; its last lines:{lines}",
            remedy=f"{remedy} (full output: {log})",
        )


def _stop(child: subprocess.Popen[bytes]) -> None:
    """End ``child`` and what it has started."""
    for number, patience in ((signal.SIGTERM, STOP_SECONDS), (signal.SIGKILL, None)):
        # the group is gone (macOS says it the second way)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(child.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(patience)


def answer(
    command: Sequence[str | Path],
    seconds: float,
    variables: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> str:
    """What ``command`` prints within ``seconds``, stripped; nothing where it does not run.

    It has ``variables`` besides this process's own.
    """
    try:
        return subprocess.run(
            command,
            env={**os.environ, **(variables or {})},
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=seconds,
            text=True,
        ).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""


@contextlib.contextmanager
def _interrupts_held_back() -> Iterator[None]:
    """A context that delays interrupts, which could otherwise lose a command as it starts."""
    received: list[int] = []
    in_main_thread = threading.current_thread() is threading.main_thread()
    handlers = {number: signal.getsignal(number) for number in STOPS}
    replaced = {
        number: handler
        for number, handler in handlers.items()
        if in_main_thread and callable(handler)
    }
    for number in replaced:
        signal.signal(number, lambda number, _: received.append(number))
    try:
        yield
    finally:
        for number, handler in replaced.items():
            signal.signal(number, handler)
        if received:
            signal.raise_signal(received[0])


def _shown_to_its_end(child: subprocess.Popen[bytes], log: Path) -> int:
    """The exit status of ``child``, of whose log the last line is printed now and then.

    Raises Cancelled where another job's end ends it.
    """
    begin = shown_at = time.monotonic()
    width = 0
    is_shared = bool(_label.get())
    redrawn = sys.stdout.isatty() and not is_shared
    tick = max(TICK_SECONDS, SHARED_TICK_SECONDS) if is_shared else TICK_SECONDS
    while True:
        try:
            code = child.wait(min(tick, POLL_SECONDS))
            break
        except subprocess.TimeoutExpired:
            if _ending.is_set():
                raise Cancelled from None
            if (now := time.monotonic()) - shown_at < tick:
                continue
            shown_at = now
            last = (_tail(log, 1) or [""])[0]
            line = f"  {now - begin:.0f} s  {last}"[:100]
            if redrawn:
                print(f"\r{line:<{width}}", end="", flush=True)
                width = len(line)
            else:
                say(line)
    if width:
        print(f"\r{'':<{width}}\r", end="", flush=True)
    return code


def _tail(log: Path, count: int) -> list[str]:
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - 8192))
        text = file.read().decode(errors="replace")
    return [line.rstrip() for line in text.splitlines() if line.strip()][-count:]

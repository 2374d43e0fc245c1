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

from earshot.errors import EarshotError, remedy_of, remedy_of_owner
from earshot.files import cache, streams
from earshot.visible import visible

# On a terminal one line is redrawn; elsewhere (CI logs) each tick prints a new line.
TICK_SECONDS = 1.0 if sys.stdout is not None and sys.stdout.isatty() else 10.0
SHARED_TICK_SECONDS = 10.0
"""Seconds between lines of parallel steps, which cannot redraw one line."""
SHOWN_LINES = 15
STOP_SECONDS = 10
INTERRUPTED = 130
STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
INTERRUPT_SECONDS = 1.0
"""Seconds within which an interrupt of parallel steps is noticed."""
POLL_SECONDS = 0.2
"""Seconds within which the end of another parallel step is noticed."""
_label: ContextVar[str] = ContextVar("label", default="")
"""The prefix of this thread's lines."""


def say(text: str) -> None:
    """Print one line, at once."""
    try:
        print(f"{_label.get()}{visible(text)}", flush=True)
    except OSError as reason:
        # continue without a reader: the terminal was closed, or `| head` has ended
        if reason.errno not in (errno.EIO, errno.EPIPE):
            raise
        streams.silence(sys.stdout)


def exit_status(act: Callable[[], int], again: str, prefix: str = "") -> int:
    """The result of ``act``. A failure or an interrupt is printed as one message, with its status.

    ``again`` is the hint after an interrupt: how to continue.
    """
    streams.repair()
    try:
        return act()
    except EarshotError as error:
        streams.to_stderr(f"{prefix}{error}")
        return error.exit_code
    except OSError as reason:  # a checkout of another user, a full disk, a closed stderr
        file_prefix = f"{reason.filename}: " if reason.filename is not None else ""
        try:
            sys.stdout.flush()
        except OSError:
            streams.silence(sys.stdout)
        streams.to_stderr(f"{prefix}{file_prefix}{reason.strerror or reason}{_remedy(reason)}")
        return EarshotError.exit_code
    except KeyboardInterrupt:
        streams.to_stderr(f"\ninterrupted; {again}")
        return INTERRUPTED


def _remedy(reason: OSError) -> str:
    """The fix for a limit of this machine, or for a cache that cannot be written; else empty.

    If the cache is on a read-only file system, as HOME may be, another folder is the easier fix.
    """
    remedy = remedy_of(reason) or remedy_of_owner(reason)
    if remedy and reason.errno != errno.EROFS:
        return f"\n  fix: {remedy}"
    try:
        cache_folder, failed_path = cache.root(), Path(reason.filename or "")
    except EarshotError:  # there is no home folder, which is reported where the cache is used
        return ""
    is_in_cache = failed_path.is_relative_to(cache_folder)
    if not is_in_cache and not cache_folder.is_relative_to(failed_path):
        return f"\n  fix: {remedy}" if remedy else ""
    return "\n  fix: let XDG_CACHE_HOME name a folder, absolute, that this user can write"


class JobCancelled(Exception):
    """A job of `together` ends because another one failed or the set-up was interrupted."""


_ending = threading.Event()
"""Ends the commands of all jobs of `together`."""


def together(jobs: Mapping[str, Callable[[], object]]) -> None:
    """Run all ``jobs`` in parallel. The key of a job is the prefix of its lines.

    The first error or an interrupt ends the commands of the others and is raised.
    """

    def run_job(name: str, job: Callable[[], object]) -> None:
        _label.set(f"[{name}] ")
        job()

    with ThreadPoolExecutor(len(jobs)) as pool:
        waiting = {pool.submit(run_job, name, job) for name, job in jobs.items()}
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
    """Print ``text`` at the beginning, and the duration at the end if it was 2 s or more."""
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
    """Run ``command`` with its output in ``log``, and print the last line of it repeatedly.

    The command leads a process group. An interrupt of this process ends that group. Raises
    EarshotError with ``failure``, the log's last lines and ``remedy``.
    """
    if _ending.is_set():
        raise JobCancelled
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
            code = _wait_with_progress(child, log)
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
    """End ``child`` and the processes that it has started."""
    for number, patience in ((signal.SIGTERM, STOP_SECONDS), (signal.SIGKILL, None)):
        # the group has ended (macOS reports the second error)
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
    """The stripped output of ``command`` within ``seconds``; empty if it fails to run.

    Its environment is that of this process with ``variables``.
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
    replaced_handlers = {
        number: handler
        for number, handler in handlers.items()
        if in_main_thread and callable(handler)
    }
    for number in replaced_handlers:
        signal.signal(number, lambda number, _: received.append(number))
    try:
        yield
    finally:
        for number, handler in replaced_handlers.items():
            signal.signal(number, handler)
        if received:
            signal.raise_signal(received[0])


def _wait_with_progress(child: subprocess.Popen[bytes], log: Path) -> int:
    """The exit status of ``child``, after printing the last line of its ``log`` repeatedly.

    Raises JobCancelled if another job has failed or was interrupted.
    """
    begin = shown_at = time.monotonic()
    width = 0
    is_shared = bool(_label.get())
    is_redrawn = sys.stdout.isatty() and not is_shared
    tick = max(TICK_SECONDS, SHARED_TICK_SECONDS) if is_shared else TICK_SECONDS
    while True:
        try:
            code = child.wait(min(tick, POLL_SECONDS))
            break
        except subprocess.TimeoutExpired:
            if _ending.is_set():
                raise JobCancelled from None
            if (current_time := time.monotonic()) - shown_at < tick:
                continue
            shown_at = current_time
            last_line = (_tail(log, 1) or [""])[0]
            line = f"  {current_time - begin:.0f} s  {last_line}"[:100]
            if is_redrawn:
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

"""Ends a command soon after a signal or its deadline, with the results so far.

Python runs signal handlers in the main thread, between two instructions. A hanging call into native
code, or the end of a client with thousands of threads, would delay them. So a thread waits for the
same signals. It gives the command `GRACE` seconds to clean up, then prints the results so far, and
ends the process.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

GRACE: Final = 1.4
"""Seconds for the clean-up of an interrupted command."""
ALONE_SECONDS: Final = 30.0
"""Seconds for the clean-up if the parent process was killed, so that nothing waits."""
TELL_SECONDS: Final = 0.4
"""Seconds for printing the results: the reader of the output may hang, too."""
LEAVE_SECONDS: Final = 5.0
"""Seconds for the end of a process whose command has ended."""
TICK: Final = 0.2
"""Seconds between two looks at a command that may be late or have too many threads."""
INCONCLUSIVE: Final = 3
STOPPED: Final[dict[int, str]] = {
    signal.SIGINT: "interrupted",
    signal.SIGTERM: "terminated",
    signal.SIGHUP: "terminal closed",
}

Tell = Callable[[str], int]
"""Prints the results so far with the reason for the end; returns the exit code."""


@dataclass
class RunningCommand:
    """A command under way."""

    tell: Tell
    end: float
    """The end of the deadline, by `time.monotonic`."""
    most_threads: Callable[[], int]
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _has_reported: bool = False

    def overdue(self) -> str:
        """Why the command must end now; empty if it need not."""
        if time.monotonic() > self.end:
            return "it did not end by its deadline, so its process was ended"
        threads, thread_limit = _threads(), self.most_threads()
        if threads > thread_limit:
            return f"it was ended at {threads:,} threads: a peer listed more brokers than it had"
        return ""

    def stop(self, reason: str) -> int:
        """Prints the results so far, once. Returns the exit code."""
        with self._lock:
            if self._has_reported:
                return INCONCLUSIVE
            self._has_reported = True
        return self.tell(reason)


_work: RunningCommand | None = None
_wake = -1
_grace = GRACE
_announcement = threading.Lock()
"""Locked for good by the first announcement."""


def watch() -> None:
    """Starts the thread that waits for signals, whose handlers are already set."""
    global _wake
    if _wake >= 0:
        return
    reading, _wake = os.pipe()
    os.set_blocking(_wake, False)
    signal.set_wakeup_fd(_wake, warn_on_full_buffer=False)
    threading.Thread(target=_watch, args=(reading,), name="ending", daemon=True).start()


def end_alone() -> None:
    """Ends this process like SIGTERM, with more time to clean up: its parent was killed."""
    global _grace
    _grace = ALONE_SECONDS
    os.kill(os.getpid(), signal.SIGTERM)


def announce(reason: str) -> None:
    """Prints on stderr why the command ends, once per process."""
    from earshot.files.streams import to_stderr

    if _announcement.acquire(blocking=False):
        to_stderr(reason)


@contextlib.contextmanager
def ended_by(tell: Tell, seconds: float, most_threads: Callable[[], int]) -> Iterator[None]:
    """Prints the results so far if the process is interrupted, is late after ``seconds``, or
    has more threads than ``most_threads`` allows."""
    global _work
    _work = work = RunningCommand(tell, time.monotonic() + seconds, most_threads)
    _rouse()
    try:
        yield
    except KeyboardInterrupt:
        work.stop(STOPPED[signal.SIGINT])
        raise
    except SystemExit as ending:
        for number, word in STOPPED.items():
            if ending.code == 128 + number:
                work.stop(word)
        raise
    finally:
        _work = None


def leave(code: int) -> None:
    """Ends the process with ``code`` if it does not end soon."""
    timer = threading.Timer(LEAVE_SECONDS, os._exit, (code,))
    timer.daemon = True
    timer.start()


def _rouse() -> None:
    if _wake >= 0:
        with contextlib.suppress(OSError):
            os.write(_wake, b"\0")


def _watch(reading: int) -> None:
    code, end = 0, float("inf")
    while True:
        pause = min(TICK if _work else 3600.0, max(0.0, end - time.monotonic()))
        if select.select([reading], [], [], pause)[0]:
            numbers = [number for number in os.read(reading, 64) if number in STOPPED]
            if numbers and not code:
                code, end = 128 + numbers[0], time.monotonic() + _grace
        work = _work
        if time.monotonic() >= end:
            _end(work, STOPPED[code - 128], code)
        elif work is not None and not code and (reason := work.overdue()):
            _end(work, reason, 0)


def _end(work: RunningCommand | None, reason: str, code: int) -> None:
    codes = [code or INCONCLUSIVE]

    def tell() -> None:
        if work is None:
            announce(reason)
            return
        result = work.stop(reason)
        codes[0] = code or result or INCONCLUSIVE

    # it may need a lock of the main thread
    telling = threading.Thread(target=tell, daemon=True)
    telling.start()
    telling.join(TELL_SECONDS if code else LEAVE_SECONDS)
    os._exit(codes[0])


def _threads() -> int:
    """The number of threads of this process; 0 if unknown."""
    try:
        stat = Path("/proc/self/stat").read_bytes()
    except OSError:
        return 0
    return int(stat.rpartition(b")")[2].split()[17])

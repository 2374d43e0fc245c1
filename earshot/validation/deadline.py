"""When a run ends at the latest, and how it ends early without leaving anything behind."""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections.abc import Iterator
from types import FrameType


class Deadline:
    """A moment that everything of a run ends by, and a way to end it now."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.stop = threading.Event()
        self._end = time.monotonic() + seconds

    def left(self, limit: float | None = None) -> float:
        """Seconds left, at most ``limit``; 0 when the run is to stop."""
        left = 0.0 if self.stop.is_set() else max(0.0, self._end - time.monotonic())
        return left if limit is None else max(0.0, min(left, limit))

    def within(self, limit: float) -> Deadline:
        """A deadline ``limit`` seconds from now at the latest; it stops when this one does."""
        part = Deadline(self.left(limit))
        part.stop = self.stop
        return part


@contextlib.contextmanager
def unwinding_on_sigterm() -> Iterator[None]:
    """Within, SIGTERM raises SystemExit (143) in the main thread, so that `finally` clears up.

    Does nothing outside the main thread, or where the program handles SIGTERM itself.
    """
    ours = threading.current_thread() is threading.main_thread()
    if not ours or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return

    def unwind(number: int, frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    signal.signal(signal.SIGTERM, unwind)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)

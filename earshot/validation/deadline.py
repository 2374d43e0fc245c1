"""The deadline of a run, and the clean-up if SIGTERM ends it early."""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections.abc import Iterator
from types import FrameType


class Deadline:
    """The latest end of a run, with an event (`stop`) that ends it now."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.stop = threading.Event()
        self._end = time.monotonic() + seconds

    def left(self, limit: float | None = None) -> float:
        """Seconds left, at most ``limit``; 0 if `stop` is set."""
        seconds = 0.0 if self.stop.is_set() else max(0.0, self._end - time.monotonic())
        return seconds if limit is None else max(0.0, min(seconds, limit))

    def within(self, limit: float) -> Deadline:
        """A deadline at most ``limit`` seconds from now, which shares this one's `stop`."""
        deadline = Deadline(self.left(limit))
        deadline.stop = self.stop
        return deadline


@contextlib.contextmanager
def unwinding_on_sigterm() -> Iterator[None]:
    """Makes SIGTERM raise SystemExit (143) in the main thread, so that `finally` blocks run.

    Does nothing outside the main thread, or if the program handles SIGTERM itself.
    """
    is_main_thread = threading.current_thread() is threading.main_thread()
    if not is_main_thread or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return

    def unwind(number: int, frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    signal.signal(signal.SIGTERM, unwind)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)

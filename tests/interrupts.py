"""An interrupt ends a run of several processes in order: each tears down what it has made.

Ctrl-C at a terminal reaches all of them at once, a signal to the first process only that one;
xdist tells nobody else, and kills who has not ended 10 s later, which engines and brokers take.
"""

from __future__ import annotations

import contextlib
import os
import signal
from types import FrameType

import psutil
import pytest

END_SECONDS = 180
WORKER = "PYTEST_XDIST_WORKER"


class Once:
    """Interrupts once; those that follow must not disturb what is being torn down."""

    def __init__(self) -> None:
        self._heard = False

    def __call__(self, number: int, frame: FrameType | None) -> None:
        if not self._heard:
            self._heard = True
            raise KeyboardInterrupt


def pytest_configure(config: pytest.Config) -> None:
    """Heed interrupts, and let all that tests start heed them: a job in the background does not."""
    if WORKER in os.environ:
        signal.signal(signal.SIGINT, Once())
        return
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if config.getoption("numprocesses", default=None):
        from xdist.workermanage import NodeManager

        NodeManager.EXIT_TIMEOUT = END_SECONDS
        signal.signal(signal.SIGTERM, signal.default_int_handler)


def pytest_keyboard_interrupt() -> None:
    """Tell the processes that share the tests, where this is the first of them."""
    if WORKER in os.environ:
        return
    for child in psutil.Process().children():
        with contextlib.suppress(psutil.Error):
            if any("execnet" in word for word in child.cmdline()):
                child.send_signal(signal.SIGINT)

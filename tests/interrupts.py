"""An interrupt ends a run of several processes in order: each tears down what it has made.

Ctrl-C at a terminal reaches all of them at once, a signal to the first process only that one;
xdist tells nobody else, and kills who has not ended 10 s later, which engines and brokers take.
"""

import contextlib
import os
import signal
import time
import uuid
from types import FrameType

import psutil
import pytest

END_SECONDS = 180
GONE_SECONDS = 60
WORKER = "PYTEST_XDIST_WORKER"
RUN_VARIABLE = "EARSHOT_TEST_RUN"


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
    os.environ[RUN_VARIABLE] = str(uuid.uuid4())
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


def pytest_unconfigure() -> None:
    """End what is still there when all processes that share the tests have ended.

    An update that a test started may go on for a moment after its test was interrupted, and start
    a broker then, which nobody looks for any more.
    """
    if WORKER in os.environ or (mark := os.environ.pop(RUN_VARIABLE, None)) is None:
        return
    end = time.monotonic() + GONE_SECONDS
    while (left := marked(RUN_VARIABLE, mark)) and time.monotonic() < end:
        for process in left:
            with contextlib.suppress(psutil.Error):
                process.kill()
        time.sleep(0.1)


def marked(variable: str, value: str) -> list[psutil.Process]:
    """Living processes that have inherited ``value`` of ``variable``, this one aside."""
    found = []
    for process in psutil.process_iter():
        try:
            inherited = process.environ().get(variable) == value
        except psutil.Error:
            continue
        if inherited and process.pid != os.getpid() and process.status() != psutil.STATUS_ZOMBIE:
            found.append(process)
    return found

"""An interrupt ends a run of several processes in order: each removes its own resources.

Ctrl-C at a terminal reaches all processes at once, a signal only the first one. xdist does not
forward it, and kills processes after 10 s, which is too short for engines and brokers.
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
    """Interrupts once. Later interrupts must not disturb the teardown."""

    def __init__(self) -> None:
        self._heard = False

    def __call__(self, number: int, frame: FrameType | None) -> None:
        if not self._heard:
            self._heard = True
            raise KeyboardInterrupt


def pytest_configure(config: pytest.Config) -> None:
    """Handles interrupts, which a job in the background and its children would ignore."""
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
    """Interrupts the other processes of the run, if this is the first one."""
    if WORKER in os.environ:
        return
    for child in psutil.Process().children():
        with contextlib.suppress(psutil.Error):
            if any("execnet" in word for word in child.cmdline()):
                child.send_signal(signal.SIGINT)


def pytest_unconfigure() -> None:
    """Kills processes that still run when all processes of the run have ended.

    An update may continue for a moment after its test was interrupted, and then start a broker.
    """
    if WORKER in os.environ or (mark := os.environ.pop(RUN_VARIABLE, None)) is None:
        return
    end = time.monotonic() + GONE_SECONDS
    while (processes := marked(RUN_VARIABLE, mark)) and time.monotonic() < end:
        for process in processes:
            with contextlib.suppress(psutil.Error):
                process.kill()
        time.sleep(0.1)


def marked(variable: str, value: str) -> list[psutil.Process]:
    """Running processes with ``value`` of ``variable`` in their environment, except this one."""
    processes = []
    for process in psutil.process_iter():
        try:
            inherited = process.environ().get(variable) == value
        except psutil.Error:
            continue
        if inherited and process.pid != os.getpid() and process.status() != psutil.STATUS_ZOMBIE:
            processes.append(process)
    return processes

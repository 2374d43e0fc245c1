"""Runs commands that use librdkafka in a child process, and reports its crash.

A broker count of -1 in a peer's answer ends a process that uses librdkafka 2.16 with SIGSEGV. So
the commands that connect to addresses of others run in a child process.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Sequence
from types import FrameType
from typing import Final

from earshot.cli.ending import end_alone

COMMANDS: Final = frozenset({"doctor", "validate"})
CRASHES: Final = frozenset(
    {signal.SIGSEGV, signal.SIGBUS, signal.SIGABRT, signal.SIGILL, signal.SIGFPE}
)
STOPS: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
INCONCLUSIVE: Final = 3
WITHOUT_RECORDS: Final = "--no-produce"
"""The doctor's option that avoids librdkafka; earshot's own protocol code limits answers."""

crash = ""
"""How the first run of this command crashed; empty in that run."""


def may_crash(arguments: Sequence[str]) -> bool:
    """True if ``arguments`` are a command that uses librdkafka with addresses of others."""
    command = next((argument for argument in arguments if not argument.startswith("-")), "")
    return command in COMMANDS and hasattr(os, "fork")


def guarded(arguments: Sequence[str]) -> list[str]:
    """The arguments to run, in a child process; this process exits with the child's exit code.

    After a crash the doctor runs once more without records. Its report is inconclusive unless a
    cell fails. Call this before any thread starts.
    """
    status = _status_of_child()
    if status is None:
        return list(arguments)
    if -status not in CRASHES:
        sys.exit(status if status >= 0 else 128 - status)
    _say(arguments, -status)
    if "doctor" not in arguments or WITHOUT_RECORDS in arguments:
        sys.exit(INCONCLUSIVE)
    global crash
    crash = _death_text(-status)
    again = [*arguments, WITHOUT_RECORDS]
    status = _status_of_child()
    if status is None:
        return again
    if -status in CRASHES:
        _say(again, -status)
    sys.exit((status or INCONCLUSIVE) if status >= 0 else INCONCLUSIVE)


def _status_of_child() -> int | None:
    """Forks. Returns the child's exit code, or the negative number of the signal that ended it.

    Returns None in the child.
    """
    alive, pipe = os.pipe()
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, STOPS)  # until signals are forwarded
    child = os.fork()
    if not child:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        os.close(pipe)
        threading.Thread(target=_end_with_parent, args=(alive,), daemon=True).start()
        return None
    os.close(alive)

    def forward(number: int, frame: FrameType | None) -> None:
        os.kill(child, number)

    forwarded_signals = (
        number for number in STOPS if signal.getsignal(number) is not signal.SIG_IGN
    )
    former_handlers = {number: signal.signal(number, forward) for number in forwarded_signals}
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    _, status = os.waitpid(child, 0)
    for number, handler in former_handlers.items():
        signal.signal(number, handler)
    os.close(pipe)
    return os.waitstatus_to_exitcode(status)


def _end_with_parent(alive: int) -> None:
    while os.read(alive, 1):
        pass
    end_alone()


def _say(arguments: Sequence[str], number: int) -> None:
    from earshot.errors import EarshotError
    from earshot.files.streams import to_stderr

    command = next(argument for argument in arguments if argument in COMMANDS)
    remedy = f"earshot doctor {WITHOUT_RECORDS} asks the same addresses without librdkafka"
    if WITHOUT_RECORDS in arguments:
        remedy = "see what answers at these addresses"
    error = EarshotError(f"earshot {command}", observed=_death_text(number), remedy=remedy)
    to_stderr(f"error: {error}")


def _death_text(number: int) -> str:
    name = signal.Signals(number).name
    return f"ended by {name}, as librdkafka ends after an answer that no Kafka gives"

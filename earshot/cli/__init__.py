"""The `earshot` command: exit codes, signals and messages; `commands` has the commands.

0 all well; 1 a rule or a cell failed; 2 usage or configuration; 3 inconclusive;
70 a bug in earshot; 129, 130 and 143 ended by SIGHUP, SIGINT and SIGTERM.
"""

from __future__ import annotations

import os
import signal
import sys
import traceback
from collections.abc import Sequence
from types import FrameType
from typing import NoReturn

from earshot.errors import EarshotError, machine_error
from earshot.extras import extra_of, installing
from earshot.files import streams, umask

USAGE = 2
OWN_FAULT = 70
"""EX_SOFTWARE of sysexits.h."""
INTERRUPTED = 128 + signal.SIGINT
DEBUG = "--debug"


def main() -> NoReturn:
    """The console script."""
    from earshot.cli import child_process

    streams.repair()
    arguments = sys.argv[1:]
    if child_process.may_crash(arguments):
        arguments = child_process.guarded(arguments)  # before any thread starts
    prepare()
    code = run(arguments)
    from earshot.cli import ending

    ending.leave(code)
    sys.exit(code)


def prepare() -> None:
    """Sets up the streams and the signal handlers of this process for a command."""
    streams.repair()
    streams.ignore_absurd_width()
    umask.restrict()
    # SIGTERM unwinds the stack like Ctrl-C, so that the clean-up runs
    signal.signal(signal.SIGTERM, _terminate)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # as under nohup
        signal.signal(signal.SIGHUP, _terminate)
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:  # as in the background of a script
        signal.signal(signal.SIGINT, _interrupt)
    from earshot.cli import ending

    ending.watch()


def run(arguments: Sequence[str]) -> int:
    """Runs one command line and returns its exit code."""
    debug = DEBUG in arguments or bool(os.environ.get("EARSHOT_DEBUG"))
    try:
        words = [argument for argument in arguments if argument != DEBUG]
        if words[:1] == ["lint"]:
            from earshot.cli.lint_options import main as lint

            return lint(words[1:])
        from earshot.cli.commands import app

        app(words, prog_name="earshot")
    except SystemExit as request:  # the command-line library exits this way, also after Ctrl-C
        code = request.code if isinstance(request.code, int) else int(request.code is not None)
        _announce(code)
        # the reader of a help text has closed the pipe: not a fault, but the library exits with 1
        return 0 if isinstance(request.__context__, BrokenPipeError) else code
    except KeyboardInterrupt:
        _announce(INTERRUPTED)
        return INTERRUPTED
    except EarshotError as error:
        if debug:
            traceback.print_exc()
        _say(f"error: {error}")
        return error.exit_code
    except Exception as fault:
        if debug:
            traceback.print_exc()
        return _report_fault(fault, debug)
    return 0


def _report_fault(fault: Exception, debug: bool) -> int:
    """Prints the error and returns the exit code."""
    if extra := extra_of(fault):
        _say(f"error: this command needs more packages; fix: {installing(extra)}")
        return USAGE
    if isinstance(fault, OSError):
        # the command-line library could not write a help text, or its own error
        if code := getattr(fault.__context__, "exit_code", 0):
            return int(code)
        if message := _unwritten():
            _say(message)
            return USAGE
    if error := machine_error(fault):
        _say(f"error: {error}")
        return error.exit_code
    kind = type(fault).__name__
    hint = "" if debug else f"; {DEBUG} shows where"
    _say(f"error: a fault of earshot's own, please report it: {kind}: {fault}{hint}")
    return OWN_FAULT


def _terminate(number: int, frame: FrameType | None) -> NoReturn:
    signal.signal(number, signal.SIG_IGN)  # the clean-up is not interrupted again
    raise SystemExit(128 + number)


def _interrupt(number: int, frame: FrameType | None) -> NoReturn:
    # a terminal signals the child and its parent, which forwards it
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    raise KeyboardInterrupt


def _announce(code: int) -> None:
    """Prints which signal ended the command, if ``code`` is that of a signal."""
    from earshot.cli import ending

    if word := ending.STOPPED.get(code - 128):
        ending.announce(word)


def _unwritten() -> str:
    """The message if stdout cannot be written, else an empty text."""
    from earshot.cli.output import emit

    try:
        emit("")
    except EarshotError as error:
        return f"error: {error}"
    return ""


def _say(message: str) -> None:
    from earshot.files.streams import to_stderr

    to_stderr(message)

"""Standard streams: replaces those that the parent process has closed, as with `>&-` in a shell,
makes them blocking, and ignores a closed stderr and widths that no terminal has.

Standard library only, as the toolchain uses it before anything is installed.
"""

import contextlib
import os
import sys
from typing import TextIO

from earshot.visible import visible

WIDTH_DIGITS = 4
"""The maximum number of digits of a terminal's width."""


def repair() -> None:
    """Opens /dev/null for each closed standard stream, in this process and for child processes.

    Otherwise the next opened file gets the number of that stream, and the output of child
    processes. Call this before any file is opened.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if (stream := getattr(sys, name)) is not None:
            _block(stream)
            continue
        descriptor = os.open(os.devnull, os.O_RDWR)  # gets the lowest free number
        os.set_inheritable(descriptor, descriptor == number)
        setattr(sys, name, os.fdopen(descriptor, "w" if number else "r", encoding="utf-8"))


def _block(stream: TextIO) -> None:
    """Makes ``stream`` blocking. A program that shares it, such as ssh or Node.js, may have changed
    that, and Python would then lose all output that does not fit into a pipe, without an error."""
    with contextlib.suppress(OSError):  # it is no file
        os.set_blocking(stream.fileno(), True)


def to_stderr(message: str) -> None:
    """Prints ``message`` on stderr. A closed stderr is ignored."""
    try:
        print(visible(message), file=sys.stderr, flush=True)
    except OSError:
        silence(sys.stderr)


def silence(stream: TextIO) -> None:
    """Redirects ``stream`` to /dev/null: Python flushes it at exit, and would report a failure."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def ignore_absurd_width() -> None:
    """Removes a `COLUMNS` that no terminal has: lines of a help text are as long as it says."""
    width = os.environ.get("COLUMNS", "")
    if width.isdecimal() and len(width) > WIDTH_DIGITS:
        del os.environ["COLUMNS"]

"""Standard streams that the parent process has closed, as `>&-` does in a shell.

Standard library only, as the toolchain uses it before anything is installed.
"""

import os
import sys


def open_closed() -> None:
    """Opens /dev/null as each standard stream that is closed, here and for child processes.

    Otherwise Python has no such stream, and the next file that is opened gets its number, and with
    it what a child prints. Call it before any file is opened.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is not None:
            continue
        descriptor = os.open(os.devnull, os.O_RDWR)  # the lowest number that is free
        os.set_inheritable(descriptor, descriptor == number)
        setattr(sys, name, os.fdopen(descriptor, "w" if number else "r", encoding="utf-8"))

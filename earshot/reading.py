"""Files that users name: a device may never end, and a pipe may never begin."""

from __future__ import annotations

import contextlib
import errno
import os
import select
import stat
from pathlib import Path
from typing import BinaryIO, Final

from earshot.errors import EarshotError, remedy_of

MOST: Final = 64 * 2**20
"""Bytes of a file; a report of a thousand brokers has a few million."""
WRITER_SECONDS: Final = 5.0
"""How long a named pipe is waited for that no process writes to."""


def read_bytes(file: Path) -> bytes:
    """What is in ``file``; raises OSError, also for more than `MOST` bytes.

    A named pipe raises OSError if no process opens it for writing within `WRITER_SECONDS`.
    """
    if stat.S_ISFIFO(file.stat().st_mode):
        return _from_pipe(file)
    with file.open("rb") as opened:
        return read_all(opened)


def _from_pipe(file: Path) -> bytes:
    """What a process writes into the named pipe ``file``."""
    descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK)
    with os.fdopen(descriptor, "rb") as opened:
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        first = b""
        if not poll.poll(WRITER_SECONDS * 1000):
            with contextlib.suppress(BlockingIOError):  # a writer, but nothing written yet
                first = os.read(descriptor, 1)
                if not first:
                    raise OSError(errno.EPIPE, "it is a pipe that no process writes to")
        os.set_blocking(descriptor, True)
        return first + read_all(opened)


def content_of(file: Path, shown: str, remedy: str = "") -> bytes:
    """What is in ``file``; raises EarshotError, with ``shown`` as its name, where that fails."""
    try:
        return read_bytes(file)
    except OSError as reason:
        observed = f"cannot be read ({reason.strerror})"
        remedy = remedy_of(reason) or remedy
        raise EarshotError(shown, observed=observed, remedy=remedy) from None


def read_all(opened: BinaryIO) -> bytes:
    """What is left in ``opened``; raises OSError as `read_bytes` does."""
    content = opened.read(MOST + 1)
    if len(content) > MOST:
        raise OSError(errno.EFBIG, f"it holds more than {MOST // 2**20} MiB")
    return content

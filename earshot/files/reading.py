"""Reads files of users with limits: a device may never end, and a pipe may never begin."""

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
"""The maximum size of a file; a report of a thousand brokers has a few million bytes."""
WRITER_SECONDS: Final = 5.0
"""Seconds to wait for a writer of a named pipe."""
OPENING: Final = os.O_NONBLOCK | os.O_NOCTTY
"""A terminal that becomes the process's own ends it with SIGHUP when it is closed."""


def read_bytes(file: Path) -> bytes:
    """The content of ``file``. Raises OSError, also for more than `MOST` bytes.

    A named pipe raises OSError if no process opens it for writing within `WRITER_SECONDS`.
    """
    with _opened(file) as opened:
        if stat.S_ISFIFO(os.fstat(opened.fileno()).st_mode):
            return _from_pipe(opened)
        if opened.isatty():  # read to Ctrl-D, like standard input
            os.set_blocking(opened.fileno(), True)
        return read_all(opened)


def open_regular(file: Path) -> BinaryIO:
    """``file``, opened for reading. Raises OSError, also if it is not a regular file."""
    opened = _opened(file)
    if stat.S_ISREG(os.fstat(opened.fileno()).st_mode):
        return opened
    opened.close()
    raise OSError(errno.EINVAL, "it is no regular file")


def _opened(file: Path) -> BinaryIO:
    """``file``, opened for reading; a pipe without a writer does not block.

    Callers check the kind of the opened file, as another user may replace the path before.
    """
    try:
        return open(file, "rb", opener=lambda path, flags: os.open(path, flags | OPENING))
    except ValueError:  # a null character, or half a surrogate pair
        raise OSError(errno.EINVAL, "no file has such a name") from None


def _from_pipe(opened: BinaryIO) -> bytes:
    """The content that a process writes to the named pipe ``opened``."""
    descriptor = opened.fileno()
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    first = b""
    if not poll.poll(WRITER_SECONDS * 1000):
        # a writer may have opened it, and written nothing yet
        with contextlib.suppress(BlockingIOError):
            first = os.read(descriptor, 1)
            if not first:
                raise OSError(errno.EPIPE, "it is a pipe that no process writes to")
    os.set_blocking(descriptor, True)
    return first + read_all(opened)


def content_of(file: Path, file_name: str, remedy: str = "") -> bytes:
    """The content of ``file``. Raises EarshotError, with ``file_name`` as the file's name."""
    try:
        return read_bytes(file)
    except OSError as reason:
        observed = f"cannot be read ({reason.strerror})"
        remedy = remedy_of(reason) or remedy
        raise EarshotError(file_name, observed=observed, remedy=remedy) from None


def read_all(opened: BinaryIO) -> bytes:
    """The remaining content of ``opened``. Raises OSError like `read_bytes`."""
    content: bytes | None = opened.read(MOST + 1)
    if content is None:  # of a device that does not block
        raise OSError(errno.EAGAIN, "it has no content yet")
    if len(content) > MOST:
        raise OSError(errno.EFBIG, f"it holds more than {MOST // 2**20} MiB")
    return content

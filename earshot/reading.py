"""Files that users name, read as far as any of them may go: a device may never end."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import BinaryIO, Final

from earshot.errors import EarshotError, remedy_of

MOST: Final = 64 * 2**20
"""Bytes of a file; a report of a thousand brokers has a few million."""


def read_bytes(file: Path) -> bytes:
    """What is in ``file``; raises OSError, also for more than `MOST` bytes."""
    with file.open("rb") as opened:
        return read_all(opened)


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

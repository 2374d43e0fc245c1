"""Files of this user: whom they belong to, and how to fix what keeps one from being written."""

from __future__ import annotations

import contextlib
import errno
import os
import pwd
from collections.abc import Iterator
from pathlib import Path

from earshot.errors import EarshotError

_FULL = (errno.ENOSPC, errno.EDQUOT)
_IN_THE_WAY = (errno.ENOTDIR, errno.EEXIST, errno.EISDIR)


@contextlib.contextmanager
def writing(what: str, path: Path) -> Iterator[None]:
    """A context in which an OSError becomes an EarshotError, about ``path`` if it names no file.

    ``what`` names the owner of the files, such as `node 1`.
    """
    try:
        yield
    except OSError as reason:
        failed = Path(reason.filename or path)
        raise EarshotError(
            f"{what}: {failed}",
            observed=f"cannot be written ({reason.strerror})",
            remedy=_remedy(reason.errno, failed),
        ) from None


def existing(path: Path) -> Path:
    """``path``, or the nearest folder above it that exists."""
    while not path.exists() and path != path.parent:
        path = path.parent
    return path


def user() -> str:
    """The user of this process."""
    return _named(os.geteuid())


def owner(path: Path) -> str:
    """The user to whom ``path`` belongs."""
    try:
        return _named(path.stat().st_uid)
    except OSError:
        return "unknown"


def _named(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"uid {uid}"


def _remedy(number: int | None, path: Path) -> str:
    if number in _FULL:
        return "free space on that disk, then run the same command again"
    if number in _IN_THE_WAY:
        return "move away the file that stands where a directory belongs"
    if number == errno.EROFS:
        return "mount that file system for writing, or use a checkout elsewhere"
    return f"run the command as {owner(existing(path))}, or give this user the right to write"

"""Files of this user: their owner, and the fix for a file that cannot be written."""

import contextlib
import errno
import os
import pwd
from collections.abc import Iterator
from pathlib import Path

from earshot.errors import EarshotError, remedy_of

_PATH_IS_TAKEN = (errno.ENOTDIR, errno.EEXIST, errno.EISDIR)


@contextlib.contextmanager
def writing(subject: str, path: Path) -> Iterator[None]:
    """Turns an OSError into an EarshotError about its file, or about ``path`` if it names none.

    ``subject`` is the object to which the files belong, e.g. `node 1`.
    """
    try:
        yield
    except OSError as reason:
        failed_path = Path(reason.filename or path)
        raise EarshotError(
            f"{subject}: {failed_path}",
            observed=f"cannot be written ({reason.strerror})",
            remedy=remedy(reason, failed_path),
        ) from None


def existing(path: Path) -> Path:
    """``path``, or the nearest folder above it that exists."""
    while not path.exists() and path != path.parent:
        path = path.parent
    return path


def user() -> str:
    """The user of this process."""
    return _user_name(os.geteuid())


def owner(path: Path) -> str:
    """The owner of ``path``."""
    try:
        return _user_name(path.stat().st_uid)
    except OSError:
        return "unknown"


def _user_name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"uid {uid}"


def remedy(reason: OSError, path: Path) -> str:
    """The fix if ``path`` cannot be written or removed for ``reason``."""
    if reason.errno in _PATH_IS_TAKEN:
        return "move this file away: its path is needed for a directory"
    return remedy_of(reason) or right_to_write(existing(path))


def right_to_write(path: Path) -> str:
    """The fix for a missing permission to write to the existing ``path``."""
    if os.geteuid() == 0:
        return (
            "find out what keeps root from writing: an immutable file (`lsattr -d`), a network "
            "file system that squashes root, or a sandbox around this process"
        )
    return f"run the command as {owner(path)}, or give this user the right to write"


def is_read_only(path: Path) -> bool:
    """True if ``path`` is on a file system that is mounted read-only."""
    try:
        return bool(os.statvfs(path).f_flag & os.ST_RDONLY)
    except OSError:
        return False

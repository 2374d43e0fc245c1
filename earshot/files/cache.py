"""The per-user cache: its folder, and functions that write files and folders atomically.

Standard library only: the toolchain uses it before anything is installed.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from earshot.errors import EarshotError
from earshot.files import umask

LOCK_MODE = 0o620
"""The permissions that a lock file may have: the group's, if the umask gives it any."""


def root() -> Path:
    """``$XDG_CACHE_HOME/earshot``, by default ``~/.cache/earshot``. It may not exist yet.

    Raises EarshotError if neither that variable nor a home is set, and for a folder that another
    user has created in a folder that all users can write.
    """
    base = os.environ.get("XDG_CACHE_HOME", "")
    # the XDG specification requires to ignore a relative path
    if base.startswith("/"):
        return _own(Path(base) / "earshot")
    observed = "has no place: HOME is not set, and this user has no home folder"
    with contextlib.suppress(RuntimeError):
        home = Path.home()
        if home.is_absolute():
            return _own(home / ".cache" / "earshot")
        observed = f"has no place: HOME is {str(home)!r}, which is not an absolute path"
    raise EarshotError(
        "the per-user cache",
        observed=observed,
        remedy="let HOME, or XDG_CACHE_HOME, name a folder that this user can write",
    )


def _own(folder: Path) -> Path:
    """``folder``, whose content is executed later. Raises EarshotError if another user has created
    it, or a folder above it, in a folder that all users can write. Links are followed."""
    target = Path(os.path.realpath(folder))
    for path in (folder, *folder.parents, target, *target.parents):
        with contextlib.suppress(OSError):
            owner, above = path.lstat().st_uid, path.parent.stat().st_mode
            if owner not in (os.geteuid(), 0) and above & umask.OTHERS_WRITE:
                raise EarshotError(
                    f"the per-user cache {folder}",
                    observed=f"{path} belongs to another user (uid {owner}), as every user can "
                    f"write {path.parent}",
                    allowed="folders of this user",
                    remedy="let HOME, or XDG_CACHE_HOME, name a folder that only this user can "
                    "write",
                )
    return folder


@contextlib.contextmanager
def exclusive(path: Path, waiting: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Locks the file ``path``; calls ``waiting`` once if another process has the lock.

    The kernel releases the lock with the process, so a killed process needs no clean-up.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    _own(path)  # another process may have created it
    with path.open("a") as file:
        # who may read the file may hold its lock, and so keep this user waiting
        with contextlib.suppress(PermissionError):  # of another user who shares it
            os.fchmod(file.fileno(), os.fstat(file.fileno()).st_mode & LOCK_MODE)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            waiting()
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def ensure(
    folder: Path, make: Callable[[Path], None], is_valid: Callable[[Path], bool] = Path.is_dir
) -> Path:
    """``folder``, filled by ``make`` if it is missing or not valid.

    ``make`` gets a new folder on the same file system, which is renamed to ``folder`` when it
    returns. Other processes wait for it. If it raises, the new folder is removed.
    """
    if is_valid(folder):
        return _own(folder)
    with exclusive(folder.with_name(folder.name + ".lock")):
        if is_valid(folder):
            return folder
        for leftover in folder.parent.glob(f".{folder.name}.*"):  # leftovers of a killed process
            shutil.rmtree(leftover, ignore_errors=True)
        fresh = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
        try:
            fresh.chmod(0o755)
            make(fresh)
            if folder.exists():
                shutil.rmtree(folder)
            fresh.rename(folder)
        except BaseException:
            shutil.rmtree(fresh, ignore_errors=True)
            raise
    return folder


def write(path: Path, content: str | bytes, mode: int = 0o644) -> None:
    """Writes a small file atomically: readers see the old or the new content, even after a power
    cut.

    The file never has more permissions than ``mode``. On OSError the old content stays.
    """
    text = content.encode() if isinstance(content, str) else content
    _replace(path, text, mode)


def rewrite(path: Path, change: Callable[[bytes], bytes | None]) -> None:
    """Replaces the content of ``path`` with the result of ``change``; None keeps the content.

    If another program writes the file at the same time, ``change`` is called again with the new
    content. Symbolic links are followed, and permissions are kept. Raises OSError.
    """
    path = path.resolve()
    while True:
        old = path.read_bytes()
        new, mode = change(old), stat.S_IMODE(path.stat().st_mode)
        if new is None or _replace(path, new, mode, old):
            return


def _replace(path: Path, content: bytes, mode: int, old_content: bytes | None = None) -> bool:
    """Replaces the content of ``path`` atomically, with ``old_content`` only if that is the content
    just before."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            os.fchmod(file.fileno(), mode)
            file.flush()
            os.fsync(file.fileno())  # otherwise a power cut may leave an empty file
        if old_content is not None and path.read_bytes() != old_content:
            Path(name).unlink()
            return False
        Path(name).replace(path)
    except BaseException as reason:
        Path(name).unlink(missing_ok=True)
        if isinstance(reason, OSError):
            reason.filename = str(path)  # the error of a full disk has no file name
        raise
    _keep_names(path.parent)
    return True


def _keep_names(folder: Path) -> None:
    """Makes a rename durable after a power cut, if the file system supports that."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):
            os.fsync(descriptor)
    finally:
        os.close(descriptor)

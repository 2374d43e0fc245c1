"""The per-user cache: where it is, and how an entry appears in it complete or not at all.

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

from earshot import umask
from earshot.errors import EarshotError

LOCK_MODE = 0o620
"""The permissions that a lock file may have: the group's, if the umask gives it any."""


def root() -> Path:
    """``$XDG_CACHE_HOME/earshot``, by default ``~/.cache/earshot``. It may not exist yet.

    Raises EarshotError where neither that variable nor a home is known, and for a folder of another
    user in a place where every user can make one.
    """
    base = os.environ.get("XDG_CACHE_HOME", "")
    # The XDG specification says to ignore a relative path.
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
    """``folder``, whose content is run later. Raises EarshotError where another user has made it,
    or a folder above it, in a folder that all users can write. Links are followed, too."""
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
    """Hold the lock file ``path``; ``waiting`` is called once if another process has it.

    The kernel frees it with the process, so a killed holder leaves nothing to clear.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    _own(path)  # it may have been made just now
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

    ``make`` gets a fresh directory on the same file system, which is renamed into place when it
    returns; another process that asks for the same entry waits. Whatever it raises passes through
    and leaves nothing behind.
    """
    if is_valid(folder):
        return _own(folder)
    with exclusive(folder.with_name(folder.name + ".lock")):
        if is_valid(folder):
            return folder
        for leftover in folder.parent.glob(f".{folder.name}.*"):  # of a killed process
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
    """Write a small file so that readers see the old content or the new one, after a power cut too.

    It never has more than the permissions ``mode``, not for a moment. Raises OSError, and then the
    old content stays.
    """
    text = content.encode() if isinstance(content, str) else content
    _replace(path, text, mode)


def rewrite(path: Path, change: Callable[[bytes], bytes | None]) -> None:
    """Replace the content of ``path`` by what ``change`` makes of it; None leaves the file alone.

    Where another program writes the file meanwhile, ``change`` is called again with what that has
    written. A symbolic link is followed, and the permissions stay. Raises OSError.
    """
    path = path.resolve()
    while True:
        old = path.read_bytes()
        new, mode = change(old), stat.S_IMODE(path.stat().st_mode)
        if new is None or _replace(path, new, mode, old):
            return


def _replace(path: Path, content: bytes, mode: int, old: bytes | None = None) -> bool:
    """Put ``content`` in the place of ``path``, if ``path`` has the content ``old`` at the last
    moment; None: whatever it has."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            os.fchmod(file.fileno(), mode)
            file.flush()
            os.fsync(file.fileno())  # or the new name may lead to an empty file
        if old is not None and path.read_bytes() != old:
            Path(name).unlink()
            return False
        Path(name).replace(path)
    except BaseException as reason:
        Path(name).unlink(missing_ok=True)
        if isinstance(reason, OSError):
            reason.filename = str(path)  # that of a full disk names no file
        raise
    _keep_names(path.parent)
    return True


def _keep_names(folder: Path) -> None:
    """Lets a renamed file outlive a power cut; some file systems know no such thing."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):
            os.fsync(descriptor)
    finally:
        os.close(descriptor)

"""Temporary folders. A killed process may leave passwords in one: the next removes it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from pathlib import Path
from typing import IO, Final, Self

LOCK: Final = "lock"


class TemporaryFolder:
    """A folder of this process, readable only by its user.

    Creating one removes this user's folders with the same ``prefix`` whose processes were killed.
    """

    def __init__(self, prefix: str) -> None:
        remove_abandoned(prefix)
        self.path = Path(tempfile.mkdtemp(prefix=prefix))
        self._lock = locked_file(self.path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()

    def remove(self) -> None:
        """Removes the folder with its files."""
        shutil.rmtree(self.path, ignore_errors=True)
        self._lock.close()


def locked_file(folder: Path) -> IO[bytes]:
    """A file in ``folder``, locked by this process until the process ends."""
    new_path = folder / f"{LOCK}.new"
    file = new_path.open("wb")
    fcntl.flock(file, fcntl.LOCK_EX)
    new_path.rename(folder / LOCK)  # after locking, so that the file is never seen unlocked
    return file


def remove_abandoned(prefix: str) -> None:
    """Removes this user's temporary folders with ``prefix`` whose processes were killed."""
    for folder in Path(tempfile.gettempdir()).glob(f"{prefix}*"):
        with contextlib.suppress(OSError):  # locked, or of an earlier release
            if folder.lstat().st_uid == os.geteuid() and not folder.is_symlink():
                with (folder / LOCK).open("rb") as file:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(folder, ignore_errors=True)

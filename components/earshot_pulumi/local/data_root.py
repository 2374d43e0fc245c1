"""The directory of the nodes' data: its removal, and whether this user can write there."""

import errno
import os
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

from earshot.errors import EarshotError, remedy_of
from earshot_pulumi.file_access import is_read_only, owner, remedy, right_to_write, user

_READ_ONLY = OSError(errno.EROFS, "read-only")


def remove(root: Path) -> None:
    """Removes all data under ``root``. Raises EarshotError if a file cannot be removed."""
    if root.is_symlink():
        raise EarshotError(
            f"data in {root}",
            observed=f"is a symbolic link to {root.readlink()}, and is not followed",
            remedy="remove the folder to which it points, then the link",
        )
    try:
        shutil.rmtree(root)
    except FileNotFoundError:
        if root.exists():  # a process that ends removed one of its files meanwhile
            remove(root)
    except OSError as reason:
        failed_path = Path(reason.filename or root)
        raise EarshotError(
            f"data in {root}: {failed_path}",
            observed=f"cannot be removed ({reason.strerror})",
            remedy=remedy(reason, failed_path.parent),
        ) from None


def obstacles(root: Path, directories: Iterable[Path]) -> Iterator[str]:
    """Why ``root`` or one of the nodes' ``directories`` cannot be written."""
    paths = [root, *(path for folder in directories for path in (folder, folder / "log"))]
    # several nodes often have the same obstacle
    yield from dict.fromkeys(problem for path in paths if (problem := _obstacle(path)))


def _obstacle(directory: Path) -> str:
    """Why ``directory`` cannot be written, by its nearest existing parent; empty if it can."""
    existing = directory
    while not os.path.lexists(existing):
        existing = existing.parent
    if not existing.is_dir():
        return f"{existing} is a file, and its path is needed for a directory. Move it away"
    if not os.access(existing, os.W_OK | os.X_OK):
        if is_read_only(existing):
            # not `is_mount`, which is false for a folder that is mounted on itself
            while existing != existing.parent and is_read_only(existing.parent):
                existing = existing.parent
            text, remedy = "is on a file system that is mounted read-only", remedy_of(_READ_ONLY)
        else:
            text = f"belongs to {owner(existing)}, and this user ({user()}) may not write there"
            remedy = right_to_write(existing)
        return f"{existing} {text}. {remedy[0].upper()}{remedy[1:]}"
    return ""

"""Files that this process and its children create: never writable by every user.

Some CI services start jobs with umask 0, with which any user of the machine could replace what a
node starts from. Standard library only, as the toolchain uses it before anything is installed.
"""

import os

OTHERS_WRITE = 0o002
NEITHER_GROUP_NOR_OTHERS_WRITE = 0o022


def restrict() -> None:
    """Takes write permission from group and others where the umask leaves it to others."""
    mask = os.umask(NEITHER_GROUP_NOR_OTHERS_WRITE)
    os.umask(mask if mask & OTHERS_WRITE else mask | NEITHER_GROUP_NOR_OTHERS_WRITE)


def allowed(mode: int) -> int:
    """The permissions ``mode`` without those that the user's umask takes from new files."""
    mask = os.umask(NEITHER_GROUP_NOR_OTHERS_WRITE)
    os.umask(mask)
    return mode & ~mask

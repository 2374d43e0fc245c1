"""Restricts the umask, so that only the user can write files of this process and its children.

Some CI services start jobs with umask 0, with which any user of the machine could replace files
that a node executes. Standard library only, as the toolchain uses it before anything is installed.
"""

import os

OTHERS_WRITE = 0o002
NEITHER_GROUP_NOR_OTHERS_WRITE = 0o022


def restrict() -> None:
    """Removes write permission of group and others, if the umask gives it to others."""
    mask = os.umask(NEITHER_GROUP_NOR_OTHERS_WRITE)
    os.umask(mask if mask & OTHERS_WRITE else mask | NEITHER_GROUP_NOR_OTHERS_WRITE)


def allowed(mode: int) -> int:
    """The permissions ``mode`` without those that the umask removes."""
    mask = os.umask(NEITHER_GROUP_NOR_OTHERS_WRITE)
    os.umask(mask)
    return mode & ~mask

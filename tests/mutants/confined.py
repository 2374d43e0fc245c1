"""Namespaces in which a mistake can do no harm: separate processes, and read-only files.

Code under test ends processes and removes directories; with a condition turned round it would end
others' and remove others'. So all runs in namespaces of its own: no other process is there to be
ended, and of the file system only one directory, in memory, can be written.
"""

import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

INSIDE = "EARSHOT_MUTANTS_DIRECTORY"
CACHES = {".hypothesis", ".mypy_cache", ".ruff_cache", ".pytest_cache"}
LEFT_OUT = {".git", ".venv", ".earshot", *CACHES}
KINDS = ("ext4", "xfs", "btrfs", "overlay", "tmpfs", "zfs", "f2fs", "ext3", "fuse.sshfs", "nfs4")


def confined(arguments: Sequence[str], map_folder: Path | None) -> int:
    """Run this command again inside; its exit code. 2 where the machine has no such namespaces.

    The directory ``map_folder`` can be written there, too.
    """
    if os.geteuid() != 0 or not shutil.which("unshare"):
        print("make mutants: takes root, and unshare (util-linux), to keep mistakes from harm")
        return 2
    with tempfile.TemporaryDirectory(prefix="mut-") as directory:
        inner = shlex.join([sys.executable, "-m", "tests.mutants", *arguments])
        bind = (
            f"mount --bind {shlex.quote(str(map_folder))} {shlex.quote(str(map_folder))}"
            if map_folder
            else ":"
        )
        script = f"""
        set -e
        mounts=$(findmnt -rno TARGET -t {",".join(KINDS)})
        {bind}
        for at in $mounts; do
            case "$at" in /dev*) ;; *) mount -o remount,bind,ro "$at" 2>/dev/null || true ;; esac
        done
        mount -t tmpfs -o size=2g tmpfs {shlex.quote(directory)}
        {inner}
        exit  # the shell stays: as process 1 it reaps orphans, which tests wait for
        """
        inside = {INSIDE: directory, "TMPDIR": directory, "HYPOTHESIS_STORAGE_DIRECTORY": directory}
        unshare = ["unshare", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child"]
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        with subprocess.Popen([*unshare, "sh", "-c", script], env={**os.environ, **inside}) as run:
            try:
                return run.wait()
            except KeyboardInterrupt:
                run.kill()  # it heeds nothing else, and takes all that is inside with it
                return 130


def copy(root: Path, to: Path) -> None:
    """Copies the checkout without its caches. `.venv` is shared."""
    shutil.copytree(root, to, ignore=shutil.ignore_patterns(*LEFT_OUT), symlinks=True)
    (to / ".venv").symlink_to((root / ".venv").resolve())

"""What a killed Pulumi leaves in a file backend on this machine, and the next command trips over.

A lock, whose holder is gone, and beside a state file its attributes cut short: gocloud's fileblob
replaces the state in one step, but writes `<file>.attrs` in place, and then cannot read the state
either (`EOF`). What they hold (content type, MD5) Pulumi does not use; without them it reads on.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import unquote

import psutil

from toolchain.paths import ROOT
from toolchain.progress import say

FILES = "file://"


def recover(environment: Mapping[str, str], stack: str) -> None:
    """Removes what hinders a command on ``stack``; a backend that is not of files is left alone."""
    backend = environment.get("PULUMI_BACKEND_URL", "")
    if not backend.startswith(FILES):
        return
    # as Pulumi reads it: `~` is the user's, `.` is where it runs, and options follow a `?`
    path = Path(unquote(backend.removeprefix(FILES).partition("?")[0])).expanduser()
    folder = ROOT / path / ".pulumi"
    _clear_dead_locks(folder, stack)
    _drop_cut_attributes(folder)


def _clear_dead_locks(folder: Path, stack: str) -> None:
    for path in folder.glob(f"locks/organization/*/{stack}/*.json"):
        if (pid := _gone(path)) is not None:
            say(f"Clearing the lock of pulumi process {pid}, which is gone ...")
            path.unlink()


def _drop_cut_attributes(folder: Path) -> None:
    """Of any stack, as Pulumi reads all of them to list one; not while somebody writes them."""
    for path in folder.glob("stacks/*/*.attrs"):
        project, stack = path.parent.name, path.name.partition(".json")[0]
        locks = folder.glob(f"locks/organization/{project}/{stack}/*.json")
        if any(_gone(lock) is None for lock in locks):
            continue
        try:
            json.loads(path.read_bytes())
        except FileNotFoundError:  # removed with its stack meanwhile
            continue
        except ValueError:
            say(f"Removing {path.name}, which a killed pulumi has cut short ...")
            path.unlink(missing_ok=True)


def _gone(lock: Path) -> int | None:
    """The pid of who made ``lock`` on this machine and runs no more; else None.

    None too where it cannot be read, as when it is released at this moment: Pulumi judges then.
    """
    try:
        holder = json.loads(lock.read_text())
        pid, here = int(holder["pid"]), holder["hostname"] == socket.gethostname()
    except (OSError, ValueError, KeyError, TypeError):
        return None
    if not here:
        return None
    try:
        return None if psutil.Process(pid).name() == "pulumi" else pid
    except psutil.Error:
        return pid

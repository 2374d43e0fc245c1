"""Removes what a killed Pulumi leaves, and what stops the next command.

That is plugins that go on working. In a file backend it is also a lock without a process, and a
truncated `<file>.attrs` beside a state file: gocloud's fileblob writes it in place, and with a
truncated one cannot read the state (`EOF`). Pulumi uses none of its values (content type, MD5), and
can read the state without it.
"""

import json
import socket
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import unquote

import psutil
from pulumi_python_host.orphans import end_orphans

from toolchain.paths import ROOT
from toolchain.progress import say

FILES = "file://"


def recover(environment: Mapping[str, str], stack: str) -> None:
    """End what is left running, and remove what stops a command on ``stack``.

    Other backends than files are left alone.
    """
    end_orphans(environment, say)
    backend = environment.get("PULUMI_BACKEND_URL", "")
    if not backend.startswith(FILES):
        return
    # as Pulumi reads it: `~` is the user's, `.` is where it runs, and options follow a `?`
    path = Path(unquote(backend.removeprefix(FILES).partition("?")[0])).expanduser()
    folder = ROOT / path / ".pulumi"
    for path in folder.glob(f"locks/organization/*/{stack}/*.json"):
        if (pid := _gone(path)) is not None:
            say(f"Clearing the lock of pulumi process {pid}, which is gone ...")
            path.unlink()
    _drop_cut_attributes(folder)


def _drop_cut_attributes(folder: Path) -> None:
    """Remove truncated attributes of all stacks, as Pulumi reads all; not while one is locked."""
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
    """The pid in ``lock`` if it was made on this machine and the process has ended; else None.

    None too where the lock cannot be read, as while it is released: Pulumi decides then.
    """
    try:
        holder = json.loads(lock.read_text())
        pid, on_this_machine = int(holder["pid"]), holder["hostname"] == socket.gethostname()
    except (OSError, ValueError, KeyError, TypeError):
        return None
    if not on_this_machine:
        return None
    try:
        return None if psutil.Process(pid).name() == "pulumi" else pid
    except psutil.Error:
        return pid

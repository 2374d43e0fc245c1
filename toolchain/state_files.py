"""Cleans up after a killed Pulumi, so that the next command can run.

Plugins of a killed Pulumi continue to work: they are ended. In a file backend, the lock of a
process that has ended is removed, and so is a truncated `<file>.attrs` next to a state file.
gocloud's fileblob writes that file in place, and fails with `EOF` if it is truncated. Pulumi uses
none of its values (content type, MD5), and reads the state without it.
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
    """End plugins of killed runs, and remove files that would stop a command on ``stack``.

    Files are removed only in a file backend.
    """
    end_orphans(environment, say)
    backend = environment.get("PULUMI_BACKEND_URL", "")
    if not backend.startswith(FILES):
        return
    # as Pulumi reads the URL: `~` is the home folder, `.` is relative to the project, and options
    # follow a `?`
    path = Path(unquote(backend.removeprefix(FILES).partition("?")[0])).expanduser()
    folder = ROOT / path / ".pulumi"
    for path in folder.glob(f"locks/organization/*/{stack}/*.json"):
        if (pid := _ended_process(path)) is not None:
            say(f"Removing the lock of pulumi process {pid}, which has ended ...")
            path.unlink()
    _remove_truncated_attributes(folder)


def _remove_truncated_attributes(folder: Path) -> None:
    """Remove truncated attributes of all stacks, because Pulumi reads all; not of locked stacks."""
    for path in folder.glob("stacks/*/*.attrs"):
        project, stack = path.parent.name, path.name.partition(".json")[0]
        locks = folder.glob(f"locks/organization/{project}/{stack}/*.json")
        if any(_ended_process(lock) is None for lock in locks):
            continue
        try:
            json.loads(path.read_bytes())
        except FileNotFoundError:  # removed with its stack meanwhile
            continue
        except ValueError:
            say(f"Removing {path.name}, which a killed pulumi has truncated ...")
            path.unlink(missing_ok=True)


def _ended_process(lock: Path) -> int | None:
    """The pid in ``lock`` if that process of this machine has ended; otherwise None.

    Also None if the lock cannot be read, as during its release: Pulumi decides then.
    """
    try:
        holder = json.loads(lock.read_text())
        pid, on_this_machine = int(holder["pid"]), holder["hostname"] == socket.gethostname()
    except (OSError, ValueError, KeyError, TypeError):
        return None
    if not on_this_machine:
        return None
    try:
        process = psutil.Process(pid)
        # in a container whose first process collects no children, an ended process stays a zombie
        runs = process.name() == "pulumi" and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return pid
    return None if runs else pid

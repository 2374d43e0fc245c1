"""Ends plugins whose CLI is gone.

A plugin is a child of the CLI, which ends it. A killed CLI ends nothing: an official plugin notices
within five minutes, and changes resources until then.
"""

import contextlib
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import psutil

GRACE_SECONDS = 2.0
CLI = "pulumi"


def end_orphans(environment: Mapping[str, str], report: Callable[[str], None]) -> None:
    """End the plugins in ``environment``'s PULUMI_HOME, and beside its CLI, that have no CLI.

    Those of other users are left alone.
    """
    orphans = list(_orphans(_folders(environment)))
    for process in orphans:
        report(f"Ending plugin process {process.pid}, whose pulumi is gone ...")
        with contextlib.suppress(psutil.Error):
            process.terminate()
    _, left = psutil.wait_procs(orphans, GRACE_SECONDS)
    for process in left:
        with contextlib.suppress(psutil.Error):
            process.kill()
    psutil.wait_procs(left, GRACE_SECONDS)


def _folders(environment: Mapping[str, str]) -> list[Path]:
    home = Path(environment.get("PULUMI_HOME") or Path.home() / ".pulumi")
    cli = shutil.which(CLI, path=environment.get("PATH"))
    folders = [home / "plugins", *([Path(cli).parent] if cli else [])]
    return [folder.resolve() for folder in folders]


def _orphans(folders: Sequence[Path]) -> Iterator[psutil.Process]:
    own = psutil.Process().uids().effective
    for process in psutil.process_iter():
        # a process that ends meanwhile is no orphan
        with contextlib.suppress(psutil.Error):
            # the first word is an interpreter where the plugin is a script
            is_plugin = any(_is_plugin(word, folders) for word in process.cmdline()[:2])
            if is_plugin and process.uids().effective == own and not _has_cli(process):
                yield process


def _is_plugin(word: str, folders: Sequence[Path]) -> bool:
    path = Path(word)
    if not path.is_absolute() or not path.name.startswith(f"{CLI}-"):
        return False
    return any(path.resolve().is_relative_to(folder) for folder in folders)


def _has_cli(process: psutil.Process) -> bool:
    return any(parent.name() == CLI for parent in process.parents())

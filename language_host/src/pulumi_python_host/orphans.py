"""Ends plugins whose CLI is gone.

A plugin is a child of the CLI, which ends it. A killed CLI ends nothing: an official plugin notices
within five minutes, and changes resources until then.
"""

import contextlib
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import psutil

GRACE_SECONDS = 2.0
CLI = "pulumi"


def end_orphans(environment: Mapping[str, str], report: Callable[[str], None]) -> None:
    """End the plugins in ``environment``'s PULUMI_HOME, and beside its CLI, that have no CLI.

    Those of other users are left alone.
    """
    orphans = list(_orphans(environment))
    for process in orphans:
        report(f"Ending plugin process {process.pid}, whose pulumi is gone ...")
        with contextlib.suppress(psutil.Error):
            process.terminate()
    _, remaining_processes = psutil.wait_procs(orphans, GRACE_SECONDS)
    for process in remaining_processes:
        with contextlib.suppress(psutil.Error):
            process.kill()
    psutil.wait_procs(remaining_processes, GRACE_SECONDS)


def _orphans(environment: Mapping[str, str]) -> Iterator[psutil.Process]:
    home = Path(environment.get("PULUMI_HOME") or Path.home() / ".pulumi")
    cli = shutil.which(CLI, path=environment.get("PATH"))
    own_uid = psutil.Process().uids().effective
    for process in psutil.process_iter():
        # a process that ends meanwhile is no orphan
        with contextlib.suppress(psutil.Error):
            words = process.cmdline()
            # a script comes after its interpreter; those beside the CLI are of this checkout, and
            # end by themselves
            is_plugin = any(_is_below(home / "plugins", word) for word in words[:2]) or (
                cli is not None and any(_is_below(Path(cli).parent, word) for word in words[:1])
            )
            if is_plugin and process.uids().effective == own_uid and not _has_cli(process):
                yield process


def _is_below(folder: Path, word: str) -> bool:
    """True if ``word`` is the path of a plugin below ``folder``."""
    path = Path(word)
    if not path.is_absolute() or not path.name.startswith(f"{CLI}-"):
        return False
    # the file itself may be a link to where a package manager keeps it
    return path.parent.resolve().is_relative_to(folder.resolve())


def _has_cli(process: psutil.Process) -> bool:
    return any(parent.name() == CLI for parent in process.parents())

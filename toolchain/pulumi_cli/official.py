"""An official Pulumi CLI on PATH."""

import os
import re
from pathlib import Path

from toolchain import progress
from toolchain.pulumi_cli import wrapper

# The first version with `pulumi policy analyze`, the newest feature that earshot uses.
MINIMUM = (3, 229, 0)
VERSION_SECONDS = 30


def find(path: str, minimum: tuple[int, ...] = MINIMUM) -> tuple[Path, str] | None:
    """Directory and version of the first usable official CLI on ``path`` (as in $PATH), or None.

    Those that are too old or lack the Python host are printed and skipped. Those that this
    toolchain has built are skipped too.
    """
    for entry in filter(None, path.split(os.pathsep)):
        command = Path(entry) / "pulumi"
        if not os.access(command, os.X_OK) or command.is_dir() or wrapper.is_ours(Path(entry)):
            continue
        version = _version(command)
        if version is None:
            continue
        if version < minimum:
            wanted = ".".join(map(str, minimum))
            progress.say(f"Pulumi CLI: {command} is older than {wanted} and is not used")
            continue
        # A package manager may link only the command into PATH.
        for directory in (Path(entry), command.resolve().parent):
            if os.access(directory / "pulumi-language-python", os.X_OK):
                return directory, ".".join(map(str, version))
        progress.say(f"Pulumi CLI: {command} has no pulumi-language-python and is not used")
    return None


def _version(command: Path) -> tuple[int, ...] | None:
    answer = progress.answer(
        [command, "version"], VERSION_SECONDS, {"PULUMI_SKIP_UPDATE_CHECK": "true"}
    )
    match = re.match(r"v(\d+)\.(\d+)\.(\d+)", answer)
    return tuple(map(int, match.groups())) if match else None

"""An official Pulumi CLI: on PATH, or downloaded by Pulumi's installer if its site answers."""

import os
import queue
import re
import threading
import urllib.error
import urllib.request
from pathlib import Path

from earshot.errors import EarshotError
from earshot.files import cache
from toolchain import progress
from toolchain.paths import LOGS
from toolchain.pulumi_cli import wrapper

# The first version with `pulumi policy analyze`, the newest feature that earshot uses.
MINIMUM = (3, 229, 0)
VERSION_SECONDS = 30
INSTALLER = "https://get.pulumi.com/install.sh"
ANSWER_SECONDS = 3.0
OPT_OUT = "EARSHOT_NO_DOWNLOAD"


def find(path: str, minimum: tuple[int, ...] = MINIMUM) -> tuple[Path, str] | None:
    """Directory and version of the first usable official CLI on ``path`` (as in $PATH), or None.

    CLIs that are too old or lack the Python host are printed and skipped. CLIs that this toolchain
    has built are skipped without a message.
    """
    for folder in map(Path, filter(None, path.split(os.pathsep))):
        command = folder / "pulumi"
        if not os.access(command, os.X_OK) or command.is_dir() or wrapper.is_ours(folder):
            continue
        version = _version(command)
        if version is None:
            continue
        if version < minimum:
            oldest = ".".join(map(str, minimum))
            progress.say(f"Pulumi CLI: {command} is older than {oldest} and is not used")
            continue
        # A package manager may link only the command into PATH.
        for directory in (folder, command.resolve().parent):
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


def download(version: str, installer: str = INSTALLER) -> Path | None:
    """The directory of the downloaded CLI, or None if the site does not answer in time.

    ``EARSHOT_NO_DOWNLOAD=1`` prevents any download. A failure of the installer is printed, and the
    result is None: the CLI can still be built.
    """
    folder = cache.root() / "pulumi" / f"{version}-official"
    if _is_complete(folder):
        return folder / "bin"
    if os.environ.get(OPT_OUT, "") not in ("", "0"):
        return None
    script = _fetch(installer)
    if script is None:
        return None

    def install(folder: Path) -> None:
        path = folder / "install.sh"
        path.write_bytes(script)
        with progress.step(f"Pulumi CLI {version}: downloading with Pulumi's installer"):
            progress.run(
                ["sh", path, "--no-edit-path", "--install-root", folder, "--version", version],
                log=LOGS / "pulumi-download.log",
                failure="Pulumi CLI",
                remedy=f"set {OPT_OUT}=1 to build it instead",
            )
        if not _is_complete(folder):
            raise EarshotError("Pulumi CLI", observed="the installer left no complete CLI")

    try:
        return cache.ensure(folder, install, _is_complete) / "bin"
    except EarshotError as error:
        progress.say(f"{error}\nPulumi CLI: building it instead")
        return None


def _is_complete(folder: Path) -> bool:
    executables = ("pulumi", "pulumi-language-python")
    return all(os.access(folder / "bin" / name, os.X_OK) for name in executables)


def _fetch(url: str) -> bytes | None:
    """The installer's text, or None. The thread also limits the lookup, which has no time-out."""
    answer: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()

    def ask() -> None:
        try:
            with urllib.request.urlopen(url, timeout=ANSWER_SECONDS) as response:
                answer.put(response.read())
        except (OSError, urllib.error.URLError, ValueError):
            answer.put(None)

    threading.Thread(target=ask, daemon=True).start()
    try:
        return answer.get(timeout=ANSWER_SECONDS)
    except queue.Empty:
        return None

"""Downloads the official CLI with Pulumi's own installer, where its site answers."""

import os
import queue
import threading
import urllib.error
import urllib.request
from pathlib import Path

from earshot import cache
from earshot.errors import EarshotError
from toolchain import progress
from toolchain.paths import LOGS

INSTALLER = "https://get.pulumi.com/install.sh"
ANSWER_SECONDS = 3.0
OPT_OUT = "EARSHOT_NO_DOWNLOAD"


def ensure(version: str, installer: str = INSTALLER) -> Path | None:
    """The directory of the downloaded CLI, or None where the site does not answer in time.

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

    def install(fresh: Path) -> None:
        path = fresh / "install.sh"
        path.write_bytes(script)
        with progress.step(f"Pulumi CLI {version}: downloading with Pulumi's installer"):
            progress.run(
                ["sh", path, "--no-edit-path", "--install-root", fresh, "--version", version],
                log=LOGS / "pulumi-download.log",
                failure="Pulumi CLI",
                remedy=f"set {OPT_OUT}=1 to build it instead",
            )
        if not _is_complete(fresh):
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
    """The installer's text, or None. The thread bounds the name lookup, as no time-out does."""
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

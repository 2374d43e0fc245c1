"""Putting the hosts where the Pulumi CLI of a test looks for them."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path

from toolchain.paths import BIN, ROOT

LANGUAGES = ("nodejs", "go")


def install_language_hosts(folder: Path) -> Path:
    """Write the executables into ``folder``, which belongs on PATH. The CLI must be a built one."""
    folder.mkdir(parents=True, exist_ok=True)
    for language in LANGUAGES:
        path = folder / f"pulumi-language-{language}"
        module = f"tests.doubles.language_hosts.{language}"
        words = [sys.executable, "-m", module, str(BIN / "pulumi-codegen")]
        path.write_text(
            f'#!/bin/sh\nPYTHONPATH={shlex.quote(os.fspath(ROOT))} exec {shlex.join(words)} "$@"\n'
        )
        path.chmod(0o755)
    return folder

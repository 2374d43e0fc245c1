"""Installs the hosts for the Pulumi CLI of a test."""

import os
import shlex
import sys
from pathlib import Path

from tests.skips import not_meant
from toolchain.paths import BIN, ROOT
from toolchain.pulumi_cli.wrapper import CODEGEN

LANGUAGES = ("nodejs", "go")


def install_language_hosts(folder: Path) -> Path:
    """Write the executables into ``folder``, which belongs on PATH."""
    if not (BIN / CODEGEN).exists():
        not_meant("an official CLI, whose own hosts generate SDKs")
    folder.mkdir(parents=True, exist_ok=True)
    for language in LANGUAGES:
        path = folder / f"pulumi-language-{language}"
        module = f"tests.doubles.language_hosts.{language}"
        words = [sys.executable, "-m", module, str(BIN / CODEGEN)]
        path.write_text(
            f'#!/bin/sh\nPYTHONPATH={shlex.quote(os.fspath(ROOT))} exec {shlex.join(words)} "$@"\n'
        )
        path.chmod(0o755)
    return folder

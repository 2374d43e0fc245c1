"""Puts a built CLI and its wrappers into one directory of the checkout.

The CLI resolves links to find itself, and warns in each command if the language host is not beside
it. So the cached CLI is hard-linked (or copied) next to this checkout's wrappers.
"""

import os
import shlex
import shutil
from pathlib import Path

from earshot import cache

LANGUAGE_HOST = "pulumi-language-python"
CODEGEN = "pulumi-codegen"
EXECUTABLES = ("pulumi", "pulumi-language-python-exec", CODEGEN)
MODULE = "pulumi_python_host"
UNTIL_READY = "trap '' INT  # an interrupt of a Python that is starting would print a stack trace"


def install(built: Path, directory: Path, *, python: Path) -> None:
    """Put the files of ``built`` and our wrappers into ``directory``; ``python`` runs the host."""
    directory.mkdir(parents=True, exist_ok=True)
    for name in EXECUTABLES:
        _link(built / name, directory / name)
    path, text = directory / LANGUAGE_HOST, _language_host(directory, python)
    if not path.exists() or path.read_text() != text:
        cache.write(path, text)
    path.chmod(0o755)


def is_ours(directory: Path) -> bool:
    """Whether ``directory`` has a wrapper made here, in this checkout or another one."""
    try:
        return MODULE in (directory / LANGUAGE_HOST).read_text(errors="replace")
    except OSError:
        return False


def _language_host(directory: Path, python: Path) -> str:
    # -P: the host starts in the user's project, and must not import modules from there.
    command = shlex.join([str(python), "-P", "-m", MODULE, "--bin", str(directory)])
    return f'#!/bin/sh\n{UNTIL_READY}\nexec {command} --engine-pid "$PPID" "$@"\n'


def _link(source: Path, target: Path) -> None:
    if target.exists() and target.samefile(source):
        return
    installed, built = target.stat() if target.exists() else None, source.stat()
    if installed and (installed.st_size, installed.st_mtime_ns) == (
        built.st_size,
        built.st_mtime_ns,
    ):
        return
    fresh = target.with_name(f".{target.name}.new")
    fresh.unlink(missing_ok=True)
    try:
        os.link(source, fresh)
    except OSError:  # on another file system
        shutil.copy2(source, fresh)
    fresh.replace(target)  # a running CLI keeps the file it was started from

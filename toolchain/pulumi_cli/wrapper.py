"""Puts a built CLI and its wrappers into one directory of the checkout.

The CLI resolves symbolic links to find its own folder. Every command warns if that folder has no
language host. So the cached CLI is hard-linked (or copied) next to this checkout's wrappers.
"""

import os
import shlex
import shutil
from pathlib import Path

from earshot.files import cache

LANGUAGE_HOST = "pulumi-language-python"
CODEGEN = "pulumi-codegen"
EXECUTABLES = ("pulumi", "pulumi-language-python-exec", CODEGEN)
MODULE = "pulumi_python_host"
UNTIL_READY = "trap '' INT  # a Python that is interrupted at its start prints a stack trace"


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
    """True if ``directory`` has a wrapper of this module, made by any checkout."""
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
    target_stat, source_stat = target.stat() if target.exists() else None, source.stat()
    if target_stat and (target_stat.st_size, target_stat.st_mtime_ns) == (
        source_stat.st_size,
        source_stat.st_mtime_ns,
    ):
        return
    new_file = target.with_name(f".{target.name}.new")
    new_file.unlink(missing_ok=True)
    try:
        os.link(source, new_file)
    except OSError:  # on another file system
        shutil.copy2(source, new_file)
    new_file.replace(target)  # a running CLI keeps the file from which it was started

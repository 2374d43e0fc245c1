"""A built CLI's place in the checkout: one directory with all four executables.

The CLI warns on each command when the language host is not the one beside it, and it finds itself
with links resolved. So the cached CLI is hard-linked (or copied) next to this checkout's wrapper.
"""

from __future__ import annotations

import os
import shlex
import shutil
from pathlib import Path

from earshot import cache

LANGUAGE_HOST = "pulumi-language-python"
EXECUTABLES = ("pulumi", "pulumi-language-python-exec", "pulumi-resource-pulumi-python")
MODULE = "toolchain.language_host"


def install(built: Path, directory: Path, *, python: Path) -> None:
    """Bring ``built`` and the wrapper, run by ``python``, together in ``directory``."""
    directory.mkdir(parents=True, exist_ok=True)
    for name in EXECUTABLES:
        _place(built / name, directory / name)
    path = directory / LANGUAGE_HOST
    text = _script(directory, python)
    if not path.exists() or path.read_text() != text:
        cache.write(path, text)
    path.chmod(0o755)


def is_ours(directory: Path) -> bool:
    """Whether ``directory`` has a wrapper made here, in this checkout or another one."""
    try:
        return MODULE in (directory / LANGUAGE_HOST).read_text(errors="replace")
    except OSError:
        return False


def _script(directory: Path, python: Path) -> str:
    # -P: the host starts in the user's project, whose modules must not come before its own.
    command = shlex.join([str(python), "-P", "-m", MODULE, "--bin", str(directory)])
    return f'#!/bin/sh\nexec {command} --engine-pid "$PPID" "$@"\n'


def _place(source: Path, target: Path) -> None:
    if target.exists() and target.samefile(source):
        return
    there, wanted = target.stat() if target.exists() else None, source.stat()
    if there and (there.st_size, there.st_mtime_ns) == (wanted.st_size, wanted.st_mtime_ns):
        return
    fresh = target.with_name(f".{target.name}.new")
    fresh.unlink(missing_ok=True)
    try:
        os.link(source, fresh)
    except OSError:  # another file system
        shutil.copy2(source, fresh)
    fresh.replace(target)  # a running CLI keeps the file it was started from

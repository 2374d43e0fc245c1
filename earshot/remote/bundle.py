"""The bundle that a validator on an instance runs: this library, its lock files, Spark's jars.

The same files as in the validator image, as one archive that is the same wherever it is made.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from earshot import cache
from earshot.remote.archive import archive
from earshot.remote.image import context

NOT_IN_IT: Final = ("Dockerfile",)


@dataclass(frozen=True)
class Bundle:
    """An archive on this machine."""

    file: Path
    sha256: str


def bundle(folder: Path) -> Bundle:
    """The bundle of what is installed here, in ``folder``, where older ones are removed.

    Raises EarshotError where Spark's jars cannot be had.
    """
    files = {path: it for path, it in context().items() if path not in NOT_IN_IT}
    content = archive(files)  # not compressed, for compressors differ
    sha256 = hashlib.sha256(content).hexdigest()
    file = folder / f"validator-{sha256[:12]}.tar"
    if not file.exists():
        cache.write(file, content)
    for older in folder.glob("validator-*.tar"):
        if older != file:
            older.unlink(missing_ok=True)
    return Bundle(file, sha256)

"""Files on their way into a container, as the archive that an engine takes."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Mapping


def folder_archive(
    name: str, files: Mapping[str, bytes], mode: int, owner: tuple[int, int]
) -> bytes:
    """The folder ``name`` with ``files``, each of ``mode``; its ``owner`` alone may enter it.

    ``owner`` holds the ids of a user and a group in the container.
    """
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        folder = tarfile.TarInfo(name)
        folder.type, folder.mode = tarfile.DIRTYPE, 0o700
        folder.uid, folder.gid = owner
        archive.addfile(folder)
        for file, content in files.items():
            member = tarfile.TarInfo(f"{name}/{file}")
            member.size, member.mode = len(content), mode
            member.uid, member.gid = owner
            archive.addfile(member, io.BytesIO(content))
    return buffer.getvalue()

"""Tar archives of files for a container or an instance."""

import io
import tarfile
from collections.abc import Iterable, Mapping


def folder_archive(
    name: str, files: Mapping[str, bytes], mode: int, owner: tuple[int, int]
) -> bytes:
    """A tar archive of the folder ``name`` with ``files``, which have the permissions ``mode``.

    Only ``owner``, the ids of a user and a group in the container, may enter the folder.
    """
    folder = tarfile.TarInfo(name)
    folder.type, folder.mode = tarfile.DIRTYPE, 0o700
    folder.uid, folder.gid = owner
    return archive(
        {f"{name}/{file}": content for file, content in files.items()}, mode, owner, (folder,)
    )


def archive(
    files: Mapping[str, bytes],
    mode: int = 0o644,
    owner: tuple[int, int] = (0, 0),
    folders: Iterable[tarfile.TarInfo] = (),
) -> bytes:
    """``files`` by path as an uncompressed tar archive, which is the same on every machine."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for folder in folders:
            tar.addfile(folder)
        for path, content in sorted(files.items()):
            member = tarfile.TarInfo(path)
            member.size, member.mode = len(content), mode
            member.uid, member.gid = owner
            tar.addfile(member, io.BytesIO(content))
    return buffer.getvalue()

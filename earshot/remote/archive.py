"""Files on their way into a container or to an instance, as an archive."""

import io
import tarfile
from collections.abc import Iterable, Mapping


def folder_archive(
    name: str, files: Mapping[str, bytes], mode: int, owner: tuple[int, int]
) -> bytes:
    """The folder ``name`` with ``files``, each of ``mode``; its ``owner`` alone may enter it.

    ``owner`` holds the ids of a user and a group in the container.
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
    """``files`` by path as a tar archive, the same wherever it is made; not compressed."""
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

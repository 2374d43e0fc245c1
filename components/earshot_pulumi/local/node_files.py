"""Files that a node's settings name, kept by the node itself for as long as it runs with them.

    node-1/files/3f2a91c07be4-node-1.pem  what `ssl.keystore.location` named when the node started

The name begins with a digest of the content. So a certificate or a password file that changes while
the node runs never takes away what the node needs to start again as it was. `server.properties`
names the copies, and notes what was written in their places.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
from collections.abc import Callable
from pathlib import Path
from typing import Final

from earshot import cache
from earshot.listeners.properties import NodeSettings, read_properties, write_properties
from earshot_pulumi.local.record import PROPERTIES
from earshot_pulumi.writing import writing

FOLDER: Final = "files"
_WRITTEN: Final = "written."
"""Before a property's name in the note with its value as it was written."""
_LOCATION, _LOGIN = ".location", "sasl.jaas.config"
_QUOTED: Final = re.compile(r'"(/[^"\n]+)"')
_MOST: Final = 1 << 20
"""Bytes of a file that is copied; key stores have a few thousand."""


def with_own_files(directory: Path, properties: str) -> str:
    """``properties``, with copies in ``directory`` in the place of the files that they name.

    The path of an unreadable file is kept, and Kafka reports the reason. Raises EarshotError if a
    copy cannot be written.
    """
    settings = read_properties(properties)
    values, notes = dict(settings.values), dict(settings.notes)

    def own(path: str) -> str:
        return _copied(directory, path)

    for key, value in settings.values.items():
        if (new := _replaced(key, value, own)) != value:
            values[key], notes[_WRITTEN + key] = new, value
    return (
        write_properties(NodeSettings(values, notes)) if values != settings.values else properties
    )


def as_written(properties: str) -> str:
    """The text that `with_own_files` has made ``properties`` from."""
    settings = read_properties(properties)
    values, notes = dict(settings.values), dict[str, str]()
    for key, value in settings.notes.items():
        (values if key.startswith(_WRITTEN) else notes)[key.removeprefix(_WRITTEN)] = value
    return write_properties(NodeSettings(values, notes)) if notes != settings.notes else properties


def keep(directory: Path) -> None:
    """Let the node in ``directory`` have copies of what its `server.properties` names now.

    A node that an earlier release has started has none. Raises EarshotError.
    """
    path = directory / PROPERTIES
    try:
        text = path.read_text(encoding="latin-1")
    except OSError:
        return
    if (new := with_own_files(directory, text)) != text:
        with writing(directory.name.replace("-", " "), directory):
            cache.write(path, new, mode=0o600)


def prune(directory: Path) -> None:
    """Remove the copies that `server.properties` in ``directory`` does not name."""
    with contextlib.suppress(OSError):
        named = (directory / PROPERTIES).read_text(encoding="latin-1")
        for path in (directory / FOLDER).iterdir():
            if path.name not in named:
                path.unlink()


def _replaced(key: str, value: str, own: Callable[[str], str]) -> str:
    """``value`` of the property ``key`` with another path in the place of each that it names."""
    if key.endswith(_LOCATION):
        return own(value)
    if key.endswith(_LOGIN):
        return _QUOTED.sub(lambda found: f'"{own(found[1])}"', value)
    return value


def _copied(directory: Path, name: str) -> str:
    """The path of a copy of the file ``name``; ``name`` itself where there is no such file."""
    path, folder = directory / name, directory / FOLDER
    if not name.strip() or path.parent == folder:
        return name
    try:
        if not path.is_file() or path.stat().st_size > _MOST:
            return name
        content = path.read_bytes()
    except (OSError, ValueError):
        return name
    copy = folder / f"{hashlib.sha256(content).hexdigest()[:12]}-{path.name}"
    with writing(directory.name.replace("-", " "), directory):
        if not copy.exists():
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            cache.write(copy, content, mode=0o600)
    return str(copy)

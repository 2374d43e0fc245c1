"""Copies of the files in a node's settings, kept while the node runs with them.

    node-1/files/3f2a91c07be4-node-1.pem  a copy of the file in `ssl.keystore.location`

The name begins with a digest of the content. So a node can start again with its former settings
after a certificate or a password file has changed. `server.properties` names the copies, and has
the original paths in its notes. Files that values name through Kafka's config providers
(`${file:/path:key}`, `${directory:/folder:file}`) are copied too.
"""

import contextlib
import hashlib
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

from earshot.files import cache
from earshot.listeners.properties import NodeSettings, read_properties, write_properties
from earshot_pulumi.file_access import writing
from earshot_pulumi.local.process_record import PROPERTIES

FOLDER: Final = "files"
_WRITTEN: Final = "written."
"""Prefix of the note with a property's original value."""
_LOCATION, _LOGIN = ".location", "sasl.jaas.config"
_QUOTED: Final = re.compile(r'"(/[^"\n]+)"')
_PROVIDERS: Final = "config.providers"
_OF_FILES: Final = "org.apache.kafka.common.config.provider.FileConfigProvider"
_OF_FOLDERS: Final = "org.apache.kafka.common.config.provider.DirectoryConfigProvider"
_MAX_BYTES: Final = 1 << 20
"""Maximum size in bytes of a file that is copied; key stores have a few thousand."""


def with_own_files(directory: Path, properties: str) -> str:
    """``properties`` with the paths of files replaced by those of copies in ``directory``.

    The path of an unreadable file stays, and Kafka reports the reason. Raises EarshotError if a
    copy cannot be written.
    """
    settings = read_properties(properties)
    values, notes = dict(settings.values), dict(settings.notes)

    def copy_of(path: str) -> str:
        return _copied(directory, path)

    def replace(key: str, replaced: str) -> None:
        if replaced != settings.values[key]:
            values[key], notes[_WRITTEN + key] = replaced, settings.values[key]

    for key, value in settings.values.items():
        replace(key, _replaced(key, value, copy_of))
    for name, of_files in _providers(settings.values):
        is_used = False
        for key, value in [*values.items()]:
            if (replaced := _with_references(name, of_files, value, copy_of)) != value:
                is_used = True
                replace(key, replaced)
        allowed = f"{_PROVIDERS}.{name}.param.allowed.paths"
        if is_used and settings.values.get(allowed, "").strip():
            replace(allowed, f"{settings.values[allowed]},{directory / FOLDER}")
    return (
        write_properties(NodeSettings(values, notes)) if values != settings.values else properties
    )


def as_written(properties: str) -> str:
    """The inverse of `with_own_files`: ``properties`` with the original paths."""
    settings = read_properties(properties)
    values, notes = dict(settings.values), dict[str, str]()
    for key, value in settings.notes.items():
        (values if key.startswith(_WRITTEN) else notes)[key.removeprefix(_WRITTEN)] = value
    return write_properties(NodeSettings(values, notes)) if notes != settings.notes else properties


def keep(directory: Path) -> None:
    """Copy the files in `server.properties` of ``directory``, unless it already names copies.

    Earlier releases started nodes without copies. Raises EarshotError.
    """
    path = directory / PROPERTIES
    try:
        text = path.read_text(encoding="latin-1")
    except OSError:
        return
    if (new_text := with_own_files(directory, text)) != text:
        with writing(directory.name.replace("-", " "), directory):
            cache.write(path, new_text, mode=0o600)


def prune(directory: Path) -> None:
    """Remove the copies that are not in `server.properties` of ``directory``."""
    with contextlib.suppress(OSError):
        settings = (directory / PROPERTIES).read_text(encoding="latin-1")
        for path in (directory / FOLDER).iterdir():
            if path.name not in settings:
                path.unlink()


def _replaced(key: str, value: str, copy_of: Callable[[str], str]) -> str:
    """``value`` of the property ``key``, with ``copy_of`` applied to each path in it."""
    if key.endswith(_LOCATION):
        return copy_of(value)
    if key.endswith(_LOGIN):
        return _QUOTED.sub(lambda path: f'"{copy_of(path[1])}"', value)
    return value


def _providers(values: Mapping[str, str]) -> Iterator[tuple[str, bool]]:
    """The config providers whose values are in files: the name of each, and whether it reads
    properties files, rather than a folder with a file per value."""
    for name in map(str.strip, values.get(_PROVIDERS, "").split(",")):
        kind = values.get(f"{_PROVIDERS}.{name}.class", "").strip()
        if name and kind in (_OF_FILES, _OF_FOLDERS):
            yield name, kind == _OF_FILES


def _with_references(name: str, of_files: bool, value: str, copy_of: Callable[[str], str]) -> str:
    """``value`` with ``copy_of`` applied to the path of each file that it refers to by the config
    provider ``name``, which reads properties files if ``of_files``."""

    def reference_to_copy(match: re.Match[str]) -> str:
        path, key = match.groups()
        if of_files:
            return f"${{{name}:{copy_of(path)}:{key}}}"
        original = f"{path}/{key}"
        copy = copy_of(original)
        if copy == original:
            return match[0]
        folder, _, file = copy.rpartition("/")
        return f"${{{name}:{folder}:{file}}}"

    # as Kafka's ConfigTransformer reads references
    return re.sub(rf"\$\{{{re.escape(name)}:([^:}}]+):([^}}]+)\}}", reference_to_copy, value)


def _copied(directory: Path, name: str) -> str:
    """Copies the file ``name`` and returns the copy's path; ``name`` if it cannot be copied."""
    path, folder = directory / name, directory / FOLDER
    if not name.strip() or path.parent == folder:
        return name
    try:
        if not path.is_file() or path.stat().st_size > _MAX_BYTES:
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

"""Chooses the files to check: those that the user names, and in folders those that mention Kafka.

A Compose file and its override files are checked together. Sources:
https://docs.docker.com/compose/how-tos/multiple-compose-files/merge/, compose-go for the names and
their order, and for `COMPOSE_FILE` in a `.env`:
https://docs.docker.com/compose/how-tos/environment-variables/envvars/#compose_file.
"""

import contextlib
import os
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from earshot.errors import EarshotError
from earshot.files.reading import open_regular
from earshot.lint.forms import Form, by_name, is_looked_for
from earshot.lint.model import FileReport
from earshot.sources.drop_ins import is_drop_in, units_of
from earshot.sources.files import text_of, variables_for
from earshot.sources.values import as_map, text_in
from earshot.yaml_reading.document import read_yaml_texts
from earshot.yaml_reading.tags import untagged

MAX_BYTES = 2_000_000
"""Larger files in a folder are skipped as data. A file that the user names is always checked."""
MAX_SIBLINGS = 100
"""How many files next to a Compose file are read for ports of its services."""
SEARCHED_BYTES = 1_000_000
MAX_NAMES = 200_000
"""The maximum number of files and folders below a folder that the user names."""
_KAFKA_WORD = re.compile(rb"kafka|listeners", re.IGNORECASE)
_VARIABLES_REASON = (
    "contains variables: checked with the Compose file that names it, or if named itself"
)
_PACKAGES = "node_modules"
_READ_THOUGH_HIDDEN = (".github", ".devcontainer")
BASES = ("compose.yaml", "compose.yml", "docker-compose.yml", "docker-compose.yaml")
"""The files that `docker compose` reads by default: the first that exists."""
OVERRIDES = (
    "compose.override.yml",
    "compose.override.yaml",
    "docker-compose.override.yml",
    "docker-compose.override.yaml",
)
"""The override files that `docker compose` merges into it: the first that exists."""


@dataclass(frozen=True)
class ChosenFiles:
    """The files to check; those of them that the user ``named``; and the others, with reasons."""

    files: tuple[Path, ...]
    passed_over: tuple[FileReport, ...]
    named: frozenset[Path] = frozenset()


def choose(paths: Sequence[Path]) -> ChosenFiles:
    """The files in ``paths``, each once; files in a folder are sorted by name.

    An override file of `docker compose` is replaced by its base file, and a drop-in of Podman units
    by its units.

    Raises EarshotError for a path that does not exist or cannot be read, and for a folder with more
    than `MAX_NAMES` entries.
    """
    chosen: dict[str, tuple[Path, str]] = {}
    given_keys: set[str] = set()
    for path in paths:
        is_folder = _is_folder(path)
        for file, reason in _files_below(path) if is_folder else ((path, ""),):
            key = os.path.normpath(file.absolute())
            if not is_folder:
                given_keys.add(key)
            # a file that the user names is checked, even if its folder would skip it
            if key not in chosen or (chosen[key][1] and not reason):
                chosen[key] = file, reason
    for key, (file, reason) in list(chosen.items()):
        bases, tool = _merged_into(file)
        if bases:
            for base in bases if not reason else ():
                base_key = os.path.normpath(base.absolute())
                chosen[base_key] = base, ""
                given_keys |= {base_key} if key in given_keys else set()
            names = ", ".join(base.name for base in bases)
            pronoun = "it" if len(bases) == 1 else "them"
            overlay_reason = f"is merged into {names} by {tool}, and checked with {pronoun}"
            chosen[key] = file, overlay_reason
    return ChosenFiles(
        tuple(file for file, reason in chosen.values() if not reason),
        tuple(
            FileReport(str(file), "", unchecked=(reason,))
            for file, reason in chosen.values()
            if reason
        ),
        frozenset(
            file for key, (file, reason) in chosen.items() if key in given_keys and not reason
        ),
    )


def _merged_into(file: Path) -> tuple[tuple[Path, ...], str]:
    """The files into which ``file`` is merged by default, and the tool that does it."""
    if is_drop_in(file):
        return units_of(file), "Podman"
    base = base_of(file)
    return (() if base is None else (base,)), "`docker compose`"


def _is_folder(path: Path) -> bool:
    try:
        if path.exists():
            return path.is_dir()
    except OSError as reason:
        raise _unreadable(path, reason) from None
    raise EarshotError(f"path {path}", observed="does not exist", allowed="a file or a folder")


def _files_below(root: Path) -> Iterator[tuple[Path, str]]:
    """The files below ``root`` with the reason to pass them over (empty to check them), and the
    folders that are passed over."""
    stack, count = _names(root), 0
    while stack:
        count += 1
        if count > MAX_NAMES:
            raise EarshotError(
                f"folder {root}",
                observed=f"contains more than {MAX_NAMES:,} files and folders",
                remedy="name the files, or the folders that contain them",
            )
        path = stack.pop()
        try:
            if not path.is_dir():
                if is_looked_for(path.name):
                    yield path, _skip_reason(path)
            elif reason := _folder_skip_reason(path):
                yield path, reason
            else:
                stack += _names(path)
        except EarshotError as error:
            yield path, error.observed
        except OSError as reason:
            yield path, _unreadable(path, reason).observed


def _names(folder: Path) -> list[Path]:
    """The entries of ``folder`` in reverse order."""
    try:
        return sorted(folder.iterdir(), reverse=True)
    except OSError as reason:
        raise _unreadable(folder, reason) from None


def _folder_skip_reason(path: Path) -> str:
    if path.is_symlink():
        return "is a symbolic link to a folder"
    if path.name.startswith(".") and path.name not in _READ_THOUGH_HIDDEN:
        return "is a hidden folder"
    return "contains packages of others" if path.name == _PACKAGES else ""


def _skip_reason(path: Path) -> str:
    if not path.is_file():  # a pipe may never end; a link may be broken
        return "is not a regular file"
    if path.stat().st_size > MAX_BYTES:
        return f"is larger than {MAX_BYTES // 1_000_000} MB"
    if by_name(path.name) is Form.DEVELOPMENT_CONTAINER:
        return ""  # it need not mention Kafka: its Compose files do
    with open_regular(path) as file:
        if _KAFKA_WORD.search(file.read(SEARCHED_BYTES)):
            return _VARIABLES_REASON if by_name(path.name) is Form.VARIABLES else ""
    return f'has neither "kafka" nor "listeners" in its first {SEARCHED_BYTES // 1_000_000} MB'


def _unreadable(path: Path, reason: OSError) -> EarshotError:
    return EarshotError(f"path {path}", observed=f"cannot be read ({reason.strerror})")


def overlays_of(file: Path) -> tuple[Path, ...]:
    """The files that `docker compose` merges into ``file`` by default; none if it does not read
    ``file`` by default."""
    compose_set = _compose_set(file)
    return compose_set[1:] if compose_set[:1] == (file,) else ()


def published_by_siblings(file: Path, services: Collection[str]) -> Iterator[str]:
    """Those of ``services`` that another Compose file in the folder of ``file`` publishes ports of.

    `docker compose -f` or `extends` may merge the two, such as a base and a file per environment.
    """
    if not services:
        return  # a folder may have thousands of files
    siblings = (path for path in sorted(file.parent.glob("*.y*ml")) if path.name != file.name)
    for sibling in islice(siblings, MAX_SIBLINGS):
        with contextlib.suppress(EarshotError):
            text = text_of(sibling)
            if not any(name in text for name in services):
                continue
            document = untagged(read_yaml_texts(text, str(sibling), unique=False, lenient=True))
            for name, value in as_map(as_map(document).get("services")).items():
                section = as_map(value)
                base = text_in(as_map(section.get("extends")), "service") or name
                is_whole = {"image", "build"} & section.keys() and "environment" in section
                if base in services and not is_whole and {"ports", "network_mode"} & section.keys():
                    yield base


def base_of(file: Path) -> Path | None:
    """The file into which `docker compose` merges ``file`` by default, or None."""
    compose_set = _compose_set(file)
    return compose_set[0] if file in compose_set[1:] else None


def _compose_set(file: Path) -> tuple[Path, ...]:
    """The files that `docker compose` reads by default in the folder of ``file``, base first."""
    if file.suffix not in (".yml", ".yaml"):
        return ()
    if named_files := _compose_file_variable(file):
        return named_files
    base = _first_existing(file, BASES)
    files = (base, _first_existing(file, OVERRIDES)) if base is not None else ()
    return tuple(file for file in files if file is not None)


def _compose_file_variable(file: Path) -> tuple[Path, ...]:
    """The files in `COMPOSE_FILE` of the `.env` next to ``file``; none if one is missing, or if the
    first is in another folder."""
    try:
        variables = variables_for(file, {})
    except EarshotError:
        return ()  # the check of the file reports it
    value = variables.get("COMPOSE_FILE", "")
    names = value.split(variables.get("COMPOSE_PATH_SEPARATOR") or ":")
    files = tuple(file.parent / name.strip() for name in names if name.strip())
    is_there = files and all(file.is_file() for file in files)
    return files if is_there and files[0].parent == file.parent else ()


def _first_existing(sibling: Path, names: Iterable[str]) -> Path | None:
    paths = (sibling.with_name(name) for name in names)
    return next((path for path in paths if path.is_file()), None)

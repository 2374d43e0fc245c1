"""Which files are looked at: those that are named, and in folders those that may hold Kafka.

Compose files belong together without being named: a base, and what is laid over it. Source:
https://docs.docker.com/compose/how-tos/multiple-compose-files/merge/, the names that compose-go
looks for, in its order, and `COMPOSE_FILE` of a `.env`:
https://docs.docker.com/compose/how-tos/environment-variables/envvars/#compose_file.
"""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from earshot.errors import EarshotError
from earshot.lint.forms import Form, by_name, is_looked_for
from earshot.lint.model import FileReport
from earshot.reading import open_regular
from earshot.sources.files import variables_for

MAX_BYTES = 2_000_000
"""Larger files of a folder are data; one that is named is checked all the same."""
SEARCHED_BYTES = 1_000_000
MAX_NAMES = 200_000
"""Files and folders in one folder that is named, all levels together."""
_WORD = re.compile(rb"kafka|listeners", re.IGNORECASE)
_OF_COMPOSE = "holds variables: checked with the Compose file that names it, or where it is named"
_PACKAGES = "node_modules"
_READ_THOUGH_HIDDEN = (".github", ".devcontainer")
BASES = ("compose.yaml", "compose.yml", "docker-compose.yml", "docker-compose.yaml")
"""What `docker compose` takes where no file is named: the first that is there."""
OVERRIDES = (
    "compose.override.yml",
    "compose.override.yaml",
    "docker-compose.override.yml",
    "docker-compose.override.yaml",
)
"""What it lays over that: the first of these."""


@dataclass(frozen=True)
class ChosenFiles:
    """The files to check, those of them that are ``named``, and the others, each with why."""

    files: tuple[Path, ...]
    passed_over: tuple[FileReport, ...]
    named: frozenset[Path] = frozenset()


def choose(paths: Sequence[Path]) -> ChosenFiles:
    """The files that ``paths`` name or hold, each once, those of a folder in the order of names.

    In place of a file that `docker compose` lays over another there is that other one.

    Raises EarshotError for a path that does not exist or cannot be read, and for a folder that
    holds more than `MAX_NAMES`.
    """
    chosen: dict[str, tuple[Path, str]] = {}
    given_keys: set[str] = set()
    for path in paths:
        is_folder = _is_folder(path)
        for file, why in _below(path) if is_folder else ((path, ""),):
            key = os.path.normpath(file.absolute())
            if not is_folder:
                given_keys.add(key)
            if key not in chosen or (chosen[key][1] and not why):  # it is named, so it is checked
                chosen[key] = file, why
    for key, (file, why) in list(chosen.items()):
        base = base_of(file)
        if base is not None:
            if not why:
                below = os.path.normpath(base.absolute())
                chosen[below] = base, ""
                given_keys |= {below} if key in given_keys else set()
            how = f"is laid over {base.name} as `docker compose` does, and checked with it"
            chosen[key] = file, how
    return ChosenFiles(
        tuple(file for file, why in chosen.values() if not why),
        tuple(FileReport(str(file), "", unchecked=(why,)) for file, why in chosen.values() if why),
        frozenset(file for key, (file, why) in chosen.items() if key in given_keys and not why),
    )


def _is_folder(path: Path) -> bool:
    try:
        if path.exists():
            return path.is_dir()
    except OSError as reason:
        raise _unreadable(path, reason) from None
    raise EarshotError(f"path {path}", observed="does not exist", allowed="a file or a folder")


def _below(root: Path) -> Iterator[tuple[Path, str]]:
    """Files below ``root``, and why they are passed over; folders that are passed over as well."""
    ahead, count = _names(root), 0
    while ahead:
        count += 1
        if count > MAX_NAMES:
            raise EarshotError(
                f"folder {root}",
                observed=f"holds more than {MAX_NAMES:,} files and folders",
                remedy="name the files, or the folders in it that hold them",
            )
        path = ahead.pop()
        try:
            if not path.is_dir():
                if is_looked_for(path.name):
                    yield path, _against(path)
            elif why := _against_folder(path):
                yield path, why
            else:
                ahead += _names(path)
        except EarshotError as error:
            yield path, error.observed
        except OSError as reason:
            yield path, _unreadable(path, reason).observed


def _names(folder: Path) -> list[Path]:
    """What is in ``folder``, the last name first."""
    try:
        return sorted(folder.iterdir(), reverse=True)
    except OSError as reason:
        raise _unreadable(folder, reason) from None


def _against_folder(path: Path) -> str:
    if path.is_symlink():
        return "is a symbolic link to a folder"
    if path.name.startswith(".") and path.name not in _READ_THOUGH_HIDDEN:
        return "is a hidden folder"
    return "holds packages of others" if path.name == _PACKAGES else ""


def _against(path: Path) -> str:
    if not path.is_file():  # a pipe may never end; a link may lead nowhere
        return "is no regular file"
    if path.stat().st_size > MAX_BYTES:
        return f"is larger than {MAX_BYTES // 1_000_000} MB"
    if by_name(path.name) is Form.DEVELOPMENT_CONTAINER:
        return ""  # its Compose file says which Kafka it starts
    with open_regular(path) as file:
        if _WORD.search(file.read(SEARCHED_BYTES)):
            return _OF_COMPOSE if by_name(path.name) is Form.VARIABLES else ""
    return f'has neither "kafka" nor "listeners" in its first {SEARCHED_BYTES // 1_000_000} MB'


def _unreadable(path: Path, reason: OSError) -> EarshotError:
    return EarshotError(f"path {path}", observed=f"cannot be read ({reason.strerror})")


def laid_over(file: Path) -> tuple[Path, ...]:
    """What `docker compose` lays over ``file`` in its folder, if it takes that file at all."""
    together = _together(file)
    return together[1:] if together[:1] == (file,) else ()


def base_of(file: Path) -> Path | None:
    """What `docker compose` lays ``file`` over, if it takes that file at all."""
    together = _together(file)
    return together[0] if file in together[1:] else None


def _together(file: Path) -> tuple[Path, ...]:
    """What `docker compose` takes in the folder of ``file`` where none is named: the base first."""
    if file.suffix not in (".yml", ".yaml"):
        return ()
    if named := _named(file):
        return named
    base = _first(file, BASES)
    files = (base, _first(file, OVERRIDES)) if base is not None else ()
    return tuple(file for file in files if file is not None)


def _named(file: Path) -> tuple[Path, ...]:
    """What `COMPOSE_FILE` names in the `.env` beside ``file``; none unless all of them are there,
    the first beside it, too."""
    try:
        variables = variables_for(file, {})
    except EarshotError:
        return ()  # reported where the file is checked
    listed = variables.get("COMPOSE_FILE", "")
    names = listed.split(variables.get("COMPOSE_PATH_SEPARATOR") or ":")
    files = tuple(file.parent / name.strip() for name in names if name.strip())
    is_there = files and all(file.is_file() for file in files)
    return files if is_there and files[0].parent == file.parent else ()


def _first(beside: Path, names: Iterable[str]) -> Path | None:
    paths = (beside.with_name(name) for name in names)
    return next((path for path in paths if path.is_file()), None)

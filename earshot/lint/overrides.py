"""The Compose files that belong together without being named: a base, and what is laid over it.

Source: https://docs.docker.com/compose/how-tos/multiple-compose-files/merge/, the names that
compose-go looks for, in its order, and `COMPOSE_FILE` of a `.env`:
https://docs.docker.com/compose/how-tos/environment-variables/envvars/#compose_file.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from earshot.errors import EarshotError
from earshot.sources.files import variables_for

BASES = ("compose.yaml", "compose.yml", "docker-compose.yml", "docker-compose.yaml")
"""What `docker compose` takes where no file is named: the first that is there."""
OVERRIDES = (
    "compose.override.yml",
    "compose.override.yaml",
    "docker-compose.override.yml",
    "docker-compose.override.yaml",
)
"""What it lays over that: the first of these."""


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
    found = (base, _first(file, OVERRIDES)) if base is not None else ()
    return tuple(item for item in found if item is not None)


def _named(file: Path) -> tuple[Path, ...]:
    """What `COMPOSE_FILE` names in the `.env` beside ``file``; none unless all of them are there,
    the first beside it, too."""
    try:
        variables = variables_for(file, {})
    except EarshotError:
        return ()  # reported where the file is checked
    listed = variables.get("COMPOSE_FILE", "")
    names = listed.split(variables.get("COMPOSE_PATH_SEPARATOR") or ":")
    found = tuple(file.parent / name.strip() for name in names if name.strip())
    is_there = found and all(item.is_file() for item in found)
    return found if is_there and found[0].parent == file.parent else ()


def _first(beside: Path, names: Iterable[str]) -> Path | None:
    found = (beside.with_name(name) for name in names)
    return next((item for item in found if item.is_file()), None)

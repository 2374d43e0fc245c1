"""The Compose files that belong together without being named: a base, and what is laid over it.

Source: https://docs.docker.com/compose/how-tos/multiple-compose-files/merge/, and the names that
compose-go looks for, in its order.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

BASES = ("compose.yaml", "compose.yml", "docker-compose.yml", "docker-compose.yaml")
"""What `docker compose` takes where no file is named: the first that is there."""
OVERRIDES = (
    "compose.override.yml",
    "compose.override.yaml",
    "docker-compose.override.yml",
    "docker-compose.override.yaml",
)
"""What it lays over that: the first of these."""


def laid_over(file: Path) -> Path | None:
    """What `docker compose` lays over ``file`` in its folder, if it takes that file at all."""
    if file.name not in BASES or _first(file, BASES) != file:
        return None
    return _first(file, OVERRIDES)


def base_of(file: Path) -> Path | None:
    """What `docker compose` lays ``file`` over, if it takes that file at all."""
    if file.name not in OVERRIDES or _first(file, OVERRIDES) != file:
        return None
    return _first(file, BASES)


def _first(beside: Path, names: Iterable[str]) -> Path | None:
    found = (beside.with_name(name) for name in names)
    return next((item for item in found if item.is_file()), None)

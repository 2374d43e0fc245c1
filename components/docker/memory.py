"""The id of a stack's cluster, kept in this checkout: data outlives the stack's state."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from earshot import cache
from earshot.cluster_id import of_stack_name

FILE: Final = "cluster-id"
"""Below a stack's state directory: the id of the cluster whose data the stack has."""
LEFT_BY_EARLIER_RELEASES: Final = ("contract.json", "report.json")
"""`make down` removes the first, only `make clean` the second."""


def remember(state_dir: Path, cluster_id: str) -> None:
    state_dir.mkdir(parents=True, exist_ok=True)
    cache.write(state_dir / FILE, cluster_id + "\n")


def remembered(state_dir: Path) -> str | None:
    """The id, or None where there is none or it cannot be read."""
    try:
        return (state_dir / FILE).read_text().strip() or None
    except (OSError, UnicodeDecodeError):
        return None


def own_id(stack: str, state_dir: Path) -> str | None:
    """The cluster id in the data of ``stack``, as far as this checkout remembers it, or None.

    Earlier releases wrote no id, but left other files where they deployed from this checkout.
    """
    known = remembered(state_dir)
    if known is None and any((state_dir / name).exists() for name in LEFT_BY_EARLIER_RELEASES):
        return of_stack_name(stack)
    return known

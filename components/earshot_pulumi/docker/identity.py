"""The id of a stack's cluster: made up once, then kept by the stack's state.

Data outlives a stack. A new stack takes over the id of kept data if this checkout remembers it or
the stack's file names it. The stack's name is not enough: another deployment may use it too.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from earshot import cache
from earshot.cluster_id import new_cluster_id, of_stack_name
from earshot_pulumi.docker.on_engines import (
    Seen,
    WantedStack,
    another_clusters_data,
    held_by_cluster,
    spots,
)

TO_BE_MADE: Final = "made by the update"
"""In the gate's inputs: the id is decided once the gate has approved the rest of a container."""
FILE: Final = "cluster-id"
"""Below a stack's state directory: the id of the cluster whose data the stack has."""
LEFT_BY_EARLIER_RELEASES: Final = ("contract.json", "report.json")
"""`make down` removes the first, only `make clean` the second."""


def decided(
    wanted: WantedStack, known: str | None, configured: str | None, state_dir: Path, seen: Seen
) -> tuple[str, list[str]]:
    """The id for a stack without one, or with another one ``configured`` than the ``known`` one;
    and the problems with it."""
    planned = spots(wanted.hosts, wanted.containers.values())
    held = held_by_cluster(wanted.stack, planned, seen)
    if known is not None and configured and known in held:
        text = (
            f"`cluster_id: {configured}` is not the id of this stack's cluster, which is {known} "
            f"and is in the data of every node. Take the key away, or write `cluster_id: {known}`"
        )
        return known, [text]
    kept = own_id(wanted.stack, state_dir)
    id = configured or (kept if kept in held else None)
    return id or new_cluster_id(), list(another_clusters_data(wanted.stack, id, planned, seen))


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

"""The cluster id of a stack: generated once, then kept in the stack's state.

Data outlives a stack. A new stack takes over the id of kept data if this checkout has recorded it
or the stack's file names it. The stack's name is not enough: another deployment may use it too.
"""

from pathlib import Path
from typing import Final

from earshot.files import cache
from earshot.listeners.cluster_id import new_cluster_id, of_stack_name
from earshot_pulumi.docker.engine_objects import (
    EngineObjects,
    TargetStack,
    another_clusters_data,
    held_by_cluster,
)

TO_BE_MADE: Final = "made by the update"
"""The cluster id in the gate's inputs. The id is decided after the gate has approved them."""
FILE: Final = "cluster-id"
"""File in a stack's state directory with the id of the cluster whose data the stack has."""
LEFT_BY_EARLIER_RELEASES: Final = ("contract.json", "report.json")
"""`make down` removes the first file, only `make clean` the second."""


def decided(
    target: TargetStack,
    current: str | None,
    configured: str | None,
    state_dir: Path,
    objects: EngineObjects,
) -> tuple[str, list[str]]:
    """The cluster id for ``target``, and the problems with it.

    For a stack without an id in its state (``current`` is None), or with another one in its file
    (``configured``).
    """
    volumes = held_by_cluster(target, objects)
    if current is not None and configured and current in volumes:
        text = (
            f"`cluster_id: {configured}` is not the id of this stack's cluster, which is {current} "
            f"and is in the data of every node. Remove the key, or write `cluster_id: {current}`"
        )
        return current, [text]
    recorded_id = own_id(target.stack, state_dir)
    id = configured or (recorded_id if recorded_id in volumes else None)
    return id or new_cluster_id(), list(another_clusters_data(target, id, objects))


def remember(state_dir: Path, cluster_id: str) -> None:
    state_dir.mkdir(parents=True, exist_ok=True)
    cache.write(state_dir / FILE, cluster_id + "\n")


def remembered(state_dir: Path) -> str | None:
    """The recorded id, or None if there is none or it cannot be read."""
    try:
        return (state_dir / FILE).read_text().strip() or None
    except (OSError, UnicodeDecodeError):
        return None


def own_id(stack: str, state_dir: Path) -> str | None:
    """The cluster id in the data of ``stack``, or None if this checkout has no record of it.

    Earlier releases recorded no id, which was derived from the stack's name, but left other files.
    """
    cluster_id = remembered(state_dir)
    if cluster_id is None and any((state_dir / name).exists() for name in LEFT_BY_EARLIER_RELEASES):
        return of_stack_name(stack)
    return cluster_id

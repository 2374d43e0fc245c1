"""The id of a stack's cluster: made up once, then kept by the stack's state.

Data outlives a stack. A new stack takes over the id of kept data if this checkout remembers it or
the stack's file names it. The stack's name is not enough: another deployment may use it too.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pulumi

from earshot import cache
from earshot.cluster_id import new_cluster_id, of_stack_name
from earshot_pulumi.docker.container_address import Engines
from earshot_pulumi.docker.on_engines import (
    another_clusters_data,
    can_be_asked,
    held_by_cluster,
    hosts_of,
    look,
)
from earshot_pulumi.provider.internal import CheckedKind, InternalResource
from earshot_pulumi.provider.kind import UNKNOWN, Operation, Properties

TO_BE_MADE: Final = "made by the update"
"""The gate's input in the preview of a new stack, so that it evaluates the rest of a container."""
FILE: Final = "cluster-id"
"""Below a stack's state directory: the id of the cluster whose data the stack has."""
LEFT_BY_EARLIER_RELEASES: Final = ("contract.json", "report.json")
"""`make down` removes the first, only `make clean` the second."""


class ClusterIdentityKind(CheckedKind):
    """Decides the id when there is none yet, and refuses another one while data has it."""

    ID_IN = "cluster_id"
    DECISIVE = ("cluster_id",)  # once there is one, hosts and volumes no longer matter

    def problems(self, operation: Operation, olds: Properties, news: Properties) -> list[str]:
        known, configured = olds.get("cluster_id"), news.get("said")  # that in the stack's file
        if known and configured in (None, known):
            news["cluster_id"] = known
            return []
        if not can_be_asked(news):
            news["cluster_id"] = UNKNOWN
            return []
        news["cluster_id"], found = _decided(known, news)
        return found

    def made(self, operation: Operation, olds: Properties, news: Properties) -> Properties:
        remember(Path(news["state_dir"]), news["cluster_id"])
        return news


class ClusterIdentity(InternalResource):
    """The id of the stack's cluster, as a resource."""

    cluster_id: pulumi.Output[str]


def _decided(known: str | None, props: Properties) -> tuple[str, list[str]]:
    """The id for a stack without one, or with another one configured, and the problems with it."""
    stack, configured = props["stack"], props.get("said")
    planned = {(str(host), str(volume), int(node)) for host, volume, node in props["spots"]}
    with Engines() as engines:
        seen = look(engines, hosts_of(props))
    held = held_by_cluster(stack, planned, seen)
    if known is not None and configured and known in held:
        text = (
            f"`cluster_id: {configured}` is not the id of this stack's cluster, which is {known} "
            f"and is in the data of every node. Take the key away, or write `cluster_id: {known}`"
        )
        return known, [text]
    kept = own_id(stack, Path(props["state_dir"]))
    id = configured or (kept if kept in held else None)
    return id or new_cluster_id(), list(another_clusters_data(stack, id, planned, seen))


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

"""Running nodes on this machine whose certificates have expired."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path

from earshot.listeners.model import Node
from earshot_pulumi import expired
from earshot_pulumi.local import cluster_memory
from earshot_pulumi.local.preflight import settings_of_running


def problems(root: Path) -> Iterator[str]:
    """Why no node under ``root`` can be restarted while the others run."""
    ends = _ends(root)
    are_others_up = bool(ends) and not cluster_memory.ended(root, except_id=min(ends))
    yield from expired.problems(ends, can_go_first=are_others_up)


def expired_first(root: Path, nodes: Sequence[Node]) -> list[Node]:
    """``nodes`` in the order of a change: those that have ended, those whose certificate has
    expired, the others."""
    ends = _ends(root)
    in_order = sorted(nodes, key=lambda node: node.id not in ends)
    return cluster_memory.ended_first(root, in_order)


def _ends(root: Path) -> dict[int, datetime]:
    """The end of the certificate of each running node under ``root`` that has expired, by id."""
    running = settings_of_running(root)
    return expired.expired(
        {id: expired.end_shown(settings.values) for id, settings in running.items()}
    )

"""Who is connected to a listener that a change takes away."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from components import leaving
from components.local.quorum import node_directory
from components.local.record import PROPERTIES, running
from earshot import sockets
from earshot.listeners.model import ClusterPlan
from earshot.listeners.properties import read_properties


def problems(root: Path, plan: ClusterPlan) -> Iterator[str]:
    """Listeners of running nodes that ``plan`` lacks, or has with another protocol, and that
    clients are connected to.

    Other nodes of the cluster are no clients: a broker that is restarted connects anew.
    """
    directories = {node.id: node_directory(root, node.id) for node in plan.brokers}
    pids = {
        id: record.pid
        for id, directory in directories.items()
        if (record := running(directory)) is not None
    }
    found: dict[str, Counter[str]] = {}
    for id, pid in pids.items():
        going = _leaving(directories[id], plan, id)
        if not going:
            continue
        for connection in sockets.connected(pid, going):
            if connection.pid not in pids.values():
                origins = found.setdefault(going[connection.port], Counter())
                origins[connection.origin] += 1
    yield from leaving.problems(found)


def _leaving(directory: Path, plan: ClusterPlan, id: int) -> dict[int, str]:
    """By port, the listeners that the node has and would lose."""
    try:
        text = (directory / PROPERTIES).read_text(encoding="latin-1")
    except OSError:
        return {}  # its settings are lost: nobody knows what it has
    return leaving.leaving(read_properties(text).values, plan, id)

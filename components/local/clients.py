"""Who is connected to a listener that a change takes away."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from components import leaving
from components.local.changes import started_with
from components.local.quorum import node_directory
from components.local.record import running
from earshot import sockets
from earshot.listeners.model import ClusterPlan
from earshot.listeners.properties import read_properties


def problems(root: Path, plan: ClusterPlan) -> Iterator[str]:
    """Listeners of running nodes that ``plan`` lacks, or has with another protocol, and that
    clients are connected to.

    Other nodes of the cluster are no clients: a broker that is restarted connects again.
    """
    directories = {node.id: node_directory(root, node.id) for node in plan.brokers}
    pids = {
        id: record.pid
        for id, directory in directories.items()
        if (record := running(directory)) is not None
    }
    found: dict[str, Counter[str]] = {}
    for id, pid in pids.items():
        # where its settings are lost, nobody knows what it has
        values = read_properties(started_with(directories[id])).values
        going = leaving.leaving(values, plan, id) if values else {}
        for connection in sockets.connected(pid, going) if going else ():
            if connection.pid not in pids.values():
                origins = found.setdefault(going[connection.port], Counter())
                origins[connection.origin] += 1
    yield from leaving.problems(found)

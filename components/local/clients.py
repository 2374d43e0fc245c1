"""Who is connected to a listener that a change takes away."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from components.local.quorum import node_directory
from components.local.record import PROPERTIES, running
from earshot import sockets
from earshot.listeners.grammar import parse_entries
from earshot.listeners.model import ClusterPlan
from earshot.listeners.properties import read_properties

SHOWN = 5
"""Origins that one message names."""


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
        leaving = _leaving(directories[id], plan, id)
        if not leaving:
            continue
        for connection in sockets.connected(pid, leaving):
            if connection.pid not in pids.values():
                origins = found.setdefault(leaving[connection.port], Counter())
                origins[connection.origin] += 1
    for name, origins in found.items():
        yield _problem(name, origins)


def _leaving(directory: Path, plan: ClusterPlan, id: int) -> dict[int, str]:
    """By port, the listeners that the node has and would lose."""
    try:
        text = (directory / PROPERTIES).read_text(encoding="latin-1")
    except OSError:
        return {}  # its settings are lost: nobody knows what it has
    values = read_properties(text).values
    protocols = dict(
        entry.split(":", 1)
        for entry in values.get("listener.security.protocol.map", "").split(",")
        if ":" in entry
    )
    staying = {item.name: item.protocol for item in plan.node(id).listeners}
    return {
        address.port: name
        for name, address in parse_entries(values.get("listeners", ""))
        if staying.get(name) != protocols.get(name)
    }


def _problem(name: str, origins: Counter[str]) -> str:
    total = sum(origins.values())
    listed = [f"{count} from {origin}" for origin, count in origins.most_common(SHOWN)]
    if len(origins) > SHOWN:
        listed.append(f"{len(origins) - SHOWN} more origins")
    return (
        f"listener {name} would go, and has {total} connection{'s' * (total > 1)} of clients: "
        f"{', '.join(listed)}. Let them use another listener (the contract marks {name} as "
        "leaving), then run the same command again; or set `remove: anyway` in the stack's file"
    )

"""What a cluster of this machine must keep: its id, its voters, the version that its data has.

`cluster.json` in the data root is the memory, not Pulumi's state: data outlives a stack.
"""

from __future__ import annotations

import base64
import json
import uuid
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from components.local.process import holders, running
from components.refusals import goes_back, moving_controllers, older_kafka, other_voters
from earshot import cache
from earshot.listeners.model import ClusterPlan
from earshot.listeners.render import voters

METADATA_TOPIC = "__cluster_metadata"


@dataclass(frozen=True)
class Memory:
    """What was decided when the cluster was formatted, and whether it serves."""

    cluster_id: str
    voters: dict[str, str]
    """host:port by node id."""
    kafka_version: str
    brokers: tuple[int, ...]
    serving: bool = False
    """A quorum was seen since the last orderly stop."""


def recall(root: Path) -> Memory | None:
    """The memory of the cluster under ``root``, or None before its first start."""
    try:
        document = json.loads((root / "cluster.json").read_text())
        document["brokers"] = tuple(document["brokers"])
        return Memory(**document)
    except (OSError, ValueError, TypeError, KeyError):
        return None


def remember(root: Path, memory: Memory) -> None:
    cache.write(root / "cluster.json", json.dumps(asdict(memory), indent=2))


def settle(root: Path, plan: ClusterPlan) -> Memory:
    """The memory for ``plan``: a new cluster id on the first start, else the old one."""
    old = recall(root)
    memory = Memory(
        cluster_id=old.cluster_id if old else new_cluster_id(),
        voters=_voters(plan),
        kafka_version=plan.kafka_version,
        brokers=tuple(node.id for node in plan.brokers),
        serving=old.serving if old else False,
    )
    remember(root, memory)
    return memory


def mark_serving(root: Path, serving: bool) -> None:
    memory = recall(root)
    if memory is not None and memory.serving != serving:
        remember(root, replace(memory, serving=serving))


def majority_runs(root: Path) -> bool:
    """Whether enough voters run for a quorum; a lone voter of three never answers."""
    memory = recall(root)
    if memory is None:
        return False
    alive = sum(running(node_directory(root, int(id))) is not None for id in memory.voters)
    return alive * 2 > len(memory.voters)


def node_directory(root: Path, id: int) -> Path:
    return root / f"node-{id}"


def new_cluster_id() -> str:
    """22 characters, as Kafka's own `random-uuid` prints; never with a leading hyphen."""
    while True:
        text = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        if not text.startswith("-"):
            return text


def problems(root: Path, plan: ClusterPlan) -> Iterator[str]:
    """Why ``plan`` must not be applied over what is there; nothing has been touched yet.

    Each text says what was found, what is allowed and how to mend it.
    """
    memory = recall(root)
    if memory is not None:
        yield from _quorum_problems(root, memory, plan)
        yield from _removal_problems(root, memory, plan)
        if goes_back(plan.kafka_version, memory.kafka_version):
            yield older_kafka(plan.kafka_version, memory.kafka_version, "`make clean`")
    yield from _port_problems(root, plan)


def _quorum_problems(root: Path, memory: Memory, plan: ClusterPlan) -> Iterator[str]:
    wanted = _voters(plan)
    if set(wanted) != set(memory.voters):
        yield other_voters(map(int, memory.voters), map(int, wanted), "`make clean`")
    elif wanted != memory.voters and any(
        running(node_directory(root, int(id))) for id in memory.voters
    ):
        yield moving_controllers(
            ", ".join(memory.voters.values()),
            ", ".join(wanted.values()),
            "Stop the cluster first (`make down`; data is kept)",
        )


def _removal_problems(root: Path, memory: Memory, plan: ClusterPlan) -> Iterator[str]:
    for id in _gone(memory, plan):
        held = replicas_on_disk(node_directory(root, id))
        if held:
            shown = ", ".join(held[:5]) + (f" and {len(held) - 5} more" if len(held) > 5 else "")
            yield (
                f"broker {id} would be removed and still holds {len(held)} replica(s): {shown}. "
                "Move them to the brokers that stay (kafka-reassign-partitions), or keep the broker"
            )


def removed(root: Path, plan: ClusterPlan) -> list[int]:
    """Brokers of the cluster under ``root`` that ``plan`` has no more."""
    memory = recall(root)
    return _gone(memory, plan) if memory is not None else []


def _gone(memory: Memory, plan: ClusterPlan) -> list[int]:
    return sorted(set(memory.brokers) - {node.id for node in plan.brokers})


def replicas_on_disk(directory: Path) -> list[str]:
    """The `topic-partition` replicas in a node's data, without the metadata log."""
    log = directory / "log"
    found = (path.name for path in log.glob("*-*") if path.is_dir())
    return sorted(
        name
        for name in found
        if name.rpartition("-")[2].isdigit() and name.rpartition("-")[0] != METADATA_TOPIC
    )


def _port_problems(root: Path, plan: ClusterPlan) -> Iterator[str]:
    own: dict[int, int] = {}
    directories = [*root.glob("node-*"), *(node_directory(root, node.id) for node in plan.nodes)]
    for directory in directories:
        record = running(directory)
        if record is not None:
            own[record.pid] = int(directory.name.removeprefix("node-"))
    binds = [(item.bind_host, item.bind_port) for node in plan.nodes for item in node.listeners]
    taken = {holder.port: holder for holder in holders(binds)}
    for node in plan.nodes:
        for item in node.listeners:
            holder = taken.get(item.bind_port)
            neighbour = own.get(holder.pid or -1) if holder else None
            if holder and neighbour != node.id:
                yield (
                    f"listener {item.name} of node {node.id}: {holder}"
                    + (f", which is node {neighbour} of this cluster" if neighbour else "")
                    + f". Free the port, or choose another `port` for {item.name}"
                )


def _voters(plan: ClusterPlan) -> dict[str, str]:
    entries = (entry.partition("@") for entry in voters(plan).split(",") if entry)
    return {id: address for id, _, address in entries}

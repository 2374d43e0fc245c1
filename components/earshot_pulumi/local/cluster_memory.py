"""The memory of a cluster of this machine: its id, its voters, its newest Kafka version.

It is stored in `cluster.json` in the data root, not in Pulumi's state, because data outlives a
stack. A lost file is reconstructed from the nodes' own files.
"""

import contextlib
import json
from collections.abc import Collection, Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path

import psutil
from pydantic import TypeAdapter

from earshot import sockets
from earshot.errors import EarshotError
from earshot.files import cache
from earshot.listeners.cluster_id import new_cluster_id
from earshot.listeners.listed import listed, numbered
from earshot.listeners.model import ClusterPlan, Listener, Node
from earshot.listeners.render import voters
from earshot.listeners.terms import Protocol
from earshot_pulumi.file_access import owner, user, writing
from earshot_pulumi.local import reconstruction
from earshot_pulumi.local.data_root import obstacles
from earshot_pulumi.local.process import settings_of
from earshot_pulumi.local.process_record import (
    is_suspended,
    process_of,
    read_record,
    running,
    runs_from,
)
from earshot_pulumi.local.reconstruction import ClusterMemory
from earshot_pulumi.node_data import is_formatted, replicas
from earshot_pulumi.refusals import holds_replicas, moving_controllers, other_voters, release

_MEMORY = TypeAdapter(ClusterMemory)


def recall(root: Path) -> ClusterMemory | None:
    """The memory of the cluster under ``root``, or None before its first start.

    Raises EarshotError if it is lost and cannot be reconstructed from the nodes' data.
    """
    return read_memory(root) or reconstruction.reconstruct(root)


def read_memory(root: Path) -> ClusterMemory | None:
    """The contents of `cluster.json`, or None if it is missing or invalid.

    Raises EarshotError if this user may not read it.
    """
    path = root / "cluster.json"
    try:
        return _MEMORY.validate_json(path.read_bytes())
    except PermissionError:
        raise EarshotError(
            str(path),
            observed=f"this user ({user()}) may not read it",
            remedy=f"run the command as its owner ({owner(path)})",
        ) from None
    except (OSError, ValueError):
        return None


def remember(root: Path, memory: ClusterMemory) -> None:
    with writing("the cluster", root):
        cache.write(root / "cluster.json", json.dumps(asdict(memory), indent=2))


def settle(root: Path, plan: ClusterPlan) -> ClusterMemory:
    """Writes and returns the memory for ``plan``, with a new cluster id on the first start."""
    former = recall(root)
    memory = ClusterMemory(
        cluster_id=former.cluster_id if former else new_cluster_id(),
        voters=reconstruction.addresses(voters(plan)),
        # the plan's version may never run
        kafka_version=former.kafka_version if former else plan.kafka_version,
        brokers=tuple(node.id for node in plan.brokers),
        serving=former.serving if former else False,
        served=former.has_served if former else False,
    )
    remember(root, memory)
    return memory


def mark_stopped(root: Path) -> None:
    """Record that the cluster stops, so that the next start starts all voters together."""
    memory = recall(root)
    if memory is not None and memory.serving:
        remember(root, replace(memory, serving=False, served=memory.has_served))


def mark_serving(root: Path, versions: Collection[str], whole: bool) -> None:
    """Record that nodes with these Kafka ``versions`` serve; with ``whole``, all nodes of the
    cluster."""
    memory = recall(root)
    if memory is None:
        return
    candidates = versions if whole and versions else (*versions, memory.kafka_version)
    newest = max(candidates, key=release)
    changed = replace(
        memory,
        kafka_version=newest,
        serving=memory.serving or whole,
        served=memory.has_served or whole,
    )
    if changed != memory:
        remember(root, changed)


def serves(root: Path) -> bool:
    """True if there is a quorum that a started node can join."""
    memory = recall(root)
    return memory is not None and memory.serving and majority_runs(root)


def majority_runs(root: Path) -> bool:
    """True if enough voters run for a quorum."""
    memory = recall(root)
    if memory is None:
        return False
    running_count = sum(running(node_directory(root, int(id))) is not None for id in memory.voters)
    return running_count * 2 > len(memory.voters)


def ended(root: Path, except_id: int) -> list[int]:
    """Ids of the nodes under ``root``, except ``except_id``, that have data and do not run."""
    return [id for id in _ids(root) if id != except_id and _has_ended(root, id)]


def suspended(root: Path, except_id: int) -> list[int]:
    """Pids of the suspended nodes under ``root``, except ``except_id``; SIGCONT continues them."""
    processes = (process_of(node_directory(root, id)) for id in _ids(root) if id != except_id)
    return [process.pid for process in processes if process is not None and is_suspended(process)]


def _ids(root: Path) -> list[int]:
    """The ids of the nodes of the cluster under ``root``."""
    memory = recall(root)
    return sorted({*map(int, memory.voters), *memory.brokers}) if memory is not None else []


def ended_first(root: Path, nodes: Sequence[Node]) -> list[Node]:
    """``nodes`` in the order of a change: nodes that have ended are first.

    So no other node is stopped before they serve again.
    """
    return sorted(nodes, key=lambda node: not _has_ended(root, node.id))


def _has_ended(root: Path, id: int) -> bool:
    directory = node_directory(root, id)
    return is_formatted([directory / "log"]) and running(directory) is None


def running_nodes(root: Path) -> list[int]:
    """Ids of the nodes of the cluster under ``root`` that run. Raises EarshotError."""
    return [id for id in _ids(root) if running(node_directory(root, id)) is not None]


def any_runs(root: Path) -> bool:
    """True if a node of the cluster under ``root`` runs. Raises EarshotError."""
    return any(running(directory) is not None for directory in root.glob("node-*"))


def node_directory(root: Path, id: int) -> Path:
    return root / f"node-{id}"


def problems(root: Path, plan: ClusterPlan) -> Iterator[str]:
    """Why ``plan`` must not be applied to the data under ``root``, one message each.

    Raises EarshotError if the data cannot be read.
    """
    if blocking := list(obstacles(root, [node_directory(root, node.id) for node in plan.nodes])):
        yield from blocking
        return
    memory = recall(root)
    if memory is not None:
        yield from _foreign_data(root, memory)
        yield from _quorum_problems(root, memory, plan)
        yield from _lost_data(root, memory)
        for id in removed(root, plan):
            folders = (node_directory(root, id) / "log").glob("*-*")
            if partitions := replicas(path.name for path in folders if path.is_dir()):
                yield holds_replicas(id, partitions)
    yield from _open_quorum(root, plan)
    yield from _port_problems(root, plan)


def _foreign_data(root: Path, memory: ClusterMemory) -> Iterator[str]:
    for name, id in reconstruction.stored_values(root, "cluster.id").items():
        if id != memory.cluster_id:
            yield (
                f"the data in {root / name} is of the cluster {id}, and cluster.json has "
                f"{memory.cluster_id}: the broker would refuse to start. Move that directory away; "
                "if all nodes are of one other cluster, remove cluster.json, and it is made again "
                "from their data"
            )
    for name, id in reconstruction.stored_values(root, "node.id").items():
        if name != f"node-{id}":
            yield (
                f"the data in {root / name} is of node {id}: the broker would refuse to start. "
                f"Move {root / name / 'log'} back to its former place"
            )


def _quorum_problems(root: Path, memory: ClusterMemory, plan: ClusterPlan) -> Iterator[str]:
    target = reconstruction.addresses(voters(plan))
    if set(target) != set(memory.voters):
        yield other_voters(map(int, memory.voters), map(int, target))
    elif target != memory.voters and any(
        running(node_directory(root, int(id))) for id in memory.voters
    ):
        yield moving_controllers(", ".join(memory.voters.values()), ", ".join(target.values()))


def _lost_data(root: Path, memory: ClusterMemory) -> Iterator[str]:
    """A message if so many voters have lost their data that empty ones could win an election."""
    voters = sorted(map(int, memory.voters))
    empty = [
        id
        for id in voters
        if not is_formatted([node_directory(root, id) / "log"])
        and running(node_directory(root, id)) is None
    ]
    if memory.has_served and (len(voters) - len(empty)) * 2 <= len(voters):
        folders = listed([str(node_directory(root, id) / "log") for id in empty])
        yield (
            f"the data of {numbered('node', empty)} is gone, of {len(voters)} voters in all: with "
            "empty data they would elect each other, and the cluster would forget its topics, "
            f"users and records. Put {folders} back from a copy. For an empty cluster instead: "
            "`data: delete`, `pulumi destroy`, then the same command again"
        )


def _open_quorum(root: Path, plan: ClusterPlan) -> Iterator[str]:
    """A message if a secured cluster that does not run would have a plaintext quorum."""
    is_plaintext = plan.controller_protocol is Protocol.PLAINTEXT
    if plan.security is not None and is_plaintext and not any_runs(root):
        yield (
            f"controllers.protocol: found {Protocol.PLAINTEXT} with `security` and no running "
            "node: any client that reaches the quorum's port could do everything. The key is for a "
            "plaintext cluster that gets TLS while it runs. Remove `protocol`, so that the quorum "
            "has TLS, too"
        )


def removed(root: Path, plan: ClusterPlan) -> list[int]:
    """Ids of brokers of the cluster under ``root`` that ``plan`` no longer has."""
    memory = recall(root)
    brokers = memory.brokers if memory is not None else ()
    return sorted(set(brokers) - {node.id for node in plan.brokers})


def _port_problems(root: Path, plan: ClusterPlan) -> Iterator[str]:
    directories = {*root.glob("node-*"), *(node_directory(root, node.id) for node in plan.nodes)}
    listening = sockets.listening()
    for node in plan.nodes:
        for listener in node.listeners:
            if (bind_address := _bind_address(listener)) is None:
                continue
            remedy = f"Free the port, or choose another `port` for {listener.name}"
            holders = [socket for socket in listening if sockets.clash(bind_address, socket.bound)]
            for socket in holders:
                holder_id = _node_of(socket.pid, directories)
                if holder_id == node.id:
                    continue
                subject = f"listener {listener.name} of node {node.id}: {socket}"
                if holder_id:
                    yield (
                        f"{subject}, which is node {holder_id} of this cluster. Choose a `port` "
                        f"for {listener.name} with which no node gets a port that another one has "
                        "now"
                    )
                else:
                    settings_path = settings_of(socket.pid)
                    settings = f" (Kafka with {settings_path})" if settings_path else ""
                    yield f"{subject}{settings}. {remedy}"
                break
            if not holders and (holder := sockets.kept(bind_address)):
                yield _reserved(f"listener {listener.name} of node {node.id}", holder, remedy)


def _reserved(subject: str, holder: sockets.Holder, remedy: str) -> str:
    """A message that the port of ``subject`` is taken although no socket listens on it."""
    if holder.passing:
        remedy = remedy.replace(
            "Free the port", "It is free within a minute: run the same command again then"
        )
    ports = sockets.outgoing_ports()
    hint = f", outside {ports}, the ports of this machine's own connections" if ports else ""
    return f"{subject}: {holder}. {remedy}{hint}"


def _node_of(pid: int | None, directories: Collection[Path]) -> int | None:
    """The id of the node with the process ``pid``, or None.

    A process without a record is also found: its starter was killed before it wrote one.
    """
    for directory in directories if pid else ():
        record = read_record(directory)
        is_recorded = record is not None and record.pid == pid and record.process(directory)
        with contextlib.suppress(psutil.Error):
            if is_recorded or runs_from(psutil.Process(pid), directory):
                return int(directory.name.removeprefix("node-"))
    return None


def _bind_address(listener: Listener) -> sockets.Bound | None:
    """The address that a JVM binds for ``listener``; None if its host does not resolve."""
    try:
        return sockets.of_java(listener.bind_host, listener.bind_port)
    except OSError:
        return None  # the broker's log reports it

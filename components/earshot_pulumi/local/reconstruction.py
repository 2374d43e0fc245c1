"""Reconstructs a lost `cluster.json` from the nodes' own directories.

node-1/log/meta.properties  written by Kafka: cluster.id, node.id
node-1/server.properties    the settings of the last start: roles, voters, version
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import Field

from earshot.config.cluster import FIRST_SEPARATE_CONTROLLER
from earshot.errors import EarshotError
from earshot.listeners.properties import NodeSettings, read_properties
from earshot.listeners.terms import Role
from earshot_pulumi.local.process_record import PROPERTIES
from earshot_pulumi.refusals import release

_REMEDY = (
    "put cluster.json back from a copy, or move away the directories that do not belong there; "
    "`data: delete` and `pulumi destroy` remove all data"
)


_Id = Annotated[str, Field(pattern=r"^\d+$")]
_Version = Annotated[str, Field(pattern=r"^\d+\.\d+")]


@dataclass(frozen=True)
class ClusterMemory:
    """The contents of `cluster.json`: the cluster's identity, and whether it serves."""

    cluster_id: str
    voters: dict[_Id, str]
    """host:port by node id."""
    kafka_version: _Version
    """The newest version that a broker has served with, or the first one planned."""
    brokers: tuple[int, ...]
    serving: bool = False
    """True if there was a quorum since the last orderly stop."""
    served: bool | None = None
    """True if there ever was a quorum; None in files of earlier releases."""

    @property
    def has_served(self) -> bool:
        return self.serving if self.served is None else self.served


@dataclass(frozen=True, eq=False)
class _Node:
    directory: Path
    meta: NodeSettings
    server: NodeSettings

    @property
    def id(self) -> str:
        return self.directory.name.removeprefix("node-")


def reconstruct(root: Path) -> ClusterMemory | None:
    """The memory of the cluster whose nodes have data under ``root``, or None without data.

    Raises EarshotError if the nodes contradict each other or their files lack a value.
    """
    nodes = [
        _Node(meta.parent.parent, _settings(meta), _settings(meta.parent.parent / PROPERTIES))
        for meta in _formatted(root)
    ]
    if not nodes:
        return None
    for node in nodes:
        node_id = node.meta.values.get("node.id", node.id)
        if node_id != node.id:
            raise _refusal(root, f"the data in {node.directory} is of node {node_id}")
    ids = {node: node.meta.values.get("cluster.id", "") for node in nodes}
    voters = {
        node: addresses(node.server.values.get("controller.quorum.voters", "")) for node in nodes
    }
    voter_ids = {
        node: ", ".join(sorted(addresses_by_id)) for node, addresses_by_id in voters.items()
    }
    own_addresses = {
        id: address for node in nodes for id, address in voters[node].items() if id == node.id
    }
    cluster_id, _ = _agreed(root, ids, "cluster.id"), _agreed(root, voter_ids, "voters")
    versions = [version for node in nodes if (version := node.server.notes.get("kafka_version"))]
    if not versions:
        raise _refusal(root, f"no node's {PROPERTIES} contains its version of Kafka")
    return ClusterMemory(
        cluster_id=cluster_id,
        # each voter's own address counts, as a change of addresses may be incomplete
        voters={
            id: own_addresses.get(id, address)
            for addresses_by_id in voters.values()
            for id, address in addresses_by_id.items()
        },
        kafka_version=max(versions, key=release),
        brokers=tuple(sorted(int(node.id) for node in nodes if _is_broker(node))),
        serving=True,  # assumed, so that a change waits for each broker
        served=False,  # the nodes without data may never have started
    )


def stored_values(root: Path, key: str) -> dict[str, str]:
    """The value of ``key`` in each node's `meta.properties`, by the name of its directory."""
    settings = {meta.parent.parent.name: _settings(meta) for meta in _formatted(root)}
    return {
        name: value
        for name, settings_of_node in settings.items()
        if (value := settings_of_node.values.get(key))
    }


def _formatted(root: Path) -> list[Path]:
    paths = sorted(root.glob("node-*/log/meta.properties"))
    return [path for path in paths if path.parts[-3].removeprefix("node-").isdigit()]


def _agreed(root: Path, values_by_node: dict[_Node, str], setting: str) -> str:
    """The value of ``setting`` on which the nodes agree; empty values do not count.

    Raises EarshotError.
    """
    values = sorted({value for value in values_by_node.values() if value})
    if len(values) == 1:
        return values[0]
    if not values:
        raise _refusal(root, f"no node's files contain the {setting}")
    texts = (f"{node.directory.name}: {value}" for node, value in values_by_node.items() if value)
    raise _refusal(
        root, f"the nodes contradict each other about the {setting} ({'; '.join(texts)})"
    )


def _refusal(root: Path, observed: str) -> EarshotError:
    return EarshotError(
        f"cluster.json in {root}",
        observed=f"is missing or unreadable, and cannot be made again: {observed}",
        remedy=_REMEDY,
    )


def _settings(path: Path) -> NodeSettings:
    try:
        return read_properties(path.read_text(encoding="latin-1"))  # Java's encoding
    except FileNotFoundError:
        return NodeSettings({})
    except OSError as reason:
        raise EarshotError(str(path), observed=f"cannot be read ({reason.strerror})") from None


def addresses(voters: str) -> dict[str, str]:
    """The host:port of each voter by node id, from a value of `controller.quorum.voters`."""
    parts = (voter.partition("@") for voter in voters.split(",") if "@" in voter)
    return {id: address for id, _, address in parts}


def _is_broker(node: _Node) -> bool:
    roles = node.server.values.get("process.roles", "")
    # a node of unknown roles may hold replicas, so it counts as a broker
    return Role.BROKER in roles.split(",") if roles else int(node.id) < FIRST_SEPARATE_CONTROLLER

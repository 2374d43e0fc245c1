"""The clusters of all stacks with nodes on Docker hosts, as the hosts' engines list them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Self

from earshot.config.docker_host import DockerHost
from earshot.engine.connection import DockerObject
from earshot.errors import AddressError
from earshot.listeners.grammar import parse_entries
from earshot.listeners.properties import read_environment
from earshot.listeners.terms import Protocol, Role
from earshot_pulumi.docker import labels
from earshot_pulumi.docker.container_address import ContainerAddress, Engines, asking, is_up
from earshot_pulumi.docker.inner_listener import InnerListener, reached_at
from earshot_pulumi.node_links import Links
from earshot_pulumi.properties import here
from earshot_pulumi.provider.kind import Properties

_CLUSTER_ID: Final = "CLUSTER_ID"
"""The variable of a node's container with the id of its cluster."""


@dataclass(frozen=True)
class ClusterNode:
    """A node's container on one of the hosts."""

    id: str
    address: ContainerAddress
    deployment: str
    """The id of the cluster's deployment."""
    stack: str
    cluster_id: str
    problem: str = ""
    """Why the container does not run; empty if it does."""

    @property
    def number(self) -> int:
        return self.address.node_id


@dataclass(frozen=True)
class HostedCluster:
    """A cluster, with its nodes on the inspected hosts."""

    stack: str
    nodes: tuple[ClusterNode, ...]

    @property
    def id(self) -> str:
        return next((node.cluster_id for node in self.nodes), "")

    def on(self, *hosts: str) -> tuple[ClusterNode, ...]:
        """The nodes on hosts with these names."""
        return tuple(node for node in self.nodes if node.address.host in hosts)

    def has_majority(self, without: Sequence[ClusterNode] = ()) -> bool:
        """True if enough voters run for a quorum, ``without`` some nodes."""
        voters = [node for node in self.nodes if node.address.voter]
        running_voters = [node for node in voters if not node.problem and node not in without]
        return len(running_voters) * 2 > len(voters)

    @classmethod
    def all_of(cls, nodes: Iterable[ClusterNode]) -> tuple[Self, ...]:
        """The clusters of ``nodes``, in the order of their first nodes."""
        nodes_by_deployment: dict[str, list[ClusterNode]] = {}
        for node in nodes:
            nodes_by_deployment.setdefault(node.deployment, []).append(node)
        return tuple(cls(group[0].stack, tuple(group)) for group in nodes_by_deployment.values())


def host_of(props: Properties) -> DockerHost:
    """The Docker host with the `name`, `engine` and `cert_path` in ``props``."""
    certificates = str(here(props["cert_path"]))
    return DockerHost(name=props["name"], engine=props["engine"], cert_path=certificates)


def nodes_on(engines: Engines, host: DockerHost) -> list[ClusterNode]:
    """The nodes on ``host``. If a node has two containers, because a change replaces one, the
    running container counts.

    Raises EarshotError if the engine does not answer.
    """
    nodes: dict[tuple[str, int], ClusterNode] = {}
    for node in _nodes(engines, host):
        key = (node.deployment, node.number)
        if key not in nodes or nodes[key].problem:
            nodes[key] = node
    return [nodes[key] for key in sorted(nodes)]


def _nodes(engines: Engines, host: DockerHost) -> Iterator[ClusterNode]:
    subject = f"Docker host {host.name}"
    with asking(subject, host):
        listing = engines.of(host).api.containers(all=True, filters={"label": labels.NODE})
        ids = [container["Id"] for container in listing]
    for id in ids:
        description = engines.inspect(subject, host, id)
        node_labels = (description or {}).get("Config", {}).get("Labels") or {}
        if description is not None and labels.DEPLOYMENT in node_labels:
            yield _node(host, description, node_labels)


def _node(host: DockerHost, container: DockerObject, node_labels: Mapping[str, str]) -> ClusterNode:
    variables = dict(text.partition("=")[::2] for text in container["Config"].get("Env") or ())
    roles = node_labels.get(labels.ROLES, "").split(",")
    address = ContainerAddress(
        node_id=labels.node_id(node_labels),
        name=container["Name"].lstrip("/"),
        network=next(iter(container["NetworkSettings"]["Networks"]), ""),
        host=host.name,
        broker=Role.BROKER in roles,
        voter=Role.CONTROLLER in roles,
        endpoint=_endpoint(read_environment(variables).values),
        engine=host.engine,
        cert_path=host.cert_path,
    )
    return ClusterNode(
        id=container["Id"],
        address=address,
        deployment=node_labels[labels.DEPLOYMENT],
        stack=node_labels.get(labels.STACK, ""),
        cluster_id=variables.get(_CLUSTER_ID, ""),
        problem=_problem(container["State"], runs=is_up(container)),
    )


def _problem(state: DockerObject, *, runs: bool) -> str:
    if not runs:
        return f"it does not run (status {state['ExitCode']})"
    return "it is paused" if state["Paused"] else ""


def _endpoint(values: Mapping[str, str]) -> InnerListener:
    """The inter-broker listener if in plaintext, else another plaintext one, else the first."""
    links = Links.of_settings(values)
    try:
        entries = parse_entries(values.get("listeners", ""))
    except AddressError:
        entries = []  # not settings that earshot wrote
    listeners = [
        InnerListener(
            reached_at(address.host),
            address.port,
            links.protocols.get(name.upper(), "") == Protocol.PLAINTEXT,
            name=name,
        )
        for name, address in entries
        if name.upper() != links.controller.upper()
    ]
    listeners.sort(
        key=lambda listener: (not listener.plaintext, listener.name.upper() != links.inter_broker)
    )
    return listeners[0] if listeners else InnerListener("127.0.0.1", 0, False)

"""A Docker host's turn as a resource: no host changes while brokers on another one are down."""

import contextlib
from collections.abc import Iterable
from uuid import uuid4

import pulumi

from earshot.errors import EarshotError
from earshot.listeners.listed import listed, numbered
from earshot_pulumi.docker.clusters import ClusterNode, HostedCluster, HostEngine, nodes_on
from earshot_pulumi.docker.container_address import Engines
from earshot_pulumi.docker.readiness import wait_for
from earshot_pulumi.properties import here, read
from earshot_pulumi.provider.internal import CheckedKind, InternalResource
from earshot_pulumi.provider.kind import UNKNOWN, Operation, Properties


class DockerHostTurnKind(CheckedKind):
    """Refuses a change of a host while another one, or a node on it, is down; waits until the nodes
    of the others are in sync.

    Inputs: `host`, its name; `hosts`, all hosts that may have nodes, itself included (see
    `HostEngine`; empty: it may change whatever is down); `wanted`, what restarts or replaces its
    instance when it changes; `arch`, its architecture; `answered`, whether its engine has answered
    an earlier update; and `seconds`, how long it waits for the nodes of the others.
    """

    ID = "turn"
    DECISIVE = ("wanted",)
    interrupted = "interrupted before the host was touched; nothing was changed"

    def problems(self, operation: Operation, olds: Properties, news: Properties) -> Iterable[str]:
        if olds and news["answered"] and olds["arch"] != news["arch"]:
            yield _changed_architecture(news["host"], olds["arch"], news["arch"])
        if not _waits(olds, news):
            return
        host, other_hosts = _hosts(news)
        with Engines() as engines:
            nodes, down = _look(engines, other_hosts)
            with contextlib.suppress(EarshotError):  # it may change because it does not answer
                nodes += nodes_on(engines, host)
        if down:
            yield _refusal(host.name, down)
        for cluster in HostedCluster.all_of(nodes):
            if note := _note(host.name, cluster):
                operation.log(note)

    def made(self, operation: Operation, olds: Properties, news: Properties) -> Properties:
        if news["hosts"]:
            host, other_hosts = _hosts(news)
            with Engines() as engines:
                nodes, down = _look(engines, other_hosts)
                if down:  # since the check
                    raise EarshotError("nothing was changed", observed=_refusal(host.name, down))
                with contextlib.suppress(EarshotError):
                    nodes += nodes_on(engines, host)
                for cluster in HostedCluster.all_of(nodes):
                    _wait(engines, host.name, cluster, news["seconds"], operation)
        # a change that is taken back changes the host too
        return {**news, "granted": uuid4().hex}


class DockerHostTurn(InternalResource):
    """Created once its host may be changed."""

    def __init__(self, name: str, props: Properties, opts: pulumi.ResourceOptions) -> None:
        super().__init__(name, {**props, "granted": None}, opts)


def _waits(olds: Properties, news: Properties) -> bool:
    settings = news["wanted"]
    if not news["hosts"] or settings is UNKNOWN or settings == olds.get("wanted"):
        return False
    if any(UNKNOWN in host.values() for host in news["hosts"]):
        return False
    host, _ = _hosts(news)
    # the first preview of another checkout: the update gets the certificate
    return (here(host.cert_path) / "key.pem").is_file()


def _hosts(props: Properties) -> tuple[HostEngine, list[HostEngine]]:
    """The host, and the other hosts."""
    read_hosts = (read(HostEngine, host) for host in props["hosts"])
    hosts = [HostEngine(host.name, host.engine, str(here(host.cert_path))) for host in read_hosts]
    (changing,) = (host for host in hosts if host.name == props["host"])
    return changing, [host for host in hosts if host is not changing]


def _look(
    engines: Engines, hosts: Iterable[HostEngine]
) -> tuple[list[ClusterNode], dict[str, list[str]]]:
    """The nodes on ``hosts``; and by name of each host that is down or has a node down, why."""
    nodes: list[ClusterNode] = []
    down: dict[str, list[str]] = {}
    for host in hosts:
        try:
            own_nodes = nodes_on(engines, host)
        except EarshotError as error:
            down[host.name] = [error.line]
            continue
        nodes += own_nodes
        if reasons := [
            f"container {node.address.name}: {node.problem}" for node in own_nodes if node.problem
        ]:
            down[host.name] = reasons
    return nodes, down


def _wait(
    engines: Engines, host: str, cluster: HostedCluster, seconds: float, operation: Operation
) -> None:
    """Returns once all nodes of ``cluster`` on other hosts than ``host`` are in sync.

    Returns at once if the cluster has no quorum: then no node can be in sync. Raises EarshotError.
    """
    nodes = [node for node in cluster.nodes if node.address.host != host]
    if not nodes or not cluster.has_majority():
        return
    brokers = [node.address for node in nodes if node.address.can_be_asked]
    try:
        wait_for(
            engines,
            [(node.address, node.id) for node in nodes],
            brokers,
            cluster.id,
            deadline=seconds,
            progress=operation.log,
        )
    except EarshotError as error:
        raise EarshotError(
            f"Docker host {host} was not touched",
            observed=f"{error.object}: {error.observed}",
            remedy="bring these nodes back, then run the same command again; for clusters that "
            "are down as a whole, `in_turn: false` changes all hosts at once",
        ) from None


def _refusal(host: str, down: dict[str, list[str]]) -> str:
    details = "".join(
        f"\n  - {name}: {'; '.join(reasons)}" for name, reasons in sorted(down.items())
    )
    return (
        f"Docker host {host} would be restarted or replaced while {listed(sorted(down))} is down:"
        f"{details}\n"
        f"  Bring {listed(sorted(down))} back first, with the settings of before for the hosts "
        "that run. Where clusters are down as a whole, `in_turn: false` changes all hosts at once"
    )


def _note(host: str, cluster: HostedCluster) -> str:
    """What ``cluster`` cannot do while ``host`` is away; empty if it can do without the host."""
    nodes = cluster.on(host)
    brokers = [node.number for node in nodes if node.address.broker]
    loses_quorum = cluster.has_majority() and not cluster.has_majority(nodes)
    lost = ["has no quorum"] if loses_quorum else []
    if len(brokers) > 1:
        lost.append("takes no records for partitions with too few replicas elsewhere")
    if not nodes or not lost:
        return ""
    return (
        f"Docker host {host} holds {numbered('node', [node.number for node in nodes])} of "
        f"{cluster.stack}. While it is away, the cluster {' and '.join(lost)}. With a host for "
        "each of at least three brokers, it would serve all the time"
    )


def _changed_architecture(host: str, former: str, target: str) -> str:
    return (
        f"Docker host {host} would change from {former} to {target}, and its volume holds images "
        f"and containers for {former}. Keep an instance type of {former}; or add a host with "
        "another name, and move the brokers there"
    )

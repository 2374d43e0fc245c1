"""The turn of a Docker host, as a resource: no host changes while another host or a node there is
down."""

import contextlib
from collections.abc import Iterable
from pathlib import Path
from uuid import uuid4

from earshot.config.docker_host import DockerHost
from earshot.errors import EarshotError
from earshot.listeners.listed import listed, numbered
from earshot_pulumi.docker.container_address import Engines
from earshot_pulumi.docker.readiness import RunningCluster
from earshot_pulumi.docker_hosts.clusters import ClusterNode, HostedCluster, host_of, nodes_on
from earshot_pulumi.provider.kind import UNKNOWN, Kind, Operation, Properties
from earshot_pulumi.provider.resource import InternalResource


class DockerHostTurnKind(Kind):
    """Refuses a change of a host while another host, or a node on it, is down; then waits until the
    nodes on the other hosts are in sync.

    Inputs: `host`, its name; `hosts`, all hosts that may have nodes, with this one (see
    `host_of`; if empty, the host may always change); `wanted`, the settings whose change
    restarts or replaces its instance; `arch`, its architecture; `answered`, true if its engine has
    answered an earlier update; and `seconds`, the time limit for the nodes on other hosts.
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
            nodes, reasons_by_host = _look(engines, other_hosts)
            with contextlib.suppress(
                EarshotError
            ):  # the change may be the fix for an engine that does not answer
                nodes += nodes_on(engines, host)
        if reasons_by_host:
            yield _refusal(host.name, reasons_by_host)
        for cluster in HostedCluster.all_of(nodes):
            if note := _note(host.name, cluster):
                operation.log(note)

    def apply(self, operation: Operation, olds: Properties, news: Properties) -> Properties:
        if news["hosts"]:
            host, other_hosts = _hosts(news)
            with Engines() as engines:
                nodes, reasons_by_host = _look(engines, other_hosts)
                if reasons_by_host:  # since the check
                    text = _refusal(host.name, reasons_by_host)
                    raise EarshotError("nothing was changed", observed=text)
                with contextlib.suppress(EarshotError):
                    nodes += nodes_on(engines, host)
                for cluster in HostedCluster.all_of(nodes):
                    _wait(engines, host.name, cluster, news["seconds"], operation)
        # a change that is reverted changes the host, too
        return {**news, "granted": uuid4().hex}


class DockerHostTurn(InternalResource):
    """Created once its host may be changed."""


def _waits(olds: Properties, news: Properties) -> bool:
    settings = news["wanted"]
    if not news["hosts"] or settings is UNKNOWN or settings == olds.get("wanted"):
        return False
    if any(UNKNOWN in host.values() for host in news["hosts"]):
        return False
    host, _ = _hosts(news)
    # the first preview of another checkout: the update gets the certificate
    return Path(host.cert_path or "", "key.pem").is_file()


def _hosts(props: Properties) -> tuple[DockerHost, list[DockerHost]]:
    """The host, and the other hosts."""
    hosts = list(map(host_of, props["hosts"]))
    (changing,) = (host for host in hosts if host.name == props["host"])
    return changing, [host for host in hosts if host is not changing]


def _look(
    engines: Engines, hosts: Iterable[DockerHost]
) -> tuple[list[ClusterNode], dict[str, list[str]]]:
    """The nodes on ``hosts``; and the reasons for each host that is down or has a node down."""
    nodes: list[ClusterNode] = []
    reasons_by_host: dict[str, list[str]] = {}
    for host in hosts:
        try:
            own_nodes = nodes_on(engines, host)
        except EarshotError as error:
            reasons_by_host[host.name] = [error.line]
            continue
        nodes += own_nodes
        if reasons := [
            f"container {node.address.name}: {node.problem}" for node in own_nodes if node.problem
        ]:
            reasons_by_host[host.name] = reasons
    return nodes, reasons_by_host


def _wait(
    engines: Engines, host: str, cluster: HostedCluster, seconds: float, operation: Operation
) -> None:
    """Returns when all nodes of ``cluster`` on other hosts than ``host`` are in sync.

    Returns at once if the cluster has no quorum, because no node can be in sync then. Raises
    EarshotError.
    """
    nodes = [node for node in cluster.nodes if node.address.host != host]
    if not nodes or not cluster.has_majority():
        return
    brokers = [node.address for node in nodes if node.address.can_be_asked]
    try:
        RunningCluster(engines, brokers, cluster.id, say=operation.log, deadline=seconds).wait_for(
            [(node.address, node.id) for node in nodes]
        )
    except EarshotError as error:
        raise EarshotError(
            f"Docker host {host} was not touched",
            observed=f"{error.object}: {error.observed}",
            remedy="start these nodes, then run the same command again; for clusters that are down "
            "as a whole, `in_turn: false` changes all hosts at once",
        ) from None


def _refusal(host: str, reasons_by_host: dict[str, list[str]]) -> str:
    details = "".join(
        f"\n  - {name}: {'; '.join(reasons)}" for name, reasons in sorted(reasons_by_host.items())
    )
    names = listed(sorted(reasons_by_host))
    return (
        f"Docker host {host} would be restarted or replaced while {names} is down:{details}\n"
        f"  Start {names} first, with the former settings of the hosts that run. If clusters are "
        "down as a whole, `in_turn: false` changes all hosts at once"
    )


def _note(host: str, cluster: HostedCluster) -> str:
    """The effects on ``cluster`` while ``host`` is down; empty without effects."""
    nodes = cluster.on(host)
    brokers = [node.number for node in nodes if node.address.broker]
    loses_quorum = cluster.has_majority() and not cluster.has_majority(nodes)
    effects = ["has no quorum"] if loses_quorum else []
    if len(brokers) > 1:
        effects.append("accepts no records for partitions with too few replicas elsewhere")
    if not nodes or not effects:
        return ""
    return (
        f"Docker host {host} holds {numbered('node', [node.number for node in nodes])} of "
        f"{cluster.stack}. While it is down, the cluster {' and '.join(effects)}. With a host for "
        "each of at least three brokers, it would serve all the time"
    )


def _changed_architecture(host: str, former: str, target: str) -> str:
    return (
        f"Docker host {host} would change from {former} to {target}, and its volume holds images "
        f"and containers for {former}. Keep an instance type of {former}; or add a host with "
        "another name, and move the brokers there"
    )

"""The clusters among a file's brokers, and each broker's quorum and cluster id.

Nodes are in one cluster if they name the same voters or the same ZooKeeper, or if one names the
address of another, so that a node with a wrong list is compared with the others. Sources for
the cluster id: `configureDefaults` in `docker/resources/common-scripts` of apache/kafka (a fixed id
where none is set), `kafka_initialize` in `libkafka.sh` of bitnami/containers (a random one on each
node), and `ensure CLUSTER_ID` in `kafka/include/etc/confluent/docker/configure` of kafka-images.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from earshot.facts.settings import KafkaSettings, Unreadable
from earshot.listeners.address import Address
from earshot.listeners.images import Family, cluster_id_variables
from earshot.listeners.placeholders import is_known
from earshot.listeners.terms import Protocol
from earshot.sources.service import Service
from earshot.topology.broker import Broker
from earshot.topology.container import is_loopback

QUORUM = ("controller.quorum.voters", "controller.quorum.bootstrap.servers", "zookeeper.connect")
_APACHE_ID = "5L6g3nShT-eMCtK--X86sw"
_STORAGE = ("/bitnami/kafka",)
"""The storage of bitnami's image."""


def cluster_of(service: Service, values: Mapping[str, str]) -> str:
    """A key that is equal for nodes of one cluster; a node with a lone quorum has its own."""
    alone = f"of {service.name} alone"
    for key in QUORUM:
        nodes = values.get(key, "").replace(" ", "")
        if not nodes or not is_known(nodes):
            continue
        host = nodes.rpartition("@")[2].rpartition(":")[0]
        itself = host in ("", "0.0.0.0") or is_loopback(host)
        if "," not in nodes and itself and not service.container.on_host_network:
            return alone
        return nodes if key == "zookeeper.connect" else ",".join(sorted(nodes.split(",")))
    return alone


def with_joined_clusters(
    brokers: Sequence[Broker], cluster_at: Callable[[Broker, Address], str] | None = None
) -> tuple[Broker, ...]:
    """``brokers`` with one cluster for those that name each other or share a voter.

    ``cluster_at`` returns the cluster of the controller at an address, seen from a broker, or an
    empty string; by default names of containers decide.
    """
    cluster_at = cluster_at or _by_names(brokers)
    leaders = {broker.cluster: broker.cluster for broker in brokers}

    def leader(cluster: str) -> str:
        while leaders[cluster] != cluster:
            cluster = leaders[cluster]
        return cluster

    holders: dict[str, str] = {}
    for broker in brokers:
        for mark in _voter_keys(broker):
            first_cluster = holders.setdefault(mark, broker.cluster)
            leaders[leader(broker.cluster)] = leader(first_cluster)
        for address in (*broker.voters.values(), *broker.quorum_servers):
            if first_cluster := cluster_at(broker, address):
                leaders[leader(broker.cluster)] = leader(first_cluster)
    return tuple(replace(broker, cluster=leader(broker.cluster)) for broker in brokers)


def _by_names(brokers: Sequence[Broker]) -> Callable[[Broker, Address], str]:
    clusters_by_name: dict[str, str] = {}
    for node in brokers:
        names = node.container.names if node.is_controller else ()
        clusters_by_name |= dict.fromkeys((*names, node.service.lower()), node.cluster)

    def cluster_at(broker: Broker, address: Address) -> str:
        is_on_host = broker.container.on_host_network
        return "" if is_on_host else clusters_by_name.get(address.host.lower(), "")

    return cluster_at


def _voter_keys(broker: Broker) -> Iterator[str]:
    """A key of each voter, except for those at loopback addresses."""
    for id, address in broker.voters.items():
        if not is_loopback(address.host) and address.host != "0.0.0.0":
            yield f"{id}@{address}".lower()


def voters_of(view: KafkaSettings) -> Mapping[int, Address]:
    """`controller.quorum.voters`, with localhost for an empty host; empty if unknown."""
    with suppress(Unreadable):
        if view.has("controller.quorum.voters"):
            return {
                id: Address(voter.host or "localhost", voter.port)
                for id, voter in view.voters.items()
            }
    return {}


def servers_of(view: KafkaSettings) -> tuple[Address, ...]:
    """`controller.quorum.bootstrap.servers`; empty if voters are set, or if unknown."""
    with suppress(Unreadable):
        if "controller.quorum.voters" not in view.values:
            return view.servers
    return ()


def quorum_address(view: KafkaSettings) -> Address | None:
    """The address that a controller without static voters advertises; None if not set."""
    with suppress(Unreadable):
        if view.values.get("controller.quorum.voters") or not view.is_controller:
            return None
        advertised = view.advertised if "advertised.listeners" in view.values else {}
        addresses = (advertised.get(name) for name in view.controllers)
        return next((address for address in addresses if address and address.host), None)
    return None


def quorum_protocol(view: KafkaSettings) -> Protocol | None:
    """The protocol of the first of `controller.listener.names`, which connections to controllers
    use."""
    with suppress(Unreadable):
        if view.has("process.roles") and view.controllers:
            return view.protocols.get(view.controllers[0])
    return None


def protocols_of(view: KafkaSettings) -> Mapping[str, Protocol]:
    """The known protocols of listeners by name."""
    try:
        return view.protocols
    except Unreadable:
        return {}


def cluster_id(service: Service) -> str | None:
    """The cluster id for which the image formats a KRaft node's storage; "" is a random one.

    None if unknown: another start script, variables from elsewhere, or storage that is kept and
    may be formatted already.
    """
    container = service.container
    family = container.family
    if not service.is_plain or container.unknown or container.has_own_script:
        return None
    for name in cluster_id_variables(family):
        if value := container.env.get(name, ""):
            return value if is_known(value) else None
    if any(name.endswith(("CLUSTER_ID_FILE", "SKIP_KRAFT_STORAGE_INIT")) for name in container.env):
        return None
    if family is Family.APACHE and "CLUSTER_ID" not in container.env:
        return _APACHE_ID
    kept = any(path.startswith(_STORAGE) for path in container.mounts)
    return "" if family is Family.BITNAMI and not kept else None

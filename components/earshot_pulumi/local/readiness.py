"""Waits for brokers: for the whole cluster at a first start, for one broker after a change."""

from __future__ import annotations

import functools
import logging
import socket
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from earshot import sockets
from earshot.errors import EarshotError
from earshot.listeners.grammar import parse_entries
from earshot.listeners.properties import read_properties
from earshot.listeners.security import FOLDER, own_access
from earshot.names.kinds import ip_of
from earshot.users.access import login_failure
from earshot.validation.client import ClientSettings
from earshot.validation.failure import Failure
from earshot_pulumi import driver
from earshot_pulumi.driver import BEHIND, ListeningNode, NodeDriver, Say
from earshot_pulumi.local import cluster_memory
from earshot_pulumi.local.access import accepts_connections, access, client_settings
from earshot_pulumi.local.preflight import started_with
from earshot_pulumi.local.process import last_log_lines, why_ended
from earshot_pulumi.local.process_record import running
from earshot_pulumi.provider.kind import Properties

DEADLINE = 120.0
"""Seconds to wait. A single voter of three gives up after 67 s, so a longer wait is useless."""
NO_ANSWER = "no answer"
_NOT_SERVING = ("refused", "timeout", "disconnected", "unreachable", "unresolvable")
"""Failures that mean that a listener does not serve, if earshot has no credentials for it.

With any other failure the broker has answered.
"""
AGAIN = "fix this cause, then run the same command again"
NOT_LISTENING = Failure("refused", "the node does not listen there")
_SILENT = logging.getLogger("earshot.readiness")  # refused connections are expected
_SILENT.addHandler(logging.NullHandler())
_SILENT.propagate = False


class LocalDriver(ListeningNode):
    """A node as a process of this machine.

    A broker is ready when it answers on its inter-broker listener, all its replicas are in sync and
    it serves clients. A separate controller is ready when it accepts connections.
    """

    def __init__(self, cluster: RunningCluster, id: int) -> None:
        self._cluster, self._id = cluster, id
        self._directory = cluster_memory.node_directory(cluster.root, id)
        self._values = values = _started_with(self._directory)
        text = values.get("advertised.listeners")
        listeners = dict(parse_entries(text)) if text else {}
        self._is_broker = "inter.broker.listener.name" in values
        key = "inter.broker.listener.name" if self._is_broker else "controller.listener.names"
        self._listener = values.get(key, "")
        self._address = listeners.get(self._listener)  # None if its settings are lost
        self._clients = cluster.client_settings(values) if self._is_broker else {}
        super().__init__(f"node {id}", self._clients, cluster.say)

    @functools.cached_property
    def _admin(self) -> AdminClient:
        host = self._address.host if self._address is not None else ""
        family = _family(self._values, self._listener) if host == "localhost" else {}
        return _admin(str(self._address), access(self._values, self._cluster.client) | family)

    def check_alive(self) -> None:
        if running(self._directory) is None:
            cause = why_ended(self._directory)
            raise EarshotError(f"{self.name} did not come up", observed=cause, remedy=AGAIN)

    def lacks(self) -> str:
        if not _listens(self._directory, self._listener):
            return NO_ANSWER
        if self._is_broker:
            reason = self._broker_lacks()
            return reason if reason == NO_ANSWER else self.unserved() or reason
        return "" if not self._address or accepts_connections(self._address) else NO_ANSWER

    def hindrance(self) -> str:
        """Why another node must not be stopped now; empty if nothing is known.

        The logins of clients do not count, as this update may change their users.
        """
        if not _listens(self._directory, self._listener):
            return NO_ANSWER
        if not self._is_broker:
            return LocalDriver.lacks(self)
        state = self._broker_lacks()
        # `client` may have the credentials of this update's settings, not those of the node
        needs_client = access(self._values, self._cluster.client) and not own_access(self._values)
        return "" if state == NO_ANSWER and needs_client else state

    def is_member(self) -> bool:
        """True if this is a broker that answers and has registered with the quorum."""
        if not self._is_broker or not _listens(self._directory, self._listener):
            return False
        try:
            return self._broker_lacks() != NO_ANSWER
        except EarshotError:  # another cluster's broker
            return False

    def _broker_lacks(self) -> str:
        cluster, address = self._cluster, str(self._address)
        return _broker_lacks(cluster.root, self._id, self._admin, address, cluster.cluster_id)

    def last_lines(self, count: int) -> str:
        return last_log_lines(self._directory, count)

    def label(self, listener: str) -> str:
        return f"{listener} at {self._clients[listener]['bootstrap.servers']}"

    def login_failure(self, listener: str) -> Failure | None:
        if not _listens(self._directory, listener):
            return NOT_LISTENING
        failure = login_failure(self._clients[listener])
        if failure is None or own_access(self._values) or failure.error in _NOT_SERVING:
            return failure
        return None

    def other_logins(self, listener: str) -> Iterator[Failure | None]:
        for directory in sorted(self._cluster.root.glob("node-*")):
            if directory != self._directory and running(directory) is not None:
                accesses = self._cluster.client_settings(_started_with(directory))
                if listener in accesses:
                    listens = _listens(directory, listener)
                    yield login_failure(accesses[listener]) if listens else NOT_LISTENING

    def reset_passwords(self) -> None:
        from earshot.certificates.store import Store
        from earshot_pulumi.local.users import reset_passwords  # slow to import

        reset_passwords(Store(self._cluster.root / FOLDER), str(self._address), self._values)


def _listens(directory: Path, listener: str) -> bool:
    """True if the node in ``directory`` runs and listens for ``listener``, or if that is unknown.

    Another user's process may listen at the node's port. Readiness must send it no password.
    """
    record = running(directory)
    if record is None:
        return False
    text = _started_with(directory).get("listeners")
    address = dict(parse_entries(text)).get(listener) if text else None
    ports = sockets.ports_of(record.pid) if address is not None else None
    return address is None or ports is None or address.port in ports


def _started_with(directory: Path) -> Mapping[str, str]:
    return read_properties(started_with(directory)).values


class _OtherNode(LocalDriver):
    """A node that must be in sync before another one is stopped."""

    def lacks(self) -> str:
        return self.hindrance()


@dataclass(frozen=True)
class RunningCluster:
    """The cluster under ``root``, and how long to wait for its nodes."""

    root: Path
    cluster_id: str
    client: Mapping[str, str] = field(default_factory=dict)
    """Kafka's client properties, for brokers that require credentials."""
    say: Say = lambda _: None
    """Gets the progress of a wait."""
    deadline: float = DEADLINE

    def client_settings(self, values: Mapping[str, str]) -> dict[str, Properties]:
        """Librdkafka's settings for each client listener of a node with the settings ``values``."""
        return client_settings(values, self.client, self.root / FOLDER)

    def wait_for(self, ids: Iterable[int]) -> None:
        """Returns when the nodes with these ``ids`` are ready.

        Raises EarshotError like `driver.wait_for`, and if another cluster answers.
        """
        self._wait([LocalDriver(self, id) for id in ids])

    def wait_for_others(self, id: int) -> None:
        """Returns when all running nodes except ``id`` are in sync.

        Returns at once if ``id`` itself is not: its restart takes no replica away. Raises
        EarshotError.
        """
        ids = cluster_memory.running_nodes(self.root)
        if id in ids and not LocalDriver(self, id).hindrance():
            self._wait([_OtherNode(self, other) for other in ids if other != id])

    def serves_clients(self) -> bool:
        """True if a running broker answers as a member of the cluster."""
        nodes = (LocalDriver(self, id) for id in cluster_memory.running_nodes(self.root))
        return any(node.is_member() for node in nodes)

    def _wait(self, nodes: Sequence[NodeDriver]) -> None:
        driver.wait_for(nodes, self.deadline, self.say, AGAIN)


def _family(values: Mapping[str, str], listener: str) -> dict[str, str]:
    """Librdkafka's setting to connect to `localhost` by the IP family that ``listener`` binds.

    `localhost` often has the address `::1`, too, on which a process of another user can listen.
    """
    text = values.get("listeners")
    address = dict(parse_entries(text)).get(listener) if text else None
    ip = ip_of(address.host) if address is not None else None
    if ip is None or ip.is_unspecified:
        return {}  # both families, or unknown
    family = socket.AF_INET if ip.version == 4 else socket.AF_INET6
    try:
        socket.getaddrinfo("localhost", None, family, flags=socket.AI_ADDRCONFIG)
    except OSError:
        return {}  # offline, with loopback alone, glibc resolves names for both families only
    return {"broker.address.family": f"v{ip.version}"}


def _admin(address: str, access: ClientSettings) -> AdminClient:
    settings: Properties = {
        **access,
        "bootstrap.servers": address,
        "socket.connection.setup.timeout.ms": 2000,
        "reconnect.backoff.max.ms": 500,
        "log_level": 0,
    }
    return AdminClient(settings, logger=_SILENT)


def _broker_lacks(root: Path, id: int, admin: AdminClient, address: str, cluster_id: str) -> str:
    """Why the broker is not ready; empty if it is. Raises EarshotError for another cluster."""
    try:
        metadata = admin.list_topics(timeout=2)
    except KafkaException:
        return NO_ANSWER
    answering_id: str | None = metadata.cluster_id  # always None in the type stubs
    if answering_id and answering_id != cluster_id:
        raise EarshotError(
            f"broker {id}",
            observed=f"cluster {answering_id} answers at {address}",
            allowed=f"cluster {cluster_id}, which this stack has formatted",
            remedy="find out which brokers listen there (another checkout of the stack, a "
            "container). Stop them, or give one of the clusters other ports; then run the same "
            "command again",
        )
    if id not in metadata.brokers:
        return NO_ANSWER
    partitions = (
        partition for topic in metadata.topics.values() for partition in topic.partitions.values()
    )
    lagging_isrs = [
        partition.isrs
        for partition in partitions
        if id in partition.replicas and id not in partition.isrs
    ]
    if not lagging_isrs:
        return ""
    # data that only stopped nodes have cannot be replicated before they run
    ended_ids = set(cluster_memory.ended(root, except_id=id))
    return "" if ended_ids and all(ended_ids >= set(isrs) for isrs in lagging_isrs) else BEHIND

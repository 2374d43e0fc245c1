"""Asks one address for the cluster's metadata, and which broker answers there.

A forwarder may lead each connection to a different broker, and a name may have the IP addresses of
several brokers. earshot therefore asks on several new connections.
"""

from __future__ import annotations

import contextlib
import ssl
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from earshot.listeners.address import Address
from earshot.listeners.listed import several, shortened
from earshot.validation.client import Failure
from earshot.validation.deadline import Deadline
from earshot.validation.login import Login
from earshot.validation.metadata import MetadataAnswer
from earshot.validation.wire import (
    Exchange,
    ExchangeError,
    answering_broker,
    connect,
    fetch,
    leads_partition,
    metadata,
    negotiate_versions,
)

CONNECTIONS: Final = 5
"""New connections to one address, each with a request for the broker's id. A forwarder that
alternates between two brokers is always detected; one that picks one of two at random is missed in
1 of 32 runs."""
MAX_IPS: Final = 8
"""The maximum number of IP addresses tried per name."""
IDENTIFY_LIMIT: Final = 2.0
"""Seconds for all these connections."""
VERSIONS_LIMIT: Final = 2.0
"""Seconds for the answer to ApiVersions, which a broker gives at once."""
VERSIONS_PATIENCE: Final = 1.0
"""If fewer seconds than this were left, a missing answer to ApiVersions proves nothing."""
MAX_COMPARED: Final = 100
"""The number of brokers up to which each of these connections asks for the metadata too, which
lists all brokers."""
AGAIN_AFTER: Final = 0.2
"""Seconds before the only retry after a closed connection: the broker may be starting."""
UNSTEADY: Final = 2
"""The number of unanswered connections from which they are reported, if others were answered."""
NOT_TOLD: Final = "it does not report its id, which needs DescribeConfigs on the cluster"
FIRST_ONLY: Final = "only the first connection was answered in time"
_CLOSED_ERRORS: Final = frozenset({"disconnected", "refused"})


@dataclass(frozen=True)
class ReachableAddress:
    """An address that accepts connections, with the TLS settings and the login for it."""

    address: Address
    ips: tuple[str, ...]
    """At least one. The first accepted a connection."""
    context: ssl.SSLContext | None
    login: Login | None

    @contextlib.contextmanager
    def connect_again(self, number: int, end: Deadline) -> Iterator[Exchange]:
        """A new connection after the login, to the IP addresses in turn. Raises ExchangeError."""
        ip = self.ips[number % len(self.ips)]
        with connect(ip, self.address, self.context, end) as connection:
            exchange = Exchange(connection, end)
            if self.login is not None:
                self.login.log_in(exchange)
            yield exchange

    @property
    def connection_count(self) -> int:
        return max(CONNECTIONS, len(self.ips))


@dataclass(frozen=True)
class AnsweringBrokers:
    """Which brokers answered at one address, over several connections."""

    ids: tuple[int, ...] = ()
    """The id of the broker, for each connection on which it answered with one."""
    unanswered_count: int = 0
    """Connections to the first IP address that ended without an answer."""
    unknown_reason: str = ""
    """Why the answering broker is unknown; empty if it is known."""
    was_closed: bool = False
    """True if the very first connection was closed without an answer, and the next was not."""
    other_clusters: tuple[str, ...] = ()
    """The id of the cluster, for each connection that reached another one than the first."""

    moved_brokers: tuple[Mapping[int, Address], ...] = ()
    """The brokers that the metadata lists at other addresses than on the first connection, for each
    connection with such an answer."""

    @property
    def is_contradictory(self) -> bool:
        """True if connections reached several clusters, or got several addresses of a broker."""
        return bool(self.other_clusters or self.moved_brokers)

    def other_addresses(self, address: Address) -> str:
        """Text about connections to ``address`` that got other addresses of a broker; empty if
        none did."""
        if not self.moved_brokers:
            return ""
        brokers = {
            f"broker {id} at {place}"
            for addresses in self.moved_brokers
            for id, place in addresses.items()
        }
        moved_count = len(self.moved_brokers)
        total = max(len(self.ids) + self.unanswered_count, moved_count + 1)
        listed = shortened(sorted(brokers))
        return f"{moved_count} of {total} connections to {address} got other addresses: {listed}"

    def other_cluster(self, address: Address) -> str:
        """Text about connections to ``address`` that reached another cluster; empty if none did."""
        if not self.other_clusters:
            return ""
        total = len(self.ids) + len(self.other_clusters) + self.unanswered_count
        count = f"{len(self.other_clusters)} of {total} connections to {address}"
        return f"{count} reached {several('cluster', sorted({*self.other_clusters}))}"

    def other_brokers(self, address: Address, expected: int) -> str:
        """Text about other brokers than ``expected`` that answered at ``address``; empty if none
        did."""
        other_ids = Counter(id for id in self.ids if id != expected)
        if not other_ids:
            return ""
        if len(other_ids) == 1 and other_ids.total() == len(self.ids):
            return f"{address} leads to broker {self.ids[0]}, not to broker {expected}"
        names = " and ".join(f"broker {id}" for id in sorted(other_ids)[:3])
        count = f"{other_ids.total()} of {len(self.ids)} connections to {address}"
        return f"{count} reached {names}, and not broker {expected}"

    def unanswered(self, address: Address) -> str:
        """Text about connections to ``address`` without an answer; empty if there were fewer than
        `UNSTEADY`."""
        if self.unanswered_count < UNSTEADY:
            return ""
        count = f"{self.unanswered_count} of {self.unanswered_count + len(self.ids)}"
        return f"{count} connections to {address} got no answer"

    def few_unanswered(self, address: Address) -> str:
        """Text about connections to ``address`` without an answer that are too few for
        `unanswered`; empty if there were none."""
        count = self.unanswered_count + self.was_closed
        if not count:
            return ""
        return f"{count} of {count + len(self.ids)} connections to {address} got no answer"


NOT_ASKED: Final = AnsweringBrokers()


def ask_address(
    peer: ReachableAddress, end: Deadline
) -> tuple[MetadataAnswer | Failure, AnsweringBrokers]:
    """The metadata of the broker at ``peer`` (or a failure), and the brokers that answered."""
    try:
        return _ask_once(peer, end)
    except ExchangeError as error:
        if error.failure.error not in _CLOSED_ERRORS or end.stop.wait(min(AGAIN_AFTER, end.left())):
            return error.failure, NOT_ASKED
    try:
        answer, brokers = _ask_once(peer, end)
    except ExchangeError as error:
        return error.failure, NOT_ASKED
    return answer, replace(brokers, was_closed=bool(brokers.ids))


def _ask_once(peer: ReachableAddress, end: Deadline) -> tuple[MetadataAnswer, AnsweringBrokers]:
    start = time.monotonic()
    with peer.connect_again(0, end) as exchange:
        cluster, brokers = metadata(exchange)
        answer = MetadataAnswer(peer.address, cluster, brokers, time.monotonic() - start)
        if not brokers:
            return answer, NOT_ASKED
        own_ids = (id for id, address in brokers.items() if address == peer.address)
        candidate = next(own_ids, min(brokers))
        limit = end.within(IDENTIFY_LIMIT)
        try:
            broker_id = answering_broker(exchange, candidate)
        except ExchangeError:
            broker_id = None
    if broker_id is None:
        return answer, AnsweringBrokers(unknown_reason=NOT_TOLD)
    return answer, _ask_again(peer, answer, broker_id, candidate, limit)


def _ask_again(
    peer: ReachableAddress, answer: MetadataAnswer, first_id: int, candidate: int, end: Deadline
) -> AnsweringBrokers:
    """The broker ``first_id``, which gave ``answer``, and those that answer on further
    connections."""
    ids, unanswered_count, is_silent = [first_id], 0, False
    other_clusters: list[str] = []
    moved_brokers: list[Mapping[int, Address]] = []
    compares_metadata = len(answer.brokers) <= MAX_COMPARED
    for number in range(1, peer.connection_count):
        if not end.left():
            break
        try:
            with peer.connect_again(number, end) as exchange:
                cluster, brokers = (
                    metadata(exchange) if compares_metadata else (answer.cluster_id, answer.brokers)
                )
                if cluster != answer.cluster_id:
                    other_clusters.append(cluster or "without an id")
                    continue
                broker_id = answering_broker(exchange, candidate)
        except ExchangeError as error:
            # another IP address of the name may be dead: only the first one counts
            is_first_ip = number % len(peer.ips) == 0
            unanswered_count += is_first_ip and error.failure.error in _CLOSED_ERRORS
            is_silent |= error.failure.error == "timeout"
            continue
        if broker_id is not None:
            ids.append(broker_id)
        if moved := _moved_brokers(answer.brokers, brokers):
            moved_brokers.append(moved)
    unknown_reason = FIRST_ONLY if is_silent and len(ids) == 1 else ""
    return AnsweringBrokers(
        tuple(ids),
        unanswered_count,
        unknown_reason,
        other_clusters=tuple(other_clusters),
        moved_brokers=tuple(moved_brokers),
    )


def _moved_brokers(before: Mapping[int, Address], now: Mapping[int, Address]) -> dict[int, Address]:
    """The brokers of both that have another address in ``now``."""
    return {id: place for id, place in now.items() if before.get(id, place) != place}


def version_failure(peer: ReachableAddress, end: Deadline) -> Failure | None:
    """The failure of ApiVersions at ``peer``; None if it is answered, or nothing is known.

    Nothing is known if ``peer`` does not answer a metadata request either.
    """
    deadline = end.within(VERSIONS_LIMIT)
    if deadline.seconds < VERSIONS_PATIENCE:
        return None
    try:
        with peer.connect_again(0, deadline) as exchange:
            try:
                negotiate_versions(exchange)
            except ExchangeError as error:
                is_known = answers_again(peer, end.within(VERSIONS_LIMIT))
                return error.failure if is_known else None
    except ExchangeError:
        return None
    return None


def fetched(
    peer: ReachableAddress, topic: str, partition: int, offset: int, end: Deadline
) -> bytes:
    """The records that ``peer`` returns from ``offset`` on a new connection; empty if it returns
    none."""
    try:
        with peer.connect_again(0, end) as exchange:
            return fetch(exchange, topic, partition, offset)
    except ExchangeError:
        return b""


def answers_again(peer: ReachableAddress, end: Deadline) -> bool:
    """True if ``peer`` answers a small request on a new connection."""
    try:
        with peer.connect_again(0, end) as exchange:
            metadata(exchange)
    except ExchangeError:
        return False
    return True


def wrong_brokers(
    peer: ReachableAddress, topic: str, partition: int, end: Deadline
) -> tuple[int, int]:
    """The number of new connections that reached a broker other than the leader of ``partition``,
    and the number of answered connections.

    For users without DescribeConfigs on the cluster, which a request for the broker's id needs.
    """
    leader_answers: list[bool] = []
    for number in range(peer.connection_count):
        if not end.left():
            break
        with contextlib.suppress(ExchangeError), peer.connect_again(number, end) as exchange:
            is_leader = leads_partition(exchange, topic, partition)
            if is_leader is not None:
                leader_answers.append(is_leader)
    return leader_answers.count(False), len(leader_answers)

"""Asks one address for the cluster's metadata, and which broker answers there.

A forwarder may lead each connection to a different broker, and a name may have the IP addresses of
several brokers. earshot therefore asks on several new connections.
"""

from __future__ import annotations

import contextlib
import ssl
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from earshot.listeners.address import Address
from earshot.validation.client import Failure
from earshot.validation.deadline import Deadline
from earshot.validation.login import Login
from earshot.validation.metadata import MetadataAnswer
from earshot.validation.wire import (
    Exchange,
    ExchangeError,
    answering_broker,
    connect,
    leads,
    metadata,
)

CONNECTIONS: Final = 5
"""New connections to one address, each with a request for the broker's id. A forwarder that picks
one of two brokers at random is missed in 1 of 32 runs, one that takes turns never."""
MOST_IPS: Final = 8
"""IP addresses of one name that are tried."""
IDENTIFY_LIMIT: Final = 2.0
"""Seconds for all these connections."""
AGAIN_AFTER: Final = 0.2
"""Seconds before the one further try where a connection was closed: a broker may be starting."""
UNSTEADY: Final = 2
"""This many connections without an answer are reported, if others were answered."""
NOT_TOLD: Final = "it does not say which broker it is (that takes DescribeConfigs on the cluster)"
ALONE: Final = "only the first connection was answered in time"
_BROKEN: Final = frozenset({"disconnected", "refused"})


@dataclass(frozen=True)
class ReachableAddress:
    """An address that accepts connections, with the TLS settings and the login for it."""

    address: Address
    ips: tuple[str, ...]
    """At least one; the first is the one that accepted a connection."""
    context: ssl.SSLContext | None
    login: Login | None

    @contextlib.contextmanager
    def opened(self, number: int, end: Deadline) -> Iterator[Exchange]:
        """A new connection after the login, to the IP addresses in turn. Raises ExchangeError."""
        ip = self.ips[number % len(self.ips)]
        with connect(ip, self.address, self.context, end) as connection:
            exchange = Exchange(connection, end)
            if self.login is not None:
                self.login.show(exchange)
            yield exchange

    @property
    def connections(self) -> int:
        return max(CONNECTIONS, len(self.ips))


@dataclass(frozen=True)
class AnsweringBrokers:
    """Which brokers answered at one address, over several connections."""

    ids: tuple[int, ...] = ()
    """The id of the broker, for each connection on which it answered with one."""
    broken: int = 0
    """Connections that ended without an answer."""
    unknown: str = ""
    """Why it is not known which broker answers."""

    def other_brokers(self, address: Address, expected: int) -> str:
        """Text about other brokers than ``expected`` that answered at ``address``; empty if none
        did."""
        others = Counter(id for id in self.ids if id != expected)
        if not others:
            return ""
        if len(others) == 1 and others.total() == len(self.ids):
            return f"{address} leads to broker {self.ids[0]}, not to broker {expected}"
        which = " and ".join(f"broker {id}" for id in sorted(others)[:3])
        count = f"{others.total()} of {len(self.ids)} connections to {address}"
        return f"{count} reached {which}, and not broker {expected}"

    def unanswered(self, address: Address) -> str:
        """Text about connections to ``address`` without an answer; empty if there were fewer than
        `UNSTEADY`."""
        if self.broken < UNSTEADY:
            return ""
        count = f"{self.broken} of {self.broken + len(self.ids)}"
        return f"{count} connections to {address} got no answer"


NOT_ASKED: Final = AnsweringBrokers()


def ask_address(
    peer: ReachableAddress, end: Deadline
) -> tuple[MetadataAnswer | Failure, AnsweringBrokers]:
    """The metadata that ``peer`` answers with, and which broker answers."""
    try:
        return _ask_once(peer, end)
    except ExchangeError as error:
        if error.failure.error not in _BROKEN or end.stop.wait(min(AGAIN_AFTER, end.left())):
            return error.failure, NOT_ASKED
    try:
        return _ask_once(peer, end)
    except ExchangeError as error:
        return error.failure, NOT_ASKED


def _ask_once(peer: ReachableAddress, end: Deadline) -> tuple[MetadataAnswer, AnsweringBrokers]:
    begun = time.monotonic()
    with peer.opened(0, end) as exchange:
        cluster, brokers = metadata(exchange)
        answer = MetadataAnswer(peer.address, cluster, brokers, time.monotonic() - begun)
        if not brokers:
            return answer, NOT_ASKED
        own = (id for id, address in brokers.items() if address == peer.address)
        candidate = next(own, min(brokers))
        limit = end.within(IDENTIFY_LIMIT)
        try:
            who = answering_broker(exchange, candidate)
        except ExchangeError:
            who = None
    if who is None:
        return answer, AnsweringBrokers(unknown=NOT_TOLD)
    return answer, _ask_again(peer, who, candidate, limit)


def _ask_again(
    peer: ReachableAddress, first: int, candidate: int, end: Deadline
) -> AnsweringBrokers:
    """The broker ``first``, and those that answer on further connections."""
    ids, broken, silent = [first], 0, False
    for number in range(1, peer.connections):
        if not end.left():
            break
        try:
            with peer.opened(number, end) as exchange:
                who = answering_broker(exchange, candidate)
        except ExchangeError as error:
            # another address of the name may be dead, which is no fault of this one
            own = number % len(peer.ips) == 0
            broken += own and error.failure.error in _BROKEN
            silent |= error.failure.error == "timeout"
            continue
        if who is not None:
            ids.append(who)
    unknown = ALONE if silent and len(ids) == 1 else ""
    return AnsweringBrokers(tuple(ids), broken, unknown)


def wrong_brokers(
    peer: ReachableAddress, topic: str, partition: int, end: Deadline
) -> tuple[int, int]:
    """The number of new connections that reached a broker that does not lead ``partition``, and the
    number of connections that were answered.

    It serves users without the permission to ask a broker for its id.
    """
    answers: list[bool] = []
    for number in range(peer.connections):
        if not end.left():
            break
        with contextlib.suppress(ExchangeError), peer.opened(number, end) as exchange:
            is_leader = leads(exchange, topic, partition)
            if is_leader is not None:
                answers.append(is_leader)
    return answers.count(False), len(answers)

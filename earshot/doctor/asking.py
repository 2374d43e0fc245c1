"""What one address answers: its cluster's metadata, and which broker is behind it.

A forwarder may take each connection to another broker, and a name may have an address of each. So
the question which broker answers is asked on several fresh connections.
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
"""Connections to one address on which the broker is asked who it is. A forwarder that draws one of
two brokers for each is missed once in thirty-two runs, one that takes turns never."""
MOST_IPS: Final = 8
"""IP addresses of one name that are tried."""
IDENTIFY_LIMIT: Final = 2.0
"""Seconds for all these connections."""
AGAIN_AFTER: Final = 0.2
"""Seconds before the one further try where a connection was closed: a broker may be starting."""
UNSTEADY: Final = 2
"""Connections without an answer, beside others with one, that are no accident any more."""
NOT_TOLD: Final = "it does not say which broker it is (that takes DescribeConfigs on the cluster)"
ALONE: Final = "it answered on the first connection alone, and on no further one in time"
_BROKEN: Final = frozenset({"disconnected", "refused"})


@dataclass(frozen=True)
class Peer:
    """An address that accepts connections, and how a client gets in there."""

    address: Address
    ips: tuple[str, ...]
    """At least one; the first is the one that accepted a connection."""
    context: ssl.SSLContext | None
    login: Login | None

    @contextlib.contextmanager
    def opened(self, number: int, end: Deadline) -> Iterator[Exchange]:
        """A fresh connection, logged in; by the IP addresses in turn. Raises ExchangeError."""
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
    """The broker on each connection that told."""
    broken: int = 0
    """Connections that ended without an answer."""
    unknown: str = ""
    """Why it is not known which broker answers."""

    def stray(self, address: Address, expected: int) -> str:
        """Which other brokers than ``expected`` answered at ``address``, in words; empty where none
        did."""
        others = Counter(id for id in self.ids if id != expected)
        if not others:
            return ""
        if len(others) == 1 and others.total() == len(self.ids):
            return f"{address} leads to broker {self.ids[0]}, not to broker {expected}"
        which = " and ".join(f"broker {id}" for id in sorted(others)[:3])
        count = f"{others.total()} of {len(self.ids)} connections to {address}"
        return f"{count} reached {which}, and not broker {expected}"

    def unsteady(self, address: Address) -> str:
        """How many connections to ``address`` got no answer, in words; empty where that may be an
        accident."""
        if self.broken < UNSTEADY:
            return ""
        count = f"{self.broken} of {self.broken + len(self.ids)}"
        return f"{count} connections to {address} got no answer"


UNASKED: Final = AnsweringBrokers()


def question(peer: Peer, end: Deadline) -> tuple[MetadataAnswer | Failure, AnsweringBrokers]:
    """The metadata that ``peer`` gives, and which broker gives it."""
    try:
        return _question(peer, end)
    except ExchangeError as error:
        if error.failure.error not in _BROKEN or end.stop.wait(min(AGAIN_AFTER, end.left())):
            return error.failure, UNASKED
    try:
        return _question(peer, end)
    except ExchangeError as error:
        return error.failure, UNASKED


def _question(peer: Peer, end: Deadline) -> tuple[MetadataAnswer, AnsweringBrokers]:
    begun = time.monotonic()
    with peer.opened(0, end) as exchange:
        cluster, brokers = metadata(exchange)
        answer = MetadataAnswer(peer.address, cluster, brokers, time.monotonic() - begun)
        if not brokers:
            return answer, UNASKED
        own = (id for id, address in brokers.items() if address == peer.address)
        candidate = next(own, min(brokers))
        limit = end.within(IDENTIFY_LIMIT)
        try:
            who = answering_broker(exchange, candidate)
        except ExchangeError:
            who = None
    if who is None:
        return answer, AnsweringBrokers(unknown=NOT_TOLD)
    return answer, _on_others(peer, who, candidate, limit)


def _on_others(peer: Peer, first: int, candidate: int, end: Deadline) -> AnsweringBrokers:
    """``first``, and which brokers answer on further connections."""
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


def strangers(peer: Peer, topic: str, partition: int, end: Deadline) -> tuple[int, int]:
    """How many of how many fresh connections reach a broker that does not lead ``partition``.

    For users who may not ask a broker who it is.
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

"""Asks a broker for its cluster's state: replicas in sync, and the lag of the quorum's voters.

Formats: https://kafka.apache.org/protocol (Metadata 2, DescribeQuorum 1: supported from Kafka 3.9).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, TypeVar

from earshot.validation.wire import METADATA, Answer, Exchange, ExchangeError

METADATA_TOPIC: Final = "__cluster_metadata"
DESCRIBE_QUORUM: Final = 55
MAX_STATE_BYTES: Final = 64 << 20
"""The maximum size of an answer: metadata of a million partitions is shorter."""
CAUGHT_UP_MS: Final = 3000
"""The allowed lag of a voter: the leader appends a record every half second."""
T = TypeVar("T")


@dataclass(frozen=True)
class Partition:
    """One partition in a broker's metadata."""

    topic: str
    number: int
    leader: int
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.topic}-{self.number}"


@dataclass(frozen=True)
class ClusterState:
    """The ids of the live brokers, and all partitions."""

    brokers: tuple[int, ...]
    partitions: tuple[Partition, ...]
    cluster_id: str = ""
    """Empty if the broker does not report it."""

    def lagging_partitions(self, id: int, only_led: bool = False) -> list[Partition]:
        """The partitions with an out-of-sync replica on broker ``id``.

        With ``only_led``, partitions without a leader are omitted: they depend on another broker.
        """
        return [
            partition
            for partition in self.partitions
            if id in partition.replicas
            and id not in partition.in_sync
            and (partition.leader >= 0 or not only_led)
        ]


@dataclass(frozen=True)
class Quorum:
    """The KRaft quorum: the leader's id, and the time (ms, the leader's clock) at which each voter
    was last caught up."""

    leader: int
    caught_up: dict[int, int]

    def lag(self, id: int) -> int | None:
        """The lag of a voter behind the leader in milliseconds; None if unknown."""
        voter, leader = self.caught_up.get(id, -1), self.caught_up.get(self.leader, -1)
        return None if voter < 0 or leader < 0 else max(0, leader - voter)


def cluster_state(exchange: Exchange) -> ClusterState:
    """The cluster's state in the peer's metadata. ``exchange`` must allow `MAX_STATE_BYTES`.
    Raises ExchangeError."""
    answer = exchange.request(METADATA, 2, struct.pack(">i", -1))
    brokers = tuple(_broker(answer) for _ in range(answer.count(12)))
    cluster_id = answer.text()
    answer.number(4)  # the controller for clients
    topics = [_partitions(answer) for _ in range(answer.count(9))]
    return ClusterState(
        brokers, tuple(partition for partitions in topics for partition in partitions), cluster_id
    )


def _broker(answer: Answer) -> int:
    id = answer.number(4)
    answer.text()  # its host
    answer.number(4)
    answer.text()  # its rack
    return id


def _partitions(answer: Answer) -> list[Partition]:
    def ids() -> tuple[int, ...]:
        return tuple(answer.number(4) for _ in range(answer.count(4)))

    answer.number(2)  # its error: not needed, the partitions show their state
    name = answer.text()
    answer.number(1)
    partitions = []
    for _ in range(answer.count(18)):
        answer.number(2)
        partitions.append(Partition(name, answer.number(4), answer.number(4), ids(), ids()))
    return partitions


def quorum(exchange: Exchange) -> Quorum:
    """The state of the quorum, from its leader through any broker. Raises ExchangeError."""
    topic = METADATA_TOPIC.encode()
    body = b"\0\x02" + bytes([len(topic) + 1]) + topic + b"\x02" + struct.pack(">i", 0) + b"\0\0\0"
    answer = exchange.request(DESCRIBE_QUORUM, 1, body)
    answer.skip_tags()
    _check(answer)
    quorums = [topic for topics in _entries(answer, _topic) for topic in topics]
    if not quorums:
        raise ExchangeError("not-kafka", "the quorum is not in the answer")
    return quorums[0]


def _topic(answer: Answer) -> list[Quorum]:
    answer.skip(max(0, answer.varint() - 1))
    quorums = list(_entries(answer, _quorum))
    answer.skip_tags()
    return quorums


def _quorum(answer: Answer) -> Quorum:
    answer.number(4)
    _check(answer)
    leader = answer.number(4)
    answer.skip(12)  # its epoch, the high watermark
    voters = dict(_entries(answer, _replica))
    for _ in _entries(answer, _replica):
        pass  # observers
    answer.skip_tags()
    return Quorum(leader, voters)


def _replica(answer: Answer) -> tuple[int, int]:
    id = answer.number(4)
    answer.skip(16)  # its log's end, its last fetch
    caught_up_ms = answer.number(8)
    answer.skip_tags()
    return id, caught_up_ms


def _entries(answer: Answer, read_entry: Callable[[Answer], T]) -> Iterator[T]:
    """The entries of a compact array."""
    for _ in range(max(0, answer.varint() - 1)):
        yield read_entry(answer)


def _check(answer: Answer) -> None:
    if error := answer.number(2):
        raise ExchangeError("refused-request", f"Kafka's error {error}")

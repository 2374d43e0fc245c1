"""What a broker reports of its cluster's state: replicas in sync, and how far voters are.

Formats: https://kafka.apache.org/protocol (Metadata 2, DescribeQuorum 1: all Kafka versions from
3.9 on take them).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, TypeVar

from earshot.validation.wire import METADATA, Answer, Exchange, ExchangeError

METADATA_TOPIC: Final = "__cluster_metadata"
DESCRIBE_QUORUM: Final = 55
MOST_STATE_BYTES: Final = 64 << 20
"""Bytes of one answer: metadata of a million partitions is shorter."""
CAUGHT_UP_MS: Final = 3000
"""How far a voter may be behind: the leader appends something every half second."""
T = TypeVar("T")


@dataclass(frozen=True)
class Partition:
    """One partition, as a broker knows it."""

    topic: str
    number: int
    leader: int
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.topic}-{self.number}"


@dataclass(frozen=True)
class ClusterState:
    """The living brokers, and all partitions."""

    brokers: tuple[int, ...]
    partitions: tuple[Partition, ...]
    cluster_id: str = ""
    """Empty where the broker does not report it."""

    def behind(self, id: int, led: bool = False) -> list[Partition]:
        """Partitions of which broker ``id`` has a replica that is not in sync.

        With ``led``, only those with a leader: the others depend on another broker.
        """
        return [
            partition
            for partition in self.partitions
            if id in partition.replicas
            and id not in partition.in_sync
            and (partition.leader >= 0 or not led)
        ]


@dataclass(frozen=True)
class Quorum:
    """The KRaft quorum: its leader, and when (ms, its clock) each voter was last caught up."""

    leader: int
    caught_up: dict[int, int]

    def lag(self, id: int) -> int | None:
        """Milliseconds by which a voter is behind its leader; None where that is not known."""
        voter, leader = self.caught_up.get(id, -1), self.caught_up.get(self.leader, -1)
        return None if voter < 0 or leader < 0 else max(0, leader - voter)


def cluster_state(exchange: Exchange) -> ClusterState:
    """The state as the peer knows it; it needs room for `MOST_STATE_BYTES`. Raises
    ExchangeError."""
    answer = exchange.request(METADATA, 2, struct.pack(">i", -1))
    brokers = tuple(_broker(answer) for _ in range(answer.count(12)))
    cluster_id = answer.text()
    answer.number(4)  # the controller, as far as clients are concerned
    topics = [_partitions(answer) for _ in range(answer.count(9))]
    return ClusterState(
        brokers, tuple(partition for found in topics for partition in found), cluster_id
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

    answer.number(2)  # its error; what matters of it is in the partitions
    name = answer.text()
    answer.number(1)
    found = []
    for _ in range(answer.count(18)):
        answer.number(2)
        found.append(Partition(name, answer.number(4), answer.number(4), ids(), ids()))
    return found


def quorum(exchange: Exchange) -> Quorum:
    """The quorum as its leader knows it, asked through any broker. Raises ExchangeError."""
    topic = METADATA_TOPIC.encode()
    body = b"\0\x02" + bytes([len(topic) + 1]) + topic + b"\x02" + struct.pack(">i", 0) + b"\0\0\0"
    answer = exchange.request(DESCRIBE_QUORUM, 1, body)
    answer.skip_tags()
    _check(answer)
    found = [topic for topics in _listed(answer, _topic) for topic in topics]
    if not found:
        raise ExchangeError("not-kafka", "the quorum is not in the answer")
    return found[0]


def _topic(answer: Answer) -> list[Quorum]:
    answer.skip(max(0, answer.varint() - 1))
    found = list(_listed(answer, _quorum))
    answer.skip_tags()
    return found


def _quorum(answer: Answer) -> Quorum:
    answer.number(4)
    _check(answer)
    leader = answer.number(4)
    answer.skip(12)  # its epoch, the high watermark
    voters = dict(_listed(answer, _replica))
    for _ in _listed(answer, _replica):
        pass  # observers
    answer.skip_tags()
    return Quorum(leader, voters)


def _replica(answer: Answer) -> tuple[int, int]:
    id = answer.number(4)
    answer.skip(16)  # its log's end, its last fetch
    when = answer.number(8)
    answer.skip_tags()
    return id, when


def _listed(answer: Answer, item: Callable[[Answer], T]) -> Iterator[T]:
    """The entries of a compact array."""
    for _ in range(max(0, answer.varint() - 1)):
        yield item(answer)


def _check(answer: Answer) -> None:
    if error := answer.number(2):
        raise ExchangeError("refused-request", f"Kafka's error {error}")

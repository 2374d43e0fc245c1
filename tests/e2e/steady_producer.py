"""A producer that writes at a steady rate while a test changes the cluster.

It is a common client: idempotent, acks=all, defaults otherwise. It gets its bootstrap once and no
later address. Its acknowledged records are remembered and checked.
"""

import time
import zlib
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.e2e.background import Background

REPLICAS = [[1, 2, 3], [2, 3, 1], [3, 1, 2]]
"""The replicas of each partition; the first one leads."""
PER_SECOND = 20
"""A rate at which records are on their way whenever a broker stops; more would slow brokers down.
"""
MAX_RECORDS = 60_000
PAYLOAD = 200
"""Bytes."""
KNOWN_SECONDS = 30.0
FLUSH_SECONDS = 120.0
READ_SECONDS = 60.0


@dataclass(frozen=True)
class Acknowledged:
    """An acknowledged record, and the time of its acknowledgement (s, monotonic clock)."""

    sequence: int
    checksum: int
    partition: int
    offset: int | None
    """None if the broker had the record already when it was sent again, and returned no offset."""
    when: float


def led_by_every_broker(servers: str, name: str, client: Mapping[str, Any] = {}) -> None:
    """Creates a topic whose n-th partition is led by the n-th broker; two must have a record.

    ``client`` has librdkafka's settings for the login. Returns once every broker knows the topic,
    because a client of another broker would get an error.
    """
    admin = AdminClient({**client, "bootstrap.servers": servers})
    config = {"min.insync.replicas": "2"}
    topic = NewTopic(name, len(REPLICAS), replica_assignment=REPLICAS, config=config)
    try:
        admin.create_topics([topic])[name].result(30)
    except KafkaException as error:
        # the client repeats a request whose answer was lost
        if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
            raise
    end = time.monotonic() + KNOWN_SECONDS
    for server in servers.split(","):
        broker = AdminClient({**client, "bootstrap.servers": server})
        while name not in broker.list_topics(timeout=10).topics:
            assert time.monotonic() < end, f"{server} does not know {name}"
            time.sleep(0.1)


def record(sequence: int) -> tuple[int, bytes]:
    """The record of this number, with its checksum. Every number has different bytes."""
    text = f"{sequence} ".encode()
    body = text + bytes(33 + (sequence * 31 + at * 7) % 90 for at in range(PAYLOAD - len(text)))
    return zlib.crc32(body), body


class SteadyProducer(Background):
    """Writes to the partitions of a topic in turn while its context is open.

    ``acknowledged`` and ``failed`` are complete after that.
    """

    def __init__(
        self, bootstrap: str, topic: str, partitions: int, client: Mapping[str, Any] = {}
    ) -> None:
        self.acknowledged: list[Acknowledged] = []
        self.failed: list[str] = []
        self.sent = 0
        self.topic, self._partitions = topic, partitions
        self._producer = Producer(
            {**client, "bootstrap.servers": bootstrap, "acks": "all", "enable.idempotence": True}
        )
        super().__init__(f"writes to {topic}", [self._run], FLUSH_SECONDS + 10)

    def leave(self) -> None:
        """Ends the producer's connections."""
        del self._producer

    def known_brokers(self) -> dict[int, str]:
        """The addresses of brokers that the running client has, by id."""
        brokers = self._producer.list_topics(timeout=30).brokers
        return {id: f"{broker.host}:{broker.port}" for id, broker in brokers.items()}

    def _run(self) -> None:
        turn = time.monotonic()
        while not self.over.is_set() and self.sent < MAX_RECORDS:
            self._send()
            # after a stop it continues at its rate, and does not catch up
            turn = max(turn + 1 / PER_SECOND, time.monotonic())
            while (seconds_left := turn - time.monotonic()) > 0:
                self._producer.poll(seconds_left)
        unsent = self._producer.flush(FLUSH_SECONDS)
        if unsent:
            self.failed.append(f"{unsent} records still wait after {FLUSH_SECONDS:.0f} s")

    def _send(self) -> None:
        sequence, (checksum, body) = self.sent, record(self.sent)
        partition = sequence % self._partitions

        def reported(error: KafkaError | None, message: Message) -> None:
            if error is not None:
                self.failed.append(f"record {sequence}: {error.str()}")
                return
            current_time, offset = time.monotonic(), message.offset()
            self.acknowledged.append(
                Acknowledged(sequence, checksum, partition, offset, current_time)
            )

        self._producer.produce(self.topic, body, partition=partition, on_delivery=reported)
        self.sent += 1


def _place(message: Message) -> tuple[int, int]:
    """Partition and offset of a stored message."""
    partition, offset = message.partition(), message.offset()
    assert partition is not None and offset is not None
    return partition, offset


def assert_all_read(
    acknowledged: Iterable[Acknowledged], records: Mapping[tuple[int, int], bytes]
) -> None:
    """Fails for an acknowledged record that is not in ``records``, by partition and offset."""
    bodies = {(partition, body) for (partition, _), body in records.items()}
    for acknowledgement in acknowledged:
        checksum, body = record(acknowledgement.sequence)
        assert checksum == acknowledgement.checksum, acknowledgement
        if acknowledgement.offset is None:
            assert (acknowledgement.partition, body) in bodies, acknowledgement
        else:
            assert records.get((acknowledgement.partition, acknowledgement.offset)) == body, (
                acknowledgement
            )


def longest_wait(acknowledged: Iterable[Acknowledged]) -> float:
    """The longest time between two acknowledgements, in seconds."""
    times = sorted(acknowledgement.when for acknowledgement in acknowledged)
    return max(later - earlier for earlier, later in pairwise(times))


def longest_wait_of_a_partition(acknowledged: Iterable[Acknowledged]) -> float:
    """The longest time between two acknowledgements of one partition, in seconds."""
    by_partition = defaultdict(list)
    for acknowledgement in acknowledged:
        by_partition[acknowledgement.partition].append(acknowledgement)
    return max(map(longest_wait, by_partition.values()))


def read_all(
    bootstrap: str, topic: str, partitions: int, client: Mapping[str, Any] = {}
) -> dict[tuple[int, int], bytes]:
    """Every record of ``topic`` by partition and offset."""
    settings = {**client, "bootstrap.servers": bootstrap, "group.id": f"{topic}-read"}
    consumer = Consumer(settings)
    try:
        assigned = [TopicPartition(topic, number, 0) for number in range(partitions)]
        total = sum(
            consumer.get_watermark_offsets(partition, READ_SECONDS)[1] for partition in assigned
        )
        consumer.assign(assigned)
        records: dict[tuple[int, int], bytes] = {}
        end = time.monotonic() + READ_SECONDS
        while len(records) < total:
            assert time.monotonic() < end, f"{len(records)} of {total} records came back"
            for message in consumer.consume(500, 1.0):
                assert message.error() is None, message.error()
                records[_place(message)] = message.value() or b""
        return records
    finally:
        consumer.close()

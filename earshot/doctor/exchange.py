"""Records to brokers of one listener and back: produced with acks=all, consumed at their offsets.

All brokers of a listener are served by one client: a login by SCRAM costs it as much as a hundred
records. What it meets at one broker counts for that one alone.

The first record that a broker gets in a partition has it open files, and load code where it has
only just started. So the first one proves that records are taken, and the next ones are timed: a
broker that is at work on something else holds up one of them, and hardly the quickest.
"""

import os
import time
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from earshot.doctor.diagnosis import SentRecord
from earshot.listeners.address import Address
from earshot.validation.client import EachErrors, Errors, Failure, failure_of
from earshot.validation.deadline import Deadline

PAYLOAD: Final = 64
"""Bytes of a record's value; random, so that no other record can pass for it."""
STAGE_LIMIT: Final = 8.0
"""Seconds for the records to be acknowledged, and as much for one to come back: ample, as a broker
that has only just started on a busy machine is slow and not dead."""
TIMED: Final = 4
"""Records that are timed at most, until one is quick; the quickest counts."""
QUICK_MS: Final = 10.0
"""Milliseconds below which nothing but the way there and back can be in a record's time."""
UNTIMED: Final = 1.0
"""Seconds below which a further record is not missed."""
GROUP: Final = "earshot"
"""The consumer's group: never joined and never committed to, but librdkafka insists on one.
It also looks up the group's coordinator, at which a new cluster makes `__consumer_offsets`."""
MOST_FETCHED: Final = 2**20
"""Bytes of records that are taken at a time: a record of a run has a hundred."""
_PATIENCE: Final = 0.05
"""Seconds of one poll, short, so that a run stops soon when asked to."""
_METADATA_PATIENCE: Final = 0.25
"""Seconds that a broker may take to say who leads; each further one gets twice as long."""
_BYSTANDERS: Final = frozenset(
    {KafkaError._ALL_BROKERS_DOWN, KafkaError.GROUP_AUTHORIZATION_FAILED}
)
"""Errors that a consumer reports and that keep no record back."""


@dataclass(frozen=True)
class Destination:
    """A partition that records are sent to, its leader's address, and the records' headers."""

    partition: int
    leader: Address
    headers: Mapping[str, str]


def produce(
    values: Mapping[str, Any], topic: str, destinations: Sequence[Destination], end: Deadline
) -> Iterator[tuple[int, SentRecord | Failure]]:
    """What became of records to each partition, one after the other, by one client of ``values``;
    partitions as they are done with.

    The result is the quickest record but the first, timed from sending it to its acknowledgement:
    by then the client has found the leader and is connected, and the broker has made the
    partition's files. It is the first one where that took so long that no time was left for
    another.
    """
    limit = end.left(STAGE_LIMIT)
    patience = Deadline(limit)
    met = EachErrors(
        (destination.partition, Errors(destination.leader)) for destination in destinations
    )
    settings = {
        "acks": "all",
        "linger.ms": 0,
        "message.timeout.ms": max(100, int(limit * 1000)),
        "error_cb": met,
    }
    producer = Producer(dict(values) | settings)
    leaders = _leaders(producer, topic, limit / 2, end)
    waiting = [
        _Delivery(destination, topic, producer, met[destination.partition], patience)
        for destination in destinations
    ]
    unsent = list(waiting)
    try:
        while waiting and end.left() and patience.left():
            if unsent:
                led = next(leaders)
                for delivery in [
                    delivery for delivery in unsent if led is None or delivery.to.partition in led
                ]:
                    delivery.send()
                    unsent.remove(delivery)
            producer.poll(0.01 if unsent else _PATIENCE)
            for delivery in [delivery for delivery in waiting if delivery.outcome is not None]:
                waiting.remove(delivery)
                yield delivery.to.partition, delivery.ended()
        for delivery in waiting:
            yield delivery.to.partition, delivery.ended()
    finally:
        producer.purge()


@dataclass(eq=False)
class _Delivery:
    """Records to one partition, each once the one before it is acknowledged."""

    to: Destination
    topic: str
    producer: Producer
    errors: Errors
    patience: Deadline
    outcome: SentRecord | Failure | None = None
    _acknowledged: int = 0
    _best: SentRecord | None = None
    _left: float = 0.0
    """Seconds for another one when the last was acknowledged."""

    def ended(self) -> SentRecord | Failure:
        """What became of them."""
        if self.outcome is not None:
            return self.outcome
        if self._best is not None and self._left < UNTIMED:
            return self._best  # it came through, if late
        late = Failure("timeout", f"no acknowledgement within {self.patience.seconds:.1f} s")
        return self.errors.first() or late

    def send(self) -> None:
        """Sends a record, and the next ones when it is acknowledged."""
        value = os.urandom(PAYLOAD)
        checksum = zlib.crc32(value)

        def acknowledged(error: KafkaError | None, message: Message) -> None:
            if error is not None:
                failure = failure_of(error)  # a time-out says nothing; what the client met does
                met = self.errors.first() if failure.error == "timeout" else None
                self.outcome = met or failure
                return
            latency = 1000 * (message.latency() or 0.0)
            sent = SentRecord(self.to.partition, message.offset() or 0, latency, checksum)
            self._acknowledged += 1
            timed = self._acknowledged - 1
            if timed <= 1 or self._best is None or latency < self._best.latency_ms:
                self._best = sent
            if timed and (timed == TIMED or self._best.latency_ms < QUICK_MS):
                self.outcome = self._best
                return
            self._left = self.patience.left()
            self.send()

        added = {"sequence": str(self._acknowledged), "checksum": str(checksum)}
        try:
            self.producer.produce(
                self.topic,
                value,
                partition=self.to.partition,
                headers=list((dict(self.to.headers) | added).items()),
                on_delivery=acknowledged,
            )
        except KafkaException as error:
            self.outcome = self.errors.explain(error)


def _leaders(
    producer: Producer, topic: str, limit: float, end: Deadline
) -> Iterator[set[int] | None]:
    """Each time, the partitions of ``topic`` that have a leader, as far as is known; None once it
    was waited for longer than ``limit`` seconds.

    A topic reaches the brokers' metadata a moment after its creation is acknowledged.
    """
    waiting, patience = Deadline(limit), _METADATA_PATIENCE
    while left := end.left(waiting.left()):
        try:
            known = (
                producer.list_topics(topic, timeout=min(left, patience)).topics[topic].partitions
            )
        except KafkaException:
            patience *= 2
            known = {}
        yield {
            number for number, partition_metadata in known.items() if partition_metadata.leader >= 0
        }
    while True:
        yield None


def consume(
    values: Mapping[str, Any],
    topic: str,
    records: Sequence[tuple[Address, SentRecord]],
    run: str,
    end: Deadline,
) -> Iterator[tuple[int, float | Failure]]:
    """Seconds until each of ``records`` came back unchanged, by partition, by one client of
    ``values``; partitions as they are done with.

    Each record is paired with the address of its partition's leader.
    """
    waiting = {sent.partition: sent for _, sent in records}
    met = EachErrors((sent.partition, Errors(leader)) for leader, sent in records)
    failures: dict[int, Failure] = {}
    settings = {
        "group.id": GROUP,
        "enable.auto.commit": False,
        "auto.offset.reset": "error",
        "fetch.max.bytes": MOST_FETCHED,
        "receive.message.max.bytes": 2 * MOST_FETCHED,
        "fetch.wait.max.ms": 20,
        "fetch.error.backoff.ms": 20,
        "error_cb": met,
    }
    begun = time.monotonic()
    consumer = Consumer(dict(values) | settings)
    try:
        consumer.assign(
            [TopicPartition(topic, sent.partition, sent.offset) for sent in waiting.values()]
        )
        while waiting and end.left(STAGE_LIMIT - (time.monotonic() - begun)):
            message = consumer.poll(_PATIENCE)
            if message is None:
                continue
            error, partition = message.error(), message.partition()
            if error is not None:
                if error.code() not in _BYSTANDERS:
                    # one that names no partition is about all of them
                    about = tuple(waiting) if partition is None else (partition,)
                    failures |= dict.fromkeys(about, failure_of(error)) | failures
            elif partition in waiting:
                sent = waiting.pop(partition)
                yield partition, _compare(message, sent, run) or time.monotonic() - begun
    finally:
        consumer.close()
    late = Failure("timeout", "the record did not come back in time")
    for number in waiting:
        yield number, failures.get(number) or met[number].first() or late


def _compare(message: Message, sent: SentRecord, run: str) -> Failure | None:
    run_of_record = dict(message.headers() or ()).get("run", b"")
    checksum = zlib.crc32(message.value() or b"")
    if run_of_record != run.encode():
        text = f"offset {sent.offset} holds a record of run {run_of_record!r}, not {run}"
    elif checksum != sent.checksum:
        text = f"checksum {checksum:08x} came back, {sent.checksum:08x} was sent"
    else:
        return None
    return Failure("corrupt", text)

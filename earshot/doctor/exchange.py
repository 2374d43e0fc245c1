"""Produces records to the brokers of a listener with acks=all, and consumes them at their offsets.

One client serves all brokers of a listener, because a SCRAM login takes as long as a hundred
records. Errors at one broker count for that broker only.

A broker's first record in a partition opens files, and loads code if the broker has just started.
Therefore the first record proves that records are accepted, and only later ones are timed. The
shortest time counts, because a busy broker delays single records.

A last record is larger than any packet, because a path can carry small packets and lose large ones.
"""

from __future__ import annotations

import contextlib
import os
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from confluent_kafka import (
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    ThrottleEvent,
    TopicPartition,
)

from earshot.doctor.observation import SentRecord
from earshot.listeners.address import Address
from earshot.validation.client import ClientSettings, EachErrors, Errors, Failure, failure_of
from earshot.validation.deadline import Deadline
from earshot.validation.metadata import FIRST_PATIENCE, leaders_of
from earshot.validation.refusals import UNANSWERED

PAYLOAD: Final = 64
"""Bytes of a record's value, which is random, so that records differ."""
LARGE_PAYLOAD: Final = 16_384
"""Bytes of the large record's value: it fills several packets, also jumbo frames of 9,001 bytes."""
STAGE_LIMIT: Final = 8.0
"""Seconds for the acknowledgements, and again for the reading. Long enough for a broker that has
just started on a busy machine."""
LARGE_LIMIT: Final = 5.0
"""Seconds for the acknowledgement of the large record, and again for its reading."""
RECORD_PATIENCE: Final = 4.0
"""If fewer seconds than this were left for a record, a time-out proves nothing: a broker on a busy
machine may need them for a new topic, after the active controller has died."""
LARGE_LOST: Final = "large-lost"
"""The error of a large record that did not pass, although small ones did."""
UNDECIDED: Final = "undecided"
"""The error of a record that proves nothing: a large record in less than `RECORD_PATIENCE`, a
record that a quota delayed, or one whose partition another broker may lead."""
MAX_TIMED: Final = 4
"""The maximum number of timed records. Fewer are sent if one is acknowledged within `QUICK_MS`."""
QUICK_MS: Final = 10.0
"""A latency (ms) that contains hardly more than the network's round trip."""
ANOTHER_RECORD_SECONDS: Final = 1.0
"""If fewer seconds are left than this, the timed records so far are enough."""
GROUP: Final = "earshot"
"""The consumer's group. librdkafka requires one, although it is never joined. It also looks up the
group's coordinator, whereupon a new cluster creates `__consumer_offsets`."""
MAX_FETCHED: Final = 2**20
"""The maximum bytes of one fetch."""
SMALL_FETCH: Final = 512
"""The maximum bytes per partition of one fetch, so that a small record arrives without the large
one. Brokers return a larger record alone."""
_PATIENCE: Final = 0.05
"""Seconds of one poll, short, so that a run stops soon when asked to."""
_TOO_LARGE: Final = frozenset({"msg-size-too-large", "record-list-too-large"})
"""Errors of the brokers' size limit, which does not concern the path to them."""
_HARMLESS_ERRORS: Final = frozenset(
    {KafkaError._ALL_BROKERS_DOWN, KafkaError.GROUP_AUTHORIZATION_FAILED}
)
"""Errors reported to a consumer that do not keep it from reading."""


@dataclass(frozen=True)
class Destination:
    """A partition that records are sent to, its leader's address, and the records' headers."""

    partition: int
    leader: Address
    headers: Mapping[str, str]


class Delays(dict[str, float]):
    """A `throttle_cb` that stores the longest delay (s) by a quota, by the broker's address."""

    def __call__(self, event: ThrottleEvent) -> None:
        address = event.broker_name.partition("/")[0]
        self[address] = max(event.throttle_time, self.get(address, 0.0))

    def explain(self, leader: Address, failure: Failure) -> Failure:
        """``failure`` of a record to ``leader``; as undecided if a delay explains it."""
        seconds = self.get(str(leader))
        if not seconds or failure.error not in ("timeout", LARGE_LOST):
            return failure
        text = f"a quota of this user or client delays its requests ({seconds:.1f} s)"
        return Failure(UNDECIDED, f"{text}: {failure.text}")


def produce(
    values: ClientSettings, topic: str, destinations: Sequence[Destination], end: Deadline
) -> Iterator[tuple[int, SentRecord | Failure]]:
    """Sends records to each partition with one client, and yields the result of each partition
    when it is known.

    ``values`` are librdkafka's properties. The result is the record with the shortest time from
    sending to acknowledgement, with the large record that followed. The first record counts only if
    no time was left for another: it includes the search for the leader, the connection, and the
    creation of the partition's files.
    """
    limit = end.left(STAGE_LIMIT)
    patience = Deadline(limit)
    broker_errors = EachErrors(
        (destination.partition, Errors(destination.leader)) for destination in destinations
    )
    delays = Delays()
    settings = {
        "acks": "all",
        "linger.ms": 0,
        "message.timeout.ms": max(100, int(limit * 1000)),
        "error_cb": broker_errors,
        "throttle_cb": delays,
    }
    producer = Producer(dict(values) | settings)
    leaders = _leaders(producer, topic, limit / 2, end)
    open_deliveries = [
        _Delivery(place, topic, producer, broker_errors[place.partition], delays, patience, end)
        for place in destinations
    ]
    unsent_deliveries = list(open_deliveries)
    try:
        while open_deliveries and end.left():
            if unsent_deliveries:
                known_leaders = next(leaders)
                for delivery in list(unsent_deliveries):
                    number = delivery.destination.partition
                    if known_leaders is None or number in known_leaders:
                        delivery.begin((known_leaders or {}).get(number))
                        unsent_deliveries.remove(delivery)
            producer.poll(0.01 if unsent_deliveries else _PATIENCE)
            for delivery in [
                delivery
                for delivery in open_deliveries
                if delivery.outcome is not None or not delivery.patience.left()
            ]:
                open_deliveries.remove(delivery)
                yield delivery.destination.partition, delivery.result()
        for delivery in open_deliveries:
            yield delivery.destination.partition, delivery.result()
    finally:
        producer.purge()


@dataclass(eq=False)
class _Delivery:
    """The records to one partition: small ones, and a large one. Each is sent after the previous
    one is acknowledged."""

    destination: Destination
    topic: str
    producer: Producer
    errors: Errors
    delays: Delays
    patience: Deadline
    """The time limit of the small records, then that of the large one."""
    end: Deadline
    outcome: SentRecord | Failure | None = None
    _is_leader_known: bool = True
    _acknowledged_count: int = 0
    _quickest_record: SentRecord | None = None
    _is_large_sent: bool = False

    def result(self) -> SentRecord | Failure:
        """The quickest record, or the failure."""
        outcome = self.outcome or self._timeout()
        if isinstance(outcome, Failure):
            return self.delays.explain(self.destination.leader, outcome)
        if self._is_leader_known:
            return outcome
        leader: Address | None = None
        with contextlib.suppress(KafkaException):  # who acknowledged it is in newer metadata
            leaders = leaders_of(self.producer, self.topic, self.end.left(1.0) or 0.1)
            leader = leaders.get(self.destination.partition)
        return self._misplaced(leader) or outcome

    def begin(self, leader: Address | None) -> None:
        """Sends the first record, unless the ``leader`` (None: unknown) is not the destination."""
        self._is_leader_known = leader is not None
        self.outcome = self._misplaced(leader) if self._is_leader_known else None
        if self.outcome is None:
            self.send()

    def _misplaced(self, leader: Address | None) -> Failure | None:
        """The failure if the ``leader`` is not the destination; None if it is."""
        if leader == self.destination.leader:
            return None
        partition = f"partition {self.destination.partition}"
        text = f"a record was acknowledged, but the metadata has no leader of {partition}"
        if leader is not None:
            text = f"the cluster has {leader} lead {partition}, which was placed here"
            text += ", so no record can be sent here"
        return Failure(UNDECIDED, text)

    def _timeout(self) -> Failure:
        if self._is_large_sent:
            return large_failure("no acknowledgement", self.patience.seconds, self.errors.first())
        timeout = Failure("timeout", f"no acknowledgement within {self.patience.seconds:.1f} s")
        return self.errors.first() or timeout

    def send(self) -> None:
        """Sends a small record; its acknowledgement sends the next."""
        value = os.urandom(PAYLOAD)

        def on_delivery(error: KafkaError | None, message: Message) -> None:
            if error is not None:
                failure = failure_of(error)  # instead of a time-out, report the client's error
                client_error = self.errors.first() if failure.error == "timeout" else None
                self.outcome = client_error or failure
                return
            latency = 1000 * (message.latency() or 0.0)
            record = SentRecord(self.destination.partition, message.offset() or 0, latency, value)
            self._acknowledged_count += 1
            timed_count = self._acknowledged_count - 1
            if (
                timed_count <= 1
                or self._quickest_record is None
                or latency < self._quickest_record.latency_ms
            ):
                self._quickest_record = record
            is_quick = self._quickest_record.latency_ms < QUICK_MS
            is_timed = timed_count and (timed_count == MAX_TIMED or is_quick)
            if is_timed or self.patience.left() < ANOTHER_RECORD_SECONDS:
                self._send_large(self._quickest_record)
            else:
                self.send()

        self._produce(value, on_delivery)

    def _send_large(self, small_record: SentRecord) -> None:
        """Sends the large record, which is not timed."""
        value = os.urandom(LARGE_PAYLOAD)
        self._is_large_sent, self.patience = True, self.end.within(LARGE_LIMIT)

        def on_delivery(error: KafkaError | None, message: Message) -> None:
            if error is None:
                partition, offset = self.destination.partition, message.offset() or 0
                large_record = SentRecord(partition, offset, 0.0, value)
                self.outcome = replace(small_record, large=large_record)
                return
            failure = failure_of(error)
            if failure.error in _TOO_LARGE:
                self.outcome = small_record
            elif failure.error in UNANSWERED:
                failure = self.errors.first() or failure
                self.outcome = large_failure("no acknowledgement", self.patience.seconds, failure)
            else:
                self.outcome = failure

        self._produce(value, on_delivery)
        if isinstance(self.outcome, Failure) and self.outcome.error in _TOO_LARGE:
            self.outcome = small_record

    def _produce(
        self, value: bytes, on_delivery: Callable[[KafkaError | None, Message], None]
    ) -> None:
        checksum = str(zlib.crc32(value))
        record_headers = {"sequence": str(self._acknowledged_count), "checksum": checksum}
        try:
            self.producer.produce(
                self.topic,
                value,
                partition=self.destination.partition,
                headers=list((dict(self.destination.headers) | record_headers).items()),
                on_delivery=on_delivery,
            )
        except KafkaException as error:
            self.outcome = self.errors.explain(error)


def large_failure(observed: str, seconds: float, client_error: Failure | None) -> Failure:
    """The failure of a large record after small ones that passed.

    ``seconds`` is its time limit, ``client_error`` the client's error at that broker.
    """
    record = f"a record of {LARGE_PAYLOAD:,} bytes"
    reason = f" ({client_error.text})" if client_error is not None else ""
    if seconds < RECORD_PATIENCE:
        text = f"the deadline left {seconds:.1f} s for {record}: {observed}{reason}"
        return Failure(UNDECIDED, text)
    text = f"small records pass, {record} does not: {observed} within {seconds:.1f} s{reason}"
    return Failure(LARGE_LOST, text)


def _leaders(
    producer: Producer, topic: str, limit: float, end: Deadline
) -> Iterator[dict[int, Address] | None]:
    """Yields the leader's address of each partition of ``topic`` that has one in the current
    metadata; after ``limit`` seconds, None: send without waiting for a leader.

    A new topic appears in the brokers' metadata a moment after its creation is acknowledged.
    """
    deadline, patience = Deadline(limit), FIRST_PATIENCE
    while seconds_left := end.left(deadline.left()):
        try:
            known_leaders = leaders_of(producer, topic, min(seconds_left, patience))
        except KafkaException:
            patience *= 2
            known_leaders = {}
        yield known_leaders
    while True:
        yield None


def consume(
    values: ClientSettings,
    topic: str,
    records: Sequence[tuple[Address, SentRecord]],
    run: str,
    end: Deadline,
) -> Iterator[tuple[int, float | Failure]]:
    """Reads ``records`` with one client, and yields for each partition the seconds until its
    record was read unchanged, or the failure. The large record is read too, and not timed.

    ``values`` are librdkafka's properties. Each record is paired with its leader's address.
    """
    open_records = {record.partition: record for _, record in records}
    patience = dict.fromkeys(open_records, end.within(STAGE_LIMIT))
    read_seconds: dict[int, float] = {}
    broker_errors = EachErrors((record.partition, Errors(leader)) for leader, record in records)
    failures: dict[int, Failure] = {}
    delays = Delays()
    settings = {
        "group.id": GROUP,
        "enable.auto.commit": False,
        "auto.offset.reset": "error",
        "fetch.max.bytes": MAX_FETCHED,
        "fetch.message.max.bytes": SMALL_FETCH,
        "receive.message.max.bytes": 2 * MAX_FETCHED,
        "fetch.wait.max.ms": 20,
        "fetch.error.backoff.ms": 20,
        "error_cb": broker_errors,
        "throttle_cb": delays,
    }
    start = time.monotonic()
    consumer = Consumer(dict(values) | settings)
    try:
        places = [TopicPartition(topic, one.partition, one.offset) for one in open_records.values()]
        consumer.assign(places)
        while any(patience[number].left() for number in open_records):
            message = consumer.poll(_PATIENCE)
            if message is None:
                continue
            error, partition = message.error(), message.partition()
            if error is not None:
                if error.code() not in _HARMLESS_ERRORS:
                    # an error without a partition concerns all partitions
                    partitions = tuple(open_records) if partition is None else (partition,)
                    failures |= dict.fromkeys(partitions, failure_of(error)) | failures
            elif partition in open_records:
                record = open_records[partition]
                if partition not in read_seconds:
                    read_seconds[partition] = time.monotonic() - start
                    mismatch = _record_mismatch(message, record, run)
                    if mismatch is None and record.large is not None:
                        patience[partition] = end.within(LARGE_LIMIT)
                        continue
                elif record.large is not None and (message.offset() or 0) < record.large.offset:
                    continue  # a timed record
                else:
                    mismatch = _record_mismatch(message, record.large or record, run)
                del open_records[partition]
                yield partition, mismatch or read_seconds[partition]
    finally:
        consumer.close()
    timeout = Failure("timeout", "the record did not come back in time")
    leaders = {record.partition: leader for leader, record in records}
    for number in open_records:
        failure = failures.get(number) or broker_errors[number].first()
        if number in read_seconds and (failure is None or failure.error in UNANSWERED):
            failure = large_failure("it did not come back", patience[number].seconds, failure)
        yield number, delays.explain(leaders[number], failure or timeout)


def _record_mismatch(message: Message, record: SentRecord, run: str) -> Failure | None:
    run_of_record = dict(message.headers() or ()).get("run", b"")
    value = message.value() or b""
    if run_of_record != run.encode():
        text = f"offset {record.offset} holds a record of run {run_of_record!r}, not {run}"
    elif value != record.value:
        checksums = f"checksum {zlib.crc32(value):08x} came back, {zlib.crc32(record.value):08x}"
        text = f"{checksums} was sent"
    else:
        return None
    return Failure("corrupt", text)

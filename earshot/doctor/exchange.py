"""Records to one broker and back: produced with acks=all, consumed at their own offset.

The first record that a broker gets in a partition has it open files, and load code where it has
only just started. So the first one proves that records are taken, and the second one is timed.
"""

from __future__ import annotations

import os
import time
import zlib
from collections.abc import Mapping
from typing import Any, Final

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from earshot.doctor.diagnosis import Sent
from earshot.validation.client import Errors, Failure, failure_of
from earshot.validation.deadline import Deadline

PAYLOAD: Final = 64
"""Bytes of a record's value; random, so that no other record can pass for it."""
STAGE_LIMIT: Final = 8.0
"""Seconds for the records to be acknowledged, and as much for one to come back: ample, as a broker
that has only just started on a busy machine is slow and not dead."""
UNTIMED: Final = 1.0
"""Seconds below which a second record is not missed."""
GROUP: Final = "earshot"
"""The consumer's group: never joined and never committed to, but librdkafka insists on one.
It also looks up the group's coordinator, at which a new cluster makes `__consumer_offsets`."""
_PATIENCE: Final = 0.05
"""Seconds of one poll, so that a run that is told to stop stops."""
_BYSTANDERS: Final = frozenset(
    {KafkaError._ALL_BROKERS_DOWN, KafkaError.GROUP_AUTHORIZATION_FAILED}
)
"""Errors that a consumer reports and that keep no record back."""


def produce(
    values: Mapping[str, Any], topic: str, partition: int, headers: Mapping[str, str], end: Deadline
) -> Sent | Failure:
    """Two records to ``partition``, one after the other, by one client of ``values``.

    The result is the second one, timed from sending it to its acknowledgement: by then the client
    has found the leader and is connected, and the broker has made the partition's files. It is the
    first one where that took so long that no time was left for another.
    """
    errors = Errors()
    limit = end.left(STAGE_LIMIT)
    patience = Deadline(limit)
    settings = {
        "acks": "all",
        "linger.ms": 0,
        "message.timeout.ms": max(100, int(limit * 1000)),
        "error_cb": errors,
    }
    producer = Producer(dict(values) | settings)
    sent: Sent | Failure | None = None
    try:
        _await_leader(producer, topic, partition, end, limit / 2)
        for sequence in ("0", "1"):
            numbered = dict(headers) | {"sequence": sequence}
            left = end.left(patience.left())
            last = _send(producer, topic, partition, numbered, errors, end, patience)
            if last is None and sent is not None and left < UNTIMED:
                break  # the first one came through, if late
            sent = last
            if not isinstance(sent, Sent):
                break
    except KafkaException as error:
        return errors.explain(error)
    producer.purge()
    return sent or errors.first() or Failure("timeout", f"no acknowledgement within {limit:.1f} s")


def _send(
    producer: Producer,
    topic: str,
    partition: int,
    headers: Mapping[str, str],
    errors: Errors,
    end: Deadline,
    patience: Deadline,
) -> Sent | Failure | None:
    """One record; None where it was not acknowledged by ``end`` and within ``patience``."""
    value = os.urandom(PAYLOAD)
    checksum = zlib.crc32(value)
    done: list[Sent | Failure] = []

    def acknowledged(error: Any, message: Message) -> None:
        if error is None:
            latency = 1000 * (message.latency() or 0.0)
            done.append(Sent(partition, message.offset() or 0, latency, checksum))
        else:
            done.append(_worst(errors, failure_of(error)))

    producer.produce(
        topic,
        value,
        partition=partition,
        headers=list((dict(headers) | {"checksum": str(checksum)}).items()),
        on_delivery=acknowledged,
    )
    while not done and end.left() and patience.left():
        producer.poll(_PATIENCE)
    return done[0] if done else None


def _await_leader(
    producer: Producer, topic: str, partition: int, end: Deadline, limit: float
) -> None:
    """Returns when ``partition`` has a leader for this client, or after ``limit`` seconds.

    A topic reaches the brokers' metadata a moment after its creation is acknowledged.
    """
    begun = time.monotonic()
    while left := end.left(limit - (time.monotonic() - begun)):
        try:
            found = producer.list_topics(topic, timeout=left).topics[topic].partitions
        except KafkaException:
            producer.poll(0)
            continue
        if partition in found and found[partition].leader >= 0:
            return
        end.stop.wait(0.01)


def consume(
    values: Mapping[str, Any], topic: str, sent: Sent, run: str, end: Deadline
) -> float | Failure:
    """Seconds until the record of ``sent`` came back unchanged, by a client of ``values``."""
    errors = Errors()
    settings = {
        "group.id": GROUP,
        "enable.auto.commit": False,
        "auto.offset.reset": "error",
        "fetch.wait.max.ms": 20,
        "fetch.error.backoff.ms": 20,
        "error_cb": errors,
    }
    begun = time.monotonic()
    consumer = Consumer(dict(values) | settings)
    failure: Failure | None = None
    try:
        consumer.assign([TopicPartition(topic, sent.partition, sent.offset)])
        while end.left(STAGE_LIMIT - (time.monotonic() - begun)):
            message = consumer.poll(_PATIENCE)
            if message is None:
                continue
            error = message.error()
            if error is None:
                return _compare(message, sent, run) or time.monotonic() - begun
            if error.code() not in _BYSTANDERS:
                failure = failure or failure_of(error)
    finally:
        consumer.close()
    return failure or errors.first() or Failure("timeout", "the record did not come back in time")


def _compare(message: Message, sent: Sent, run: str) -> Failure | None:
    headers = dict(message.headers() or ())
    found = headers.get("run", b"")
    if found != run.encode():
        return Failure(
            "corrupt", f"offset {sent.offset} holds a record of run {found!r}, not {run}"
        )
    checksum = zlib.crc32(message.value() or b"")
    if checksum != sent.checksum:
        return Failure(
            "corrupt", f"checksum {checksum:08x} came back, {sent.checksum:08x} was sent"
        )
    return None


def _worst(errors: Errors, failure: Failure) -> Failure:
    """A time-out of a record says nothing; what its client ran into does."""
    return errors.first() or failure if failure.error == "timeout" else failure

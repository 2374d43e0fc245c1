"""The topic that all runs share on a cluster without deletion of topics; adds its partitions."""

import time
from collections.abc import Mapping, Sequence
from concurrent.futures import wait
from typing import Final

from confluent_kafka import KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions, OffsetSpec

from earshot.validation.client import Failure, failure_of
from earshot.validation.topic import (
    PREFIX,
    Replicas,
    TopicError,
    await_change,
    create_topic,
    topic_safe_name,
)

TRIES: Final = 20
SETTLE: Final = 0.1
"""Seconds between two requests: new partitions appear a moment after their creation."""
_NOT_YET_KNOWN: Final = frozenset({"no-leader", "misrouted", "unknown-topic-or-part"})
"""Errors of brokers that do not know the new partition yet."""


def shared_name(cluster: str) -> str:
    """The name of the topic that runs against ``cluster`` share."""
    return f"{PREFIX}{topic_safe_name(cluster)}-shared"


def share_topic(
    admin: AdminClient, name: str, placements: Sequence[Replicas], timeout: float = 10.0
) -> tuple[int, ...]:
    """The partition of topic ``name`` for each of ``placements``: an existing one, or a new one.

    ``timeout`` in seconds bounds each call, and ends the attempts. Raises TopicError.
    """
    start = time.monotonic()
    missing_placements: list[Replicas] = []
    new_placements: list[Replicas] = []
    for _ in range(TRIES):
        existing = layout(admin, name, timeout)
        partitions, missing_placements = assign(existing, placements)
        if not missing_placements:
            return partitions
        leaderless = [sorted(ids[1:]) for ids in existing.values() if ids[0] < 0]
        new_placements = [
            replicas for replicas in missing_placements if sorted(replicas) not in leaderless
        ]
        if not existing:
            create_topic(admin, name, placements, timeout)
        elif new_placements:
            _grow(admin, name, len(existing), new_placements, timeout)
        if time.monotonic() - start >= timeout:
            break
        time.sleep(SETTLE)
    brokers = ", ".join("-".join(map(str, replicas)) for replicas in missing_placements)
    if not new_placements:  # the partitions exist, so the quorum works
        text = f"{name} has no leader; its replicas are on brokers {brokers}"
        raise TopicError(Failure("no-leader", text))
    raise TopicError(Failure("timeout", f"topic {name} shows no partitions on brokers {brokers}"))


def end_offsets(
    admin: AdminClient, name: str, partitions: Sequence[int], timeout: float = 5.0
) -> dict[int, int]:
    """The offset of the next record, by partition of topic ``name``. Raises TopicError."""
    requests = {
        TopicPartition(name, partition): OffsetSpec.latest()  # type: ignore[no-untyped-call]
        for partition in partitions
    }
    for _ in range(TRIES):
        futures = admin.list_offsets(requests, request_timeout=timeout)
        wait(futures.values(), timeout=timeout + 0.5)
        if not all(future.done() for future in futures.values()):
            raise TopicError(Failure("timeout", f"no offsets within {timeout:g} s"))
        error = next(
            (future_error for future in futures.values() if (future_error := future.exception())),
            None,
        )
        if error is None:
            return {place.partition: future.result().offset for place, future in futures.items()}
        failure = failure_of(error)
        if failure.error not in _NOT_YET_KNOWN:
            break
        time.sleep(SETTLE)
    raise TopicError(failure)


def assign(
    existing: Mapping[int, Replicas], placements: Sequence[Replicas]
) -> tuple[tuple[int, ...], list[Replicas]]:
    """Assigns an ``existing`` partition to each of ``placements``, each once. Returns the
    partitions, and the placements without one."""
    free: dict[tuple[int, ...], list[int]] = {}
    for partition in sorted(existing):
        free.setdefault(_holders(existing[partition]), []).append(partition)
    partitions: list[int] = []
    missing_placements: list[Replicas] = []
    for replicas in placements:
        if free_partitions := free.get(_holders(replicas)):
            partitions.append(free_partitions.pop(0))
        else:
            missing_placements.append(replicas)
    return tuple(partitions), missing_placements


def _holders(replicas: Replicas) -> tuple[int, ...]:
    """The leader, then the followers by id."""
    return (*replicas[:1], *sorted(replicas[1:]))


def layout(admin: AdminClient, name: str, timeout: float) -> dict[int, Replicas]:
    """The replicas of each partition of ``name``, its leader (-1 without one) first. Raises
    TopicError."""
    try:
        topic = admin.list_topics(name, timeout=timeout).topics[name]
    except KafkaException as error:
        raise TopicError(failure_of(error)) from None
    # without access to the topic, waiting for its partitions is useless
    if topic.error is not None and (failure := failure_of(topic.error)).error == "authorization":
        raise TopicError(failure)
    return {
        id: (
            partition.leader,
            *(replica for replica in partition.replicas if replica != partition.leader),
        )
        for id, partition in topic.partitions.items()
    }


def _grow(
    admin: AdminClient, name: str, count: int, missing: Sequence[Replicas], timeout: float
) -> None:
    """Adds partitions with these replicas to the ``count`` of topic ``name``.

    If the topic has more partitions by now (another run may have added them), Kafka refuses the
    request and nothing changes.
    """
    new_partitions = NewPartitions(
        name, count + len(missing), [list(replicas) for replicas in missing]
    )
    futures = admin.create_partitions(
        [new_partitions], operation_timeout=timeout, request_timeout=timeout
    )
    await_change(admin, futures, timeout, KafkaError.INVALID_PARTITIONS)

"""One topic for all runs, on clusters that delete none: its partitions are found, or added."""

import time
from collections.abc import Mapping, Sequence
from concurrent.futures import wait
from typing import Final

from confluent_kafka import KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions, OffsetSpec

from earshot.validation.client import Failure, failure_of
from earshot.validation.topic import PREFIX, Replicas, TopicError, await_change, create_topic, plain

TRIES: Final = 20
SETTLE: Final = 0.1
"""Seconds between two looks: new partitions show a moment after they were added."""
_NEW: Final = frozenset({"no-leader", "misrouted", "unknown-topic-or-part"})
"""Errors of brokers that do not know the new partition yet."""


def shared_name(cluster: str) -> str:
    """The topic that runs against ``cluster`` share."""
    return f"{PREFIX}{plain(cluster)}-shared"


def share_topic(
    admin: AdminClient, name: str, wanted: Sequence[Replicas], timeout: float = 10.0
) -> tuple[int, ...]:
    """The partition of ``name`` for each of ``wanted``: one that there is already, or a new one.

    Raises TopicError; ``timeout`` in seconds bounds each call, and nothing more is tried after it.
    """
    begun = time.monotonic()
    missing: list[Replicas] = []
    new: list[Replicas] = []
    for _ in range(TRIES):
        there = _layout(admin, name, timeout)
        chosen, missing = assign(there, wanted)
        if not missing:
            return chosen
        leaderless = [sorted(ids[1:]) for ids in there.values() if ids[0] < 0]
        new = [replicas for replicas in missing if sorted(replicas) not in leaderless]
        if not there:
            create_topic(admin, name, wanted, timeout)
        elif new:
            _grow(admin, name, len(there), new, timeout)
        if time.monotonic() - begun >= timeout:
            break
        time.sleep(SETTLE)
    placements = ", ".join("-".join(map(str, replicas)) for replicas in missing)
    if not new:  # the quorum is no reason: the partitions are there
        text = f"{name} has no leader; its replicas are on brokers {placements}"
        raise TopicError(Failure("no-leader", text))
    raise TopicError(
        Failure("timeout", f"topic {name} shows no partitions on brokers {placements}")
    )


def ends(
    admin: AdminClient, name: str, partitions: Sequence[int], timeout: float = 5.0
) -> dict[int, int]:
    """The offset that the next record of each partition gets; raises TopicError."""
    asked = {
        TopicPartition(name, partition): OffsetSpec.latest()  # type: ignore[no-untyped-call]
        for partition in partitions
    }
    for _ in range(TRIES):
        futures = admin.list_offsets(asked, request_timeout=timeout)
        wait(futures.values(), timeout=timeout + 0.5)
        if not all(future.done() for future in futures.values()):
            raise TopicError(Failure("timeout", f"no offsets within {timeout:g} s"))
        failed = next((why for future in futures.values() if (why := future.exception())), None)
        if failed is None:
            return {spot.partition: future.result().offset for spot, future in futures.items()}
        failure = failure_of(failed)
        if failure.error not in _NEW:
            break
        time.sleep(SETTLE)
    raise TopicError(failure)


def assign(
    there: Mapping[int, Replicas], wanted: Sequence[Replicas]
) -> tuple[tuple[int, ...], list[Replicas]]:
    """For each of ``wanted`` a partition of ``there``, each taken once; and those without one."""
    free: dict[tuple[int, ...], list[int]] = {}
    for partition in sorted(there):
        free.setdefault(_holders(there[partition]), []).append(partition)
    chosen: list[int] = []
    missing: list[Replicas] = []
    for replicas in wanted:
        if fitting := free.get(_holders(replicas)):
            chosen.append(fitting.pop(0))
        else:
            missing.append(replicas)
    return tuple(chosen), missing


def _holders(replicas: Replicas) -> tuple[int, ...]:
    """The leader, and the followers in one order."""
    return (*replicas[:1], *sorted(replicas[1:]))


def _layout(admin: AdminClient, name: str, timeout: float) -> dict[int, Replicas]:
    """The replicas of each partition of ``name``, its leader (-1 without one) first."""
    try:
        topic = admin.list_topics(name, timeout=timeout).topics[name]
    except KafkaException as error:
        raise TopicError(failure_of(error)) from None
    # a user who may not see the topic would wait for its partitions in vain
    if topic.error is not None and (failure := failure_of(topic.error)).error == "authorization":
        raise TopicError(failure)
    return {
        id: (
            partition.leader,
            *(other for other in partition.replicas if other != partition.leader),
        )
        for id, partition in topic.partitions.items()
    }


def _grow(
    admin: AdminClient, name: str, count: int, missing: Sequence[Replicas], timeout: float
) -> None:
    """Asks for partitions with these replicas beyond the ``count`` of ``name``.

    Another run may have done so meanwhile, or a broker may have shown too few: a number that is
    not higher than the true one changes nothing.
    """
    new = NewPartitions(name, count + len(missing), [list(replicas) for replicas in missing])
    futures = admin.create_partitions([new], operation_timeout=timeout, request_timeout=timeout)
    await_change(admin, futures, timeout, KafkaError.INVALID_PARTITIONS)

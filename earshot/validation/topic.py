"""The topics that records of a run are written to: named, created, filled up, deleted.

A run's own topic says in its name whose it is and until when, in Unix seconds:
`__earshot-<cluster>-<expires>-<run>`. A run may last no longer than that, so whatever has expired
is a leftover of a run that was killed, and whatever has not is left alone: it may belong to a run
alive elsewhere. Where no topic can be deleted, runs share one instead (`shared_topic`).
"""

import re
import secrets
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future, wait
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

from earshot.validation.client import Failure, failure_of
from earshot.validation.refusals import UNANSWERED

PREFIX: Final = "__earshot-"
CLOCK_SLACK: Final = 120
"""Seconds by which the clocks of two machines that validate one cluster may differ."""
MAX_CLUSTER: Final = 150
"""Characters of the cluster's name in a topic's: Kafka allows 249 in all."""
COPIES: Final = "-copies"
"""Ends the name of a topic whose partitions have a follower each."""
_NAME: Final = re.compile(
    re.escape(PREFIX) + rf"(?P<cluster>.+)-(?P<expires>\d{{9,12}})-[0-9a-f]+({COPIES})?"
)

SETTINGS: Final[Mapping[str, str]] = {
    "cleanup.policy": "delete",  # `compact` refuses records without a key
    "compression.type": "producer",
    "max.message.bytes": "1048588",
    # the broker's clock: it may refuse a client's, or delete what it takes for old
    "message.timestamp.type": "LogAppendTime",
    "preallocate": "false",
    "retention.bytes": "-1",
    "retention.ms": "3600000",
    "segment.bytes": "104857600",  # a batch must fit into a segment
}
"""What a topic says itself, so that it needs no luck with the brokers' defaults.

Each is a topic's own setting from Kafka 3.9 to 4.x; but for `retention.ms` and `segment.bytes`,
which spare the disk, and the timestamp's type, these are Kafka's own defaults.
"""

KEPT: Final = frozenset({"topic-deletion-disabled", "authorization"})
"""Errors of a deletion that a later attempt would meet again."""

Replicas = tuple[int, ...]
"""The brokers that hold a partition, its leader first."""


class TopicError(Exception):
    """The topic could not be made; ``failure`` says why, in a stable word and Kafka's text."""

    def __init__(self, failure: Failure) -> None:
        self.failure = failure
        super().__init__(failure.text)


def run_id() -> str:
    """A new run's id: eight hexadecimal digits, part of its topic's name and of every record."""
    return secrets.token_hex(4)


def topic_name(cluster: str, run: str, lifetime: float, now: float | None = None) -> str:
    """The topic of ``run``, which ends ``lifetime`` seconds from now at the latest."""
    expires = int((time.time() if now is None else now) + lifetime) + CLOCK_SLACK
    return f"{PREFIX}{plain(cluster)}-{expires}-{run}"


def leftovers(names: Iterable[str], cluster: str, now: float | None = None) -> list[str]:
    """Those of ``names`` that runs against ``cluster`` left behind: ours by name, and expired."""
    moment = time.time() if now is None else now
    matches = [match for name in names if (match := _NAME.fullmatch(name))]
    ours = [match for match in matches if match["cluster"] == plain(cluster)]
    return sorted(topic[0] for topic in ours if int(topic["expires"]) < moment)


def create_topic(
    admin: AdminClient, name: str, wanted: Sequence[Replicas], timeout: float = 10.0
) -> None:
    """Creates ``name`` with a partition of each of ``wanted``, all with as many replicas.

    Its records are acknowledged by all of them, whatever the brokers' `min.insync.replicas` is.
    Raises TopicError; ``timeout`` in seconds bounds the call. A topic that exists already is a
    repeated attempt that succeeded, or shared.
    """
    new = NewTopic(
        name,
        num_partitions=len(wanted),
        replica_assignment=[list(replicas) for replicas in wanted],
        config=dict(SETTINGS) | {"min.insync.replicas": str(len(wanted[0]))},
    )
    futures = admin.create_topics([new], operation_timeout=timeout, request_timeout=timeout)
    await_change(admin, futures, timeout, KafkaError.TOPIC_ALREADY_EXISTS)


def undeletable(admin: AdminClient, name: str, timeout: float = 2.0) -> Failure | None:
    """Why a topic called ``name``, which is not there yet, would stay; None where it could go.

    Asked by deleting it: a controller says first whether topics are deleted at all, and then
    whether there is this one. Raises TopicError if no broker answers.
    """
    failure = delete_topic(admin, name, timeout)
    if failure is not None and failure.error in UNANSWERED:
        raise TopicError(failure)
    return failure if failure is not None and failure.error in KEPT else None


def delete_topic(admin: AdminClient, name: str, timeout: float = 5.0) -> Failure | None:
    """Deletes ``name``; None when it is gone, else why not. Raises nothing: it runs at the end."""
    return _delete(admin, [name], timeout)[name]


def delete_leftovers(admin: AdminClient, cluster: str, timeout: float = 5.0) -> list[str]:
    """Deletes what killed runs against ``cluster`` left behind; returns the names now gone."""
    try:
        known = admin.list_topics(timeout=timeout).topics
    except KafkaException:
        return []
    names = leftovers(known, cluster)
    outcomes = _delete(admin, names, timeout) if names else {}
    return [name for name, failure in outcomes.items() if failure is None]


def _delete(admin: AdminClient, names: list[str], timeout: float) -> dict[str, Failure | None]:
    try:
        futures = admin.delete_topics(names, operation_timeout=timeout, request_timeout=timeout)
    except KafkaException as error:
        return dict.fromkeys(names, failure_of(error))
    return _outcomes(admin, futures, timeout, KafkaError.UNKNOWN_TOPIC_OR_PART)


def await_change(
    admin: AdminClient, futures: Mapping[str, Future[Any]], timeout: float, harmless: int
) -> None:
    """Waits for a change of one topic; raises TopicError, but for the error code ``harmless``."""
    for failure in _outcomes(admin, futures, timeout, harmless).values():
        if failure is not None:
            raise TopicError(failure)


def _outcomes(
    admin: AdminClient, futures: Mapping[str, Future[Any]], timeout: float, harmless: int
) -> dict[str, Failure | None]:
    """By topic, how its request ended; an error with the code ``harmless`` is none."""
    wait(futures.values(), timeout=timeout + 0.5)
    admin.poll(0)
    outcomes: dict[str, Failure | None] = {}
    for name, future in futures.items():
        if not future.done():
            outcomes[name] = Failure("timeout", f"no answer within {timeout:g} s")
            continue
        error = future.exception()
        code = error.args[0].code() if isinstance(error, KafkaException) else None
        outcomes[name] = None if error is None or code == harmless else failure_of(error)
    return outcomes


def plain(cluster: str) -> str:
    """``cluster`` in the characters of a topic name."""
    return re.sub(r"[^A-Za-z0-9._-]", "-", cluster)[:MAX_CLUSTER] or "unnamed"

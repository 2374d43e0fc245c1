"""Names, creates and deletes the topics for the records of a run.

The name is `__earshot-<cluster>-<expires>-<run>`, with the expiry in Unix seconds. A run ends
before that, so an expired topic is the leftover of a killed run. Other topics may belong to a run
elsewhere and are kept. If topics cannot be deleted, runs share one (`shared_topic`).
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
"""The allowed difference (s) between the clocks of two machines that validate one cluster."""
MAX_CLUSTER: Final = 150
"""The maximum length of the cluster's name in a topic name. Kafka allows 249 characters in all."""
COPIES: Final = "-copies"
"""The end of the name of a topic whose partitions have a follower."""
_NAME: Final = re.compile(
    re.escape(PREFIX) + rf"(?P<cluster>.+)-(?P<expires>\d{{9,12}})-[0-9a-f]+({COPIES})?"
)

SETTINGS: Final[Mapping[str, str]] = {
    "cleanup.policy": "delete",  # `compact` refuses records without a key
    "compression.type": "producer",
    "max.message.bytes": "1048588",
    # by the client's clock, a broker could refuse records or delete them as too old
    "message.timestamp.type": "LogAppendTime",
    "preallocate": "false",
    "retention.bytes": "-1",
    "retention.ms": "3600000",
    "segment.bytes": "104857600",  # a batch must fit into a segment
}
"""Settings of the topic, so that it does not depend on the brokers' defaults.

All are topic settings in Kafka 3.9 to 4.x. They are Kafka's defaults, except `retention.ms` and
`segment.bytes`, which limit disk usage, and the timestamp type.
"""

PERMANENT_ERRORS: Final = frozenset({"topic-deletion-disabled", "authorization"})
"""Errors of a deletion that a retry would repeat."""

Replicas = tuple[int, ...]
"""The ids of a partition's brokers, the leader first."""


class TopicError(Exception):
    """The topic could not be created; ``failure`` has a stable word and Kafka's text."""

    def __init__(self, failure: Failure) -> None:
        self.failure = failure
        super().__init__(failure.text)


def run_id() -> str:
    """A new run id: eight hexadecimal digits, part of the topic's name and of every record."""
    return secrets.token_hex(4)


def topic_name(cluster: str, run: str, lifetime: float, now: float | None = None) -> str:
    """The topic name of ``run``, which ends within ``lifetime`` seconds. ``now`` is Unix time."""
    expires = int((time.time() if now is None else now) + lifetime) + CLOCK_SLACK
    return f"{PREFIX}{topic_safe_name(cluster)}-{expires}-{run}"


def leftovers(names: Iterable[str], cluster: str, now: float | None = None) -> list[str]:
    """The topics in ``names`` that belong to killed runs against ``cluster``: earshot's, and
    expired."""
    moment = time.time() if now is None else now
    matches = [match for name in names if (match := _NAME.fullmatch(name))]
    cluster_matches = [match for match in matches if match["cluster"] == topic_safe_name(cluster)]
    return sorted(match[0] for match in cluster_matches if int(match["expires"]) < moment)


def create_topic(
    admin: AdminClient, name: str, placements: Sequence[Replicas], timeout: float = 10.0
) -> None:
    """Creates topic ``name`` with a partition for each of ``placements``, which have equal length.

    All replicas must acknowledge a record, regardless of the brokers' `min.insync.replicas`. An
    existing topic is not an error: an earlier attempt succeeded, or the topic is shared.
    ``timeout`` in seconds bounds the call. Raises TopicError.
    """
    new_topic = NewTopic(
        name,
        num_partitions=len(placements),
        replica_assignment=[list(replicas) for replicas in placements],
        config=dict(SETTINGS) | {"min.insync.replicas": str(len(placements[0]))},
    )
    futures = admin.create_topics([new_topic], operation_timeout=timeout, request_timeout=timeout)
    await_change(admin, futures, timeout, KafkaError.TOPIC_ALREADY_EXISTS)


def undeletable(admin: AdminClient, name: str, timeout: float = 2.0) -> Failure | None:
    """Why the topic ``name``, which does not exist yet, could not be deleted; None if it could.

    Tries to delete it: a controller first checks whether deletion is enabled and allowed, and then
    whether the topic exists. Raises TopicError if no broker answers.
    """
    failure = delete_topic(admin, name, timeout)
    if failure is not None and failure.error in UNANSWERED:
        raise TopicError(failure)
    return failure if failure is not None and failure.error in PERMANENT_ERRORS else None


def delete_topic(admin: AdminClient, name: str, timeout: float = 5.0) -> Failure | None:
    """Deletes topic ``name``. Returns the failure, or None. Never raises, for use in clean-up."""
    return _delete(admin, [name], timeout)[name]


def delete_leftovers(admin: AdminClient, cluster: str, timeout: float = 5.0) -> list[str]:
    """Deletes the topics of killed runs against ``cluster``. Returns the deleted names."""
    try:
        topics = admin.list_topics(timeout=timeout).topics
    except KafkaException:
        return []
    names = leftovers(topics, cluster)
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
    """Waits for a change of one topic. Raises TopicError, except for error code ``harmless``."""
    for failure in _outcomes(admin, futures, timeout, harmless).values():
        if failure is not None:
            raise TopicError(failure)


def _outcomes(
    admin: AdminClient, futures: Mapping[str, Future[Any]], timeout: float, harmless: int
) -> dict[str, Failure | None]:
    """The failure of each topic's request, by topic name; None for success or ``harmless``."""
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


def topic_safe_name(cluster: str) -> str:
    """``cluster`` with only the characters of a topic name."""
    return re.sub(r"[^A-Za-z0-9._-]", "-", cluster)[:MAX_CLUSTER] or "unnamed"

"""The ephemeral topic of a run: one partition led by each broker, and gone afterwards.

Its name says whose it is and until when: `__earshot-<cluster>-<expires>-<run>` with `expires` in
Unix seconds. A run may last no longer than that, so whatever has expired is a leftover of a run
that was killed, and whatever has not is left alone: it may belong to a run alive elsewhere.
"""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future, wait
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from earshot.validation.client import Failure, failure_of

PREFIX: Final = "__earshot-"
CLOCK_SLACK: Final = 120
"""Seconds by which the clocks of two machines that validate one cluster may differ."""
MAX_CLUSTER: Final = 150
"""Characters of the cluster's name in a topic's: Kafka allows 249 in all."""
_NAME: Final = re.compile(re.escape(PREFIX) + r"(?P<cluster>.+)-(?P<expires>\d{9,12})-[0-9a-f]+")


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
    return f"{PREFIX}{_plain(cluster)}-{expires}-{run}"


def leftovers(names: Iterable[str], cluster: str, now: float | None = None) -> list[str]:
    """Those of ``names`` that runs against ``cluster`` left behind: ours by name, and expired."""
    moment = time.time() if now is None else now
    found = []
    for name in names:
        match = _NAME.fullmatch(name)
        if match and match["cluster"] == _plain(cluster) and int(match["expires"]) < moment:
            found.append(name)
    return sorted(found)


def create_topic(
    admin: AdminClient, name: str, leaders: Sequence[int], timeout: float = 10.0
) -> dict[int, int]:
    """Creates ``name`` with a partition on each broker of ``leaders``; returns {broker: partition}.

    One replica each, so that the partition's leader is that broker and nobody else, and its own
    `min.insync.replicas`, as the cluster's may ask for two. Raises TopicError; ``timeout`` in
    seconds bounds the call. A topic that exists already is a repeated attempt that succeeded:
    the name is unique to the run.
    """
    new = NewTopic(
        name,
        num_partitions=len(leaders),
        replica_assignment=[[broker] for broker in leaders],
        config={"min.insync.replicas": "1", "retention.ms": "3600000"},
    )
    futures = admin.create_topics([new], operation_timeout=timeout, request_timeout=timeout)
    failure = _outcome(admin, futures, timeout, {KafkaError.TOPIC_ALREADY_EXISTS})[name]
    if failure is not None:
        raise TopicError(failure)
    return {broker: partition for partition, broker in enumerate(leaders)}


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
    if not names:
        return []
    return [name for name, failure in _delete(admin, names, timeout).items() if failure is None]


def _delete(admin: AdminClient, names: list[str], timeout: float) -> dict[str, Failure | None]:
    try:
        futures = admin.delete_topics(names, operation_timeout=timeout, request_timeout=timeout)
    except KafkaException as error:
        return dict.fromkeys(names, failure_of(error))
    return _outcome(admin, futures, timeout, {KafkaError.UNKNOWN_TOPIC_OR_PART})


def _outcome(
    admin: AdminClient, futures: Mapping[str, Future[Any]], timeout: float, fine: set[int]
) -> dict[str, Failure | None]:
    wait(futures.values(), timeout=timeout + 0.5)
    admin.poll(0)
    found: dict[str, Failure | None] = {}
    for name, future in futures.items():
        if not future.done():
            found[name] = Failure("timeout", f"no answer within {timeout:g} s")
            continue
        error = future.exception()
        code = error.args[0].code() if isinstance(error, KafkaException) else None
        found[name] = None if error is None or code in fine else failure_of(error)
    return found


def _plain(cluster: str) -> str:
    """``cluster`` in the characters of a topic name."""
    return re.sub(r"[^A-Za-z0-9._-]", "-", cluster)[:MAX_CLUSTER] or "unnamed"

"""Waiting for brokers: the whole cluster on a first start, one broker after a later change."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, ClusterMetadata

from components.local.process import last_words, read_record
from components.local.quorum import node_directory
from earshot.errors import EarshotError

DEADLINE = 120.0
"""Seconds; a lone voter of three gives up after 67 s, so nothing sensible takes longer."""
POLL = 0.25


def wait_for(
    root: Path,
    nodes: Sequence[int],
    brokers: Sequence[int],
    bootstrap: str,
    deadline: float = DEADLINE,
    progress: Callable[[str], None] = lambda _: None,
) -> None:
    """Returns when each of ``brokers`` is in the metadata and in sync with all of its replicas.

    ``nodes`` are the processes to watch meanwhile. Raises EarshotError with the last lines of a
    node's log where it died, or of the missing brokers' when ``deadline`` (s) has passed.
    """
    began = time.monotonic()
    admin = AdminClient(
        {
            "bootstrap.servers": bootstrap,
            "socket.connection.setup.timeout.ms": 2000,
            "reconnect.backoff.max.ms": 500,
            "log_level": 0,
        },
        logger=_silent(),
    )
    shown = began
    missing = list(brokers)
    while True:
        _check_alive(root, nodes)
        missing = _missing(_metadata(admin), brokers)
        now = time.monotonic()
        if not missing:
            return
        if now - began > deadline:
            raise _late(root, missing, deadline)
        if now - shown > 5:
            shown = now
            progress(f"waiting for broker {_listed(missing)} ({now - began:.0f} s)")
        time.sleep(POLL)


def _metadata(admin: AdminClient) -> ClusterMetadata | None:
    try:
        return admin.list_topics(timeout=2)
    except KafkaException:
        return None


def _missing(metadata: ClusterMetadata | None, brokers: Sequence[int]) -> list[int]:
    if metadata is None:
        return list(brokers)
    behind = {
        id
        for topic in metadata.topics.values()
        for partition in topic.partitions.values()
        for id in set(partition.replicas) - set(partition.isrs)
    }
    return [id for id in brokers if id not in metadata.brokers or id in behind]


def _check_alive(root: Path, nodes: Sequence[int]) -> None:
    for id in nodes:
        directory = node_directory(root, id)
        record = read_record(directory)
        if record is None or record.process() is None:
            raise EarshotError(
                f"node {id} did not come up",
                observed=f"its process has ended; the last lines of its logs in {directory}:\n"
                + last_words(directory),
                remedy="mend what the log names, then run the same command again",
            )


def _late(root: Path, missing: Sequence[int], deadline: float) -> EarshotError:
    words = "\n".join(last_words(node_directory(root, id), 5) for id in missing[:3])
    return EarshotError(
        f"broker {_listed(missing)}",
        observed=f"not in sync after {deadline:.0f} s; the last lines of the logs:\n{words}",
        remedy="mend what the log names, then run the same command again",
    )


def _listed(ids: Sequence[int]) -> str:
    return ", ".join(map(str, ids))


def _silent() -> object:
    import logging

    logger = logging.getLogger("earshot.readiness.librdkafka")
    logger.addHandler(logging.NullHandler())
    logger.propagate = False
    return logger

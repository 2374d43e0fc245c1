"""Waiting for brokers: the whole cluster on a first start, one broker after a later change."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from components.local.process import last_words, read_record
from components.local.quorum import node_directory
from earshot.errors import EarshotError

DEADLINE = 120.0
"""Seconds; a lone voter of three gives up after 67 s, so nothing sensible takes longer."""
POLL = 0.25
_SILENT = logging.getLogger("earshot.readiness")  # a refused connection is what we wait to end
_SILENT.addHandler(logging.NullHandler())
_SILENT.propagate = False


def wait_for(
    root: Path,
    nodes: Sequence[int],
    brokers: Mapping[int, str],
    deadline: float = DEADLINE,
    progress: Callable[[str], None] = lambda _: None,
) -> None:
    """Returns when each of ``brokers`` answers and is in sync with all of its replicas.

    ``brokers`` holds a host:port by broker id, ``nodes`` the processes to watch. Raises
    EarshotError with the last lines of a node's log where it died, or of the missing brokers'
    when ``deadline`` (s) has passed.
    """
    began = time.monotonic()
    shown = began
    admins = {id: _admin(address) for id, address in brokers.items()}
    while True:
        _check_alive(root, nodes)
        # each by its own word: for seconds the others still list a broker that was killed
        missing = [id for id, admin in admins.items() if not _in_sync(id, admin)]
        now = time.monotonic()
        if not missing:
            return
        if now - began > deadline:
            raise _late(root, missing, deadline)
        if now - shown > 5:
            shown = now
            progress(f"waiting for broker {_listed(missing)} ({now - began:.0f} s)")
        time.sleep(POLL)


def _admin(address: str) -> AdminClient:
    settings: dict[str, str | int | float | bool] = {
        "bootstrap.servers": address,
        "socket.connection.setup.timeout.ms": 2000,
        "reconnect.backoff.max.ms": 500,
        "log_level": 0,
    }
    return AdminClient(settings, logger=_SILENT)


def _in_sync(id: int, admin: AdminClient) -> bool:
    try:
        metadata = admin.list_topics(timeout=2)
    except KafkaException:
        return False
    partitions = (
        partition for topic in metadata.topics.values() for partition in topic.partitions.values()
    )
    behind = any(id in item.replicas and id not in item.isrs for item in partitions)
    return id in metadata.brokers and not behind


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

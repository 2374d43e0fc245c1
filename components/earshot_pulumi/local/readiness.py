"""Waiting for brokers: the whole cluster on a first start, one broker after a later change."""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from enum import Enum, auto
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from earshot.errors import EarshotError
from earshot.listeners.address import Address
from earshot.listeners.listed import listed
from earshot.listeners.properties import read_properties
from earshot_pulumi.local import quorum
from earshot_pulumi.local.access import accepts_connections, access
from earshot_pulumi.local.changes import started_with
from earshot_pulumi.local.client_listeners import LocalClientListeners
from earshot_pulumi.local.process import last_words, why_ended
from earshot_pulumi.local.record import running

DEADLINE = 120.0
"""Seconds; a lone voter of three gives up after 67 s, so nothing sensible takes longer."""
POLL = 0.25
AGAIN = "correct what the cause names, then run the same command again"
_SILENT = logging.getLogger("earshot.readiness")  # refused connections are expected
_SILENT.addHandler(logging.NullHandler())
_SILENT.propagate = False


class Progress(Enum):
    SILENT = auto()
    BEHIND = auto()
    READY = auto()


class CatchingUp(EarshotError):
    """A broker serves, but is not in sync yet."""


def wait_for(
    root: Path,
    nodes: Sequence[int],
    brokers: Mapping[int, str],
    cluster_id: str,
    deadline: float = DEADLINE,
    progress: Callable[[str], None] = lambda _: None,
    controllers: Mapping[int, Address] | None = None,
    client: Mapping[str, str] | None = None,
) -> None:
    """Returns when each of ``brokers`` answers and is in sync with all of its replicas.

    It also has to serve clients through each of their listeners (see `LocalClientListeners`).
    Replicas of which only nodes that do not run have all records are not waited for. ``brokers``
    holds a host:port by broker id, ``nodes`` the processes to watch. A controller that is no broker
    answers no clients, so it is ready when it accepts connections. ``client`` are Kafka's client
    properties, for brokers that ask each other for credentials. Raises EarshotError where a node
    died, where another cluster than ``cluster_id`` answers, or with the last log lines of silent
    brokers when ``deadline`` (s) has passed; CatchingUp where all answer then, but some are not in
    sync.
    """
    began = shown = time.monotonic()
    admins = {id: _admin(root, id, address, client or {}) for id, address in brokers.items()}
    entrances = {
        id: LocalClientListeners(root, id, address, client or {}, progress)
        for id, address in brokers.items()
    }
    while True:
        _check_alive(root, nodes)
        # ask each broker about itself: others list a killed broker for some seconds
        states = {
            id: _state(root, id, admin, brokers[id], cluster_id) for id, admin in admins.items()
        }
        shut = {
            id: problem
            for id, state in states.items()
            if state is not Progress.SILENT and (problem := entrances[id].problem())
        }
        states |= dict.fromkeys(shut, Progress.SILENT)
        states |= {
            id: Progress.READY if accepts_connections(address) else Progress.SILENT
            for id, address in (controllers or {}).items()
        }
        missing = [id for id, state in states.items() if state is not Progress.READY]
        now = time.monotonic()
        if not missing:
            return
        if now - began > deadline:
            silent = [id for id in missing if states[id] is Progress.SILENT]
            if silent:
                raise _late(root, silent, shut, deadline)
            raise CatchingUp(
                f"broker {listed(missing)}",
                observed="answers, and is not in sync with all of its replicas after "
                f"{deadline:.0f} s",
                remedy="wait until it has caught up, then run the same command again",
            )
        if now - shown > 5:
            shown = now
            progress(f"waiting for node {listed(missing)} ({now - began:.0f} s)")
        time.sleep(POLL)


def _admin(root: Path, id: int, address: str, client: Mapping[str, str]) -> AdminClient:
    values = read_properties(started_with(quorum.node_directory(root, id))).values
    settings: dict[str, Any] = {
        **access(values, client),
        "bootstrap.servers": address,
        "socket.connection.setup.timeout.ms": 2000,
        "reconnect.backoff.max.ms": 500,
        "log_level": 0,
    }
    return AdminClient(settings, logger=_SILENT)


def _state(root: Path, id: int, admin: AdminClient, address: str, cluster_id: str) -> Progress:
    try:
        metadata = admin.list_topics(timeout=2)
    except KafkaException:
        return Progress.SILENT
    found: str | None = metadata.cluster_id  # the stubs have it as always None
    if found and found != cluster_id:
        raise EarshotError(
            f"broker {id}",
            observed=f"cluster {found} answers at {address}",
            allowed=f"cluster {cluster_id}, which this stack has formatted",
            remedy="see whose brokers listen there (another checkout of the stack, a container): "
            "stop them, or give one of the two other ports; then run the same command again",
        )
    if id not in metadata.brokers:
        return Progress.SILENT
    partitions = (
        partition for topic in metadata.topics.values() for partition in topic.partitions.values()
    )
    behind = [it.isrs for it in partitions if id in it.replicas and id not in it.isrs]
    if not behind:
        return Progress.READY
    # what only nodes have that do not run, nobody can catch up with before they do
    gone = set(quorum.ended(root, but=id))
    return Progress.READY if gone and all(gone >= set(it) for it in behind) else Progress.BEHIND


def _check_alive(root: Path, nodes: Sequence[int]) -> None:
    for id in nodes:
        directory = quorum.node_directory(root, id)
        if running(directory) is None:
            raise EarshotError(
                f"node {id} did not come up", observed=why_ended(directory), remedy=AGAIN
            )


def _late(
    root: Path, silent: Sequence[int], shut: Mapping[int, str], deadline: float
) -> EarshotError:
    words = "\n".join(last_words(quorum.node_directory(root, id), 5) for id in silent[:3])
    reasons = "; ".join(dict.fromkeys(shut[id] for id in silent if id in shut))
    return EarshotError(
        f"node {listed(silent)} did not come up",
        observed=f"{reasons or 'no answer'} after {deadline:.0f} s; the last lines of the "
        f"logs:\n{words}",
        remedy=AGAIN,
    )

"""Restarts one node of a cluster, with its former settings again if it does not come up."""

import contextlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import psutil

from earshot import cache
from earshot.errors import EarshotError
from earshot.listeners.listed import listed
from earshot.listeners.properties import read_properties
from earshot_pulumi.driver import (
    CatchingUp,
    Say,
    change_or_restore,
    not_stopped,
    start_with_former_settings,
)
from earshot_pulumi.local import quorum
from earshot_pulumi.local.changes import find_kafka, started_with, version_of
from earshot_pulumi.local.node_files import as_written, prune
from earshot_pulumi.local.process import Launch, check_java, check_room, start, stop
from earshot_pulumi.local.readiness import serve_clients, wait_for, wait_for_others
from earshot_pulumi.local.record import Record, running
from earshot_pulumi.writing import writing

LOCK = "restart.lock"
"""File below the cluster's root that is locked while a node is restarted."""

GRACE = 30.0
"""Seconds for a broker to hand over its leaderships."""
GRACE_WITHOUT_QUORUM = 3.0
"""Seconds if there is no quorum: leaderships cannot be handed over, and all data is on disk."""


def restart(
    root: Path,
    launch: Launch,
    previous: Launch | None,
    cluster_id: str,
    client: Mapping[str, str],
    progress: Say = print,
) -> Record:
    """The node's process, started by ``launch`` unless it already runs with these settings.

    If the cluster serves, this waits for the node. If the node does not come up, it is started
    again with the settings and files that it ran with: by ``previous``, or as its process and its
    folder tell. A node that serves but is not in sync yet counts as up; its readiness resource
    waits for the rest. ``client`` are Kafka's client properties, for nodes that require credentials
    of each other. Raises EarshotError, which says how the node was left.
    """

    def waiting() -> None:
        progress(f"waiting for another update, which restarts a node of {root}")

    with writing("the cluster", root):
        locked = contextlib.ExitStack()
        # two updates run after `pulumi cancel`, or with two backends
        locked.enter_context(cache.exclusive(root / LOCK, waiting))
    with locked:
        return _restart(root, launch, previous, cluster_id, client, progress)


def _restart(
    root: Path,
    launch: Launch,
    previous: Launch | None,
    cluster_id: str,
    client: Mapping[str, str],
    progress: Say,
) -> Record:
    former_record = running(launch.directory)
    is_to_stop = former_record is not None and former_record.digest != launch.digest
    serving = quorum.serves(root) or (is_to_stop and _serves_unseen(root, cluster_id, client))

    def started(record: Record) -> Record:
        if serving:
            with contextlib.suppress(CatchingUp):
                wait_for(root, [launch.id], cluster_id, client, progress)
            prune(launch.directory)
        return record

    if former_record is not None and former_record.digest == launch.digest:
        return started(former_record)
    if former_record is None:
        previous = None  # the node did not run
    elif previous is None or former_record.digest != previous.digest:
        # the state is lost, or an interrupted update has started the node
        previous = _running_launch(launch, former_record)
    if previous is not None:
        previous = replace(previous, started_with=started_with(launch.directory))
    if former_record is not None:
        if serving:
            _check_others(root, launch.id, cluster_id, client, progress)
        check_room(launch)
        check_java(launch)
    stop(launch.directory, grace(root))
    return change_or_restore(
        lambda: started(start(launch, cluster_id)),
        lambda: _start_former(root, previous, cluster_id, client, progress) if previous else None,
    )


def _serves_unseen(root: Path, cluster_id: str, client: Mapping[str, str]) -> bool:
    """True if the cluster serves, and the update that started it was interrupted before it saw
    that. Records it."""
    if not quorum.majority_runs(root) or not serve_clients(root, cluster_id, client):
        return False
    quorum.mark_serving(root, [], whole=True)
    return True


def _running_launch(launch: Launch, record: Record) -> Launch | None:
    """How the node with the living process ``record`` was started, by its process and its folder.

    None if they do not tell, or if its settings name other data than those of ``launch``.
    """
    text, version = started_with(launch.directory), version_of(launch.directory)
    data = (
        read_properties(settings).values.get("log.dirs") for settings in (text, launch.properties)
    )
    try:
        command = psutil.Process(record.pid).cmdline()
        kafka = find_kafka(version, fetching=False)
    except (psutil.Error, EarshotError):
        return None
    heap = next((word.removeprefix("-Xmx") for word in command if word.startswith("-Xmx")), "")
    if not heap or len({*data}) > 1:
        return None
    return Launch(
        id=launch.id,
        directory=launch.directory,
        properties=as_written(text),
        heap=heap,
        kafka_version=version,
        java=kafka.java.executable,
        jars=kafka.jars,
        recorded_digest=record.digest,
    )


def _check_others(
    root: Path, id: int, cluster_id: str, client: Mapping[str, str], progress: Say
) -> None:
    """Returns once all other nodes are in sync. Raises EarshotError if one has ended, is suspended
    or does not catch up in time."""
    if ended := quorum.ended(root, except_id=id):
        nodes = f"node {listed(ended)}"
        again = f"run the same command again: it starts {nodes} first"
        raise not_stopped(f"node {id}", "down already", nodes, again)
    if pids := " ".join(map(str, quorum.suspended(root, except_id=id))):
        again = f"continue it (`kill -CONT {pids}`), then run the same command again"
        raise not_stopped(f"node {id}", "suspended by a signal", f"process {pids}", again)
    try:
        wait_for_others(root, id, cluster_id, client, progress)
    except EarshotError as error:
        again = (
            "wait until they are in sync, then run the same command again; if they cannot be, "
            "stop the cluster first (`pulumi destroy`; data is kept)"
        )
        raise not_stopped(f"node {id}", "not in sync", error.object, again) from None


def grace(root: Path) -> float:
    """Seconds for a node to end after SIGTERM."""
    try:
        return GRACE if quorum.majority_runs(root) else GRACE_WITHOUT_QUORUM
    except EarshotError:
        return GRACE  # the voters are unknown


def _start_former(
    root: Path, previous: Launch, cluster_id: str, client: Mapping[str, str], progress: Say
) -> str:
    """Starts the node by ``previous``. Returns its state as text, for a message."""
    progress(f"node {previous.id} did not come up: starting it again with its former settings")

    def start_again() -> None:
        stop(previous.directory, GRACE_WITHOUT_QUORUM)
        start(previous, cluster_id)

    def serves(_: None) -> None:
        wait_for(root, [previous.id], cluster_id, client, progress)

    return start_with_former_settings(start_again, serves, "started")

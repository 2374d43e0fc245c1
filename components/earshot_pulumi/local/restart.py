"""Restarts one node of a cluster, with its former settings again if it does not come up."""

import contextlib
from dataclasses import replace
from pathlib import Path

import psutil

from earshot.errors import EarshotError
from earshot.files import cache
from earshot.listeners.listed import listed
from earshot.listeners.properties import read_properties
from earshot.transition.refusal import STOP_FIRST
from earshot_pulumi.driver import (
    CatchingUp,
    change_or_restore,
    not_stopped,
    start_with_former_settings,
)
from earshot_pulumi.file_access import writing
from earshot_pulumi.local import cluster_memory
from earshot_pulumi.local.node_files import as_written, prune
from earshot_pulumi.local.preflight import find_kafka, started_with, version_of
from earshot_pulumi.local.process import Launch, check_java, check_room, start, stop
from earshot_pulumi.local.process_record import Record, running
from earshot_pulumi.local.readiness import RunningCluster

LOCK = "restart.lock"
"""File below the cluster's root that is locked while a node is restarted."""

GRACE = 30.0
"""Seconds for a broker to hand over its leaderships."""
GRACE_WITHOUT_QUORUM = 3.0
"""Seconds if there is no quorum: leaderships cannot be handed over, and all data is on disk."""


def restart(cluster: RunningCluster, launch: Launch, previous: Launch | None) -> Record:
    """The node's process, started by ``launch`` unless it already runs with these settings.

    If the cluster serves, this waits for the node. If the node does not come up, it is started
    again with the settings and files that it ran with: by ``previous``, or as its process and its
    folder tell. A node that serves but is not in sync yet counts as up; its readiness resource
    waits for the rest. Raises EarshotError, which says how the node was left.
    """

    def waiting() -> None:
        cluster.say(f"waiting for another update, which restarts a node of {cluster.root}")

    with writing("the cluster", cluster.root):
        locked = contextlib.ExitStack()
        # two updates run after `pulumi cancel`, or with two backends
        locked.enter_context(cache.exclusive(cluster.root / LOCK, waiting))
    with locked:
        return _restart(cluster, launch, previous)


def _restart(cluster: RunningCluster, launch: Launch, previous: Launch | None) -> Record:
    former_record = running(launch.directory)
    is_to_stop = former_record is not None and former_record.digest != launch.digest
    serving = cluster_memory.serves(cluster.root) or (is_to_stop and _serves_unseen(cluster))

    def started(record: Record) -> Record:
        if serving:
            with contextlib.suppress(CatchingUp):
                cluster.wait_for([launch.id])
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
            _check_others(cluster, launch.id)
        check_room(launch)
        check_java(launch)
    stop(launch.directory, grace(cluster.root))
    return change_or_restore(
        lambda: started(start(launch, cluster.cluster_id)),
        lambda: _start_former(cluster, previous) if previous else None,
    )


def _serves_unseen(cluster: RunningCluster) -> bool:
    """True if the cluster serves, and the update that started it was interrupted before it saw
    that. Records it."""
    if not cluster_memory.majority_runs(cluster.root) or not cluster.serves_clients():
        return False
    cluster_memory.mark_serving(cluster.root, [], whole=True)
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


def check_others(cluster: RunningCluster, id: int, directory: Path) -> None:
    """Raises EarshotError if the node runs and must not stop, as another one does not serve."""
    if running(directory) is not None and cluster_memory.serves(cluster.root):
        _check_others(cluster, id)


def _check_others(cluster: RunningCluster, id: int) -> None:
    """Returns once all other nodes are in sync. Raises EarshotError if one has ended, is suspended
    or does not catch up in time."""
    if ended := cluster_memory.ended(cluster.root, except_id=id):
        nodes = f"node {listed(ended)}"
        again = f"run the same command again: it starts {nodes} first"
        raise not_stopped(f"node {id}", "down already", nodes, again)
    if pids := " ".join(map(str, cluster_memory.suspended(cluster.root, except_id=id))):
        again = f"continue it (`kill -CONT {pids}`), then run the same command again"
        raise not_stopped(f"node {id}", "suspended by a signal", f"process {pids}", again)
    try:
        cluster.wait_for_others(id)
    except EarshotError as error:
        again = (
            "wait until they are in sync, then run the same command again; if they cannot be, "
            f"{STOP_FIRST}"
        )
        raise not_stopped(f"node {id}", "not in sync", error.object, again) from None


def grace(root: Path) -> float:
    """Seconds for a node to end after SIGTERM."""
    try:
        return GRACE if cluster_memory.majority_runs(root) else GRACE_WITHOUT_QUORUM
    except EarshotError:
        return GRACE  # the voters are unknown


def _start_former(cluster: RunningCluster, previous: Launch) -> str:
    """Starts the node by ``previous``. Returns its state as text, for a message."""
    cluster.say(f"node {previous.id} did not come up: starting it again with its former settings")

    def start_again() -> None:
        stop(previous.directory, GRACE_WITHOUT_QUORUM)
        start(previous, cluster.cluster_id)

    def serves(_: None) -> None:
        cluster.wait_for([previous.id])

    return start_with_former_settings(start_again, serves, "started")

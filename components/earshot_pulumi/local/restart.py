"""Restarts one node of a cluster, with its former settings again if it does not come up."""

import contextlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from earshot.errors import EarshotError
from earshot.listeners.listed import listed
from earshot_pulumi.driver import (
    CatchingUp,
    Say,
    change_or_restore,
    not_stopped,
    start_with_former_settings,
)
from earshot_pulumi.local import quorum
from earshot_pulumi.local.changes import started_with
from earshot_pulumi.local.node_files import prune
from earshot_pulumi.local.process import Launch, check_java, check_room, start, stop
from earshot_pulumi.local.readiness import wait_for
from earshot_pulumi.local.record import Record, running

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
    again by ``previous`` with its former files, provided that it ran with these settings before. A
    node that serves but is not in sync yet counts as up; its readiness resource waits for the sync.
    ``client`` are Kafka's client properties, for nodes that require credentials of each other.
    Raises EarshotError with the state in which the node was left.
    """
    serving = quorum.serves(root)
    former_record = running(launch.directory)

    def started(record: Record) -> Record:
        if serving:
            with contextlib.suppress(CatchingUp):
                wait_for(root, [launch.id], cluster_id, client, progress)
            prune(launch.directory)
        return record

    if former_record is not None and former_record.digest == launch.digest:
        return started(former_record)
    if former_record is None or (previous is not None and former_record.digest != previous.digest):
        previous = None  # the node did not run with these settings
    if previous is not None:
        previous = replace(previous, started_with=started_with(launch.directory))
    if former_record is not None:
        if serving:
            _check_others(root, launch.id)
        check_room(launch)
        check_java(launch)
    stop(launch.directory, grace(root))
    return change_or_restore(
        lambda: started(start(launch, cluster_id)),
        lambda: _start_former(root, previous, cluster_id, client, progress) if previous else None,
    )


def _check_others(root: Path, id: int) -> None:
    """Raises EarshotError if another node has ended or is suspended."""
    if ended := quorum.ended(root, except_id=id):
        nodes = f"node {listed(ended)}"
        again = f"run the same command again: it starts {nodes} first"
        raise not_stopped(f"node {id}", "down already", nodes, again)
    if pids := " ".join(map(str, quorum.suspended(root, except_id=id))):
        again = f"continue it (`kill -CONT {pids}`), then run the same command again"
        raise not_stopped(f"node {id}", "suspended by a signal", f"process {pids}", again)


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

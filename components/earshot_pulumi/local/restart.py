"""Changing one node of a cluster: stop, start, wait; if it fails, start it as before."""

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from earshot.errors import EarshotError
from earshot.listeners.listed import listed
from earshot_pulumi.driver import CatchingUp, as_it_was, not_stopped, or_put_back
from earshot_pulumi.local import quorum
from earshot_pulumi.local.changes import started_with
from earshot_pulumi.local.node_files import prune
from earshot_pulumi.local.process import Launch, check_java, check_room, start, stop
from earshot_pulumi.local.readiness import wait_for
from earshot_pulumi.local.record import Record, running

GRACE = 30.0
"""Seconds that a broker gets to hand its partitions over."""
GRACE_ALONE = 3.0
"""The same without a quorum: nothing can be handed over, and all data is on disk."""
Progress = Callable[[str], None]


def restart(
    root: Path,
    launch: Launch,
    previous: Launch | None,
    cluster_id: str,
    client: Mapping[str, str],
    progress: Progress = print,
) -> Record:
    """The node's process, running as ``launch`` says; one that already does is left alone.

    Where the cluster serves, this waits for the node. If the node does not come up, it is started
    again as ``previous``, with the files that it had, provided that it ran so before. A node that
    serves but is not in sync yet counts as up: the readiness after it waits for the rest.
    ``client`` are Kafka's client properties, for nodes that ask each other for credentials. Raises
    EarshotError, which says how the node was left.
    """
    serving = quorum.serves(root)
    before = running(launch.directory)

    def started(record: Record) -> Record:
        if serving:
            with contextlib.suppress(CatchingUp):
                wait_for(root, [launch.id], cluster_id, client, progress)
            prune(launch.directory)
        return record

    if before is not None and before.digest == launch.digest:
        return started(before)
    if before is None or (previous is not None and before.digest != previous.digest):
        previous = None  # the node did not run so
    if previous is not None:
        previous = replace(previous, started_with=started_with(launch.directory))
    if before is not None:
        if serving:
            _check_others(root, launch.id)
        check_room(launch)
        check_java(launch)
    stop(launch.directory, grace(root))
    return or_put_back(
        lambda: started(start(launch, cluster_id)),
        lambda: _put_back(root, previous, cluster_id, client, progress) if previous else None,
    )


def _check_others(root: Path, id: int) -> None:
    """Raises EarshotError where another node has ended or is suspended: two at a time are too many
    to miss."""
    if gone := quorum.ended(root, but=id):
        nodes = f"node {listed(gone)}"
        again = f"run the same command again: it starts {nodes} first"
        raise not_stopped(f"node {id}", "down already", nodes, again)
    if held := " ".join(map(str, quorum.suspended(root, but=id))):
        again = f"let it go on (`kill -CONT {held}`), then run the same command again"
        raise not_stopped(f"node {id}", "suspended by a signal", f"process {held}", again)


def grace(root: Path) -> float:
    """Seconds that a node gets to end after SIGTERM."""
    try:
        return GRACE if quorum.majority_runs(root) else GRACE_ALONE
    except EarshotError:
        return GRACE  # its voters are not known


def _put_back(
    root: Path, previous: Launch, cluster_id: str, client: Mapping[str, str], progress: Progress
) -> str:
    """How the node is left, after an attempt to start it as before."""
    progress(f"node {previous.id} did not come up: starting it again as it was")

    def start_again() -> None:
        stop(previous.directory, GRACE_ALONE)
        start(previous, cluster_id)

    def serves(_: None) -> None:
        wait_for(root, [previous.id], cluster_id, client, progress)

    return as_it_was(start_again, serves, "started")

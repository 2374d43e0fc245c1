"""Kinds of the `local` placement: the preflight, the nodes, their readiness."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from earshot.errors import EarshotError
from earshot.listeners.model import ClusterPlan
from earshot_pulumi import leaving
from earshot_pulumi.local import (
    access,
    changes,
    data_root,
    on_disk,
    process,
    quorum,
    readiness,
    restart,
)
from earshot_pulumi.local.record import Record, process_of, running
from earshot_pulumi.properties import here
from earshot_pulumi.provider.internal import CheckedKind, InternalKind
from earshot_pulumi.provider.kind import Operation, Properties


class LocalPreflightKind(CheckedKind):
    """Checks before any node is touched: quorum, removals, versions, ports."""

    ID_IN = "cluster_id"
    interrupted = (
        "interrupted before a node was restarted: removed brokers may be stopped; the next "
        "`pulumi up` does the rest"
    )
    DECISIVE = ("plan", "root", "data")
    """Not the gate's digest: a new evaluation of the plan is no change here."""

    def problems(self, operation: Operation, olds: Properties, news: Properties) -> Iterator[str]:
        root, plan = _root(news), ClusterPlan.model_validate(news["plan"])
        yield from quorum.problems(root, plan)
        yield from access.problems(plan, news)
        yield from changes.problems(root, plan, _wanted(news))
        if leaving.matters(news["remove"]):
            yield from changes.client_problems(root, plan)

    def made(self, operation: Operation, olds: Properties, news: Properties) -> Properties:
        return {**news, "cluster_id": _settled(operation, news)}

    def delete(self, operation: Operation, id: str, olds: Properties) -> None:
        root = _root(olds)
        with contextlib.suppress(EarshotError):  # the next start reports it
            quorum.mark_stopped(root)
        if olds["data"] == "delete":
            data_root.remove(root)


class LocalNodeKind(InternalKind):
    """One Kafka process; its data outlives it."""

    interrupted = (
        "interrupted while the node was stopped or started: it may be down, or run with its new "
        "settings; the next `pulumi up` goes on from there"
    )

    DECISIVE = ("root", "properties", "heap", "kafka_version", "cluster_id", "certificate")

    def differs(self, operation: Operation, olds: Properties, news: Properties) -> bool:
        return super().differs(operation, olds, news) or not _runs_so(news)

    def create(self, operation: Operation, news: Properties) -> tuple[str, Properties]:
        _, made = super().create(operation, news)
        return f"node-{int(news['node_id'])}", made

    def made(self, operation: Operation, olds: Properties, news: Properties) -> Properties:
        launch = _launch(news)  # fetches what is missing, before anything is stopped
        client = access.client_properties(news)
        # it may run although there are no olds: a state that was lost does not know it
        previous = _previous(olds) if olds else None
        record = restart.restart(
            _root(news), launch, previous, news["cluster_id"], client, operation.log
        )
        return {**news, **_identity(record)}

    def read(self, operation: Operation, id: str, olds: Properties) -> Properties | None:
        record = running(_directory(olds))
        if record is None:
            return None  # the next update starts it again
        return {**olds, **_identity(record)}

    def delete(self, operation: Operation, id: str, olds: Properties) -> None:
        original, own = Path(olds["root"]), _root(olds)
        with contextlib.suppress(EarshotError):
            if original != own and process_of(_node(original, olds)) is not None:
                # do not stop it: this checkout is a copy, and the process is the original's
                operation.log(f"node {int(olds['node_id'])} in {original} runs on")
        process.stop(_directory(olds), restart.grace(own))


class LocalReadinessKind(InternalKind):
    """Waits for one broker after a change, or for the whole cluster at the end of a run."""

    ID = "ready"
    interrupted = "interrupted while waiting for brokers, which go on; nothing was changed"

    def made(self, operation: Operation, olds: Properties, news: Properties) -> Properties:
        root, whole = _root(news), bool(news["whole"])
        nodes = [int(id) for id in news["nodes"]]
        if not whole and not quorum.serves(root):
            return news  # a first start: all voters start together, and the whole is waited for
        client, cluster = access.client_properties(news), news["cluster_id"]
        readiness.wait_for(root, nodes, cluster, client, operation.log)
        reported = [changes.version_of(quorum.node_directory(root, id)) for id in nodes]
        quorum.mark_serving(root, [version for version in reported if version], whole=whole)
        return news


def _wanted(props: Properties) -> ClusterPlan | None:
    """The plan at the end of a change that takes more steps than this one."""
    wanted = props.get("wanted")
    return ClusterPlan.model_validate(wanted) if wanted else None


def _settled(operation: Operation, props: Properties) -> str:
    """The cluster's id, after the checks of `changes.prepare`; removed brokers are stopped.

    Where `cluster.json` is lost, the id comes from the nodes' data.
    """
    root, plan = _root(props), ClusterPlan.model_validate(props["plan"])
    changes.prepare(root, plan, _wanted(props))
    for id in quorum.removed(root, plan):
        # Pulumi deletes it only after the validation, which must not find it any more
        process.stop(quorum.node_directory(root, id))
    lost = quorum.kept(root) is None
    settled = quorum.settle(root, plan)
    if lost and on_disk.found(root) is not None:
        operation.log(f"cluster.json in {root} was lost; made again from the nodes' own files")
    return settled.cluster_id


def _launch(props: Properties, *, fetching: bool = True) -> process.Launch:
    """Raises EarshotError where Java or Kafka's jars are missing."""
    kafka = changes.kafka_at_hand(props["kafka_version"], fetching=fetching)
    return process.Launch(
        id=int(props["node_id"]),
        directory=_directory(props),
        properties=props["properties"],
        heap=props["heap"],
        kafka_version=kafka.version,
        java=kafka.java.executable,
        jars=kafka.jars,
        certificate=props.get("certificate") or "",
    )


def _runs_so(props: Properties) -> bool:
    """Whether the node runs, and with the settings of ``props``.

    It may have been killed, or started by a run that was killed: the state knows of neither.
    """
    record = running(_directory(props))
    certificate = props.get("certificate") or ""
    wanted = process.digest(props["properties"], props["heap"], props["kafka_version"], certificate)
    return record is not None and record.digest == wanted


def _previous(olds: Properties) -> process.Launch | None:
    """How the node was last started, or None where that cannot be repeated."""
    if Path(olds["root"]) != _root(olds):
        return None  # its settings name another checkout's data, or where this one was before
    try:
        return _launch(olds, fetching=False)
    except EarshotError:
        return None


def _root(props: Properties) -> Path:
    """The data root in this checkout, whichever checkout wrote the state."""
    return here(props["root"])


def _directory(props: Properties) -> Path:
    return _node(_root(props), props)


def _node(root: Path, props: Properties) -> Path:
    return quorum.node_directory(root, int(props["node_id"]))


def _identity(record: Record) -> Properties:
    return {"pid": record.pid, "incarnation": record.incarnation}

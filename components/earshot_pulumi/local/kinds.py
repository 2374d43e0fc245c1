"""Resource kinds of the `local` placement: preflight, node, readiness."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from earshot.errors import EarshotError
from earshot.listeners.model import ClusterPlan
from earshot_pulumi import listener_removal
from earshot_pulumi.certificates import CertificatesKind
from earshot_pulumi.local import (
    access,
    cluster_memory,
    data_root,
    node_files,
    preflight,
    process,
    reconstruction,
    restart,
)
from earshot_pulumi.local.process_record import Record, process_of, running
from earshot_pulumi.local.readiness import RunningCluster
from earshot_pulumi.properties import here
from earshot_pulumi.provider.kind import Kind, Operation, Properties


class LocalPreflightKind(Kind):
    """Checks before any node changes: quorum, removals, versions, ports."""

    ID_IN = "cluster_id"
    OWNS = ("root",)
    interrupted = (
        "interrupted before a node was restarted: removed brokers may be stopped; the next "
        "`pulumi up` continues from there"
    )
    DECISIVE = ("plan", "root", "data")
    """Without the gate's digest, because a new check of the same plan needs no update."""

    def problems(self, operation: Operation, olds: Properties, news: Properties) -> Iterator[str]:
        root, plan = _root(news), ClusterPlan.model_validate(news["plan"])
        yield from cluster_memory.problems(root, plan)
        yield from access.problems(plan, news)
        yield from preflight.expired_problems(root)
        yield from preflight.problems(root, plan, _last_plan(news))
        used = preflight.client_problems(root, plan)
        yield from listener_removal.blocking(news["remove"], used, operation.log)

    def differs(self, operation: Operation, olds: Properties, news: Properties) -> bool:
        is_lost = olds.get("cluster_id") and cluster_memory.recall(_root(news)) is None
        return bool(is_lost) or super().differs(operation, olds, news)

    def update(self, operation: Operation, olds: Properties, news: Properties) -> Properties:
        # `problems` gets the former inputs, which do not have the cluster's id
        _check_folder(_root(news), olds.get("cluster_id"))
        return super().update(operation, olds, news)

    def apply(self, operation: Operation, olds: Properties, news: Properties) -> Properties:
        return {**news, "cluster_id": _decide_cluster_id(operation, news)}

    def delete(self, operation: Operation, olds: Properties) -> None:
        root = _root(olds)
        with contextlib.suppress(EarshotError):  # the next start reports it
            if cluster_memory.any_runs(
                root
            ):  # a transform or `--target` has left them out of the removal
                operation.log(f"brokers in {root} run: their data remain")
                return
            cluster_memory.mark_stopped(root)
        if olds["data"] == "delete":
            data_root.remove(root)


class LocalCertificatesKind(CertificatesKind):
    """Copies each node's files before it rewrites them, as nodes keep the files that they use."""

    def apply(self, operation: Operation, olds: Properties, news: Properties) -> Properties:
        for directory in sorted(_root(news).glob("node-*")):
            node_files.keep(directory)
        return super().apply(operation, olds, news)


class LocalNodeKind(Kind):
    """One Kafka process; its data outlives the resource."""

    interrupted = (
        "interrupted while the node was stopped or started: it may be down, or run with its new "
        "settings; the next `pulumi up` continues from there"
    )

    DECISIVE = ("root", "properties", "heap", "kafka_version", "cluster_id", "certificate")
    OWNS = ("root", "node_id")

    def differs(self, operation: Operation, olds: Properties, news: Properties) -> bool:
        return super().differs(operation, olds, news) or not _runs_with(news)

    def create(self, operation: Operation, news: Properties) -> tuple[str, Properties]:
        _, outputs = super().create(operation, news)
        return f"node-{int(news['node_id'])}", outputs

    def apply(self, operation: Operation, olds: Properties, news: Properties) -> Properties:
        launch = _launch(news)  # fetches missing files before the node is stopped
        # after a lost state, the node may run although there are no olds
        previous = _previous(olds) if olds else None
        record = restart.restart(_cluster(operation, news), launch, previous)
        return {**news, **_identity(record)}

    def read(self, operation: Operation, olds: Properties) -> Properties | None:
        record = running(_directory(olds))
        if record is None:
            return None  # the next update starts it again
        return {**olds, **_identity(record)}

    def delete(self, operation: Operation, olds: Properties) -> None:
        original, current = Path(olds["root"]), _root(olds)
        with contextlib.suppress(EarshotError):
            if original != current and process_of(_node(original, olds)) is not None:
                # this checkout is a copy, and the process belongs to the original checkout
                operation.log(f"node {int(olds['node_id'])} in {original} runs on")
        process.stop(_directory(olds), restart.grace(current))

    def delete_before_replacement(self, operation: Operation, olds: Properties) -> None:
        restart.check_others(_cluster(operation, olds), int(olds["node_id"]), _directory(olds))
        self.delete(operation, olds)


class LocalReadinessKind(Kind):
    """Waits for one broker after a change, or for the whole cluster at the end of a run."""

    ID = "ready"
    interrupted = (
        "interrupted while waiting for brokers, which continue to run; nothing was changed"
    )

    def apply(self, operation: Operation, olds: Properties, news: Properties) -> Properties:
        root, whole = _root(news), bool(news["whole"])
        nodes = [int(id) for id in news["nodes"]]
        if not whole and not cluster_memory.serves(root):
            return news  # at a first start all voters start together, and one wait for all follows
        _cluster(operation, news).wait_for(nodes)
        versions = [preflight.version_of(cluster_memory.node_directory(root, id)) for id in nodes]
        cluster_memory.mark_serving(root, list(filter(None, versions)), whole=whole)
        return news


def _last_plan(props: Properties) -> ClusterPlan | None:
    """The plan at the end of the change, or None if this step is the last."""
    plan = props.get("wanted")
    return ClusterPlan.model_validate(plan) if plan else None


def _check_folder(root: Path, cluster_id: str | None) -> None:
    """Raises EarshotError if the state has a cluster whose data is not under ``root``."""
    if cluster_id and cluster_memory.recall(root) is None:
        raise EarshotError(
            f"nothing was changed: data of cluster {cluster_id} in {root}",
            observed="is gone, and the state of this stack has the cluster: the update would start "
            "an empty one",
            remedy="put the folder back from a copy, or run this in the checkout that has it; for "
            "an empty cluster instead, `pulumi destroy`, then the same command again",
        )


def _decide_cluster_id(operation: Operation, props: Properties) -> str:
    """Runs `preflight.prepare`, stops removed brokers, and returns the cluster id.

    If `cluster.json` is lost, the id comes from the nodes' data. Raises EarshotError.
    """
    root, plan = _root(props), ClusterPlan.model_validate(props["plan"])
    preflight.prepare(root, plan, _last_plan(props))
    for id in cluster_memory.removed(root, plan):
        # Pulumi deletes it only after the validation, which must not connect to it any more
        process.stop(cluster_memory.node_directory(root, id))
    is_lost = cluster_memory.read_memory(root) is None
    memory = cluster_memory.settle(root, plan)
    if is_lost and reconstruction.reconstruct(root) is not None:
        operation.log(f"cluster.json in {root} was lost; made again from the nodes' own files")
    return memory.cluster_id


def _launch(props: Properties, *, fetching: bool = True) -> process.Launch:
    """The `Launch` of the node. Raises EarshotError if Java or Kafka's jars are missing."""
    kafka = preflight.find_kafka(props["kafka_version"], fetching=fetching)
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


def _runs_with(props: Properties) -> bool:
    """True if the node runs with the settings of ``props``.

    The state does not show whether the node was killed, or was started by an interrupted run.
    """
    record = running(_directory(props))
    certificate = props.get("certificate") or ""
    digest = process.digest(props["properties"], props["heap"], props["kafka_version"], certificate)
    return record is not None and record.digest == digest


def _previous(olds: Properties) -> process.Launch | None:
    """The last `Launch` of the node, or None if it cannot be repeated."""
    if Path(olds["root"]) != _root(olds):
        # its settings contain the path of another checkout, or of this one before a move
        return None
    try:
        return _launch(olds, fetching=False)
    except EarshotError:
        return None


def _cluster(operation: Operation, props: Properties) -> RunningCluster:
    client = access.client_properties(props)
    return RunningCluster(_root(props), props["cluster_id"], client, operation.log)


def _root(props: Properties) -> Path:
    """The data root in this checkout, whichever checkout wrote the state."""
    return here(props["root"])


def _directory(props: Properties) -> Path:
    return _node(_root(props), props)


def _node(root: Path, props: Properties) -> Path:
    return cluster_memory.node_directory(root, int(props["node_id"]))


def _identity(record: Record) -> Properties:
    return {"pid": record.pid, "incarnation": record.incarnation}

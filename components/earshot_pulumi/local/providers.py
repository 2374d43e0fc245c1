"""Dynamic providers of the `local` placement: the preflight, the nodes, their readiness.

They are in an importable module, so that Pulumi stores a reference instead of byte code.
All numbers in their inputs are floats.
"""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from pulumi.dynamic import CreateResult, ReadResult

from earshot.errors import EarshotError
from earshot.listeners.model import ClusterPlan
from earshot.transition import memory
from earshot_pulumi import leaving
from earshot_pulumi.dynamic import CheckedProvider, Props, Provider, here, on_lines_of_its_own
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


class LocalPreflightProvider(CheckedProvider):
    """Checks before any node is touched: quorum, removals, versions, ports."""

    ID_IN = "cluster_id"
    DECISIVE = ("plan", "root", "data")
    """Not the gate's digest: a new evaluation of the plan is no change here."""

    def problems(self, _olds: Props, news: Props) -> Iterator[str]:
        root, plan = _root(news), ClusterPlan.model_validate(news["plan"])
        yield from quorum.problems(root, plan)
        yield from access.problems(plan, news)
        yield from changes.problems(root, plan, _wanted(news))
        if leaving.matters(news["remove"]):
            yield from changes.client_problems(root, plan)

    def differs(self, olds: Props, news: Props) -> bool:
        # the state may be a copy that is older than what is remembered beside it
        remembered = memory.recall(here(news["state_dir"]))
        plan = ClusterPlan.model_validate(news["plan"])
        return super().differs(olds, news) or not remembered.has(plan)

    def made(self, _olds: Props, news: Props) -> Props:
        return {**news, "cluster_id": _settled(news)}

    def delete(self, _id: str, props: Props) -> None:
        root = _root(props)
        with contextlib.suppress(EarshotError):  # the next start reports it
            quorum.mark_stopped(root)
        if props["data"] == "delete":
            with on_lines_of_its_own():
                data_root.remove(root)


class NodeProvider(Provider):
    """One Kafka process; its data outlives it."""

    DECISIVE = ("root", "properties", "heap", "kafka_version", "cluster_id", "certificate")

    def differs(self, olds: Props, news: Props) -> bool:
        return super().differs(olds, news) or not _runs_so(news)

    def create(self, props: Props) -> CreateResult:
        with on_lines_of_its_own():
            # it may run: a state that was lost does not know it
            client, launch = access.client_properties(props), _launch(props)
            record = restart.restart(_root(props), launch, None, props["cluster_id"], client)
        return CreateResult(f"node-{int(props['node_id'])}", {**props, **_identity(record)})

    def made(self, olds: Props, news: Props) -> Props:
        root = _root(news)
        launch = _launch(news)  # fetches what is missing, before anything is stopped
        client = access.client_properties(news)
        record = restart.restart(root, launch, _previous(olds), news["cluster_id"], client)
        return {**news, **_identity(record)}

    def read(self, id_: str, props: Props) -> ReadResult:
        record = running(_directory(props))
        if record is None:
            return ReadResult("", {})  # gone: the next update starts it again
        return ReadResult(id_, {**props, **_identity(record)})

    def delete(self, _id: str, props: Props) -> None:
        original, own = Path(props["root"]), _root(props)
        with contextlib.suppress(EarshotError):
            if original != own and process_of(_node(original, props)) is not None:
                # do not stop it: this checkout is a copy, and the process is the original's
                print(f"node {int(props['node_id'])} in {original} runs on")
        with on_lines_of_its_own():
            process.stop(_directory(props), restart.grace(own))


class ReadinessProvider(Provider):
    """Waits for one broker after a change, or for the whole cluster at the end of a run."""

    ID = "ready"

    def made(self, _olds: Props, news: Props) -> Props:
        root, whole = _root(news), bool(news["whole"])
        brokers = {int(id): str(address) for id, address in news["brokers"].items()}
        nodes = [int(id) for id in news["nodes"]]
        if not whole and not quorum.serves(root):
            return news  # a first start: all voters start together, and the whole is waited for
        client, cluster = access.client_properties(news), news["cluster_id"]
        readiness.wait_for(root, nodes, brokers, cluster, progress=print, client=client)
        reported = [changes.version_of(quorum.node_directory(root, id)) for id in nodes]
        quorum.mark_serving(root, [version for version in reported if version], whole=whole)
        return news


def _wanted(props: Props) -> ClusterPlan | None:
    """The plan at the end of a change that takes more steps than this one."""
    wanted = props.get("wanted")
    return ClusterPlan.model_validate(wanted) if wanted else None


def _settled(props: Props) -> str:
    """The cluster's id, after the checks of `changes.prepare`; removed brokers are stopped.

    Where `cluster.json` is lost, the id comes from the nodes' data.
    """
    root, plan = _root(props), ClusterPlan.model_validate(props["plan"])
    changes.prepare(root, plan, _wanted(props))
    for id in quorum.removed(root, plan):
        # Pulumi deletes it only after the validation, which must not find it any more
        process.stop(quorum.node_directory(root, id))
    memory.begin(here(props["state_dir"]), plan)
    lost = quorum.kept(root) is None
    settled = quorum.settle(root, plan)
    if lost and on_disk.found(root) is not None:
        print(f"cluster.json in {root} was lost; made again from the nodes' own files")
    return settled.cluster_id


def _launch(props: Props, *, fetching: bool = True) -> process.Launch:
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


def _runs_so(props: Props) -> bool:
    """Whether the node runs, and with the settings of ``props``.

    It may have been killed, or started by a run that was killed: the state knows of neither.
    """
    record = running(_directory(props))
    certificate = props.get("certificate") or ""
    wanted = process.digest(props["properties"], props["heap"], props["kafka_version"], certificate)
    return record is not None and record.digest == wanted


def _previous(olds: Props) -> process.Launch | None:
    """How the node was last started, or None where that cannot be repeated."""
    if Path(olds["root"]) != _root(olds):
        return None  # its settings name another checkout's data, or where this one was before
    try:
        return _launch(olds, fetching=False)
    except EarshotError:
        return None


def _root(props: Props) -> Path:
    """The data root in this checkout, whichever checkout wrote the state."""
    return here(props["root"])


def _directory(props: Props) -> Path:
    return _node(_root(props), props)


def _node(root: Path, props: Props) -> Path:
    return quorum.node_directory(root, int(props["node_id"]))


def _identity(record: Record) -> Props:
    return {"pid": record.pid, "incarnation": record.incarnation}

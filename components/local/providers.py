"""Dynamic providers of the `local` placement: the cluster's ground, its nodes, their readiness.

They live in an importable module so that Pulumi stores a reference and not byte code.
Every number arrives as a float here.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pulumi.dynamic import (
    CheckFailure,
    CheckResult,
    CreateResult,
    DiffResult,
    ReadResult,
    UpdateResult,
)

from components.local import process, quorum, readiness
from components.owner import OwnedProvider
from earshot.errors import EarshotError
from earshot.jvm.jars import kafka_broker_jars
from earshot.jvm.java import find_java
from earshot.listeners.model import ClusterPlan

Props = dict[str, Any]


class GroundProvider(OwnedProvider):
    """What must hold before any node is touched: quorum, removals, versions, ports."""

    def check(self, _olds: Props, news: Props) -> CheckResult:
        plan = ClusterPlan.model_validate(news["plan"])
        found = list(quorum.problems(Path(news["root"]), plan))
        text = "\n".join(f"- {problem}" for problem in found)
        return CheckResult(news, [CheckFailure("plan", f"\n{text}")] if found else [])

    def create(self, props: Props) -> CreateResult:
        memory = quorum.settle(Path(props["root"]), ClusterPlan.model_validate(props["plan"]))
        return CreateResult(memory.cluster_id, {**props, "cluster_id": memory.cluster_id})

    def update(self, _id: str, _olds: Props, news: Props) -> UpdateResult:
        root, plan = Path(news["root"]), ClusterPlan.model_validate(news["plan"])
        for id in quorum.removed(root, plan):
            # the engine deletes last, after the validation, which must not see it any more
            process.stop(quorum.node_directory(root, id))
        memory = quorum.settle(root, plan)
        return UpdateResult({**news, "cluster_id": memory.cluster_id})

    def read(self, id_: str, props: Props) -> ReadResult:
        return ReadResult(id_, props)

    def delete(self, _id: str, props: Props) -> None:
        root = Path(props["root"])
        quorum.mark_serving(root, False)
        if props["data"] == "delete":
            shutil.rmtree(root, ignore_errors=True)


class NodeProvider(OwnedProvider):
    """One Kafka process; its data outlives it."""

    _DECIDES = ("root", "properties", "heap", "kafka_version", "cluster_id")

    def diff(self, _id: str, olds: Props, news: Props) -> DiffResult:
        return DiffResult(changes=any(olds.get(key) != news.get(key) for key in self._DECIDES))

    def create(self, props: Props) -> CreateResult:
        return CreateResult(f"node-{int(props['node_id'])}", self._run(props))

    def update(self, _id: str, _olds: Props, news: Props) -> UpdateResult:
        _stop(news)
        return UpdateResult(self._run(news))

    def read(self, id_: str, props: Props) -> ReadResult:
        record = process.running(_directory(props))
        if record is None:
            return ReadResult("", {})  # gone: the next update brings it back
        return ReadResult(id_, {**props, **_identity(record)})

    def delete(self, _id: str, props: Props) -> None:
        _stop(props)

    def _run(self, props: Props) -> Props:
        id = int(props["node_id"])
        launch = process.Launch(
            id=id,
            directory=_directory(props),
            properties=props["properties"],
            heap=props["heap"],
            kafka_version=props["kafka_version"],
            java=find_java().executable,
            jars=kafka_broker_jars(props["kafka_version"]),
        )
        record = process.start(launch, props["cluster_id"])
        return {**props, **_identity(record)}


class ReadinessProvider(OwnedProvider):
    """Waits for one broker after a change, or for the whole cluster at the end of a run."""

    def create(self, props: Props) -> CreateResult:
        _wait(props)
        return CreateResult("ready", props)

    def update(self, _id: str, _olds: Props, news: Props) -> UpdateResult:
        _wait(news)
        return UpdateResult(news)

    def read(self, id_: str, props: Props) -> ReadResult:
        return ReadResult(id_, props)


def _wait(props: Props) -> None:
    root = Path(props["root"])
    brokers = {int(id): str(address) for id, address in props["brokers"].items()}
    nodes = [int(id) for id in props["nodes"]]
    memory = quorum.recall(root)
    if not props["whole"] and not (
        memory is not None and memory.serving and quorum.majority_runs(root)
    ):
        return  # the first start: all voters together, then one wait
    _told(lambda: readiness.wait_for(root, nodes, brokers, progress=print))
    if props["whole"]:
        quorum.mark_serving(root, True)


def _told(act: Callable[[], None]) -> None:
    try:
        act()
    except EarshotError as error:
        # the engine puts "Exception calling application:" before it
        raise EarshotError(f"\n{error}") from None


def _stop(props: Props) -> None:
    root = Path(props["root"])
    # without a quorum a broker waits in vain for leave to go: 30 s, and its data is on disk anyway
    process.stop(_directory(props), grace=30.0 if quorum.majority_runs(root) else 3.0)


def _directory(props: Props) -> Path:
    return quorum.node_directory(Path(props["root"]), int(props["node_id"]))


def _identity(record: process.Record) -> Props:
    return {"pid": record.pid, "incarnation": record.incarnation}

"""In what order the component registers: node after node, then one wait for all."""

from pathlib import Path
from typing import Any

import pulumi
import pytest
from earshot_pulumi.local.brokers import LocalBrokers
from pulumi.runtime import mocks

from earshot.placement.local import LocalPlan, plan_local
from tests.components.aws.registered import Answers
from tests.components.deployments import deployment_of
from tests.components.engine_double import Engine, Registered
from tests.config.read import read_local

PREFLIGHT, NODE, READY = (
    f"earshot:index:Local{kind}" for kind in ("Preflight", "Node", "Readiness")
)


class LocalAnswers(Answers):
    """What the nodes' providers would answer."""

    def new_resource(self, args: mocks.MockResourceArgs) -> tuple[str | None, dict[str, Any]]:
        id, outputs = super().new_resource(args)
        if args.typ == PREFLIGHT:
            outputs["cluster_id"] = "made-up"
        if args.typ == NODE:
            outputs["incarnation"] = f"incarnation of {args.name}"
        return id, outputs


def deployed(root: Path, **settings: Any) -> tuple[Engine, LocalPlan]:
    """What the cluster of these settings registers."""
    answers = LocalAnswers()
    engine = Engine(answers)
    mocks.set_mocks(answers, "earshot", "s", preview=False, monitor=engine)
    spec = read_local({"placement": "local", **settings})
    planned = plan_local(spec, root)

    def run() -> pulumi.Output[str]:
        return LocalBrokers(deployment_of("s"), spec, planned).ready.urn

    pulumi.runtime.test(run)()  # type: ignore[no-untyped-call]
    return engine, planned


@pytest.mark.parametrize(
    ("settings", "names"),
    [
        ({}, ["broker-1", "broker-2", "broker-3"]),
        (
            {"brokers": 1, "controllers": {"mode": "separate", "count": 3}},
            ["broker-1", "controller-10001", "controller-10002", "controller-10003"],
        ),
    ],
)
def test_each_node_waits_for_the_one_before(
    settings: dict[str, Any], names: list[str], tmp_path: Path
) -> None:
    engine, _ = deployed(tmp_path, **settings)
    nodes, ready = engine.of(NODE), engine.of(READY)
    assert sorted(nodes) == sorted(names) and sorted(ready) == sorted([*names, "cluster"])
    order = sorted(nodes, key=lambda name: [*nodes].index(name))
    before: Registered = engine.one(PREFLIGHT)
    for name in order:
        assert nodes[name].depends_on(before) and ready[name].depends_on(nodes[name])
        before = ready[name]
    assert ready["cluster"].depends_on(before)


def test_what_is_waited_for(tmp_path: Path) -> None:
    engine, _ = deployed(tmp_path, brokers=2)
    ready = engine.of(READY)
    shown = {name: item.inputs for name, item in ready.items()}
    kept = ("nodes", "incarnations", "whole")
    assert {name: tuple(item[key] for key in kept) for name, item in shown.items()} == {
        "broker-1": ([1], {"1": "incarnation of broker-1"}, False),
        "broker-2": ([2], {"2": "incarnation of broker-2"}, False),
        "cluster": (
            [1, 2],
            {"1": "incarnation of broker-1", "2": "incarnation of broker-2"},
            True,
        ),
    }


def test_a_node_is_started_with_its_own_settings(tmp_path: Path) -> None:
    engine, planned = deployed(tmp_path, brokers=2, heap="256m")
    for node in planned.plan.nodes:
        inputs = engine.of(NODE)[f"broker-{node.id}"].inputs
        assert (inputs["node_id"], inputs["heap"], inputs["cluster_id"]) == (
            *(node.id, "256m", "made-up"),
        )
        assert inputs["kafka_version"] == planned.plan.kafka_version
        assert f"node.id={node.id}\n" in inputs["properties"]


def test_all_that_is_registered_of_a_cluster(tmp_path: Path) -> None:
    engine, planned = deployed(tmp_path, brokers=1)
    inputs = engine.one(PREFLIGHT).inputs
    assert {key: inputs[key] for key in inputs if not key.startswith("__") and key != "plan"} == {
        "root": str(tmp_path),
        "data": "keep",
        "remove": "unused",
        "gate": inputs["gate"],
    }
    assert inputs["plan"]["kafka_version"] == planned.plan.kafka_version
    (node,) = engine.of(NODE).values()
    assert {key: it for key, it in node.inputs.items() if not key.startswith("__")} == {
        "node_id": 1,
        "root": str(tmp_path),
        "properties": node.inputs["properties"],
        "heap": "256m",
        "kafka_version": planned.plan.kafka_version,
        "cluster_id": "made-up",
    }
    for name, ready in engine.of(READY).items():
        assert {key: it for key, it in ready.inputs.items() if not key.startswith("__")} == {
            "root": str(tmp_path),
            "nodes": [1],
            "incarnations": {"1": "incarnation of broker-1"},
            "cluster_id": "made-up",
            "whole": name == "cluster",
        }


def test_a_controller_alone_is_waited_for_as_no_broker(tmp_path: Path) -> None:
    engine, _ = deployed(tmp_path, brokers=1, controllers={"mode": "separate", "count": 1})
    ready = engine.of(READY)
    shown = {
        name: tuple(item.inputs[key] for key in ("nodes", "incarnations"))
        for name, item in ready.items()
    }
    both = {"1": "incarnation of broker-1", "10001": "incarnation of controller-10001"}
    assert shown == {
        "broker-1": ([1], {"1": both["1"]}),
        "controller-10001": ([], {}),
        "cluster": ([1, 10_001], both),
    }

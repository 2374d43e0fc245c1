"""What the program of a docker stack registers while its listeners change."""

from pathlib import Path
from typing import Any

import pulumi
import pytest
from earshot_pulumi.change_memory import AppliedPlan, RecordedChanges
from earshot_pulumi.deployment import ClusterContext
from earshot_pulumi.docker import deployment, host_resources
from pulumi.runtime import mocks

from earshot.errors import EarshotError
from earshot.placement.docker import plan_docker
from earshot.transition import memory
from tests.components.docker.stacks import spec_of
from tests.components.docker.test_brokers import (
    CONTAINER,
    PREFLIGHT,
    Engine,
    _Answers,
)

BEGUN = "earshot:index:BegunChange"
PROVED = "earshot:index:ProvedChange"
VALIDATION = "earshot:index:Validation"
INTERNAL = {"name": "INTERNAL", "port": 19092, "scopes": ["internal"]}
REPL = {"name": "REPL", "port": 19192, "scopes": ["internal"]}
HOST = {"name": "HOST", "port": 9092, "scopes": ["host"]}


def test_a_step_is_begun_before_a_container_and_over_after_the_proof(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = Engine()
    mocks.set_mocks(_Answers(), project="earshot", stack="s", preview=False, monitor=engine)
    monkeypatch.setattr(host_resources, "clearing", lambda *_: pulumi.ResourceHookBinding())
    monkeypatch.setattr(deployment, "unsettled", lambda *_: [2])
    monkeypatch.setattr(deployment, "resources", dict)
    runs = plan_docker(spec_of(listeners=[INTERNAL, HOST]), "s")
    memory.complete(tmp_path, runs.plan, 0)
    before = AppliedPlan(runs.plan, deployment._ports(runs))
    recorded = RecordedChanges(covered=(before,), begun=(before,))
    monkeypatch.setattr(
        deployment,
        "recorded_changes",
        lambda folder, name, _: recorded if folder == tmp_path else None,
    )
    at = ClusterContext("s", pulumi.ResourceOptions(), tmp_path)
    outputs: dict[str, Any] = {}
    bootstrap: dict[str, str] = {}

    def run() -> pulumi.Output[None]:
        outputs.update(deployment.deploy(at, spec_of(listeners=[REPL, HOST])))
        applied: pulumi.Output[None] = outputs["bootstrap"].apply(bootstrap.update)
        return applied

    pulumi.runtime.test(run)()  # type: ignore[no-untyped-call]

    (begun,), (proved,) = engine.of(BEGUN).values(), engine.of(PROVED).values()
    containers, (proof,) = list(engine.of(CONTAINER).values()), engine.of(VALIDATION).values()
    assert begun.depends_on(engine.of(PREFLIGHT)["s"])
    assert containers[0].depends_on(begun) and proved.depends_on(proof)
    assert bootstrap.keys() == {"INTERNAL", "HOST", "REPL"}
    assert proved.inputs["begun"] == begun.inputs["begun"]
    assert proved.inputs["done"] == 1
    assert proved.inputs["begun"][0]["own"]["2"] == [
        {"container_port": 9092, "host_port": 9093, "host_ip": "127.0.0.1"}
    ]
    assert [it.name for it in containers] == ["broker-2", "broker-1", "broker-3"], "2 is unsettled"
    for container in containers:
        id = container.name[-1]
        (listeners,) = (
            it for it in container.inputs["envs"] if it.startswith("KAFKA_ADVERTISED_LISTENERS=")
        )
        assert f"INTERNAL://kafka-{id}:19092" in listeners
        assert f"REPL://kafka-{id}:19192" in listeners
    preflight = engine.of(PREFLIGHT)["s"].inputs
    assert preflight["last"]["inter_broker"] == "REPL"
    assert preflight["plan"]["inter_broker"] == "INTERNAL"
    assert preflight["remove"] == "unused"


def test_an_old_listener_has_the_port_of_what_was_proved() -> None:
    proved, begun = (
        plan_docker(spec_of(listeners=[INTERNAL, HOST | {"published": {1: port}}]), "s")
        for port in (9092, 39000)
    )
    found = deployment._published(
        [AppliedPlan(it.plan, deployment._ports(it)) for it in (proved, begun)]
    )
    assert [port.host_port for port in found[1]] == [9092]


@pytest.mark.parametrize(
    ("full_name", "name"),
    [("dev-kafka", "dev-kafka-kafka-1"), ("Dev_eu.2-kafka", "Dev-eu-2-kafka-kafka-1")],
)
def test_containers_of_further_clusters_have_names_that_hosts_may_have(
    full_name: str, name: str
) -> None:
    found = deployment.with_own_names(spec_of(listeners=[INTERNAL, HOST]), full_name)
    assert found.name_of(1) == name


def test_a_name_that_would_be_too_long_for_a_host_is_asked_for() -> None:
    with pytest.raises(EarshotError, match=r"names\.1: is missing"):
        deployment.with_own_names(spec_of(listeners=[INTERNAL, HOST]), f"{'s' * 60}-kafka")

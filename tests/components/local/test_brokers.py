"""The registrations of the component: behind the gate, node after node, settings as secrets."""

from pathlib import Path
from typing import Any

import pulumi
import pytest
from earshot_pulumi.gate import GATE_TYPE, PROVIDER_TYPE
from earshot_pulumi.local.brokers import LocalBrokers
from pulumi.runtime import mocks

from earshot.placement.local import LocalPlan, plan_local
from tests.components.deployments import deployment_of
from tests.components.engine_double import Engine, Registered
from tests.components.plain_inputs import secret_inputs, visible
from tests.config.read import read_local
from tests.doubles import gate_provider

PREFLIGHT = "earshot:index:LocalPreflight"
NODE = "earshot:index:LocalNode"
READINESS = "earshot:index:LocalReadiness"
CERTIFICATES = "earshot:index:LocalCertificates"
USERS = "earshot:index:LocalUsers"


class Answers(mocks.Mocks):
    """Outputs as the providers would give them."""

    approved: str | None = gate_provider.APPROVED

    def new_resource(self, args: mocks.MockResourceArgs) -> tuple[str | None, dict[str, Any]]:
        outputs = gate_provider.outputs(args, self.approved)
        if args.typ == PREFLIGHT:
            outputs["cluster_id"] = "id"
        if args.typ == CERTIFICATES:
            outputs["certificates"] = {name: f"fingerprint of {name}" for name in outputs["hosts"]}
            outputs["passwords"] = {"app": "digest"}
        if args.typ == NODE:
            outputs["incarnation"] = f"incarnation of {args.name}"
        return f"id of {args.name}", outputs

    def call(self, args: mocks.MockCallArgs) -> Any:
        # a first start looks whether the stack was renamed
        assert args.token == "pulumi:pulumi:readStackResourceOutputs"
        return {"outputs": {}}


@pytest.fixture
def answers() -> Answers:
    return Answers()


ROOT = Path("/state/kafka")
SEPARATE = {"mode": "separate", "count": 1}


@pytest.fixture
def engine(answers: Answers) -> Engine:
    engine = Engine(answers)
    mocks.set_mocks(answers, project="earshot", stack="s", preview=False, monitor=engine)
    return engine


def deployed(**settings: Any) -> LocalPlan:
    """Registers the cluster of these settings; its plan."""
    spec = read_local({"placement": "local", **settings})
    planned = plan_local(spec, ROOT)

    def run() -> pulumi.Output[str]:
        return LocalBrokers(deployment_of("s"), spec, planned).ready.urn

    pulumi.runtime.test(run)()  # type: ignore[no-untyped-call]
    return planned


def inputs_of(resource: Registered) -> dict[str, Any]:
    """The inputs without Pulumi's own."""
    return {key: value for key, value in resource.inputs.items() if not key.startswith("__")}


def test_settings_are_secrets_wherever_pulumi_keeps_them(engine: Engine) -> None:
    deployed(extra={"num.io.threads": "4"})
    assert secret_inputs(engine.one(GATE_TYPE).request) == {"plan"}
    assert secret_inputs(engine.one(PREFLIGHT).request) == {"plan"}
    nodes = engine.of(NODE).values()
    assert [secret_inputs(node.request) for node in nodes] == [{"properties"}] * 3
    assert not [
        resource.type for resource in engine.seen if "num.io.threads" in visible(resource.request)
    ]


def test_all_that_the_gate_shows_is_checked(engine: Engine) -> None:
    deployed()
    assert engine.one(GATE_TYPE).inputs.items() <= engine.one(PROVIDER_TYPE).inputs.items()
    assert engine.one(PREFLIGHT).inputs["gate"] == gate_provider.APPROVED


def test_nothing_is_registered_behind_a_gate_that_has_not_approved(
    engine: Engine, answers: Answers
) -> None:
    answers.approved = None
    with pytest.raises(pulumi.RunError, match="were not checked"):
        deployed()
    assert not [*engine.of(PREFLIGHT), *engine.of(NODE)]


def test_with_the_gate_off_nothing_is_checked(engine: Engine) -> None:
    deployed(gate="off")
    assert not engine.of(PROVIDER_TYPE)
    assert engine.one(PREFLIGHT).inputs["gate"] == "off"
    assert len(engine.of(NODE)) == 3


@pytest.mark.parametrize(("settings", "names"), [
    ({}, ["broker-1", "broker-2", "broker-3"]),
    ({"brokers": 1, "controllers": {"mode": "separate", "count": 3}},
     ["broker-1", "controller-10001", "controller-10002", "controller-10003"]),
])  # fmt: skip
def test_each_node_waits_for_the_one_before(
    engine: Engine, settings: dict[str, Any], names: list[str]
) -> None:
    deployed(**settings)
    nodes, ready = engine.of(NODE), engine.of(READINESS)
    assert sorted(nodes) == sorted(names) and sorted(ready) == sorted([*names, "cluster"])
    before = engine.one(PREFLIGHT)
    for name, node in nodes.items():
        assert node.depends_on(before) and ready[name].depends_on(node)
        before = ready[name]
    assert ready["cluster"].depends_on(before)


def test_all_inputs_of_a_cluster(engine: Engine) -> None:
    planned = deployed(brokers=2, heap="264m")
    inputs = inputs_of(engine.one(PREFLIGHT))
    assert inputs.pop("plan")["kafka_version"] == planned.plan.kafka_version
    assert inputs == {
        "root": str(ROOT), "data": "keep", "remove": "unused", "gate": gate_provider.APPROVED,
    }  # fmt: skip
    for node in planned.plan.nodes:
        inputs = inputs_of(engine.of(NODE)[f"broker-{node.id}"])
        assert f"node.id={node.id}\n" in inputs.pop("properties")
        assert inputs == {
            "node_id": node.id,
            "root": str(ROOT),
            "heap": "264m",
            "kafka_version": planned.plan.kafka_version,
            "cluster_id": "id",
        }
    incarnations = {str(id): f"incarnation of broker-{id}" for id in (1, 2)}
    assert {name: inputs_of(ready) for name, ready in engine.of(READINESS).items()} == {
        name: {
            "root": str(ROOT),
            "nodes": ids,
            "incarnations": {str(id): incarnations[str(id)] for id in ids},
            "cluster_id": "id",
            "whole": name == "cluster",
        }
        for name, ids in {"broker-1": [1], "broker-2": [2], "cluster": [1, 2]}.items()
    }


def test_a_controller_alone_is_not_waited_for_as_a_broker(engine: Engine) -> None:
    deployed(brokers=1, controllers=SEPARATE)
    broker = {"1": "incarnation of broker-1"}
    both = broker | {"10001": "incarnation of controller-10001"}
    assert {
        name: (ready.inputs["nodes"], ready.inputs["incarnations"])
        for name, ready in engine.of(READINESS).items()
    } == {
        "broker-1": ([1], broker),
        "controller-10001": ([], {}),
        "cluster": ([1, 10_001], both),
    }


SECURED = {
    "listeners": [{"name": "INTERNAL", "port": 19092, "scopes": "internal", "protocol": "SSL"},
                  {"name": "EXTERNAL", "port": 9092, "scopes": "host", "protocol": "SASL_SSL",
                   "advertised": {1: "b1.example.com"}}],
    "controllers": {"protocol": "SSL"},
    "security": {"users": [{"name": "app", "prefixes": ["app-"]}]},
}  # fmt: skip


def test_a_secured_cluster_has_certificates_before_its_nodes_and_users_after_them(
    engine: Engine,
) -> None:
    deployed(brokers=1, **SECURED)
    types = [resource.type for resource in engine.seen if ":index:Local" in resource.type]
    assert types == [PREFLIGHT, CERTIFICATES, NODE, READINESS, READINESS, USERS]
    certificates = engine.one(CERTIFICATES).inputs
    assert certificates["hosts"] == {"node-1": ["localhost", "b1.example.com"]}
    assert certificates["users"] == ["validator", "app"]
    assert engine.one(NODE).inputs["certificate"] == "fingerprint of node-1"
    users = engine.one(USERS).inputs
    assert users["users"] == {"app": ["app-"]}
    assert users["passwords"] == {"app": "digest"}
    assert users["brokers"] == {"1": "localhost:19092"}
    (login,) = users["logins"]
    assert (login["broker"], login["address"]) == (1, "b1.example.com:9092")
    assert (login["listener"], login["mechanism"]) == ("EXTERNAL", "SCRAM-SHA-512")


def test_a_cluster_without_security_has_neither(engine: Engine) -> None:
    deployed(brokers=1)
    assert not engine.of(CERTIFICATES) and not engine.of(USERS)

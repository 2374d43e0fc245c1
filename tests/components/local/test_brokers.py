"""What the component registers: behind the gate, and with its settings as secrets."""

from pathlib import Path
from typing import Any

import pulumi
import pytest
from earshot_pulumi.gate import GATE_TYPE, PROVIDER_TYPE
from earshot_pulumi.local.brokers import LocalBrokers
from pulumi.runtime import mocks

from earshot.placement.local import plan_local
from tests.components import engine_double
from tests.components.deployments import deployment_of
from tests.components.plain_inputs import plain_inputs, secret_inputs, visible
from tests.config.read import read_local
from tests.doubles import gate_provider

PREFLIGHT = "earshot:index:LocalPreflight"
NODE = "earshot:index:LocalNode"
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
        raise AssertionError(f"nothing is looked up: {args.token}")


class Engine(engine_double.Engine):
    """Takes down every registration, in order."""

    def of(self, type: str) -> list[Any]:  # type: ignore[override]
        return [it.request for it in self.seen if it.type == type]


@pytest.fixture
def answers() -> Answers:
    return Answers()


@pytest.fixture
def engine(answers: Answers) -> Engine:
    found = Engine(answers)
    mocks.set_mocks(answers, project="earshot", stack="s", preview=False, monitor=found)
    return found


def deployed(**settings: Any) -> None:
    """Registers the cluster of these settings."""
    spec = read_local({"placement": "local", **settings})

    def run() -> pulumi.Output[str]:
        planned = plan_local(spec, Path("/state/kafka"))
        return LocalBrokers(deployment_of("s"), spec, planned).ready.urn

    pulumi.runtime.test(run)()  # type: ignore[no-untyped-call]


def test_settings_are_secrets_wherever_pulumi_keeps_them(engine: Engine) -> None:
    deployed(extra={"num.io.threads": "4"})
    assert secret_inputs(engine.of(GATE_TYPE)[0]) == {"plan"}
    assert secret_inputs(engine.of(PREFLIGHT)[0]) == {"plan"}
    assert [secret_inputs(request) for request in engine.of(NODE)] == [{"properties"}] * 3
    assert [it.type for it in engine.seen if "num.io.threads" in visible(it.request)] == []


def test_all_that_the_gate_shows_is_checked(engine: Engine) -> None:
    deployed()
    (shown,), (asked,) = engine.of(GATE_TYPE), engine.of(PROVIDER_TYPE)
    assert plain_inputs(shown).items() <= plain_inputs(asked).items()
    assert plain_inputs(engine.of(PREFLIGHT)[0])["gate"] == gate_provider.APPROVED


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
    assert plain_inputs(engine.of(PREFLIGHT)[0])["gate"] == "off"
    assert len(engine.of(NODE)) == 3


SECURED = {
    "listeners": [
        {"name": "INTERNAL", "port": 19092, "scopes": "internal", "protocol": "SSL"},
        {
            "name": "EXTERNAL",
            "port": 9092,
            "scopes": "host",
            "protocol": "SASL_SSL",
            "advertised": {1: "b1.example.com"},
        },
    ],
    "controllers": {"protocol": "SSL"},
    "security": {"users": [{"name": "app", "prefixes": ["app-"]}]},
}


def test_a_secured_cluster_has_certificates_before_its_nodes_and_users_after_them(
    engine: Engine,
) -> None:
    deployed(brokers=1, **SECURED)
    order = [item.type.removeprefix("earshot:index:") for item in engine.seen]
    kinds = [kind for kind in order if kind.startswith("Local")]
    assert kinds == [
        "LocalPreflight",
        "LocalCertificates",
        "LocalNode",
        "LocalReadiness",
        "LocalReadiness",
        "LocalUsers",
    ]
    certificates = plain_inputs(engine.of(CERTIFICATES)[0])
    assert certificates["hosts"] == {"node-1": ["localhost", "b1.example.com"]}
    assert certificates["users"] == ["validator", "app"]
    assert plain_inputs(engine.of(NODE)[0])["certificate"] == "fingerprint of node-1"
    users = plain_inputs(engine.of(USERS)[0])
    assert users["users"] == {"app": ["app-"]}
    assert users["passwords"] == {"app": "digest"}
    assert users["brokers"] == {"1": "localhost:19092"}
    (login,) = users["logins"]
    assert (login["broker"], login["address"]) == (1, "b1.example.com:9092")
    assert (login["listener"], login["mechanism"]) == ("EXTERNAL", "SCRAM-SHA-512")


def test_a_cluster_without_security_has_neither(engine: Engine) -> None:
    deployed(brokers=1)
    assert not engine.of(CERTIFICATES) and not engine.of(USERS)
    assert "certificate" not in plain_inputs(engine.of(NODE)[0])

"""A secured cluster: which role reads which secret, and which instance is replaced for it."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pulumi
import pytest
from earshot_pulumi.gate import GATE_TYPE
from pulumi.runtime import mocks

from tests.certificates.handed_over import FILES, PASSWORD, hand_over
from tests.components.aws.registered import INSTANCE, POLICY, Answers, deployed, inputs
from tests.components.engine_double import Engine
from tests.components.plain_inputs import visible
from tests.config.aws_documents import EXTERNAL, INTERNAL, OFFICE

CERTIFICATES = "earshot:index:AwsCertificates"
SECRET = "earshot:index:AwsSecret"
SEPARATE: dict[str, Any] = {"mode": "separate", "count": 1}
OPEN = {key: it for key, it in EXTERNAL.items() if key != "protocol"}


class Issued(Answers):
    """An engine whose certificates are of a version."""

    def __init__(self, versions: Mapping[str, str]) -> None:
        super().__init__()
        self._versions = versions

    def new_resource(self, args: mocks.MockResourceArgs) -> tuple[str | None, dict[str, Any]]:
        id, outputs = super().new_resource(args)
        if args.typ == CERTIFICATES:
            names = [*outputs["hosts"], *outputs["users"]]
            outputs["certificates"] = {it: self._versions.get(it, "one") for it in names}
            outputs["passwords"] = {
                it: self._versions.get(f"password of {it}", "one") for it in outputs["users"]
            }
            outputs["expires"] = "2030-01-01T00:00:00+00:00"
        return id, outputs


def secured(folder: Path, versions: Mapping[str, str] | None = None) -> Engine:
    """Two brokers, a controller and the validator, with those versions of what was issued."""
    return deployed(
        folder / "state",
        Issued(versions or {}),
        brokers=2,
        cluster_id="5L6g3nShT-eMCtK-X86swQ",
        controllers=SEPARATE,
        listeners=[INTERNAL, OPEN],
        clients=OFFICE,
        validator=True,
        security={"users": [{"name": "app", "prefixes": ["a-"]}]},
    )


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "Pulumi.yaml").write_text("name: earshot\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def readable(engine: Engine) -> dict[str, set[str]]:
    """The kinds of the stack's secrets that the role of each instance may read."""
    kinds: dict[str, set[str]] = {}
    for name, policy in inputs(engine, POLICY).items():
        statements = {it["Sid"]: it for it in json.loads(policy["policy"])["Statement"]}
        arns = statements["Secrets"]["Resource"]
        assert statements["Secrets"]["Action"] == ["ssm:GetParameter"]
        assert all(":parameter/earshot/mine/security/" in arn and "*" not in arn for arn in arns)
        kinds[name.removeprefix("mine-")] = {arn.rpartition("/")[2] for arn in arns}
        context = {"StringEquals": {"kms:EncryptionContext:PARAMETER_ARN": arns}}
        assert statements["Decrypt"]["Condition"] == context
    return kinds


def test_each_role_may_read_the_secrets_of_its_own_instance_alone(folder: Path) -> None:
    engine = secured(folder)
    kinds = readable(engine)
    assert kinds == {
        "broker-1": {"node-1", "trusted", "users"},
        "broker-2": {"node-2", "trusted"},
        "controller-10001": {"node-10001", "trusted"},
        "validator": {"validator"},
    }
    written = {secret["kind"] for secret in inputs(engine, SECRET).values()}
    assert written - set[str]().union(*kinds.values()) == {"authority"}, "which no instance reads"
    for name, instance in engine.of(INSTANCE).items():
        text = str(instance.inputs["userData"])
        fetched = {kind for kind in written if re.search(rf"/security/{kind}(?![\w-])", text)}
        assert fetched == kinds[name.removeprefix("mine-")]
        for secret in engine.of(SECRET).values():
            assert secret.inputs["kind"] not in fetched or engine.before(secret, instance)


def test_certificates_are_for_what_each_node_advertises(folder: Path) -> None:
    inputs_of_certificates = secured(folder).one(CERTIFICATES).inputs
    assert inputs_of_certificates["between_nodes"] is True
    assert inputs_of_certificates["hosts"] == {
        "node-1": ["ip-10-0-0-11.eu-central-1.compute.internal",
                   "ec2-198-51-100-11.eu-central-1.compute.amazonaws.com"],
        "node-2": ["ip-10-0-0-12.eu-central-1.compute.internal",
                   "ec2-198-51-100-12.eu-central-1.compute.amazonaws.com"],
        "node-10001": ["ip-10-0-0-11.eu-central-1.compute.internal"],
    }  # fmt: skip


def user_data(folder: Path, versions: Mapping[str, str]) -> dict[str, str]:
    """The user data of each instance."""
    instances = inputs(secured(folder, versions), INSTANCE)
    return {name.removeprefix("mine-"): it["userData"] for name, it in instances.items()}


def test_an_instance_is_replaced_for_another_secret_of_its_own(folder: Path) -> None:
    texts = user_data(folder, {})
    for version, replaced in (
        ("app", set()),
        ("node-2", {"broker-2"}),
        ("password of app", {"broker-1"}),
        ("password of validator", {"broker-1", "validator"}),
        ("validator", {"validator"}),
    ):
        changed = user_data(folder, {version: "two"})
        assert {name for name in texts if texts[name] != changed[name]} == replaced, version


def test_certificates_of_others_are_shown_to_the_gate_and_reach_their_node(folder: Path) -> None:
    host = "ip-10-0-0-11.eu-central-1.compute.internal"
    hand_over(folder / "certs", {1: [host]})
    settings: dict[str, Any] = {"listeners": [INTERNAL], "security": {"tls": {"from": FILES}}}
    engine = deployed(folder / "state", Issued({}), brokers=1, **settings)
    certificates = engine.one(GATE_TYPE).inputs["certificates"]
    assert {id: it["names"]["dns"] for id, it in certificates.items()} == {"1": [host]}
    assert readable(engine) == {"broker-1": {"node-1", "trusted", "users"}}
    text = str(engine.one(INSTANCE).inputs["userData"])
    assert "/run/kafka/secrets/trusted.pem" in text and "User:CN=b1,O=Example" in text
    assert PASSWORD not in text and "PRIVATE" not in text


def test_listeners_are_proved_as_the_validator(folder: Path) -> None:
    engine = secured(folder)
    (validation,) = (it for it in engine.seen if it.type.endswith(":Validation"))
    assert str(validation.inputs["client_config"]).endswith("kafka/security/validator.properties")
    assert [it["without"] for it in validation.inputs["vantages"]] == [{}, {}]


def test_a_first_preview_knows_no_certificate_and_shows_all_resources(folder: Path) -> None:
    answers = Answers(preview=True)
    engine = deployed(folder / "state", answers, brokers=1, listeners=[INTERNAL], security={})
    assert sorted(it.inputs["kind"] for it in engine.of(SECRET).values()) == [
        "authority",
        "node-1",
        "trusted",
        "users",
    ]
    assert pulumi.contains_unknowns(engine.one(INSTANCE).inputs["userData"])
    assert all("BEGIN" not in visible(it.request) for it in engine.seen)

"""The output `client_properties`: what each user needs by listener, and no secret."""

from pathlib import Path
from typing import Any

import pytest
from earshot_pulumi.brokers import OUTPUT, client_outputs

from earshot.config.document import read_spec
from earshot.config.local import LocalSpec
from earshot.placement.local import plan_local
from earshot.validation.contract import Contract
from tests.components.secured_inputs import cluster_folder

LISTENERS = [
    {"name": "INTERNAL", "port": 19092, "scopes": ["internal"]},
    {"name": "EXTERNAL", "port": 9092, "scopes": ["host"]},
]
SECURITY = {"users": [{"name": "app", "prefixes": ["app-"]}], "password_numbers": {"app": 3}}


def announced(
    root: Path, monkeypatch: pytest.MonkeyPatch, client_auth: str | None = None, **more: Any
) -> dict[str, Any]:
    spec = read_spec(
        {
            "placement": "local",
            "external_host": "kafka.example.com",
            "listeners": [LISTENERS[0], LISTENERS[1] | {"client_auth": client_auth}],
            "security": SECURITY | more,
        },
        "test",
    )
    assert isinstance(spec, LocalSpec) and spec.security is not None
    plan = plan_local(spec, root).plan
    assert plan.security is not None
    contract = Contract.of(plan, "s", "local")
    found: dict[str, Any] = client_outputs(spec, plan.security, contract, root, None)[OUTPUT]
    return found


def test_each_user_is_told_how_to_come_in_and_where_its_secrets_lie(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = cluster_folder(tmp_path, monkeypatch)
    found = announced(root, monkeypatch)
    folder = ".earshot/stacks/s/kafka/security"
    assert found.keys() == {"validator", "app"}
    assert found["app"] == {
        "INTERNAL": {
            "properties": {
                "bootstrap.servers": found["app"]["INTERNAL"]["properties"]["bootstrap.servers"],
                "security.protocol": "SSL",
                "ssl.truststore.type": "PEM",
                "ssl.truststore.location": f"{folder}/ca.pem",
                "ssl.keystore.type": "PEM",
                "ssl.keystore.location": f"{folder}/app.pem",
            }
        },
        "EXTERNAL": {
            "properties": {
                "bootstrap.servers": "kafka.example.com:9092,kafka.example.com:9093,"
                "kafka.example.com:9094",
                "security.protocol": "SASL_SSL",
                "ssl.truststore.type": "PEM",
                "ssl.truststore.location": f"{folder}/ca.pem",
                "sasl.mechanism": "SCRAM-SHA-512",
            },
            "password_file": f"{folder}/app@3.password",
        },
    }
    own = found["validator"]["EXTERNAL"]
    assert own["password_file"] == f"{folder}/validator.password"


@pytest.mark.parametrize("client_auth", ["requested", "required"])
def test_a_certificate_is_named_where_it_is_asked_for_beside_a_password(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, client_auth: str
) -> None:
    root = cluster_folder(tmp_path, monkeypatch)
    found = announced(root, monkeypatch, client_auth)["app"]["EXTERNAL"]["properties"]
    assert found["ssl.keystore.location"] == ".earshot/stacks/s/kafka/security/app.pem"
    assert found["sasl.mechanism"] == "SCRAM-SHA-512"


def test_where_nodes_trust_more_than_one_authority_the_file_has_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = cluster_folder(tmp_path, monkeypatch)
    found = announced(root, monkeypatch, tls={"authorities": [2, 1]}, mechanism="SCRAM-SHA-256")
    values = found["app"]["EXTERNAL"]["properties"]
    assert Path(values["ssl.truststore.location"]).name == "trusted.pem"
    assert values["sasl.mechanism"] == "SCRAM-SHA-256"


def test_a_folder_elsewhere_is_named_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    cluster_folder(tmp_path, monkeypatch)
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    found = announced(elsewhere, monkeypatch)["app"]["EXTERNAL"]
    assert found["password_file"] == str(elsewhere / "security" / "app@3.password")

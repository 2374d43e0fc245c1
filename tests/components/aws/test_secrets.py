"""A secured cluster's secrets in SSM: what is written, when, and what a state has of it."""

from __future__ import annotations

import json
from base64 import b64decode
from pathlib import Path
from typing import Any

import pytest
from earshot_pulumi.aws import secrets
from earshot_pulumi.aws.secrets import LIMIT, AwsSecretKind
from earshot_pulumi.certificates import CertificatesKind

from earshot.certificates.store import Store
from earshot.errors import EarshotError
from earshot.listeners.properties import read_properties
from tests.components.aws.ssm_double import SsmDouble
from tests.components.called import Called
from tests.components.secured_inputs import certificate_inputs, cluster_folder

USERS = {"app": ["a-"]}


@pytest.fixture
def ssm(monkeypatch: pytest.MonkeyPatch) -> SsmDouble:
    found = SsmDouble()
    monkeypatch.setattr(secrets, "client", lambda config, region: found)
    return found


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a cluster that has its certificates."""
    found = cluster_folder(tmp_path, monkeypatch)
    Called(CertificatesKind()).create(certificate_inputs(found))
    return found


def provider() -> Called:
    made = Called(AwsSecretKind(), {})
    return made


def wanted(root: Path, kind: str, **changes: Any) -> dict[str, Any]:
    # an engine hands over no input that is None
    return {
        "kind": kind,
        "parameter": f"/earshot/s/security/{kind}",
        "region": "eu-central-1",
        "root": str(root),
        "version": "one",
        "tags": {"earshot:stack": "s"},
        "mechanism": "",
        "logs_in": False,
        **changes,
    }


def of_users(root: Path, **changes: Any) -> dict[str, Any]:
    reported = {"mechanism": "SCRAM-SHA-512", "users": USERS, "logs_in": True}
    return wanted(root, "users", **{**reported, **changes})


def created(props: dict[str, Any]) -> dict[str, Any]:
    outs = provider().create(props).outs
    assert outs is not None
    return outs


def value(ssm: SsmDouble, kind: str) -> str:
    given = ssm.parameters[f"/earshot/s/security/{kind}"][-1]
    assert given["Type"] == "SecureString"
    return str(given["Value"])


def reported(ssm: SsmDouble) -> list[list[str]]:
    """The first words of each line that users are made by."""
    return [line.split()[:3] for line in value(ssm, "users").splitlines()]


def test_each_kind_has_its_own_and_a_state_has_none_of_it(root: Path, ssm: SsmDouble) -> None:
    store = Store(root / "security")
    state = json.dumps(
        [
            created(wanted(root, "node-1")),
            created(wanted(root, "trusted")),
            created(wanted(root, "validator", mechanism="SCRAM-SHA-512")),
            created(of_users(root)),
        ]
    )
    assert value(ssm, "node-1") == (root / "security" / "node-1.pem").read_text()
    assert value(ssm, "trusted") == store.authority()
    client = read_properties(value(ssm, "validator")).values
    assert client["ssl.truststore.certificates"] == store.authority()
    whole = client["ssl.keystore.key"] + client["ssl.keystore.certificate.chain"]
    assert whole == (root / "security" / "validator.pem").read_text()
    assert store.password("validator") in client["sasl.jaas.config"]
    assert not [key for key in client if key.endswith(".location")]
    assert "PRIVATE KEY" not in state
    assert not [it for it in ("app", "validator") if store.password(it) in state]
    tags = [given[0]["Tags"] for given in ssm.parameters.values()]
    assert tags == [[{"Key": "earshot:stack", "Value": "s"}]] * 4


def test_it_is_written_when_it_changes_and_when_it_was_overwritten(
    root: Path, ssm: SsmDouble
) -> None:
    olds = created(wanted(root, "node-1"))
    assert provider().differs(olds, wanted(root, "node-1")) is False
    assert provider().differs(olds, wanted(root, "node-1", version="two")) is True
    ssm.put_parameter(Name="/earshot/s/security/node-1", Value="x", Overwrite=True)
    assert provider().differs(olds, wanted(root, "node-1")) is True
    outs = provider().update(olds, wanted(root, "node-1")).outs
    assert outs is not None and outs["written"] == 3
    assert "PRIVATE KEY" in value(ssm, "node-1")
    provider().delete(outs)
    provider().delete(outs)
    assert not ssm.parameters
    assert provider().differs(outs, wanted(root, "node-1")) is True


def test_a_node_is_given_the_number_that_its_secret_had_first(root: Path, ssm: SsmDouble) -> None:
    """Nodes that were not reached by a change that is taken back stay as they are."""
    outs = created(wanted(root, "node-1"))
    pinned = [outs["pinned"]]
    for version in ("two", "one", "three"):
        done = provider().update(outs, wanted(root, "node-1", version=version))
        assert done.outs is not None
        outs = done.outs
        pinned.append(outs["pinned"])
    assert pinned == [1, 2, 1, 4] and outs["written"] == 4
    ssm.parameters.clear()
    again = provider().update(outs, wanted(root, "node-1")).outs
    assert again is not None and again["pinned"] == 1 and again["numbers"] == {"one": 1}


def test_the_state_of_an_earlier_release_gets_a_number(root: Path, ssm: SsmDouble) -> None:
    olds = {key: it for key, it in created(wanted(root, "node-1")).items() if key != "numbers"}
    assert provider().differs(olds, wanted(root, "node-1")) is True


def disabled(root: Path, ssm: SsmDouble) -> set[tuple[str, str]]:
    """Users whose password of a mechanism is none that the stack has kept."""
    kept = {it.read_text().strip() for it in (root / "security").glob("*.password")}
    return {
        (line[1], mechanism)
        for line in reported(ssm)
        if line[0] == "password"
        for mechanism, value in read_properties(b64decode(line[2]).decode()).values.items()
        if value.partition("password=")[2] not in kept
    }


def test_users_are_made_and_those_who_leave_can_come_in_no_more(root: Path, ssm: SsmDouble) -> None:
    olds = created(of_users(root))
    assert [line[:2] for line in reported(ssm)] == [
        ["permissions", "validator"],
        ["permissions", "app"],
        ["password", "validator"],
        ["password", "app"],
    ]
    outs = provider().update(olds, of_users(root, users={})).outs
    assert outs is not None
    left = [
        ["permissions", "app", "--remove"],
        ["permissions", "validator", "--add"],
        ["password", "validator"],
        ["password", "app"],
    ]
    assert [line[: len(it)] for line, it in zip(reported(ssm), left, strict=True)] == left
    # another change later still says it: nobody knows whether the earlier one was carried out
    again = of_users(root, users={}, mechanism="SCRAM-SHA-256")
    assert provider().update(outs, again).outs is not None
    assert disabled(root, ssm) == {
        ("app", "SCRAM-SHA-256"),
        ("app", "SCRAM-SHA-512"),
        ("validator", "SCRAM-SHA-512"),
    }


def test_a_user_who_leaves_while_there_is_no_state_can_come_in_no_more(
    root: Path, ssm: SsmDouble
) -> None:
    """Volumes may be kept, and with them all whom the cluster knows."""
    provider().delete(created(of_users(root)))
    created(of_users(root, users={}))
    assert disabled(root, ssm) == {("app", "SCRAM-SHA-512")}
    assert ["permissions", "app", "--remove"] in reported(ssm)


def test_without_logins_there_are_permissions_alone(root: Path, ssm: SsmDouble) -> None:
    created(of_users(root, logs_in=False))
    assert {line[0] for line in reported(ssm)} == {"permissions"}


def test_too_many_users_are_refused_with_their_size(root: Path, ssm: SsmDouble) -> None:
    users = {"app": [f"{'x' * 100}{number}-" for number in range(60)]}
    with pytest.raises(EarshotError) as caught:
        created(of_users(root, users=users))
    assert f"allowed: {LIMIT} bytes" in str(caught.value)
    assert not ssm.parameters


def test_a_key_store_that_is_too_long_is_refused_with_what_makes_it_shorter(
    root: Path, ssm: SsmDouble
) -> None:
    (root / "security" / "node-1.pem").write_text("x" * (LIMIT + 1))
    with pytest.raises(EarshotError) as caught:
        created(wanted(root, "node-1"))
    assert str(caught.value).strip() == (
        "SSM parameter /earshot/s/security/node-1: would have 8193 bytes\n"
        "  allowed: 8192 bytes\n"
        "  fix: have certificates issued for keys of EC, or by fewer authorities"
    )
    assert not ssm.parameters


def test_what_aws_refuses_is_said_with_what_it_takes(root: Path, ssm: SsmDouble) -> None:
    ssm.refused = True
    with pytest.raises(EarshotError) as caught:
        created(wanted(root, "node-1"))
    assert str(caught.value) == (
        "SSM parameter /earshot/s/security/node-1 in eu-central-1: cannot be written or read: An "
        "error occurred (AccessDenied) when calling the PutParameter operation: no\n"
        "  fix: see that these credentials may call ssm:PutParameter, ssm:GetParameters, "
        "ssm:AddTagsToResource and ssm:DeleteParameters there, and run the same command again"
    )

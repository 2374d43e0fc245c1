"""A secured cluster's secrets in SSM: what is written, when, and what a state has of it."""

import json
from base64 import b64decode
from pathlib import Path
from typing import Any

import pytest
from earshot_pulumi.aws.secrets import LIMIT, AwsSecretKind
from earshot_pulumi.certificates import CertificatesKind

from earshot.certificates.store import Store
from earshot.errors import EarshotError
from earshot.listeners.properties import read_properties
from tests.components.aws.conftest import SsmDouble
from tests.components.called import Called
from tests.components.secured_inputs import certificate_inputs, cluster_folder

USERS = {"app": ["a-"]}
KIND = Called(AwsSecretKind())


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a cluster that has its certificates."""
    root = cluster_folder(tmp_path, monkeypatch)
    Called(CertificatesKind()).create(certificate_inputs(root))
    return root


def props(root: Path, kind: str, **changes: Any) -> dict[str, Any]:
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
    users = {"mechanism": "SCRAM-SHA-512", "users": USERS, "logs_in": True}
    return props(root, "users", **{**users, **changes})


def created(inputs: dict[str, Any]) -> dict[str, Any]:
    return dict(KIND.create(inputs).outs)


def value(ssm: SsmDouble, kind: str) -> str:
    version = ssm.parameters[f"/earshot/s/security/{kind}"][-1]
    assert version["Type"] == "SecureString"
    return str(version["Value"])


def user_lines(ssm: SsmDouble) -> list[list[str]]:
    """The first words of each line for the script that creates users."""
    return [line.split()[:3] for line in value(ssm, "users").splitlines()]


def test_each_kind_has_its_own_and_a_state_has_none_of_it(root: Path, ssm: SsmDouble) -> None:
    store = Store(root / "security")
    state = json.dumps(
        [
            created(props(root, "node-1")),
            created(props(root, "trusted")),
            created(props(root, "validator", mechanism="SCRAM-SHA-512")),
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
    assert not [user for user in ("app", "validator") if store.password(user) in state]
    tags = [versions[0]["Tags"] for versions in ssm.parameters.values()]
    assert tags == [[{"Key": "earshot:stack", "Value": "s"}]] * 4


def test_it_is_written_when_it_changes_and_when_it_was_overwritten(
    root: Path, ssm: SsmDouble
) -> None:
    olds = created(props(root, "node-1"))
    assert KIND.differs(olds, props(root, "node-1")) is False
    assert KIND.differs(olds, props(root, "node-1", version="two")) is True
    ssm.put_parameter(Name="/earshot/s/security/node-1", Value="x", Overwrite=True)
    assert KIND.differs(olds, props(root, "node-1")) is True
    outs = KIND.update(olds, props(root, "node-1")).outs
    assert outs["written"] == 3
    assert "PRIVATE KEY" in value(ssm, "node-1")
    KIND.delete(outs)
    KIND.delete(outs)
    assert not ssm.parameters
    assert KIND.differs(outs, props(root, "node-1")) is True


def test_a_node_is_given_the_number_that_its_secret_had_first(root: Path, ssm: SsmDouble) -> None:
    """Nodes that were not reached by a change that is taken back stay as they are."""
    outs = created(props(root, "node-1"))
    pinned = [outs["pinned"]]
    for version in ("two", "one", "three"):
        outs = dict(KIND.update(outs, props(root, "node-1", version=version)).outs)
        pinned.append(outs["pinned"])
    assert pinned == [1, 2, 1, 4] and outs["written"] == 4
    ssm.parameters.clear()
    again = KIND.update(outs, props(root, "node-1")).outs
    assert KIND.differs(again, props(root, "node-1")) is False
    earlier_release = {key: value for key, value in again.items() if key != "numbers"}
    assert KIND.differs(earlier_release, props(root, "node-1")) is True
    assert again["pinned"] == 1 and again["numbers"] == {"one": 1}


def disabled(root: Path, ssm: SsmDouble) -> set[tuple[str, str]]:
    """Users whose password of a mechanism is none that the stack has kept."""
    passwords = {path.read_text().strip() for path in (root / "security").glob("*.password")}
    return {
        (line[1], mechanism)
        for line in user_lines(ssm)
        if line[0] == "password"
        for mechanism, value in read_properties(b64decode(line[2]).decode()).values.items()
        if value.partition("password=")[2] not in passwords
    }


def test_users_are_made_and_those_who_leave_can_come_in_no_more(root: Path, ssm: SsmDouble) -> None:
    olds = created(of_users(root))
    assert [line[:2] for line in user_lines(ssm)] == [
        ["permissions", "validator"],
        ["permissions", "app"],
        ["password", "validator"],
        ["password", "app"],
    ]
    outs = KIND.update(olds, of_users(root, users={})).outs
    heads = [
        ["permissions", "app", "--remove"],
        ["permissions", "validator", "--add"],
        ["password", "validator"],
        ["password", "app"],
    ]
    assert [line[: len(head)] for line, head in zip(user_lines(ssm), heads, strict=True)] == heads
    # a later change repeats it: whether the earlier one was carried out is not known
    KIND.update(outs, of_users(root, users={}, mechanism="SCRAM-SHA-256"))
    assert disabled(root, ssm) == {
        ("app", "SCRAM-SHA-256"),
        ("app", "SCRAM-SHA-512"),
        ("validator", "SCRAM-SHA-512"),
    }


def test_without_logins_there_are_permissions_only(root: Path, ssm: SsmDouble) -> None:
    created(of_users(root, logs_in=False))
    assert {line[0] for line in user_lines(ssm)} == {"permissions"}


def test_a_user_who_leaves_while_there_is_no_state_can_come_in_no_more(
    root: Path, ssm: SsmDouble
) -> None:
    """Volumes may be kept, and with them all whom the cluster knows."""
    KIND.delete(created(of_users(root)))
    created(of_users(root, users={}))
    assert disabled(root, ssm) == {("app", "SCRAM-SHA-512")}
    assert ["permissions", "app", "--remove"] in user_lines(ssm)


def test_a_value_that_is_too_long_is_refused_with_its_size(root: Path, ssm: SsmDouble) -> None:
    users = {"app": [f"{'x' * 100}{number}-" for number in range(60)]}
    with pytest.raises(EarshotError, match=f"allowed: {LIMIT} bytes"):
        created(of_users(root, users=users))
    (root / "security" / "node-1.pem").write_text("x" * (LIMIT + 1))
    with pytest.raises(EarshotError) as caught:
        created(props(root, "node-1"))
    assert str(caught.value).strip() == (
        "SSM parameter /earshot/s/security/node-1: would have 8193 bytes\n"
        "  allowed: 8192 bytes\n"
        "  fix: use certificates with EC keys, or of fewer authorities"
    )
    assert not ssm.parameters


def test_what_aws_refuses_is_said_with_what_it_takes(root: Path, ssm: SsmDouble) -> None:
    ssm.refused = True
    with pytest.raises(EarshotError) as caught:
        created(props(root, "node-1"))
    assert str(caught.value) == (
        "SSM parameter /earshot/s/security/node-1 in eu-central-1: cannot be written or read: An "
        "error occurred (AccessDenied) when calling the PutParameter operation: no\n"
        "  fix: let these credentials call ssm:PutParameter, ssm:GetParameters, "
        "ssm:AddTagsToResource and ssm:DeleteParameters there, then run the same command again"
    )

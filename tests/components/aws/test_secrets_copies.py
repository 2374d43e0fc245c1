"""Another checkout goes on with a secured stack by the content of its parameters."""

import shutil
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from earshot_pulumi.aws.secrets import AwsCertificatesKind, AwsSecretKind
from earshot_pulumi.provider.kind import UNKNOWN

from earshot.certificates.authority import read_certificate
from earshot.errors import EarshotError
from tests.components.aws.conftest import SsmDouble
from tests.components.called import Called
from tests.components.secured_inputs import certificate_inputs, cluster_folder, key_store

HOSTS = {f"node-{id}": [f"b{id}.example.com"] for id in range(1, 13)}


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return cluster_folder(tmp_path, monkeypatch)


KIND = Called(AwsCertificatesKind())


def props(root: Path, **changes: Any) -> dict[str, Any]:
    return certificate_inputs(root, **{"region": "eu-central-1", "hosts": HOSTS, **changes})


def created(root: Path, **changes: Any) -> dict[str, Any]:
    """The certificates of an update, which also writes its secrets into parameters."""
    outs = dict(KIND.create(props(root, **changes)).outs)
    for kind in ("authority", "validator", *outs["hosts"]):
        secret = {"kind": kind, "parameter": f"/earshot/s/security/{kind}", "root": str(root)}
        secret |= {"region": "eu-central-1", "tags": {}, "mechanism": "SCRAM-SHA-512"}
        Called(AwsSecretKind()).update({}, {**secret, "version": "1", "logs_in": False})
    return outs


def files(root: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in (root / "security").iterdir()}


def test_another_checkout_has_the_same_certificates_and_passwords(
    root: Path, ssm: SsmDouble
) -> None:
    outs, texts = created(root), files(root)
    shutil.rmtree(root)
    assert KIND.differs(outs, props(root)), "users get new certificates, and no node is replaced"
    again = KIND.update(outs, props(root)).outs
    for name in (*HOSTS, "validator"):
        assert again["certificates"][name] == outs["certificates"][name]
    assert again["passwords"] == outs["passwords"]
    assert {name for name, text in files(root).items() if texts[name] != text} == {"app.pem"}
    assert files(root).keys() == texts.keys()
    modes = {path.name: path.stat().st_mode & 0o777 for path in (root / "security").iterdir()}
    assert {name for name, mode in modes.items() if mode != 0o600} == {"ca.pem"}
    assert KIND.differs(again, props(root)) is False


def test_what_another_checkout_has_renewed_since_goes_before_what_lies_here(
    root: Path, ssm: SsmDouble
) -> None:
    created(root)
    shutil.copytree(root, root.with_name("here"))
    renewal = {"days": 300.0, "renew_days": 100.0, "numbers": {"app": 2.0}}
    outs = created(root, **renewal)
    renewed = files(root)
    shutil.rmtree(root)
    root.with_name("here").rename(root)
    again = KIND.update(outs, props(root, **renewal)).outs
    assert again["certificates"]["node-3"] == outs["certificates"]["node-3"]
    assert files(root)["app@2.password"] == renewed["app@2.password"]
    assert "app.password" not in files(root)


def test_a_stack_without_parameters_has_its_folder_alone(root: Path, ssm: SsmDouble) -> None:
    outs = KIND.create(props(root)).outs
    assert not ssm.parameters
    assert KIND.differs(outs, props(root)) is False
    names = read_certificate((root / "security" / "node-12.pem").read_text()).names
    assert list(names.dns) == ["b12.example.com"]


@pytest.mark.parametrize(
    ("expired", "between_nodes", "refused"),
    [
        ([1, 2], True, "certificates of nodes 1, 2 expired"),
        ([2], True, "certificates of node 2 expired"),
        ([1], True, ""),
        ([1, 2], False, ""),
        ([1, 2], UNKNOWN, ""),
    ],
)
def test_no_node_is_replaced_that_could_not_connect_to_the_others(
    expired: list[int], between_nodes: bool, refused: str, root: Path, ssm: SsmDouble
) -> None:
    outs = created(root)
    for id in expired:
        name = f"/earshot/s/security/node-{id}"
        ssm.put_parameter(Name=name, Value=key_store(-1, f"b{id}.example.com"), Overwrite=True)
    with pytest.raises(EarshotError, match=refused) if refused else nullcontext():
        assert KIND.differs(outs, props(root, between_nodes=between_nodes))
    assert KIND.differs({}, props(root, between_nodes=between_nodes)), "no node runs"


def test_names_that_are_not_known_yet_are_a_change(root: Path, ssm: SsmDouble) -> None:
    ssm.refused = True  # nobody is asked
    assert KIND.differs(props(root), props(root, hosts=UNKNOWN)) is True


def test_a_copy_that_is_none_is_not_taken(root: Path, ssm: SsmDouble) -> None:
    ssm.put_parameter(Name="/earshot/s/security/authority", Value="x")
    with pytest.raises(EarshotError) as caught:
        KIND.create(props(root))
    assert str(caught.value) == (
        "the copy of the stack's authority: is not a JSON object\n"
        "  fix: find out what has written it; the update of a checkout that has the authority "
        "writes it again"
    )
    assert not root.exists()

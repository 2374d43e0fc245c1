"""Another checkout goes on with a secured stack by the content of its parameters."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from earshot_pulumi.aws import credentials, secrets
from earshot_pulumi.aws.copies import AwsCertificatesKind
from earshot_pulumi.aws.secrets import AwsSecretKind
from earshot_pulumi.provider.kind import UNKNOWN

from earshot.certificates.authority import read_certificate
from earshot.errors import EarshotError
from tests.components.aws.ssm_double import SsmDouble
from tests.components.called import Called
from tests.components.secured_inputs import certificate_inputs, cluster_folder

HOSTS = {f"node-{id}": [f"b{id}.example.com"] for id in range(1, 13)}


@pytest.fixture
def ssm(monkeypatch: pytest.MonkeyPatch) -> SsmDouble:
    found = SsmDouble()
    for module in (secrets, credentials):
        monkeypatch.setattr(module, "client", lambda config, region: found)
    return found


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return cluster_folder(tmp_path, monkeypatch)


def wanted(root: Path, **changes: Any) -> dict[str, Any]:
    return certificate_inputs(root, **{"region": "eu-central-1", "hosts": HOSTS, **changes})


def provider() -> Called:
    made = Called(AwsCertificatesKind())
    return made


def made(root: Path, **changes: Any) -> dict[str, Any]:
    """The certificates of an update, whose secrets stand in parameters from then on."""
    outs = provider().create(wanted(root, **changes)).outs
    assert outs is not None
    writer = Called(AwsSecretKind())
    for kind in ("authority", "validator", *outs["hosts"]):
        reported = {"kind": kind, "parameter": f"/earshot/s/security/{kind}", "root": str(root)}
        fixed = {"region": "eu-central-1", "tags": {}, "mechanism": "SCRAM-SHA-512", "version": "1"}
        writer.update({}, {**reported, **fixed, "logs_in": False})
    return outs


def files(root: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in (root / "security").iterdir()}


def test_another_checkout_has_the_same_certificates_and_passwords(
    root: Path, ssm: SsmDouble
) -> None:
    outs, before = made(root), files(root)
    shutil.rmtree(root)
    diff = provider().differs(outs, wanted(root))
    assert diff, "users get new certificates, and no node is replaced"
    after = provider().update(outs, wanted(root)).outs
    assert after is not None
    own = [*HOSTS, "validator"]
    assert [after["certificates"][it] for it in own] == [outs["certificates"][it] for it in own]
    assert after["passwords"] == outs["passwords"]
    same = {name for name, text in files(root).items() if before[name] == text}
    assert set(before) - same == {"app.pem"}
    modes = {it.name: it.stat().st_mode & 0o777 for it in (root / "security").iterdir()}
    assert {name for name, mode in modes.items() if mode != 0o600} == {"ca.pem"}
    assert provider().differs(after, wanted(root)) is False


def test_what_another_checkout_has_renewed_since_goes_before_what_lies_here(
    root: Path, ssm: SsmDouble
) -> None:
    made(root)
    shutil.copytree(root, root.with_name("here"))
    longer = made(root, days=300.0, renew_days=100.0, numbers={"app": 2.0})
    renewed = files(root)
    shutil.rmtree(root)
    root.with_name("here").rename(root)
    now = wanted(root, days=300.0, renew_days=100.0, numbers={"app": 2.0})
    after = provider().update(longer, now).outs
    assert after is not None
    assert after["certificates"]["node-3"] == longer["certificates"]["node-3"]
    assert files(root)["app@2.password"] == renewed["app@2.password"]
    assert "app.password" not in files(root)


def test_a_stack_without_parameters_has_its_folder_alone(root: Path, ssm: SsmDouble) -> None:
    outs = provider().create(wanted(root)).outs
    assert outs is not None and not ssm.parameters
    assert provider().differs(outs, wanted(root)) is False
    named = read_certificate((root / "security" / "node-12.pem").read_text()).names
    assert list(named.dns) == ["b12.example.com"]


def test_names_that_are_not_known_yet_are_a_change(root: Path, ssm: SsmDouble) -> None:
    ssm.refused = True  # nobody is asked
    assert provider().differs(wanted(root), wanted(root, hosts=UNKNOWN)) is True


def test_a_copy_that_is_none_is_not_taken(root: Path, ssm: SsmDouble) -> None:
    ssm.put_parameter(Name="/earshot/s/security/authority", Value="x")
    with pytest.raises(EarshotError) as caught:
        provider().create(wanted(root))
    assert str(caught.value) == (
        "the copy of the stack's authority: is not a JSON object\n"
        "  fix: find out what has written it; the update of a checkout that has the authority "
        "writes it again"
    )
    assert not root.exists()

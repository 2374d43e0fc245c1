"""Keys of Docker hosts: what is issued, when, where it is, and what a state has of it."""

import json
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID
from earshot_pulumi.docker_hosts import keys
from earshot_pulumi.docker_hosts.keys import DockerHostKeysKind
from earshot_pulumi.provider.kind import UNKNOWN, Operation

from earshot.certificates.authority import is_issued_by, read_certificate
from earshot.errors import EarshotError
from tests.components.aws.conftest import SsmDouble
from tests.components.called import Called

AUTHORITY = "/earshot/s-m/docker/authority"
NAMES = {host: [f"ip-10-0-0-{n}.ec2.internal", f"10.0.0.{n}"] for n, host in enumerate("ab", 10)}
KIND = Called(DockerHostKeysKind())


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(keys, "here", Path)
    return tmp_path / "hosts"


def props(folder: Path, **changes: Any) -> dict[str, Any]:
    return {
        "name": "s-m",
        "folder": str(folder),
        "region": "us-east-1",
        "tags": {"earshot:stack": "s-m"},
        "authority": AUTHORITY,
        "parameters": {host: f"/earshot/s-m/docker/{host}/key" for host in NAMES},
        "hosts": NAMES,
        **changes,
    }


def created(folder: Path) -> dict[str, Any]:
    return dict(KIND.create(props(folder)).outs)


def values(ssm: SsmDouble) -> dict[str, str]:
    return {name: versions[-1]["Value"] for name, versions in ssm.parameters.items()}


def test_each_engine_gets_a_key_of_its_own(ssm: SsmDouble, folder: Path) -> None:
    outs, texts = created(folder), values(ssm)
    assert "PRIVATE KEY" not in json.dumps(outs), "no key is in the state"
    assert set(texts) == {AUTHORITY, *outs["parameters"].values()}
    assert {it["Type"] for them in ssm.parameters.values() for it in them} == {"SecureString"}
    for host, names in NAMES.items():
        text = texts[outs["parameters"][host]]
        pem = text[text.index("-----BEGIN CERTIFICATE") :]
        certificate = read_certificate(pem)
        assert [*certificate.names.dns, *certificate.names.addresses] == names
        assert certificate.fingerprint == outs["versions"][host]
        assert is_issued_by(pem, outs["certificate"])
        purposes = x509.load_pem_x509_certificate(pem.encode()).extensions
        usage = purposes.get_extension_for_class(x509.ExtendedKeyUsage).value
        assert list(usage) == [ExtendedKeyUsageOID.SERVER_AUTH], "it opens no other engine"
    assert texts[outs["parameters"]["a"]] != texts[outs["parameters"]["b"]]


def test_the_client_s_folder_is_private_and_has_what_docker_s_tools_ask_for(
    ssm: SsmDouble, folder: Path
) -> None:
    outs = created(folder)
    client = keys.client_folder(folder)
    assert sorted(it.name for it in client.iterdir()) == ["ca.pem", "cert.pem", "key.pem"]
    for path in (folder, client):
        assert stat.S_IMODE(path.stat().st_mode) == 0o700
    assert {stat.S_IMODE(it.stat().st_mode) for it in client.iterdir()} == {0o600}
    assert (client / "ca.pem").read_text() == outs["certificate"]
    assert is_issued_by((client / "cert.pem").read_text(), outs["certificate"])


def test_nothing_is_issued_twice(ssm: SsmDouble, folder: Path) -> None:
    outs, texts = created(folder), values(ssm)
    assert not KIND.differs(outs, props(folder))
    assert KIND.update(outs, props(folder)).outs["versions"] == outs["versions"]
    assert values(ssm) == texts


def test_another_checkout_gets_a_certificate_of_its_own(
    ssm: SsmDouble, folder: Path, tmp_path: Path
) -> None:
    outs, texts = created(folder), values(ssm)
    checkout = tmp_path / "other"
    assert KIND.differs({**outs, "folder": str(checkout)}, props(checkout))
    again = KIND.update(outs, props(checkout)).outs
    assert again["certificate"] == outs["certificate"]
    assert values(ssm) == texts, "engines keep their keys"
    clients = (keys.client_folder(path) / "key.pem" for path in (checkout, folder))
    assert len({path.read_text() for path in clients}) == 2


def test_one_host_more_leaves_the_others_their_keys(ssm: SsmDouble, folder: Path) -> None:
    outs = created(folder)
    more = {**NAMES, "c": ["ip-10-0-0-12.ec2.internal", "10.0.0.12"]}
    parameters = {host: f"/earshot/s-m/docker/{host}/key" for host in more}
    again = KIND.update(outs, props(folder, hosts=more, parameters=parameters)).outs
    assert {host: again["versions"][host] for host in NAMES} == outs["versions"]
    KIND.update(again, props(folder))
    assert parameters["c"] not in ssm.parameters


def test_a_preview_of_one_host_more_knows_the_keys_of_the_others(
    ssm: SsmDouble, folder: Path
) -> None:
    outs = created(folder)
    more = {**NAMES, "c": [UNKNOWN, UNKNOWN]}
    operation = Operation("urn::keys", preview=True)
    preview = DockerHostKeysKind().update(operation, outs, props(folder, hosts=more))
    assert preview["versions"] == {**outs["versions"], "c": UNKNOWN}
    assert preview["certificate"] == outs["certificate"]


def test_a_removed_key_is_issued_again(ssm: SsmDouble, folder: Path) -> None:
    outs = created(folder)
    del ssm.parameters[outs["parameters"]["a"]]
    assert KIND.differs(outs, props(folder))
    again = KIND.update(outs, props(folder)).outs
    assert again["versions"]["a"] != outs["versions"]["a"]
    assert again["versions"]["b"] == outs["versions"]["b"]


def test_the_client_s_certificate_is_renewed_in_time(
    ssm: SsmDouble, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outs = created(folder)
    later = datetime.now(UTC) + timedelta(days=340)
    monkeypatch.setattr(keys, "_now", lambda: later)
    assert KIND.differs(outs, props(folder))
    again = KIND.update(outs, props(folder)).outs
    assert again["versions"] == outs["versions"], "no host is replaced"
    assert not KIND.differs(again, props(folder))


@pytest.mark.parametrize("days", [-1, 4000])
def test_an_authority_that_is_not_valid_changes_nothing(
    ssm: SsmDouble, folder: Path, monkeypatch: pytest.MonkeyPatch, days: int
) -> None:
    outs, texts = created(folder), values(ssm)
    now = datetime.now(UTC) + timedelta(days=days)
    monkeypatch.setattr(keys, "_now", lambda: now)
    assert KIND.differs(outs, props(folder))
    with pytest.raises(EarshotError, match="allowed: an authority that is valid now"):
        KIND.update(outs, props(folder))
    assert values(ssm) == texts
    del ssm.parameters[AUTHORITY]
    (folder / "authority.json").unlink()
    renewed = KIND.update(outs, props(folder)).outs
    assert renewed["certificate"] != outs["certificate"]
    assert not KIND.differs(renewed, props(folder))


def test_a_damaged_authority_or_a_refusal_of_ssm_is_one_error(
    ssm: SsmDouble, folder: Path, tmp_path: Path
) -> None:
    outs = created(folder)
    ssm.refused = True
    with pytest.raises(EarshotError, match="ssm:PutParameter"):
        KIND.differs(outs, props(folder))
    ssm.refused = False
    ssm.parameters.clear()
    ssm.put_parameter(Name=AUTHORITY, Type="SecureString", Value="no authority")
    with pytest.raises(EarshotError, match="is damaged"):
        created(tmp_path / "other")


def test_nothing_is_left(ssm: SsmDouble, folder: Path) -> None:
    outs = created(folder)
    KIND.delete(outs)
    assert ssm.parameters == {} and not folder.exists()

"""Keys of Docker hosts: what is issued, when, where it is, and what a state has of it."""

from __future__ import annotations

import json
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID
from earshot_pulumi.aws import host_keys
from earshot_pulumi.aws.host_keys import DockerHostKeysKind
from earshot_pulumi.provider.kind import UNKNOWN, Operation

from earshot.certificates.authority import is_issued_by, read_certificate
from earshot.errors import EarshotError
from tests.components.aws.ssm_double import SsmDouble
from tests.components.called import Called

AUTHORITY = "/earshot/s-m/docker/authority"
NAMES = {it: [f"ip-10-0-0-{n}.ec2.internal", f"10.0.0.{n}"] for n, it in enumerate("ab", 10)}


@pytest.fixture
def ssm(monkeypatch: pytest.MonkeyPatch) -> SsmDouble:
    found = SsmDouble()
    monkeypatch.setattr(host_keys, "client", lambda config, region: found)

    def reader(config: Any, region: str) -> Any:
        def read(names: list[str]) -> dict[str, str]:
            answer = found.get_parameters(names, WithDecryption=True)
            return {it["Name"]: it["Value"] for it in answer["Parameters"]}

        return read

    monkeypatch.setattr(host_keys, "reader", reader)
    return found


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(host_keys, "here", Path)
    return tmp_path / "hosts"


def wanted(folder: Path, **changes: Any) -> dict[str, Any]:
    return {
        "name": "s-m",
        "folder": str(folder),
        "region": "us-east-1",
        "tags": {"earshot:stack": "s-m"},
        "authority": AUTHORITY,
        "parameters": {it: f"/earshot/s-m/docker/{it}/key" for it in NAMES},
        "hosts": NAMES,
        **changes,
    }


def created(props: dict[str, Any]) -> dict[str, Any]:
    return Called(DockerHostKeysKind(), {}).create(props).outs


def values(ssm: SsmDouble) -> dict[str, str]:
    return {name: versions[-1]["Value"] for name, versions in ssm.parameters.items()}


def test_each_engine_gets_a_key_of_its_own(ssm: SsmDouble, folder: Path) -> None:
    outs = created(wanted(folder))
    texts = values(ssm)
    assert set(texts) == {AUTHORITY, *outs["parameters"].values()}
    assert {it["Type"] for them in ssm.parameters.values() for it in them} == {"SecureString"}
    for host, names in NAMES.items():
        text = texts[outs["parameters"][host]]
        pem = text[text.index("-----BEGIN CERTIFICATE") :]
        found = read_certificate(pem)
        assert [*found.names.dns, *found.names.addresses] == names
        assert found.fingerprint == outs["versions"][host]
        assert is_issued_by(pem, outs["certificate"])
        purposes = x509.load_pem_x509_certificate(pem.encode()).extensions
        usage = purposes.get_extension_for_class(x509.ExtendedKeyUsage).value
        assert list(usage) == [ExtendedKeyUsageOID.SERVER_AUTH], "it opens no other engine"
    assert texts[outs["parameters"]["a"]] != texts[outs["parameters"]["b"]]


def test_the_client_s_folder_is_private_and_has_what_docker_s_tools_ask_for(
    ssm: SsmDouble, folder: Path
) -> None:
    outs = created(wanted(folder))
    client = host_keys.client_folder(folder)
    assert sorted(it.name for it in client.iterdir()) == ["ca.pem", "cert.pem", "key.pem"]
    for path in (folder, client):
        assert stat.S_IMODE(path.stat().st_mode) == 0o700
    assert {stat.S_IMODE(it.stat().st_mode) for it in client.iterdir()} == {0o600}
    assert (client / "ca.pem").read_text() == outs["certificate"]
    assert is_issued_by((client / "cert.pem").read_text(), outs["certificate"])


def test_no_key_is_in_the_state(ssm: SsmDouble, folder: Path) -> None:
    assert "PRIVATE KEY" not in json.dumps(created(wanted(folder)))


def test_nothing_is_issued_twice(ssm: SsmDouble, folder: Path) -> None:
    props = wanted(folder)
    outs, before = created(props), values(ssm)
    kind = Called(DockerHostKeysKind(), {})
    assert not kind.differs(outs, props)
    again = kind.update(outs, props).outs
    assert again["versions"] == outs["versions"]
    assert values(ssm) == before


def test_another_checkout_gets_a_certificate_of_its_own(
    ssm: SsmDouble, folder: Path, tmp_path: Path
) -> None:
    outs, before = created(wanted(folder)), values(ssm)
    other = wanted(tmp_path / "other")
    kind = Called(DockerHostKeysKind(), {})
    assert kind.differs({**outs, "folder": other["folder"]}, other)
    again = kind.update(outs, other).outs
    assert again["certificate"] == outs["certificate"]
    assert values(ssm) == before, "engines keep their keys"
    own, first = (host_keys.client_folder(Path(it["folder"])) for it in (other, outs))
    assert (own / "key.pem").read_text() != (first / "key.pem").read_text()


def test_one_host_more_leaves_the_others_their_keys(ssm: SsmDouble, folder: Path) -> None:
    outs = created(wanted(folder))
    more = {**NAMES, "c": ["ip-10-0-0-12.ec2.internal", "10.0.0.12"]}
    parameters = {it: f"/earshot/s-m/docker/{it}/key" for it in more}
    props = wanted(folder, hosts=more, parameters=parameters)
    again = Called(DockerHostKeysKind(), {}).update(outs, props).outs
    assert {it: again["versions"][it] for it in NAMES} == outs["versions"]
    Called(DockerHostKeysKind(), {}).update(again, wanted(folder))
    assert parameters["c"] not in ssm.parameters


def test_a_preview_of_one_host_more_knows_the_keys_of_the_others(
    ssm: SsmDouble, folder: Path
) -> None:
    outs = created(wanted(folder))
    more = {**NAMES, "c": [UNKNOWN, UNKNOWN]}
    operation = Operation("urn::keys", preview=True)
    shown = DockerHostKeysKind().update(operation, "keys", outs, wanted(folder, hosts=more))
    assert shown["versions"] == {**outs["versions"], "c": UNKNOWN}
    assert shown["certificate"] == outs["certificate"]


def test_a_removed_key_is_issued_again(ssm: SsmDouble, folder: Path) -> None:
    props = wanted(folder)
    outs = created(props)
    del ssm.parameters[props["parameters"]["a"]]
    kind = Called(DockerHostKeysKind(), {})
    assert kind.differs(outs, props)
    again = kind.update(outs, props).outs
    assert again["versions"]["a"] != outs["versions"]["a"]
    assert again["versions"]["b"] == outs["versions"]["b"]


def test_the_client_s_certificate_is_renewed_in_time(
    ssm: SsmDouble, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    props = wanted(folder)
    outs = created(props)
    later = datetime.now(UTC) + timedelta(days=340)
    monkeypatch.setattr(host_keys, "_now", lambda: later)
    kind = Called(DockerHostKeysKind(), {})
    assert kind.differs(outs, props)
    again = kind.update(outs, props).outs
    assert again["versions"] == outs["versions"], "no host is replaced"
    assert not kind.differs(again, props)


def test_a_damaged_authority_is_one_error(ssm: SsmDouble, folder: Path) -> None:
    ssm.put_parameter(Name=AUTHORITY, Type="SecureString", Value="no authority")
    with pytest.raises(EarshotError, match="is damaged"):
        created(wanted(folder))


@pytest.mark.parametrize("days", [-1, 4000])
def test_an_authority_that_is_not_valid_changes_nothing(
    ssm: SsmDouble, folder: Path, monkeypatch: pytest.MonkeyPatch, days: int
) -> None:
    props = wanted(folder)
    outs, texts = created(props), values(ssm)
    now = datetime.now(UTC) + timedelta(days=days)
    monkeypatch.setattr(host_keys, "_now", lambda: now)
    kind = Called(DockerHostKeysKind(), {})
    assert kind.differs(outs, props)
    with pytest.raises(EarshotError, match="allowed: an authority that is valid now"):
        kind.update(outs, props)
    assert values(ssm) == texts
    del ssm.parameters[AUTHORITY]
    (folder / "authority.json").unlink()
    renewed = kind.update(outs, props).outs
    assert renewed["certificate"] != outs["certificate"]
    assert not kind.differs(renewed, props)


def test_what_ssm_refuses_is_one_error(ssm: SsmDouble, folder: Path) -> None:
    props = wanted(folder)
    outs = created(props)
    ssm.refused = True
    with pytest.raises(EarshotError, match="ssm:PutParameter"):
        Called(DockerHostKeysKind(), {}).differs(outs, props)


def test_nothing_is_left(ssm: SsmDouble, folder: Path) -> None:
    outs = created(wanted(folder))
    Called(DockerHostKeysKind(), {}).delete(outs)
    assert ssm.parameters == {} and not folder.exists()

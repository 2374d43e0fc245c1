"""Passwords that configuration gives, on their way to the folder, past every input and state."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from earshot_pulumi import certificates
from earshot_pulumi.certificates import CertificatesKind
from earshot_pulumi.passwords import check_given, given_to
from pulumi.runtime import config

from earshot.certificates.store import Store
from earshot.config.passwords import KEY
from earshot.errors import SpecError
from earshot.project import Project
from tests.components.called import Called
from tests.components.secured_inputs import certificate_inputs, cluster_folder
from tests.config.test_passwords import PLAIN, spec
from tests.raised import raised


@pytest.fixture(autouse=True)
def _no_configuration() -> Iterator[None]:
    yield
    config.set_all_config({}, [])


def provider(**given: str) -> Called:
    return Called(CertificatesKind(), {KEY: json.dumps(given)})


def test_a_given_password_is_the_users_and_no_part_of_the_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = cluster_folder(tmp_path, monkeypatch)
    props, store = certificate_inputs(root), Store(root / "security")
    first = Called(CertificatesKind()).create(props).outs
    assert first is not None
    before = store.password("validator")
    one = provider(app="given-by-hand", other="not a user's")
    assert one.differs(first, props)
    outs = one.update(first, props).outs
    assert outs is not None
    assert (store.password("app"), store.password("validator")) == ("given-by-hand", before)
    assert outs["passwords"]["app"] != first["passwords"]["app"]
    assert outs["passwords"]["validator"] == first["passwords"]["validator"]
    assert "given-by-hand" not in json.dumps(outs)
    assert (store.folder / "app.password").stat().st_mode & 0o777 == 0o600
    assert one.differs(outs, props) is False
    assert provider().differs(outs, props) is False  # it stays
    assert provider(app="given-by-hand-2").differs(outs, props)


def test_a_preview_knows_that_a_given_password_is_another_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = cluster_folder(tmp_path, monkeypatch)
    props = certificate_inputs(root)
    Called(CertificatesKind()).create(props)
    monkeypatch.setattr(certificates, "is_dry_run", lambda: True)
    config.set_all_config({KEY: '{"app": "given-by-hand"}'}, [KEY])
    assert certificates._unchanged_versions(props).passwords.keys() == {"validator"}
    assert given_to() == {"app": "given-by-hand"}


def test_the_program_refuses_plain_text_beside_a_secret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "Pulumi.yaml").write_text("name: earshot\n")
    project, cluster = Project(tmp_path), spec()
    check_given(cluster, project, "s")  # none is given
    config.set_all_config({f"{KEY}.app": "hunter2hunter2"}, [])
    assert "nothing reads" in str(raised(SpecError, check_given, cluster, project, "s"))
    config.set_all_config({KEY: '{"app": "hunter2hunter2", "validator": "12345678"}'}, [KEY])
    check_given(cluster, project, "s")
    (tmp_path / "Pulumi.s.yaml").write_text(
        "config:\n  earshot:cluster: {placement: local, security: {users: [{name: app}]}}\n"
        "  earshot:passwords: {app: hunter2hunter2, validator: {secure: 'v1:abc'}}\n"
    )
    error = raised(SpecError, check_given, cluster, project, "s")
    assert str(error) == f"Pulumi.s.yaml, earshot:passwords: 'app': {PLAIN}"

"""Certificates as a resource: what a state holds, and when it changes."""

import json
import shutil
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pulumi
import pytest
from cryptography import x509
from earshot_pulumi.certificates import Certificates, CertificatesKind
from pulumi.runtime import mocks

from earshot.certificates.authority import Subject
from earshot.certificates.chain import principal
from earshot.certificates.store import Store
from earshot.config.docker import DockerSpec
from earshot.config.document import read_spec
from earshot.errors import EarshotError
from earshot.listeners.model import Node
from earshot.listeners.properties import read_properties
from earshot.placement.docker import plan_docker
from tests.certificates.made import made as made_by_others
from tests.components.called import Called
from tests.components.secured_inputs import certificate_inputs, cluster_folder
from tests.config.test_security import PRIVATE_CA


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return cluster_folder(tmp_path, monkeypatch)


def made(root: Path) -> dict[str, Any]:
    outs = Called(CertificatesKind()).create(certificate_inputs(root)).outs
    assert outs is not None
    return outs


def test_a_state_holds_what_may_be_seen(root: Path) -> None:
    outs = made(root)
    assert outs["certificates"].keys() == {"node-1", "validator", "app"}
    assert outs["passwords"].keys() == {"validator", "app"}
    store = Store(root / "security")
    state = json.dumps(outs)
    assert "PRIVATE" not in state and store.password("app") not in state
    file = root / "security" / "validator.properties"
    assert file.stat().st_mode & 0o777 == 0o600
    assert read_properties(file.read_text()).values["sasl.mechanism"] == "SCRAM-SHA-512"


def test_nothing_changes_by_itself(root: Path) -> None:
    outs = made(root)
    assert Called(CertificatesKind()).differs(outs, certificate_inputs(root)) is False
    assert Called(CertificatesKind()).update(outs, certificate_inputs(root)).outs == outs


@pytest.mark.parametrize(
    "changes",
    [
        {"hosts": {"node-1": ["b1.example.com"]}},
        {"users": ["validator"]},
        {"mechanism": "SCRAM-SHA-256"},
        {"renew_days": 89.99},
        {"authorities": [1.0, 2.0]},
        {"numbers": {"app": 2.0}},
    ],
)
def test_a_change_of_what_is_wanted_is_a_change(root: Path, changes: dict[str, Any]) -> None:
    assert Called(CertificatesKind()).differs(made(root), certificate_inputs(root, **changes))


@pytest.mark.parametrize("name", ["node-1.pem", "app.password", "validator.properties"])
def test_a_file_that_is_lost_is_a_change(root: Path, name: str) -> None:
    outs = made(root)
    (root / "security" / name).unlink()
    assert Called(CertificatesKind()).differs(outs, certificate_inputs(root))


def test_another_checkout_makes_no_authority_that_no_node_trusts(root: Path) -> None:
    outs = made(root)
    shutil.rmtree(root)
    with pytest.raises(EarshotError) as caught:
        Called(CertificatesKind()).differs(outs, certificate_inputs(root))
    folder = root / "security"
    assert str(caught.value).strip() == (
        f"the authority in {folder}: ca.pem or ca.key is missing, and nodes of this stack have "
        "certificates: nodes with certificates of a new one would not be trusted by the others\n"
        "  fix: put both files back from a copy; or stop the cluster (`pulumi destroy`), remove "
        f"{folder}, and all certificates and passwords are regenerated"
    )


@pytest.mark.parametrize("file", ["app.password", "validator.properties"])
def test_a_file_written_meanwhile_is_a_change(root: Path, file: str) -> None:
    outs = made(root)
    (root / "security" / file).write_text("other\n")
    assert Called(CertificatesKind()).differs(outs, certificate_inputs(root))


def test_what_an_interrupted_run_wrote_is_told_by_the_next(root: Path) -> None:
    outs = made(root)
    (root / "security" / "app.password").unlink()
    (root / "security" / "node-1.pem").unlink()
    Called(CertificatesKind()).update(outs, certificate_inputs(root))  # and no state was written
    assert Called(CertificatesKind()).differs(outs, certificate_inputs(root))
    again = Called(CertificatesKind()).update(outs, certificate_inputs(root)).outs
    assert again is not None
    assert again["passwords"]["app"] != outs["passwords"]["app"]
    assert again["certificates"]["node-1"] != outs["certificates"]["node-1"]
    assert Called(CertificatesKind()).differs(again, certificate_inputs(root)) is False


def test_certificates_of_others_reach_the_nodes_and_no_state(root: Path, tmp_path: Path) -> None:
    now = datetime.now(UTC)
    authority = made_by_others("CN=Root", now, authority=True, number=1)
    node = made_by_others("CN=b1", now, authority, hosts=["localhost"], number=2)
    (tmp_path / "ca.pem").write_text(authority.pem)
    (tmp_path / "1.pem").write_text(node.pem + node.key_pem())
    pem = str(tmp_path / "{node}.pem")
    files = {"certificate": pem, "key": pem, "authority": str(tmp_path / "ca.pem"), "password": ""}
    props = certificate_inputs(root, files=files)
    outs = Called(CertificatesKind()).create(props).outs
    assert outs is not None and "PRIVATE" not in json.dumps(outs)
    assert (root / "security" / "node-1.pem").read_text() == node.key_pem() + node.pem
    trusted = (root / "security" / "trusted.pem").read_text()
    assert trusted == authority.pem + (root / "security" / "ca.pem").read_text()
    validator = read_properties((root / "security" / "validator.properties").read_text()).values
    assert validator["ssl.truststore.certificates"] == trusted
    assert Called(CertificatesKind()).differs(outs, props) is False
    (tmp_path / "1.pem").write_text(
        made_by_others("CN=b1", now, authority, hosts=["b1"], number=2).pem + node.key_pem()
    )
    assert Called(CertificatesKind()).differs(outs, props)
    again = Called(CertificatesKind()).update(outs, props).outs
    assert again is not None
    changed = {k for k, v in again["certificates"].items() if v != outs["certificates"][k]}
    assert changed == {"node-1"}


def test_a_private_ca_is_asked_for_the_subject_that_nodes_are_known_by(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = datetime.now(UTC)
    authority = made_by_others("CN=Root", now, authority=True, number=1)
    asked = []

    def issued_by(arn: str, subject: Subject, hosts: tuple[str, ...], days: int) -> str:
        asked.append((arn, hosts, days))
        node = made_by_others(subject.principal, now, authority, hosts=hosts, number=2)
        return node.key_pem() + node.pem

    monkeypatch.setattr("earshot.certificates.store.issued_by", issued_by)
    monkeypatch.setattr("earshot_pulumi.certificates.authority_of", lambda arn: authority.pem)
    props = certificate_inputs(root, private_ca=PRIVATE_CA, files=None)
    outs = Called(CertificatesKind()).create(props).outs
    assert outs is not None and "PRIVATE KEY" not in json.dumps(outs)
    assert asked == [(PRIVATE_CA, ("localhost",), 90)]
    assert Called(CertificatesKind()).differs(outs, props) is False
    own = certificate_inputs(root, private_ca="", files=None)
    assert Called(CertificatesKind()).differs(outs, own)
    security = {"tls": {"from": {"private_ca": PRIVATE_CA}}}
    spec = read_spec({"placement": "docker", "security": security}, "test")
    assert isinstance(spec, DockerSpec)
    known = plan_docker(spec, "s", root).plan.security
    node = x509.load_pem_x509_certificate((root / "security" / "node-1.pem").read_bytes())
    assert known is not None and known.principals == (principal(node.subject),)


class Preview(mocks.Mocks):
    """An engine that knows no output."""

    def new_resource(self, args: mocks.MockResourceArgs) -> tuple[str, dict[str, Any]]:
        return "", dict(args.inputs)

    def call(self, args: mocks.MockCallArgs) -> Any:
        raise AssertionError(args.token)


def in_preview(root: Path, *, later: bool = False, **settings: Any) -> dict[int, Any]:
    """By node, the fingerprint that a preview knows; None for one that will be made.

    ``later``: the plan is an output.
    """
    mocks.set_mocks(Preview(), project="earshot", stack="s", preview=True)
    spec = read_spec({"placement": "docker", "brokers": 2, **settings}, "test")
    assert isinstance(spec, DockerSpec) and spec.security is not None
    plan, found = plan_docker(spec, "s").plan, dict[int, Any]()

    def run() -> list[pulumi.Output[None]]:
        opts = pulumi.ResourceOptions()
        assert spec.security is not None
        given = pulumi.Output.from_input(plan) if later else plan
        made = Certificates("s", spec.security, given, root, opts)

        def keep(node: Node) -> pulumi.Output[None]:
            return made.of_node(node.id).apply(
                lambda it: found.update({node.id: None if pulumi.contains_unknowns(it) else it}),
                run_with_unknowns=True,
            )

        return [keep(node) for node in plan.nodes]

    pulumi.runtime.test(run)()  # type: ignore[no-untyped-call]
    return found


@pytest.mark.parametrize("later", [False, True])
def test_a_preview_shows_a_message_where_a_private_ca_does_not_answer(
    root: Path, later: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(arn: str) -> str:
        raise EarshotError(arn, observed="cannot be used")

    monkeypatch.setattr("earshot_pulumi.certificates.authority_of", refuse)
    security = {"tls": {"from": {"private_ca": PRIVATE_CA}}}
    with pytest.raises(pulumi.RunError, match=f"^{PRIVATE_CA}: cannot be used$"):
        in_preview(root, later=later, security=security)


@pytest.mark.parametrize("later", [False, True])
def test_a_preview_knows_the_certificates_that_stay(root: Path, later: bool) -> None:
    previewed = partial(in_preview, later=later)
    app = {"users": [{"name": "app"}]}
    assert previewed(root, security={}) == {1: None, 2: None}
    hosts = {f"node-{id}": [f"kafka-{id}", "localhost"] for id in (1, 2)}
    outs = (
        Called(CertificatesKind())
        .create(certificate_inputs(root, hosts=hosts, users=["validator"]))
        .outs
    )
    assert outs is not None
    first, second = (outs["certificates"][f"node-{id}"] for id in (1, 2))
    assert previewed(root, security=app) == {1: first, 2: second}
    assert previewed(root, security=app, names={2: "other"}) == {1: first, 2: None}
    (root / "security" / "ca.key").unlink()
    assert previewed(root, security=app) == {1: None, 2: None}

"""Certificates of nodes from a private CA: what was asked for and nothing else, renewed in time."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.client import BaseClient
from botocore.exceptions import ClientError
from cryptography import x509
from moto import mock_aws

from earshot.certificates.authority import Subject, is_issued_by, new_request
from earshot.certificates.private_ca import authority_of, issued_by
from earshot.certificates.store import Store
from earshot.certificates.target import TargetCertificates
from earshot.errors import EarshotError
from tests.certificates.made import made
from tests.certificates.private_root import new_private_ca
from tests.raised import raised

pytestmark = pytest.mark.usefixtures("ambient")

REGION = "eu-central-1"
SUBJECT = Subject("node", "nodes by 12345678 of test")
HOSTS = ("b1.example.com", "10.0.0.1")
NOW = datetime.now(UTC)


@pytest.fixture
def arn(ambient: None) -> Iterator[str]:
    """A CA with a certificate of its own, that of a root."""
    with mock_aws(), closing(boto3.client("acm-pca", region_name=REGION)) as pca:
        yield new_private_ca(pca)


def test_a_store_has_nodes_by_the_ca_and_users_by_the_stack(arn: str, tmp_path: Path) -> None:
    wanted = TargetCertificates(
        stack="test",
        nodes={"node-1": HOSTS, "node-2": ("b2.example.com",)},
        node=SUBJECT,
        users=("validator",),
        days=700,
        renew_days=30,
        authority=authority_of(arn),
        private_ca=arn,
    )
    store = Store(tmp_path / "security")
    credentials = store.fill(wanted, NOW)
    assert str(credentials.certificates["node-1"].names) == "b1.example.com, 10.0.0.1"
    text = (store.folder / "node-1.pem").read_text()
    key, _, chain = text.partition("-----END PRIVATE KEY-----\n")
    assert key and is_issued_by(chain, wanted.authority)
    own = x509.load_pem_x509_certificates(chain.encode())
    assert [it.subject.rfc4514_string() for it in own] == ["CN=node,OU=nodes by 12345678 of test"]
    ca = (store.folder / "ca.pem").read_text()
    assert is_issued_by((store.folder / "validator.pem").read_text().partition("KEY-----\n")[2], ca)
    assert store.authority() == wanted.authority + ca
    assert (store.folder / "node-1.pem").stat().st_mode & 0o777 == 0o600
    assert store.due(wanted, NOW) == [] and store.fill(wanted, NOW) == credentials
    assert store.due(wanted, NOW + timedelta(days=336)) == ["node-1.pem", "node-2.pem"]
    other = replace(wanted, nodes={**wanted.nodes, "node-1": ("b1.example.com",)})
    assert store.due(other, NOW) == ["node-1.pem"]
    again = store.fill(other, NOW)
    assert {it for it in again.versions if again.versions[it] != credentials.versions[it]} == {
        "node-1"
    }
    stack = replace(other, authority="", private_ca="", node=Subject("node", "nodes"))
    assert store.due(stack, NOW) == ["node-1.pem", "node-2.pem", "trusted.pem"]


def in_place_of_aws(monkeypatch: pytest.MonkeyPatch, issued: str, asked: list[Any]) -> None:
    """A CA that issues what it likes."""
    root = made("CN=Root", NOW, authority=True, number=1)

    def answer(self: Any, operation: str, given: dict[str, Any]) -> dict[str, Any]:
        asked.append((operation, given))
        if operation == "GetCertificateAuthorityCertificate":
            return {"Certificate": root.pem.strip()}
        if operation == "IssueCertificate":
            return {"CertificateArn": f"{ARN}/certificate/1"}
        return {"Certificate": issued.strip(), "CertificateChain": root.pem.strip()}

    monkeypatch.setattr(BaseClient, "_make_api_call", answer)


ARN = "arn:aws-cn:acm-pca:cn-north-1:111122223333:certificate-authority/12345678-1234-1234-1234-12"


def test_the_request_has_the_advertised_names(monkeypatch: pytest.MonkeyPatch) -> None:
    root = made("CN=Root", NOW, authority=True, number=1)
    node = made("CN=node,OU=nodes by 12345678 of test", NOW, root, hosts=HOSTS, number=2)
    asked: list[Any] = []
    in_place_of_aws(monkeypatch, node.pem, asked)

    def with_known_key(*given: Any) -> Any:
        return replace(new_request(*given), key=node.key_pem())

    monkeypatch.setattr("earshot.certificates.private_ca.new_request", with_known_key)
    assert issued_by(ARN, SUBJECT, HOSTS[::-1], 7) == node.key_pem() + node.pem
    (order,) = [given for operation, given in asked if operation == "IssueCertificate"]
    request = x509.load_pem_x509_csr(order.pop("Csr"))
    names = request.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert [str(name.value) for name in names] == ["b1.example.com", "10.0.0.1"]
    assert request.subject.rfc4514_string() == "CN=node,OU=nodes by 12345678 of test"
    assert order == {
        "CertificateAuthorityArn": ARN,
        "SigningAlgorithm": "SHA256WITHECDSA",
        "TemplateArn": "arn:aws-cn:acm-pca:::template/EndEntityCertificate/V1",
        "Validity": {"Value": 7, "Type": "DAYS"},
    }
    other = made("CN=other", NOW, root, hosts=["b1"], number=2)
    in_place_of_aws(monkeypatch, other.pem, asked)
    assert str(raised(EarshotError, issued_by, ARN, SUBJECT, HOSTS, 7)) == (
        f"{ARN}: has issued a certificate for b1 to CN=other\n  allowed: the request, "
        "b1.example.com, 10.0.0.1 to CN=node,OU=nodes by 12345678 of test"
    )


def refusing(monkeypatch: pytest.MonkeyPatch, code: str, message: str, but: str = "") -> None:
    """From now on AWS refuses all operations, ``but`` one."""
    own = BaseClient._make_api_call

    def call(self: Any, operation: str, given: Any) -> Any:
        if operation == but:
            return own(self, operation, given)
        raise ClientError({"Error": {"Code": code, "Message": message}}, operation)

    monkeypatch.setattr(BaseClient, "_make_api_call", call)


def test_what_the_ca_refuses_is_told(arn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    authority_of(arn)
    other = f"{arn.rpartition('/')[0]}/00000000-0000-0000-0000-000000000000"
    with pytest.raises(EarshotError, match=f"{other}: cannot be used: .*ResourceNotFound"):
        authority_of(other)

    refusing(monkeypatch, "ValidationException", "too long")
    assert str(raised(EarshotError, issued_by, arn, SUBJECT, HOSTS, 9000)) == (
        f"{arn}: cannot be used: An error occurred (ValidationException) when calling the "
        "IssueCertificate operation: too long\n"
        "  fix: see the reason, which AWS gives, and correct security.tls"
    )


def test_a_missing_permission_is_named(arn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    authority_of(arn)
    refusing(monkeypatch, "AccessDeniedException", "no", but="IssueCertificate")
    assert str(raised(EarshotError, issued_by, arn, SUBJECT, HOSTS, 90)) == (
        f"{arn}: cannot be used: Waiter CertificateIssued failed: Waiter encountered a "
        "terminal failure state: Matched expected service error code: AccessDeniedException\n"
        "  fix: let these credentials call acm-pca:GetCertificate"
    )

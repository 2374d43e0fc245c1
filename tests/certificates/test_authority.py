"""What the authority issues, as OpenSSL sees it."""

from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, x25519
from cryptography.hazmat.primitives.serialization import Encoding, load_pem_private_key
from cryptography.x509.oid import ExtendedKeyUsageOID

from earshot.certificates.authority import (
    IssuedCertificate,
    Subject,
    is_issued_by,
    issue,
    new_authority,
    read_certificate,
)
from earshot.listeners.security import principal
from tests.certificates.handshakes import accepted, client_context, server_context
from tests.certificates.made import general_name, key_usage

NOW = datetime(2026, 5, 4, 12, 0, tzinfo=UTC)
NODE = Subject("node-1", "nodes")


@pytest.fixture(scope="module")
def authority() -> IssuedCertificate:
    return new_authority("test", NOW)


def test_a_certificate_has_exactly_the_hosts_and_the_days(authority: IssuedCertificate) -> None:
    hosts = ["B1.example.com", "10.0.0.1", "b1.example.com", "::1"]
    certificate = read_certificate(issue(authority, NODE, hosts, 90, NOW).certificate)
    assert certificate.names.dns == ("b1.example.com",)
    assert certificate.names.addresses == ("10.0.0.1", "::1")
    assert certificate.not_after == NOW + timedelta(days=90)
    assert certificate.not_before == NOW - timedelta(minutes=5), "clocks of clients may be behind"
    assert len(certificate.fingerprint) == 64
    root = read_certificate(authority.certificate)
    assert root.not_before == NOW - timedelta(minutes=5)
    assert root.not_after == NOW + timedelta(days=3650)


def purposes(issued: IssuedCertificate) -> list[tuple[bool, x509.ExtensionType]]:
    """The extensions about purposes, each with whether it is critical."""
    extensions = x509.load_pem_x509_certificate(issued.certificate.encode()).extensions
    names, usages = x509.SubjectAlternativeName, (x509.KeyUsage, x509.ExtendedKeyUsage)
    kinds = (names, x509.BasicConstraints, *usages)
    return [
        (extension.critical, extension.value)
        for extension in extensions
        if isinstance(extension.value, kinds)
    ]


def test_each_certificate_is_good_for_what_its_holder_does(authority: IssuedCertificate) -> None:
    assert purposes(authority) == [
        (True, x509.BasicConstraints(ca=True, path_length=0)),
        (True, key_usage("key_cert_sign", "crl_sign")),
    ]
    own = [
        (True, x509.BasicConstraints(ca=False, path_length=None)),
        (True, key_usage("digital_signature")),
    ]
    client, server = ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.SERVER_AUTH
    for_clients = (False, x509.ExtendedKeyUsage([client]))
    assert purposes(issue(authority, NODE, [], 1, NOW)) == [*own, for_clients]
    for_both = (False, x509.ExtendedKeyUsage([client, server]))
    for host in ("b1", "10.0.0.1"):
        names = (False, x509.SubjectAlternativeName([general_name(host)]))
        assert purposes(issue(authority, NODE, [host], 1, NOW)) == [names, *own, for_both]


def test_a_certificate_names_its_subject_and_its_authority() -> None:
    authority = new_authority("s" * 100, NOW)
    pem = issue(authority, NODE, [], 1, NOW).certificate
    certificate = x509.load_pem_x509_certificate(pem.encode())
    assert certificate.subject.rfc4514_string() == principal(NODE.name, NODE.unit)
    assert principal(NODE.name, NODE.unit) == "CN=node-1,OU=nodes", "as Java writes it"
    issuer = f"CN=earshot {'s' * 56},OU=authority"
    assert certificate.issuer.rfc4514_string() == issuer, "64 characters at most"


def test_the_issuer_is_known_by_name_and_signature(authority: IssuedCertificate) -> None:
    pem = issue(authority, NODE, [], 1, NOW).certificate
    assert is_issued_by(pem, authority.certificate)
    for stack in ("test", "other"):
        assert not is_issued_by(pem, new_authority(stack, NOW).certificate)
    assert not is_issued_by("", authority.certificate)


def test_a_key_that_signs_nothing_has_issued_nothing(authority: IssuedCertificate) -> None:
    holder = x509.load_pem_x509_certificate(authority.certificate.encode())
    signer = load_pem_private_key(authority.key.encode(), None)
    assert isinstance(signer, ec.EllipticCurvePrivateKey)
    builder = x509.CertificateBuilder(holder.issuer, holder.subject)
    builder = builder.public_key(x25519.X25519PrivateKey.generate().public_key())
    builder = builder.serial_number(1).not_valid_before(NOW).not_valid_after(NOW)
    odd = builder.sign(signer, hashes.SHA256()).public_bytes(Encoding.PEM).decode()
    assert not is_issued_by(authority.certificate, odd)


def test_a_clients_certificate_is_no_servers(authority: IssuedCertificate) -> None:
    now = datetime.now(UTC)
    authority = new_authority("test", now)
    client = issue(authority, Subject("app", "clients"), [], 1, now)
    assert str(read_certificate(client.certificate).names) == "no name"
    assert not accepted(client_context(authority), server_context(client), "app")


def test_a_client_trusts_its_own_authority_alone() -> None:
    now = datetime.now(UTC)
    ours, other = new_authority("test", now), new_authority("test", now)
    node = server_context(issue(ours, NODE, ["localhost"], 1, now))
    assert accepted(client_context(ours), node, "localhost")
    assert not accepted(client_context(other), node, "localhost")


def test_no_key_shows_where_an_issued_one_is_printed(authority: IssuedCertificate) -> None:
    assert "PRIVATE" in authority.key and "PRIVATE" not in repr(authority)


def test_what_is_no_certificate_is_refused() -> None:
    with pytest.raises(ValueError, match="PEM"):
        read_certificate("none")

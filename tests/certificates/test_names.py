"""Our matching of names against OpenSSL's own, and against what is written down."""

import functools
from datetime import UTC, datetime

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.serialization import Encoding, load_pem_private_key
from hypothesis import given, settings
from hypothesis import strategies as st

from earshot.certificates.authority import IssuedCertificate, Subject, issue, new_authority
from earshot.certificates.names import SubjectNames
from tests.certificates.handshakes import accepted, client_context, server_context
from tests.certificates.made import general_name

NOW = datetime.now(UTC)


@pytest.mark.parametrize(
    ("names", "host", "is_covered"),
    [
        (["kafka.example.com"], "kafka.example.com", True),
        (["kafka.example.com"], "KAFKA.Example.com", True),
        (["Kafka.Example.com"], "kafka.example.com", True),
        (["kafka.example.com"], "kafka.example.com.", False),
        (["kafka.example.com"], "b1.kafka.example.com", False),
        (["*.example.com"], "b1.example.com", True),
        (["*.example.com"], "example.com", False),
        (["*.example.com"], "a.b1.example.com", False),
        (["*.example.com"], "b_1.example.com", False),
        (["b_1.example.com"], "b_1.example.com", False),
        (["-b.example.com"], "-b.example.com", False),
        (["10.1"], "10.1", False),
        (["10.1.1.1.1"], "10.1.1.1.1", True),
        (["b*.example.com"], "b1.example.com", False),
        (["*.com"], "example.com", False),
        (["*.xn--bcher-kva.example"], "b1.xn--bcher-kva.example", True),
        (["*.example.com"], "xn--bcher-kva.example.com", True),
        (["localhost"], "localhost", True),
        (["localhost"], "127.0.0.1", False),
        (["127.0.0.1"], "127.0.0.1", True),
        (["127.0.0.1"], "localhost", False),
        (["::1"], "0:0:0:0:0:0:0:1", True),
        (["10.0.0.1"], "10.0.0.2", False),
        ([], "localhost", False),
    ],
)
def test_a_host_is_covered_or_not(names: list[str], host: str, is_covered: bool) -> None:
    assert SubjectNames.of_hosts(names).covers(host) is is_covered


def test_a_name_that_only_looks_like_an_address_covers_none() -> None:
    assert not SubjectNames(dns=("10.0.0.1",)).covers("10.0.0.1")


@pytest.mark.parametrize("name", ["kafka.example.com.", "kafka..com", ".example.com"])
def test_a_name_with_an_empty_label_is_covered_by_none(name: str) -> None:
    assert not SubjectNames(dns=(name,)).covers(name)


def test_the_names_are_told_in_one_line() -> None:
    assert str(SubjectNames.of_hosts(["B1", "b1", "::1"])) == "b1, ::1"
    assert str(SubjectNames()) == "no name"


LABELS = st.sampled_from(["a", "b1", "A", "x-y", "xn--bcher-kva", "kafka"])
HOSTS = st.one_of(
    st.lists(LABELS, min_size=1, max_size=4).map(".".join),
    st.lists(LABELS, min_size=1, max_size=3).map(lambda them: ".".join(them) + "."),
    st.sampled_from(["10.0.0.1", "10.0.0.2", "::1", "0:0::1", "2001:db8::1"]),
)
PATTERNS = st.one_of(
    HOSTS,
    st.lists(LABELS, min_size=1, max_size=3).map(lambda them: ".".join(["*", *them])),
    st.lists(LABELS, min_size=1, max_size=2).map(lambda them: ".".join(["b*", *them])),
    st.lists(LABELS, min_size=1, max_size=2).map(lambda them: ".".join([them[0], "*", *them])),
)


@functools.cache
def authority() -> IssuedCertificate:
    return new_authority("test", NOW)


@functools.cache
def plain() -> IssuedCertificate:
    return issue(authority(), Subject("node-1", "nodes"), ["localhost"], 30, NOW)


def with_names(patterns: tuple[str, ...]) -> IssuedCertificate:
    """As the authority would issue it, but with names that it never writes.

    Without any it has a common name, `kafka`, and no such extension.
    """
    model = x509.load_pem_x509_certificate(plain().certificate.encode())
    root = x509.load_pem_x509_certificate(authority().certificate.encode())
    builder = (
        x509.CertificateBuilder()
        .subject_name(x509.Name.from_rfc4514_string("" if patterns else "CN=kafka"))
        .issuer_name(root.subject)
        .public_key(model.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(model.not_valid_before_utc)
        .not_valid_after(model.not_valid_after_utc)
    )
    if patterns:
        names = x509.SubjectAlternativeName([general_name(pattern) for pattern in patterns])
        builder = builder.add_extension(names, critical=True)
    key = load_pem_private_key(authority().key.encode(), None)
    certificate = builder.sign(key, hashes.SHA256())  # type: ignore[arg-type]
    return IssuedCertificate(certificate.public_bytes(Encoding.PEM).decode(), plain().key)


@settings(max_examples=15, deadline=None)
@given(st.lists(PATTERNS, max_size=3), st.lists(HOSTS, min_size=1, max_size=6))
def test_openssl_agrees(patterns: list[str], hosts: list[str]) -> None:
    """On thousands of certificates, OpenSSL and Java judge in test_clients.py."""
    server, client = server_context(with_names(tuple(patterns))), client_context(authority())
    names = SubjectNames.of_hosts(patterns)
    for host in hosts:
        taken = accepted(client, server, host) and not host.endswith(".")  # Java takes no such host
        assert names.covers(host) is taken, (patterns, host)

"""What follows from certificates together: as whom Kafka knows who shows one, and its uses."""

from datetime import UTC, datetime

import pytest
from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID, ObjectIdentifier

from earshot.certificates.chain import chain, principal, uses
from tests.certificates.made import made

NOW = datetime(2026, 5, 4, tzinfo=UTC)


def subject(*parts: tuple[ObjectIdentifier, str]) -> x509.Name:
    return x509.Name([x509.NameAttribute(oid, value) for oid, value in parts])


@pytest.mark.parametrize(
    ("value", "printed"),
    [
        ("b1.example.com", "b1.example.com"),
        ("Example, Inc.", "Example\\, Inc."),
        ("a+b=c", "a\\+b\\=c"),
        ('<#">', '\\<\\#\\"\\>'),
        ("a\\b", "a\\\\b"),
        ("$x'y/z|{}~^`[]_@:?!*()", "$x'y/z|{}~^`[]_@:?!*()"),
    ],
)
def test_a_subject_is_what_java_prints(value: str, printed: str) -> None:
    """Java's own answers: of `X500Principal.getName()` in Java 17."""
    name = subject((NameOID.ORGANIZATION_NAME, "E"), (NameOID.COMMON_NAME, value))
    assert principal(name) == f"CN={printed},O=E"


@pytest.mark.parametrize(
    "name",
    [
        subject(),
        subject((NameOID.COMMON_NAME, "a;User:b")),
        subject((NameOID.COMMON_NAME, "bücher")),
        subject((NameOID.COMMON_NAME, "a  b")),
        subject((NameOID.COMMON_NAME, " a")),
        subject((NameOID.EMAIL_ADDRESS, "a@example.com")),
        x509.Name(
            [
                x509.RelativeDistinguishedName(
                    [
                        x509.NameAttribute(NameOID.COMMON_NAME, "a"),
                        x509.NameAttribute(NameOID.ORGANIZATION_NAME, "b"),
                    ]
                )
            ]
        ),
    ],
)
def test_a_subject_that_kafka_may_call_otherwise_is_refused(name: x509.Name) -> None:
    with pytest.raises(ValueError, match="subject"):
        principal(name)


@pytest.mark.parametrize(
    ("named", "allowed"),
    [
        (None, (True, True)),
        ([ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE], (False, False)),
        ([ExtendedKeyUsageOID.SERVER_AUTH], (True, False)),
        ([ExtendedKeyUsageOID.CLIENT_AUTH], (False, True)),
        ([ExtendedKeyUsageOID.CODE_SIGNING], (False, False)),
    ],
)
def test_uses(named: list[ObjectIdentifier] | None, allowed: tuple[bool, bool]) -> None:
    assert uses(made("CN=a", NOW, uses=named).certificate) == allowed


def test_of_a_renewed_authority_the_certificate_that_ends_last_counts() -> None:
    old, new = (made("CN=root", NOW, authority=True, days=days, number=1) for days in (1, 900))
    own = made("CN=b1", NOW, old, hosts=["b1.example.com"])
    for trusted in ([old, new], [new, old]):
        path, missing = chain(own.certificate, [], [it.certificate for it in trusted])
        assert (path, missing) == ([own.certificate, new.certificate], "")

"""Creates the authority of a stack, and issues its certificates, as PEM.

Keys are ECDSA P-256 in PKCS #8, which Java, OpenSSL and Kafka's PEM stores can read.
"""

from __future__ import annotations

import contextlib
import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from earshot.certificates.names import SubjectNames
from earshot.errors import EarshotError
from earshot.listeners.security import principal

Key = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey


@dataclass(frozen=True)
class IssuedCertificate:
    """A certificate and its private key."""

    certificate: str
    key: str = field(repr=False)


@dataclass(frozen=True)
class Request:
    """A signing request (PKCS #10) and its private key."""

    text: str
    key: str = field(repr=False)


@dataclass(frozen=True)
class Subject:
    """The subject of a certificate, and the principal that Kafka derives from it."""

    name: str
    unit: str

    @property
    def principal(self) -> str:
        """Kafka's principal of a client with this subject, without `User:`."""
        return principal(self.name, self.unit)

    @property
    def _name(self) -> x509.Name:
        return x509.Name(  # RFC 2253 prints the last part first
            [
                x509.NameAttribute(NameOID.ORGANIZATIONAL_UNIT_NAME, self.unit),
                x509.NameAttribute(NameOID.COMMON_NAME, self.name),
            ]
        )


@dataclass(frozen=True)
class Certificate:
    """The public properties of a certificate."""

    names: SubjectNames
    not_before: datetime
    not_after: datetime
    fingerprint: str
    """SHA-256 of the certificate, as hex."""


def new_authority(stack: str, now: datetime) -> IssuedCertificate:
    """A new authority for the stack ``stack``, valid for ten years."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = Subject(f"earshot {stack}"[:64], "authority")._name
    certificate = (
        _builder(name, name, key, now, days=3650)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(certificates=True), critical=True)
        .sign(key, hashes.SHA256())
    )
    return _issued(certificate, key)


def issue(
    authority: IssuedCertificate,
    subject: Subject,
    hosts: Iterable[str],
    days: int,
    now: datetime,
    *,
    client: bool = True,
) -> IssuedCertificate:
    """A certificate for ``subject`` with exactly ``hosts`` as its names, valid for ``days`` days.

    With hosts it is for servers and, unless ``client`` is false, for clients; without hosts only
    for clients.
    """
    key = ec.generate_private_key(ec.SECP256R1())
    root = x509.load_pem_x509_certificate(authority.certificate.encode())
    root_key = load_pem_private_key(authority.key.encode(), None)
    assert isinstance(root_key, ec.EllipticCurvePrivateKey)
    names = _general_names(SubjectNames.of_hosts(hosts))
    purposes = [ExtendedKeyUsageOID.CLIENT_AUTH] if client else []
    builder = _builder(subject._name, root.subject, key, now, days)
    if names:
        purposes.append(ExtendedKeyUsageOID.SERVER_AUTH)
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    public = root.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    issuer = x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(public)
    certificate = (
        builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage(purposes), critical=False)
        .add_extension(issuer, critical=False)
        .sign(root_key, hashes.SHA256())
    )
    return _issued(certificate, key)


def new_request(subject: Subject, names: SubjectNames) -> Request:
    """A new key, and a signing request for a certificate with exactly ``names``."""
    key = ec.generate_private_key(ec.SECP256R1())
    request = (
        x509.CertificateSigningRequestBuilder()
        .subject_name(subject._name)
        .add_extension(x509.SubjectAlternativeName(_general_names(names)), critical=False)
        .sign(key, hashes.SHA256())
    )
    return Request(request.public_bytes(Encoding.PEM).decode(), pem_of(key))


def read_certificate(pem: str) -> Certificate:
    """The first certificate in ``pem``. Raises ValueError if there is none."""
    certificate = x509.load_pem_x509_certificate(pem.encode())
    names = SubjectNames()
    with contextlib.suppress(x509.ExtensionNotFound):
        subject = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        addresses = map(str, subject.get_values_for_type(x509.IPAddress))
        names = SubjectNames(tuple(subject.get_values_for_type(x509.DNSName)), tuple(addresses))
    fingerprint = certificate.fingerprint(hashes.SHA256()).hex()
    return Certificate(
        names, certificate.not_valid_before_utc, certificate.not_valid_after_utc, fingerprint
    )


def ends(pem: str) -> datetime:
    """The earliest expiry of the certificates in ``pem``. Raises ValueError if there are none."""
    chain = x509.load_pem_x509_certificates(pem.encode())
    return min(certificate.not_valid_after_utc for certificate in chain)


def is_valid_at(pem: str, now: datetime) -> bool:
    """True if ``now`` is in the validity period of the first certificate in ``pem``."""
    certificate = read_certificate(pem)
    return certificate.not_before <= now < certificate.not_after


def check_validity(pem: str, place: str, now: datetime, renewal: str) -> None:
    """Raises EarshotError if the authority in ``place`` with the certificate ``pem`` is not valid
    ``now``, because clients would refuse every certificate that it issues.

    ``renewal`` is the fix if the clock of this machine is right.
    """
    if is_valid_at(pem, now):
        return
    authority = read_certificate(pem)
    first, last = (f"{time:%Y-%m-%d %H:%M}" for time in (authority.not_before, authority.not_after))
    raise EarshotError(
        f"the authority in {place}",
        observed=f"is valid from {first} to {last} UTC, and by the clock of this machine it is "
        f"{now:%Y-%m-%d %H:%M}: clients would refuse the certificates that are due",
        allowed="an authority that is valid now",
        remedy=f"set the clock of this machine right; if it is right, {renewal}",
    )


def is_pair(issued: IssuedCertificate) -> bool:
    """True if ``issued`` contains a certificate and its matching private key."""
    try:
        certificate = x509.load_pem_x509_certificate(issued.certificate.encode())
        key = load_pem_private_key(issued.key.encode(), None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        return False
    return key.public_key() == certificate.public_key()


def is_issued_by(pem: str, authority: str) -> bool:
    """True if the authority with the certificate ``authority`` signed the first one in ``pem``."""
    root = x509.load_pem_x509_certificate(authority.encode())
    try:
        x509.load_pem_x509_certificate(pem.encode()).verify_directly_issued_by(root)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, now: datetime, days: int
) -> x509.CertificateBuilder:
    public = key.public_key()
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=5))  # clocks of clients may be behind
        .not_valid_after(now + timedelta(days=days))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
    )


def _general_names(names: SubjectNames) -> list[x509.GeneralName]:
    general_names: list[x509.GeneralName] = [x509.DNSName(name) for name in names.dns]
    return general_names + [
        x509.IPAddress(ipaddress.ip_address(address)) for address in names.addresses
    ]


def _usage(certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not certificates,
        key_cert_sign=certificates,
        crl_sign=certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _issued(certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> IssuedCertificate:
    return IssuedCertificate(certificate.public_bytes(Encoding.PEM).decode(), pem_of(key))


def pem_of(key: Key) -> str:
    """``key`` as PKCS #8 in PEM, without a password."""
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()

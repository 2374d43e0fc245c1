"""Certificates that others might have made, for tests."""

import ipaddress
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    KeySerializationEncryption,
    NoEncryption,
    PrivateFormat,
)
from cryptography.x509.oid import ExtendedKeyUsageOID


@dataclass(frozen=True)
class Made:
    """A certificate and its key."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    @property
    def pem(self) -> str:
        return self.certificate.public_bytes(Encoding.PEM).decode()

    def key_pem(self, password: str = "", form: PrivateFormat = PrivateFormat.PKCS8) -> str:
        how: KeySerializationEncryption = NoEncryption()
        if password:
            how = BestAvailableEncryption(password.encode())
        return self.key.private_bytes(Encoding.PEM, form, how).decode()


@cache
def key(number: int = 0) -> ec.EllipticCurvePrivateKey:
    """The same for the same ``number``."""
    return ec.generate_private_key(ec.SECP256R1())


def made(
    subject: str,
    now: datetime,
    issuer: Made | None = None,
    *,
    hosts: Sequence[str] = (),
    authority: bool = False,
    days: int = 90,
    uses: Iterable[x509.ObjectIdentifier] | None = (
        ExtendedKeyUsageOID.SERVER_AUTH,
        ExtendedKeyUsageOID.CLIENT_AUTH,
    ),
    number: int = 0,
    signs: bool = True,
) -> Made:
    """One called ``subject`` (RFC 4514), by itself where there is no ``issuer``.

    Where it never ``signs``, its key usage has key encipherment alone, which Java refuses.
    """
    own = key(number)
    name = x509.Name.from_rfc4514_string(subject)
    builder = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(issuer.certificate.subject if issuer else name)
        .public_key(own.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now)
        .not_valid_after(now + timedelta(days=days))
        .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
    )
    if hosts:
        builder = builder.add_extension(
            x509.SubjectAlternativeName(list(map(_general, hosts))), critical=False
        )
    if uses is not None and not authority:
        builder = builder.add_extension(x509.ExtendedKeyUsage(list(uses)), critical=False)
    if not signs:
        builder = builder.add_extension(
            x509.KeyUsage(
                digital_signature=False,
                key_encipherment=True,
                content_commitment=False,
                data_encipherment=False,
                key_agreement=False,
                key_cert_sign=False,
                crl_sign=False,
                encipher_only=False,
                decipher_only=False,
            ),
            critical=True,
        )
    return Made(builder.sign(issuer.key if issuer else own, hashes.SHA256()), own)


def _general(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)

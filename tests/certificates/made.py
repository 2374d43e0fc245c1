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


USAGES = (
    *("digital_signature", "content_commitment", "key_encipherment", "data_encipherment"),
    *("key_agreement", "key_cert_sign", "crl_sign", "encipher_only", "decipher_only"),
)


def key_usage(*allowed: str) -> x509.KeyUsage:
    """The extension that allows exactly the usages ``allowed``."""
    return x509.KeyUsage(**{usage: usage in allowed for usage in USAGES})


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
    """A certificate for ``subject`` (RFC 4514), self-signed without an ``issuer``.

    Without ``signs``, its key usage is key encipherment alone, which Java refuses.
    """
    own_key = key(number)
    name = x509.Name.from_rfc4514_string(subject)
    builder = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(issuer.certificate.subject if issuer else name)
        .public_key(own_key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now)
        .not_valid_after(now + timedelta(days=days))
        .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
    )
    if hosts:
        names = x509.SubjectAlternativeName([general_name(host) for host in hosts])
        builder = builder.add_extension(names, critical=False)
    if uses is not None and not authority:
        builder = builder.add_extension(x509.ExtendedKeyUsage(list(uses)), critical=False)
    if not signs:
        builder = builder.add_extension(key_usage("key_encipherment"), critical=True)
    return Made(builder.sign(issuer.key if issuer else own_key, hashes.SHA256()), own_key)


def general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)

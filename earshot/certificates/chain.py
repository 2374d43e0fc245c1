"""Properties of certificates: the chain to an authority, permitted uses, and Kafka's principal.

Sources: RFC 5280, sections 4.2.1 and 6.1; Java's `X500Principal.getName`, which prints RFC 2253 and
which `DefaultKafkaPrincipalBuilder` takes.
"""

import re
from collections.abc import Sequence
from datetime import datetime

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_WORDS = {
    NameOID.COMMON_NAME: "CN",
    NameOID.COUNTRY_NAME: "C",
    NameOID.LOCALITY_NAME: "L",
    NameOID.STATE_OR_PROVINCE_NAME: "ST",
    NameOID.ORGANIZATION_NAME: "O",
    NameOID.ORGANIZATIONAL_UNIT_NAME: "OU",
    NameOID.STREET_ADDRESS: "STREET",
    NameOID.DOMAIN_COMPONENT: "DC",
    NameOID.USER_ID: "UID",
}
"""Attributes that Java prints with a name; it prints others as numbers and bytes."""
_PLAIN = re.compile(r"[!-:<-~]+(?: [!-:<-~]+)*", re.ASCII)
"""Texts in a principal, without semicolons, as Kafka splits `super.users` at them."""
_SPECIAL = re.compile(r'([,=+<>#"\\])')


def chain(
    certificate: x509.Certificate,
    intermediates: Sequence[x509.Certificate],
    trusted: Sequence[x509.Certificate],
) -> tuple[list[x509.Certificate], str]:
    """The chain from ``certificate``, each before its issuer's, and the missing subject.

    If the chain is complete, its last certificate is a ``trusted`` authority's, and the missing
    subject is an empty text.
    """
    path = [certificate]
    while True:
        last_certificate = path[-1]
        if last_certificate.subject == last_certificate.issuer:
            return (
                path,
                "" if last_certificate in trusted else last_certificate.subject.rfc4514_string(),
            )
        issuers = [
            candidate
            for candidate in (*trusted, *intermediates)
            if candidate not in path and _has_signed(candidate, last_certificate)
        ]
        if not issuers:
            return path, last_certificate.issuer.rfc4514_string()
        # a renewed authority may have two certificates, and clients try both: take the later one
        path.append(
            max(issuers, key=lambda issuer: (is_authority(issuer), issuer in trusted, _end(issuer)))
        )


def is_authority(certificate: x509.Certificate) -> bool:
    """True if the certificate's basic constraints let it issue others."""
    try:
        return certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    except x509.ExtensionNotFound:
        return False


def uses(certificate: x509.Certificate) -> tuple[bool, bool]:
    """Whether servers and whether clients may use the certificate."""
    try:
        usages = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    except x509.ExtensionNotFound:
        return True, True
    # OpenSSL accepts anyExtendedKeyUsage for neither
    return ExtendedKeyUsageOID.SERVER_AUTH in usages, ExtendedKeyUsageOID.CLIENT_AUTH in usages


def principal(subject: x509.Name) -> str:
    """Kafka's principal of a certificate with ``subject``, without `User:`.

    Raises ValueError if it is empty or not predictable.
    """
    rdn_texts = []
    for rdn in reversed(subject.rdns):
        attribute, *other_attributes = rdn
        value = str(attribute.value)
        if other_attributes or attribute.oid not in _WORDS or not _PLAIN.fullmatch(value):
            raise ValueError(
                f"{subject.rfc4514_string()}: Kafka's name for a subject is predictable only for "
                f"plain text in {', '.join(_WORDS.values())}"
            )
        escaped = _SPECIAL.sub(r"\\\1", value)
        rdn_texts.append(f"{_WORDS[attribute.oid]}={escaped}")
    if not rdn_texts:
        raise ValueError("its subject is empty, and Kafka knows nodes by it")
    return ",".join(rdn_texts)


def _end(certificate: x509.Certificate) -> datetime:
    return certificate.not_valid_after_utc


def _has_signed(issuer: x509.Certificate, certificate: x509.Certificate) -> bool:
    if certificate.issuer != issuer.subject:
        return False
    try:
        certificate.verify_directly_issued_by(issuer)
    except InvalidSignature:
        return False
    except (ValueError, TypeError, UnsupportedAlgorithm):
        return _is_weak(certificate)  # the verifier checks the signature
    return True


def _is_weak(certificate: x509.Certificate) -> bool:
    """True if the library no longer verifies the signature's digest."""
    try:
        digest = certificate.signature_hash_algorithm
    except UnsupportedAlgorithm:
        return True
    return digest is not None and digest.name in ("md5", "sha1")

"""Decides whether TLS clients accept a chain of certificates, except for host names and times.

OpenSSL decides by a handshake in memory, at the default security level of librdkafka and Python.
`_refused_by_java` checks what OpenSSL accepts and Java refuses. Sources: RFC
5280, sections 4.2.1 and 6.1; `man SSL_CTX_set_security_level`; `jdk.tls.disabledAlgorithms` and
`jdk.certpath.disabledAlgorithms` in Java's `java.security`.
"""

from __future__ import annotations

import ssl
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import ExtendedKeyUsageOID

from earshot.certificates.chain import is_authority
from earshot.certificates.shown import Refusal

_LEVEL: Final = 2
"""OpenSSL's default since release 3.2, and that of distributions before: 112 bits of security."""
_RSA_BITS: Final = 2048
"""The minimum at that level."""
_NO_CHECK_TIME: Final = 0x200000
"""X509_V_FLAG_NO_CHECK_TIME, which Python's ssl does not name."""
_POLICY_CHECK: Final = 0x80
"""X509_V_FLAG_POLICY_CHECK, which Java always does."""
_CURVES: Final = ("secp256r1", "secp384r1", "secp521r1")
"""Curves that Java supports for certificates in TLS."""
_DIGESTS: Final = ("sha256", "sha384", "sha512")
_KEYS: Final = f"RSA with at least {_RSA_BITS} bits, or EC on P-256, P-384 or P-521"
_SIDES: Final = {
    ExtendedKeyUsageOID.SERVER_AUTH: "serverAuth",
    ExtendedKeyUsageOID.CLIENT_AUTH: "clientAuth",
}
_KNOWN_EXTENSIONS: Final = (
    x509.BasicConstraints,
    x509.KeyUsage,
    x509.ExtendedKeyUsage,
    x509.SubjectAlternativeName,
    x509.NameConstraints,
    x509.CertificatePolicies,
    x509.PolicyConstraints,
    x509.InhibitAnyPolicy,
)
"""Extensions that verifiers know, and that may be critical."""
Certificates = Sequence[x509.Certificate]
"""A path: each certificate before its issuer's."""


def refusal(
    store: str,
    trusted: Certificates,
    path: Certificates,
    *,
    servers: bool = True,
    clients: bool = True,
) -> Refusal | None:
    """Why clients or other nodes refuse a node's certificate; None if they accept it.

    ``store`` is the node's key and chain as PEM; ``path`` are the certificates from the node's to
    a self-signed one in ``trusted``. ``servers`` and ``clients`` are the roles in which the node
    uses its certificate.
    """
    # Java's path ends at the first trusted certificate
    last_index = next(place for place, certificate in enumerate(path) if certificate in trusted)
    if (refused := next(_refused_by_java(path[: last_index + 1]), None)) is not None:
        return refused
    flags = _NO_CHECK_TIME | (_POLICY_CHECK if path[last_index] is path[-1] else 0)
    reason, message = _refused_by_openssl(store, trusted, flags, servers=servers, clients=clients)
    if not message:
        return None
    explain = _BY_REASON.get(reason)
    return (explain and explain(path)) or Refusal(
        f"OpenSSL refuses its certificate: {message}",
        "a chain that every client accepts",
        "have it issued again; `openssl verify -purpose sslserver` says more",
    )


def _refused_by_openssl(
    store: str, trusted: Certificates, flags: int, *, servers: bool, clients: bool
) -> tuple[int | str, str]:
    """The reason and message of OpenSSL's refusal; the message is empty if it accepts the chain."""
    authorities = b"".join(authority.public_bytes(Encoding.DER) for authority in trusted)
    asking = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    asking.check_hostname = False
    asking.verify_mode = ssl.CERT_REQUIRED if servers else ssl.CERT_NONE
    answering = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    answering.verify_mode = ssl.CERT_REQUIRED if clients else ssl.CERT_NONE
    try:
        with tempfile.TemporaryDirectory() as folder:  # readable only by its owner
            file = Path(folder, "store.pem")
            file.write_text(store)
            for context in (asking, answering):
                context.set_ciphers(f"DEFAULT:@SECLEVEL={_LEVEL}")
                context.verify_flags |= flags
                context.load_verify_locations(cadata=authorities)
                context.load_cert_chain(file)
        to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
        client = asking.wrap_bio(to_client, to_server)
        server = answering.wrap_bio(to_server, to_client, server_side=True)
        for side in (client, server, client, server):
            _step(side)
    except ssl.SSLCertVerificationError as error:
        return error.verify_code, error.verify_message
    except ssl.SSLError as error:
        return error.reason or "", error.reason or str(error)
    return "", ""


def _step(side: ssl.SSLObject) -> None:
    try:
        side.do_handshake()
    except ssl.SSLWantReadError:
        return


def _refused_by_java(path: Certificates) -> Iterator[Refusal]:
    """Refusals of Java's verifier in Kafka that OpenSSL does not have."""
    node_certificate, anchor = path[0], path[-1]
    for certificate in path:
        key = certificate.public_key()
        if isinstance(key, ec.EllipticCurvePublicKey) and key.curve.name not in _CURVES:
            yield _weak_key(path, certificate, f"EC on {key.curve.name}")
    if node_certificate is not anchor:  # a trusted certificate itself is not checked
        usage = _usage(node_certificate)
        if usage is not None and not usage.digital_signature:
            yield _NO_SIGNATURE
        if anchor.version is x509.Version.v3 and not is_authority(anchor):
            yield _no_authority(path, anchor)
    if (signature := _badly_signed(path)) is not None:
        yield signature


_NO_SIGNATURE: Final = Refusal(
    "the key usage of its certificate lacks digitalSignature",
    "digitalSignature: in TLS 1.3 a node signs with its key",
    "have it issued with digitalSignature among its key usages, or without key usages",
)


def _weak_key(path: Certificates, certificate: x509.Certificate, kind: str) -> Refusal:
    remedy = "make such a key, and have a certificate issued for it"
    if certificate is not path[0]:
        remedy = "have the certificate issued by an authority with such a key"
    return Refusal(f"{_certificate(path, certificate)} has a key of {kind}", _KEYS, remedy)


def _weak_signature(path: Certificates, certificate: x509.Certificate) -> Refusal:
    digest = certificate.signature_hash_algorithm
    kind = digest.name.upper() if digest is not None else "a weak algorithm"
    return Refusal(
        f"{_certificate(path, certificate)} is signed with {kind}",
        "a signature with SHA-256, SHA-384 or SHA-512",
        "have it issued again with such a signature",
    )


def _no_authority(path: Certificates, certificate: x509.Certificate) -> Refusal:
    return Refusal(
        f"the basic constraints of {_certificate(path, certificate)} lack CA:TRUE",
        "CA:TRUE in every certificate that has issued another one",
        "have it issued with CA:TRUE, or the node's by an authority",
    )


def _too_small(path: Certificates) -> Refusal | None:
    for certificate in path:
        key = certificate.public_key()
        if isinstance(key, rsa.RSAPublicKey) and key.key_size < _RSA_BITS:
            return _weak_key(path, certificate, f"RSA with {key.key_size} bits")
    return None


def _badly_signed(path: Certificates) -> Refusal | None:
    for certificate in path[:-1]:
        digest = certificate.signature_hash_algorithm
        if digest is not None and digest.name not in _DIGESTS:
            return _weak_signature(path, certificate)
    return None


def _wrong_purpose(path: Certificates) -> Refusal | None:
    usage = _usage(path[0])
    if usage is not None and not usage.digital_signature:
        return _NO_SIGNATURE
    for certificate in path:
        try:
            uses = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
        except x509.ExtensionNotFound:
            continue
        if missing_sides := [name for side, name in _SIDES.items() if side not in uses]:
            return Refusal(
                f"the extended key usage of {_certificate(path, certificate)} lacks "
                f"{' and '.join(missing_sides)}",
                "serverAuth and clientAuth, or no extended key usage: nodes are both",
                "have it issued so, or the node's by another authority",
            )
    return None


def _no_signer(path: Certificates) -> Refusal | None:
    for certificate in path[1:]:
        usage = _usage(certificate)
        if usage is not None and not usage.key_cert_sign:
            return Refusal(
                f"the key usage of {_certificate(path, certificate)} lacks keyCertSign",
                "keyCertSign in every certificate that has issued another one",
                "have it issued with keyCertSign, or the node's by another authority",
            )
        # clients trust an authority of version 1 of X.509, which has no extensions
        is_old_root = certificate is path[-1] and certificate.version is not x509.Version.v3
        if not is_old_root and not is_authority(certificate):
            return _no_authority(path, certificate)
    return None


def _too_long(path: Certificates) -> Refusal | None:
    for place, certificate in enumerate(path):
        below = sum(issuer.subject != issuer.issuer for issuer in path[1:place])
        try:
            allowed = certificate.extensions.get_extension_for_class(x509.BasicConstraints).value
        except x509.ExtensionNotFound:
            continue
        if allowed.path_length is not None and below > allowed.path_length:
            return Refusal(
                f"{_certificate(path, certificate)} allows {allowed.path_length} authorities below "
                f"it (path length of its basic constraints), and the chain has {below}",
                "a chain that is no longer than its authorities allow",
                "have the node's certificate issued further up, or that authority's with a longer "
                "path length",
            )
    return None


def _unknown_extension(path: Certificates) -> Refusal | None:
    for certificate in path:
        for extension in certificate.extensions:
            if extension.critical and not isinstance(extension.value, _KNOWN_EXTENSIONS):
                return Refusal(
                    f"{_certificate(path, certificate)} has the critical extension "
                    f"{extension.oid.dotted_string}, which clients do not know",
                    "critical extensions of RFC 5280 alone",
                    "have it issued without that extension, or with the extension not critical",
                )
    return None


def _constrained(path: Certificates) -> Refusal | None:
    for certificate in path[1:]:
        try:
            certificate.extensions.get_extension_for_class(x509.NameConstraints)
        except x509.ExtensionNotFound:
            continue
        return Refusal(
            f"the name constraints of {_certificate(path, certificate)} forbid a name below it",
            "names that the authority may issue for",
            "have the node's certificate issued for such names alone, or by another authority",
        )
    return None


def _other_identifier(path: Certificates) -> Refusal | None:
    for certificate, issuer in zip(path, [*path[1:], path[-1]], strict=True):
        try:
            authority_identifier = certificate.extensions.get_extension_for_class(
                x509.AuthorityKeyIdentifier
            ).value
            own_identifier = issuer.extensions.get_extension_for_class(
                x509.SubjectKeyIdentifier
            ).value
        except x509.ExtensionNotFound:
            continue
        if authority_identifier.key_identifier not in (None, own_identifier.digest):
            return Refusal(
                f"the authority key identifier of {_certificate(path, certificate)} names another "
                f"key than that of {issuer.subject.rfc4514_string()}",
                "the issuer's subject key identifier, or none",
                "have it issued again",
            )
    return None


_BY_REASON: Final[Mapping[int | str, Callable[[Certificates], Refusal | None]]] = {
    "EE_KEY_TOO_SMALL": _too_small,
    "CA_KEY_TOO_SMALL": _too_small,
    "CA_MD_TOO_WEAK": _badly_signed,
    20: _other_identifier,
    24: _no_signer,
    25: _too_long,
    26: _wrong_purpose,
    34: _unknown_extension,
    47: _constrained,
    48: _constrained,
    66: _too_small,
    67: _too_small,
    68: _badly_signed,
    79: _no_signer,
}
"""Functions that explain OpenSSL's refusal, by its reason or X509_V_ERR number (x509_vfy.h)."""


def _certificate(path: Certificates, certificate: x509.Certificate) -> str:
    if certificate is path[0]:
        return "its certificate"
    return f"the certificate of {certificate.subject.rfc4514_string()}"


def _usage(certificate: x509.Certificate) -> x509.KeyUsage | None:
    try:
        return certificate.extensions.get_extension_for_class(x509.KeyUsage).value
    except x509.ExtensionNotFound:
        return None

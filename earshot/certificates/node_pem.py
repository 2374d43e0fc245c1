"""The user's own node certificates as PEM: reads them, matches keys, and derives principals.

Kafka's PEM key stores need RSA or EC keys in PKCS #8 and an ordered chain, the node's certificate
first (`DefaultSslEngineFactory`, KIP-651). `NodeCertificate.store` has that form.
"""

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_pem_private_key,
)

from earshot.certificates.authority import Key, pem_of, read_certificate
from earshot.certificates.chain import chain, principal, uses
from earshot.certificates.in_aws import read_in_aws
from earshot.certificates.places import is_in_aws, of_node
from earshot.certificates.shown import ShownCertificate
from earshot.certificates.verified import refusal
from earshot.errors import EarshotError
from earshot.files.reading import content_of

_UNUSABLE = (
    ValueError,
    UnsupportedAlgorithm,
    x509.DuplicateExtension,
    x509.InvalidVersion,
    x509.UnsupportedGeneralNameType,
)
_PUBLIC = (Encoding.DER, PublicFormat.SubjectPublicKeyInfo)


@dataclass(frozen=True)
class Files:
    """Places of PEM texts (see `earshot.certificates.places`).

    The places of certificates and keys may contain `NODE`.
    """

    certificate: str
    key: str
    authority: str
    password: str = ""
    """Place of the keys' password; empty without one."""
    region: str = ""
    """AWS region; empty for the environment's."""


@dataclass(frozen=True)
class NodeCertificate:
    """A node's certificate, and the principal that Kafka derives from it."""

    shown: ShownCertificate
    principal: str
    store: str = field(repr=False)
    """Key and chain in the form of Kafka's PEM key stores."""


@dataclass(frozen=True)
class NodeCertificates:
    """The certificates of all nodes by id, and those of the trusted authorities as PEM."""

    nodes: Mapping[int, NodeCertificate]
    authority: str


def read_certificates(files: Files, nodes: Iterable[int]) -> NodeCertificates:
    """Reads the certificates of ``nodes`` (ids) from ``files``.

    Raises EarshotError if a place cannot be read or its text cannot be used.
    """
    own_places = {id: (of_node(files.certificate, id), of_node(files.key, id)) for id in nodes}
    secret = {files.password, *(key for _, key in own_places.values())}
    places = (
        files.authority,
        files.password,
        *(place for two in own_places.values() for place in two),
    )
    texts = _texts(filter(None, dict.fromkeys(places)), secret, files.region)
    trusted = _certificates(files.authority, texts)
    password = texts[files.password].strip() if files.password else b""
    certificates = {id: read_node(*own_places[id], texts, password, trusted) for id in own_places}
    return NodeCertificates(certificates, "".join(map(_pem, trusted)))


def read_node(
    certificate: str,
    key: str,
    texts: Mapping[str, bytes],
    password: bytes,
    trusted: Sequence[x509.Certificate],
) -> NodeCertificate:
    """The node's certificate and key at the places ``certificate`` and ``key``.

    ``texts`` are the texts by place. Raises EarshotError if one cannot be used.
    """
    own_certificate, *intermediates = _certificates(certificate, texts)
    if key == certificate and b"PRIVATE KEY" not in texts[key]:
        raise EarshotError(
            key,
            observed="holds no private key, and security.tls.from.key is not set",
            allowed="certificate and key in one place, or `key` with the place of the key",
            remedy="set security.tls.from.key, or write the key into the same place",
        )
    private = _key(key, texts[key], password)
    try:
        public = own_certificate.public_key().public_bytes(*_PUBLIC)
        path, missing_issuer = chain(own_certificate, intermediates, trusted)
        for_servers, for_clients = uses(own_certificate)
        names = read_certificate(_pem(own_certificate)).names
        name = principal(own_certificate.subject)
    except _UNUSABLE as reason:
        observed = f"holds a certificate that cannot be used ({reason})"
        raise EarshotError(certificate, observed=observed, remedy="have it issued again") from None
    if private.public_key().public_bytes(*_PUBLIC) != public:
        observed = f"holds another key than that of the first certificate in {certificate}"
        allowed = "the key that the certificate was issued for"
        raise EarshotError(key, observed=observed, allowed=allowed)
    sent_certificates = [
        certificate_sent
        for certificate_sent in path
        if certificate_sent is own_certificate
        or certificate_sent.subject != certificate_sent.issuer
    ]
    store, refused = pem_of(private) + "".join(map(_pem, sent_certificates)), None
    if not missing_issuer:
        refused = refusal(store, trusted, path, servers=for_servers, clients=for_clients)
    shown = ShownCertificate(
        names,
        max(certificate_sent.not_valid_before_utc for certificate_sent in path),
        min(certificate_sent.not_valid_after_utc for certificate_sent in path),
        hashlib.sha256(public).hexdigest(),
        missing_issuer,
        for_servers,
        for_clients,
        refused,
    )
    return NodeCertificate(shown, name, store)


def _texts(places: Iterable[str], secret: Collection[str], region: str) -> dict[str, bytes]:
    """The text at each of ``places``. Raises EarshotError."""
    remedy, place_list = "put it there, or correct security.tls.from", list(places)
    texts = {
        place: content_of(Path(place), place, remedy)
        for place in place_list
        if not is_in_aws(place)
    }
    # sorted, as results are cached by arguments
    for place, text in read_in_aws(tuple(sorted(filter(is_in_aws, place_list))), region).items():
        if place in secret and not text.encrypted:
            raise EarshotError(
                place,
                observed="is a parameter of the type String, which SSM does not encrypt",
                allowed="the type SecureString for keys and passwords",
            )
        texts[place] = text.content
    return texts


def _certificates(place: str, texts: Mapping[str, bytes]) -> list[x509.Certificate]:
    try:
        return x509.load_pem_x509_certificates(texts[place])
    except _UNUSABLE:
        observed = "holds no certificate that can be read"
        allowed = "PEM: -----BEGIN CERTIFICATE-----"
        raise EarshotError(place, observed=observed, allowed=allowed) from None


def _key(place: str, text: bytes, password: bytes) -> Key:
    is_encrypted = b"ENCRYPTED" in text
    if is_encrypted and not password:
        observed = "holds a key that is encrypted, and no password is given"
        allowed = "a key without a password, or the place of it as security.tls.from.password"
        raise EarshotError(place, observed=observed, allowed=allowed)
    try:
        key = load_pem_private_key(text, password if is_encrypted else None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        observed = "holds no private key that can be read"
        if is_encrypted:
            observed = "holds a key that the given password does not open"
        allowed = "PEM: -----BEGIN PRIVATE KEY-----"
        raise EarshotError(place, observed=observed, allowed=allowed) from None
    if not isinstance(key, (rsa.RSAPrivateKey, ec.EllipticCurvePrivateKey)):
        observed = "holds a key of a kind that Kafka does not read from PEM"
        raise EarshotError(place, observed=observed, allowed="a key of RSA or EC")
    return key


def _pem(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(Encoding.PEM).decode()

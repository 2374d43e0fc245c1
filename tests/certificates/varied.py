"""Chains of certificates with every property that a verifier may dislike, made by chance."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from tests.certificates.made import key_usage

HOST = "b1.kafka.example.com"
SERVER, CLIENT = ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH
KEYS: dict[str, Callable[[], Any]] = {
    "p256": lambda: ec.generate_private_key(ec.SECP256R1()),
    "p384": lambda: ec.generate_private_key(ec.SECP384R1()),
    "p521": lambda: ec.generate_private_key(ec.SECP521R1()),
    "p224": lambda: ec.generate_private_key(ec.SECP224R1()),
    "p192": lambda: ec.generate_private_key(ec.SECP192R1()),
    "k256": lambda: ec.generate_private_key(ec.SECP256K1()),
    "bp256": lambda: ec.generate_private_key(ec.BrainpoolP256R1()),
    "rsa1024": lambda: rsa.generate_private_key(65537, 1024),
    "rsa2048": lambda: rsa.generate_private_key(65537, 2048),
    "rsa3072": lambda: rsa.generate_private_key(65537, 3072),
    "ed25519": ed25519.Ed25519PrivateKey.generate,
}
USAGES = {
    "signature": ("digital_signature",),
    "encipherment": ("key_encipherment",),
    "agreement": ("key_agreement",),
    "signature+encipherment": ("digital_signature", "key_encipherment"),
    "certificates": ("key_cert_sign", "crl_sign"),
    "revocations": ("crl_sign",),
}


@dataclass(frozen=True)
class Form:
    """What one certificate of a chain has."""

    key: str = "p256"
    digest: str = "SHA256"
    """Of its own signature, by its issuer."""
    pss: bool = False
    authority: bool | None = None
    """Of its basic constraints; None: it has none."""
    length: int | None = None
    usage: str = ""
    uses: tuple[x509.ObjectIdentifier, ...] | None = None
    uses_critical: bool = False
    identifiers: str = "none"
    """`none`, `both`, `own` (of the subject alone), `wrong` (the issuer's is another's)."""
    permitted: str = ""
    excluded: str = ""
    unknown: str = ""
    """`critical` or `harmless`."""
    policy: bool = False
    first_version: bool = False
    """Of X.509, which knows no extensions."""


@dataclass(frozen=True)
class Chain:
    """A chain from a node's own certificate up to a root, in PEM."""

    about: str
    forms: Sequence[Form]
    certificates: Sequence[x509.Certificate] = field(repr=False)
    key: str = field(repr=False)
    trusted: Sequence[x509.Certificate] = field(repr=False)

    @property
    def sent(self) -> str:
        shown = [
            certificate
            for certificate in self.certificates
            if certificate.subject != certificate.issuer
        ]
        return "".join(map(pem, shown or self.certificates))


def pem(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(Encoding.PEM).decode()


@cache
def key(kind: str, number: int) -> Any:
    """The same for the same arguments: keys of RSA take long."""
    return KEYS[kind]()


LEAF = Form(authority=False, usage="signature+encipherment", uses=(SERVER, CLIENT))
ISSUER = Form(authority=True, usage="certificates", identifiers="both")
_LEAF_CHANGES: dict[str, dict[str, Any]] = {
    "leaf: no basic constraints": {"authority": None},
    "leaf: is an authority": {"authority": True},
    "leaf: no key usage": {"usage": ""},
    "leaf: signature alone": {"usage": "signature"},
    "leaf: encipherment alone": {"usage": "encipherment"},
    "leaf: agreement alone": {"usage": "agreement"},
    "leaf: signs certificates alone": {"usage": "certificates"},
    "leaf: no extended usage": {"uses": None},
    "leaf: any extended usage": {"uses": (ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE,)},
    "leaf: both and another use, critical": {
        "uses": (SERVER, CLIENT, ExtendedKeyUsageOID.CODE_SIGNING),
        "uses_critical": True,
    },
    "leaf: for servers alone": {"uses": (SERVER,)},
    "leaf: for clients alone": {"uses": (CLIENT,)},
    "leaf: identifiers": {"identifiers": "both"},
    "leaf: its own identifier alone": {"identifiers": "own"},
    "leaf: another authority's identifier": {"identifiers": "wrong"},
    "leaf: unknown critical extension": {"unknown": "critical"},
    "leaf: unknown extension": {"unknown": "harmless"},
}
_ISSUER_CHANGES: dict[str, dict[str, Any]] = {
    "no identifiers": {"identifiers": "none"},
    "no key usage": {"usage": ""},
    "signs no certificates": {"usage": "revocations"},
    "no basic constraints": {"authority": None},
    "is no authority": {"authority": False},
    "length 0": {"length": 0},
    "length 1": {"length": 1},
    "length 5": {"length": 5},
    "for servers alone": {"uses": (SERVER,)},
    "for both": {"uses": (SERVER, CLIENT)},
    "for mail alone": {"uses": (ExtendedKeyUsageOID.EMAIL_PROTECTION,)},
    "for any use": {"uses": (ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE,)},
    "names permitted": {"permitted": "example.com"},
    "other names permitted": {"permitted": "example.org"},
    "names excluded": {"excluded": "kafka.example.com"},
    "unknown critical extension": {"unknown": "critical"},
    "unknown extension": {"unknown": "harmless"},
    "needs a policy": {"policy": True},
    "version 1": {"first_version": True},
}
_DIGESTS = ("SHA1", "SHA224", "SHA384", "SHA512")


def changes(depth: int) -> dict[str, tuple[int, dict[str, Any]]]:
    """By a name, which certificate of a chain with ``depth`` issuers is changed, and how."""
    found = {name: (0, change) for name, change in _LEAF_CHANGES.items()}
    for place in range(depth + 1):
        who = "leaf" if place == 0 else "root" if place == depth else f"middle {place}"
        for kind in KEYS:
            if place or kind != "ed25519":  # Kafka reads no such key from PEM
                found[f"{who}: key {kind}"] = (place, {"key": kind})
        for digest in _DIGESTS:
            found[f"{who}: signed with {digest}"] = (place, {"digest": digest})
        found[f"{who}: signed with PSS"] = (place, {"pss": True})
        if place:
            for name, change in _ISSUER_CHANGES.items():
                found[f"{who}: {name}"] = (place, change)
    return found


def chain_of(forms: Sequence[Form], about: str, *, all_trusted: bool = False) -> Chain:
    """The chain that ``forms`` describe, the leaf first; of one alone it is its own issuer."""
    keys = [key(form.key, place) for place, form in enumerate(forms)]
    names = [_name("b1" if not place else f"authority {place}") for place in range(len(forms))]
    made: list[x509.Certificate] = []
    for place, form in enumerate(forms):
        above = min(place + 1, len(forms) - 1)
        made.append(
            _certificate(form, names[place], names[above], keys[place], keys[above], not place)
        )
    private = keys[0].private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    return Chain(about, forms, made, private, made[1:] if all_trusted else made[-1:])


def every(depths: Sequence[int] = (0, 1, 2, 3)) -> list[Chain]:
    """A chain without a flaw and one with each single change, for each depth."""
    found = []
    for depth in depths:
        plain = [LEAF, *[ISSUER] * depth]
        found.append(chain_of(plain, f"depth {depth}"))
        for name, (place, change) in changes(depth).items():
            rsa_signed = "SHA1" in name or "PSS" in name
            base = [replace(it, key="rsa2048") for it in plain] if rsa_signed else plain
            forms = [replace(it, **change) if at == place else it for at, it in enumerate(base)]
            found.append(chain_of(forms, f"depth {depth}, {name}"))
    return found


def random_chains(chance: random.Random, count: int) -> list[Chain]:
    """Chains with none to three changes each."""
    found = []
    for _ in range(count):
        depth = chance.choice((0, 1, 1, 2, 2, 3))
        kinds = ("p256", "p384", "rsa2048", "rsa3072")
        forms = [replace(it, key=chance.choice(kinds)) for it in (LEAF, *[ISSUER] * depth)]
        known = changes(depth)
        picked = chance.sample(sorted(known), chance.choice((0, 1, 1, 2, 3)))
        for name in picked:
            place, change = known[name]
            forms[place] = replace(forms[place], **change)
        all_trusted = depth > 1 and chance.random() < 0.2
        about = ", ".join((f"depth {depth}", *picked, *(["all trusted"] if all_trusted else [])))
        found.append(chain_of(forms, about, all_trusted=all_trusted))
    return found


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _certificate(
    form: Form, name: x509.Name, issuer: x509.Name, own: Any, signer: Any, leaf: bool
) -> x509.Certificate:
    now = datetime.now(UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(issuer)
        .public_key(own.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=90))
    )
    for extension, critical in () if form.first_version else _extensions(form, own, signer, leaf):
        builder = builder.add_extension(extension, critical=critical)
    if isinstance(signer, ed25519.Ed25519PrivateKey):
        return builder.sign(signer, None)
    if form.first_version and isinstance(signer, ec.EllipticCurvePrivateKey):
        return _of_version_1(builder.sign(signer, hashes.SHA256()), signer)
    if form.digest == "SHA1":
        made = builder.sign(signer, hashes.SHA256())
        return _with_sha1(made, signer) if isinstance(signer, rsa.RSAPrivateKey) else made
    digest = getattr(hashes, form.digest)()
    if form.pss and isinstance(signer, rsa.RSAPrivateKey):
        scheme = padding.PSS(padding.MGF1(digest), padding.PSS.DIGEST_LENGTH)
        return builder.sign(signer, digest, rsa_padding=scheme)
    return builder.sign(signer, digest)


def _with_sha1(made: x509.Certificate, signer: rsa.RSAPrivateKey) -> x509.Certificate:
    """``made`` with a signature of SHA-1, which the library makes no more."""
    begin = bytes.fromhex("06092a864886f70d0101")  # PKCS #1; 0b is sha256WithRSAEncryption, 05 sha1
    body = made.tbs_certificate_bytes.replace(begin + b"\x0b", begin + b"\x05")
    signed = b"\x00" + signer.sign(body, padding.PKCS1v15(), hashes.SHA1())
    algorithm = _der(0x30, begin + b"\x05" + b"\x05\x00")
    return x509.load_der_x509_certificate(_der(0x30, body + algorithm + _der(0x03, signed)))


def _of_version_1(made: x509.Certificate, signer: ec.EllipticCurvePrivateKey) -> x509.Certificate:
    """``made``, which has no extensions, without the number of its version, and signed again."""
    version = bytes.fromhex("a003020102")
    old = made.tbs_certificate_bytes
    body = _der(0x30, old[old.index(version) + len(version) :])
    signed = b"\x00" + signer.sign(body, ec.ECDSA(hashes.SHA256()))
    algorithm = _der(0x30, bytes.fromhex("06082a8648ce3d040302"))  # ecdsa-with-SHA256
    return x509.load_der_x509_certificate(_der(0x30, body + algorithm + _der(0x03, signed)))


def _der(tag: int, content: bytes) -> bytes:
    size = len(content)
    if size < 0x80:
        return bytes([tag, size]) + content
    length = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes([tag, 0x80 | len(length)]) + length + content


def _extensions(
    form: Form, own: Any, signer: Any, leaf: bool
) -> list[tuple[x509.ExtensionType, bool]]:
    found: list[tuple[x509.ExtensionType, bool]] = []
    if form.authority is not None:
        length = form.length if form.authority else None
        found.append((x509.BasicConstraints(form.authority, length), True))
    if form.usage:
        found.append((key_usage(*USAGES[form.usage]), True))
    if form.uses is not None:
        found.append((x509.ExtendedKeyUsage(form.uses), form.uses_critical))
    if leaf:
        found.append((x509.SubjectAlternativeName([x509.DNSName(HOST)]), False))
    if form.identifiers != "none":
        found.append((x509.SubjectKeyIdentifier.from_public_key(own.public_key()), False))
    if form.identifiers in ("both", "wrong"):
        named = key("p256", 9) if form.identifiers == "wrong" else signer
        public = named.public_key()
        found.append((x509.AuthorityKeyIdentifier.from_issuer_public_key(public), False))
    if form.permitted or form.excluded:
        lists = [[x509.DNSName(it)] if it else None for it in (form.permitted, form.excluded)]
        found.append((x509.NameConstraints(*lists), True))
    if form.unknown:
        oid = x509.ObjectIdentifier("1.3.6.1.4.1.55555.1")
        found.append((x509.UnrecognizedExtension(oid, b"\x05\x00"), form.unknown == "critical"))
    if form.policy:
        found.append((x509.PolicyConstraints(0, None), True))
    return found

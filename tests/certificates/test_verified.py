"""Which chains are refused, and why; the judges are handshakes of Java and of OpenSSL."""

import random
import ssl
import subprocess
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cryptography.x509.oid import ExtendedKeyUsageOID

from earshot.certificates.node_pem import read_node
from earshot.certificates.shown import ShownCertificate
from earshot.jvm.jars import class_path, kafka_broker_jars
from earshot.jvm.java import find_java
from earshot.listeners.security import CIPHERS
from tests.certificates.varied import (
    HOST,
    ISSUER,
    LEAF,
    Chain,
    Form,
    chain_of,
    every,
    pem,
    random_chains,
)

SEED = 20261125
RANDOM = 100


def shown(chain: Chain) -> ShownCertificate:
    texts = {"c": "".join(map(pem, chain.certificates)).encode(), "k": chain.key.encode()}
    return read_node("c", "k", texts, b"", chain.trusted).shown


def observed(*forms: Form) -> str:
    certificate = shown(chain_of(forms, ""))
    assert certificate.missing == ""
    return certificate.refusal.observed if certificate.refusal is not None else ""


UNKNOWN = (
    "its certificate has the critical extension 1.3.6.1.4.1.55555.1, which clients do not know"
)
OTHER_ISSUER = (
    "the authority key identifier of its certificate names another key than that of CN=authority 1"
)
NO_SIGNATURE = "the key usage of its certificate lacks digitalSignature"
TOO_LONG = (
    "the certificate of CN=authority 2 allows 0 authorities below it (path length of its basic "
    "constraints), and the chain has 1"
)
NO_USES = (
    "the extended key usage of the certificate of CN=authority 1 lacks serverAuth and clientAuth"
)
NOT_CA = "the basic constraints of the certificate of CN=authority {} lack CA:TRUE"
FORBIDDEN = "the name constraints of the certificate of CN=authority 1 forbid a name below it"
WRONG_KEY = "the certificate of CN=authority {} has a key of {}"
NO_CERTIFICATES = "the key usage of the certificate of CN=authority 1 lacks keyCertSign"


NODES: list[tuple[dict[str, Any], str]] = [
    ({}, ""),
    ({"identifiers": "both"}, ""),
    ({"identifiers": "wrong"}, OTHER_ISSUER),
    ({"usage": ""}, ""),
    ({"usage": "signature"}, ""),
    ({"usage": "encipherment"}, NO_SIGNATURE),
    ({"usage": "agreement"}, NO_SIGNATURE),
    ({"uses": None}, ""),
    ({"authority": None}, ""),
    ({"unknown": "harmless"}, ""),
    ({"unknown": "critical"}, UNKNOWN),
    ({"key": "p521"}, ""),
    ({"key": "rsa2048"}, ""),
    ({"key": "rsa1024"}, "its certificate has a key of RSA with 1024 bits"),
    ({"key": "k256"}, "its certificate has a key of EC on secp256k1"),
    ({"digest": "SHA512"}, ""),
    ({"digest": "SHA224"}, "its certificate is signed with SHA224"),
]
AUTHORITIES: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    ({}, {"length": 0}, TOO_LONG),
    ({}, {"key": "rsa1024"}, WRONG_KEY.format(2, "RSA with 1024 bits")),
    ({"key": "bp256"}, {}, WRONG_KEY.format(1, "EC on brainpoolP256r1")),
    ({"usage": "revocations"}, {}, NO_CERTIFICATES),
    ({"uses": (ExtendedKeyUsageOID.EMAIL_PROTECTION,)}, {}, NO_USES),
    ({"authority": False}, {}, NOT_CA.format(1)),
    ({}, {"authority": None}, NOT_CA.format(2)),
    ({"excluded": "example.com"}, {}, FORBIDDEN),
    ({"policy": True}, {}, "OpenSSL refuses its certificate: no explicit policy"),
]


@pytest.mark.parametrize(("forms", "why"), [
    *(((LEAF, *issuers), "") for issuers in (
        [],
        [ISSUER] * 3,
        [replace(ISSUER, identifiers="none")],
        [replace(ISSUER, usage="")],
        [replace(ISSUER, key="ed25519")],
        [replace(ISSUER, length=0)],
        [replace(ISSUER, length=0), replace(ISSUER, length=1)],
        [replace(ISSUER, first_version=True)],
        [replace(ISSUER, permitted="example.com")],
    )),
    *(((replace(LEAF, **changes), ISSUER), why) for changes, why in NODES),
    *(((LEAF, replace(ISSUER, **middle), replace(ISSUER, **root)), why)
      for middle, root, why in AUTHORITIES),
    # a weak signature that the library reads no more is named
    ((replace(LEAF, key="rsa2048", digest="SHA1"), replace(ISSUER, key="rsa2048")),
     "its certificate is signed with SHA1"),
])  # fmt: skip
def test_which_certificates_of_a_node_and_its_authorities_clients_refuse(
    forms: tuple[Form, ...], why: str
) -> None:
    assert observed(*forms) == why


def openssl_accepts(chain: Chain) -> bool:
    """Whether two sides of OpenSSL with the chain come to terms; only names are not compared."""
    asking = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    answering = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    asking.check_hostname, answering.verify_mode = False, ssl.CERT_REQUIRED
    try:
        with tempfile.TemporaryDirectory() as folder:
            store = Path(folder, "store.pem")
            store.write_text(chain.key + chain.sent)
            for context in (asking, answering):
                context.set_ciphers("DEFAULT:@SECLEVEL=2")
                context.load_verify_locations(cadata="".join(map(pem, chain.trusted)))
                context.load_cert_chain(store)
        there, back = ssl.MemoryBIO(), ssl.MemoryBIO()
        client = asking.wrap_bio(back, there)
        server = answering.wrap_bio(there, back, server_side=True)
        for side in (client, server, client, server):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
    except ssl.SSLError:
        return False
    return True


def java_answers(chains: Sequence[Chain], folder: Path) -> list[str]:
    """`ok` for each chain with which two of Kafka's engines come to terms, all in one JVM."""
    lines = []
    for number, chain in enumerate(chains):
        store, trusted = folder / f"{number}.pem", folder / f"{number}.ca.pem"
        store.write_text(chain.key + chain.sent)
        trusted.write_text("".join(map(pem, chain.trusted)))
        lines.append("\t".join((str(store), str(trusted), HOST, ",".join(CIPHERS))))
    cases = folder / "cases.txt"
    cases.write_text("\n".join(lines))
    jars = class_path(kafka_broker_jars(fetching=False))
    source = Path(__file__).with_name("Handshakes.java")
    done = subprocess.run(
        [str(find_java().executable), "-Xmx128m", "-cp", jars, str(source), str(cases)],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.e2e
@pytest.mark.timeout(600)
def test_what_is_accepted_is_what_java_and_openssl_accept(tmp_path: Path) -> None:
    """Of each single flaw in a chain with an intermediate authority, and of chains by chance."""
    chains = [*every(depths=(2,)), *random_chains(random.Random(SEED), RANDOM)]
    reported: Counter[tuple[bool, bool, bool]] = Counter()
    wrong = []
    for chain, answer in zip(chains, java_answers(chains, tmp_path), strict=True):
        certificate = shown(chain)
        ours = (
            not certificate.missing
            and certificate.for_servers
            and certificate.for_clients
            and not certificate.refusal
        )
        openssl, java = openssl_accepts(chain), answer == "ok"
        reported[ours, openssl, java] += 1
        if ours is not (openssl and java):
            wrong.append((chain.about, certificate.refusal, openssl, answer))
    print(f"seed {SEED}: (accepted, OpenSSL, Java): {dict(reported)}")
    assert wrong == []
    assert reported[True, True, True] > RANDOM // 4
    assert reported[False, True, False] and reported[False, False, True]

"""Certificates of others: what Kafka can read of them, and one clear error for what it cannot."""

import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ed25519
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from earshot.certificates.in_aws import StoredText
from earshot.certificates.node_pem import (
    Files,
    NodeCertificate,
    NodeCertificates,
    read_certificates,
)
from earshot.certificates.shown import ShownCertificate
from earshot.errors import EarshotError
from tests.certificates.made import Made, made
from tests.raised import raised

NOW = datetime(2026, 5, 4, tzinfo=UTC)
ROOT = made("CN=Root", NOW, authority=True, days=900, number=1)
MIDDLE = made("CN=Middle", NOW, ROOT, authority=True, days=200, number=2)
B1 = made("CN=b1,O=Example\\, Inc.", NOW, MIDDLE, hosts=["b1.example.com", "10.0.0.1"], number=3)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "ca.pem").write_text(ROOT.pem)
    (tmp_path / "1.pem").write_text(B1.pem + MIDDLE.pem)
    (tmp_path / "1.key").write_text(B1.key_pem())
    return tmp_path


def files(folder: Path, **changes: str) -> Files:
    named = {"certificate": "{node}.pem", "key": "{node}.key", "authority": "ca.pem", **changes}
    return Files(**{key: str(folder / name) for key, name in named.items()})


def only(found: NodeCertificates) -> NodeCertificate:
    assert found.nodes.keys() == {1}
    return found.nodes[1]


def refusal(folder: Path, **changes: str) -> str:
    error = raised(EarshotError, read_certificates, files(folder, **changes), [1])
    return str(error).replace(f"{folder}/", "")


def test_what_fits_together_is_read(folder: Path) -> None:
    certificates = read_certificates(files(folder), [1])
    node = only(certificates)
    assert str(node.shown.names) == "b1.example.com, 10.0.0.1"
    assert (node.shown.not_before, node.shown.not_after) == (NOW, NOW + timedelta(days=90))
    assert (node.shown.missing, node.shown.for_servers, node.shown.for_clients) == ("", True, True)
    assert node.principal == "CN=b1,O=Example\\, Inc."
    assert certificates.authority == ROOT.pem
    assert node.store == B1.key_pem() + B1.pem + MIDDLE.pem
    assert "PRIVATE" not in repr(certificates)


def test_what_is_shown_goes_through_json(folder: Path) -> None:
    shown = only(read_certificates(files(folder), [1])).shown
    assert ShownCertificate.read(shown.document()) == shown
    bare = ShownCertificate.read({**shown.document(), "names": {}})  # Pulumi drops empty lists
    assert str(bare.names) == "no name"


def test_a_chain_is_put_in_order_and_what_is_not_of_it_is_left_out(folder: Path) -> None:
    other = made("CN=Other", NOW, authority=True, number=4)
    (folder / "1.pem").write_text(B1.pem + other.pem + ROOT.pem + MIDDLE.pem)
    assert only(read_certificates(files(folder), [1])).store == B1.key_pem() + B1.pem + MIDDLE.pem


def test_an_intermediate_that_is_trusted_is_sent_too(folder: Path) -> None:
    (folder / "1.pem").write_text(B1.pem)
    (folder / "ca.pem").write_text(ROOT.pem + MIDDLE.pem)
    node = only(read_certificates(files(folder), [1]))
    assert node.shown.missing == "" and node.store.endswith(B1.pem + MIDDLE.pem)


@pytest.mark.parametrize(
    ("sent", "trusted", "missing"),
    [
        ([B1], [ROOT], "CN=Middle"),
        ([B1, MIDDLE], [made("CN=Root", NOW, authority=True, number=5)], "CN=Root"),
        ([B1, MIDDLE, ROOT], [made("CN=Else", NOW, authority=True, number=5)], "CN=Root"),
        ([B1], [MIDDLE], "CN=Root"),
    ],
)
def test_short_chains(folder: Path, sent: list[Made], trusted: list[Made], missing: str) -> None:
    (folder / "1.pem").write_text("".join(item.pem for item in sent))
    (folder / "ca.pem").write_text("".join(item.pem for item in trusted))
    assert only(read_certificates(files(folder), [1])).shown.missing == missing


def test_the_first_of_a_chain_that_ends_counts(folder: Path) -> None:
    short = made("CN=Middle", NOW, ROOT, authority=True, days=7, number=2)
    (folder / "1.pem").write_text(B1.pem + short.pem)
    assert only(read_certificates(files(folder), [1])).shown.not_after == NOW + timedelta(days=7)


def test_a_certificate_of_its_own_is_an_authority_where_it_is_trusted(folder: Path) -> None:
    alone = made("CN=b1", NOW, hosts=["b1"], uses=None, number=3)
    (folder / "1.pem").write_text(alone.pem)
    assert only(read_certificates(files(folder), [1])).shown.missing == "CN=b1"
    (folder / "ca.pem").write_text(alone.pem)
    node = only(read_certificates(files(folder), [1]))
    assert (node.shown.missing, node.store) == ("", alone.key_pem() + alone.pem)


@pytest.mark.parametrize("form", [PrivateFormat.PKCS8, PrivateFormat.TraditionalOpenSSL])
@pytest.mark.parametrize("password", ["", "geheim"])
def test_keys_become_what_kafka_reads(folder: Path, form: PrivateFormat, password: str) -> None:
    (folder / "1.pem").write_text(B1.key_pem(password, form) + B1.pem + MIDDLE.pem)
    (folder / "password").write_text("geheim\n")
    certificates = read_certificates(files(folder, key="{node}.pem", password="password"), [1])
    assert only(certificates).store.startswith(B1.key_pem())
    store = folder / "store.pem"
    store.write_text(only(certificates).store)
    ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(store)


ED25519 = (
    ed25519.Ed25519PrivateKey.generate()
    .private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    .decode()
)
NAMELESS = made("", NOW, MIDDLE, number=3)
PARTED = made("CN=a\\;User:b", NOW, MIDDLE, number=3)
PLAIN_TEXTS = (
    "Kafka's name for a subject is predictable only for plain text in CN, C, L, ST, O, OU, "
    "STREET, DC, UID)\n  fix: have it issued again"
)


UNREADABLE = (
    "cannot be read (No such file or directory)\n  fix: put it there, or correct security.tls.from"
)
ENCRYPTED = (
    "holds a key that is encrypted, and no password is given\n  allowed: a key without a password, "
    "or the place of it as security.tls.from.password"
)
NO_CERTIFICATE = (
    "holds no certificate that can be read\n  allowed: PEM: -----BEGIN CERTIFICATE-----"
)
NO_KEY = "holds no private key that can be read\n  allowed: PEM: -----BEGIN PRIVATE KEY-----"
OTHER_KEY = (
    "holds another key than that of the first certificate in 1.pem\n"
    "  allowed: the key that the certificate was issued for"
)
OTHER_KIND = (
    "holds a key of a kind that Kafka does not read from PEM\n  allowed: a key of RSA or EC"
)
NO_SUBJECT = "its subject is empty, and Kafka knows nodes by it)\n  fix: have it issued again"


@pytest.mark.parametrize(("name", "text", "reported"), [
    ("ca.pem", None, UNREADABLE),
    ("1.pem", "x", NO_CERTIFICATE),
    ("1.key", B1.key_pem("geheim"), ENCRYPTED),
    ("1.key", "x", NO_KEY),
    ("1.key", MIDDLE.key_pem(), OTHER_KEY),
    ("1.key", ED25519, OTHER_KIND),
    ("1.pem", NAMELESS.pem, f"holds a certificate that cannot be used ({NO_SUBJECT}"),
    ("1.pem", PARTED.pem, f"holds a certificate that cannot be used (CN=a\\;User:b: {PLAIN_TEXTS}"),
])  # fmt: skip
def test_unusable_files_are_named(folder: Path, name: str, text: str | None, reported: str) -> None:
    (folder / name).unlink()
    if text is not None:
        (folder / name).write_text(text)
    assert refusal(folder) == f"{name}: {reported}"


def test_a_key_that_is_not_named_is_asked_for(folder: Path) -> None:
    assert refusal(folder, key="{node}.pem") == (
        "1.pem: holds no private key, and security.tls.from.key is not set\n"
        "  allowed: certificate and key in one place, or `key` with the place of the key\n"
        "  fix: set security.tls.from.key, or write the key into the same place"
    )


def test_a_password_that_opens_nothing_is_not_told(folder: Path) -> None:
    (folder / "1.key").write_text(B1.key_pem("geheim"))
    (folder / "password").write_text("falsch")
    assert refusal(folder, password="password") == (
        "1.key: holds a key that the given password does not open\n"
        "  allowed: PEM: -----BEGIN PRIVATE KEY-----"
    )


def test_texts_in_aws_are_read_like_files(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = {
        "ssm:/kafka/1.key": StoredText(B1.key_pem("geheim").encode(), encrypted=True),
        "secretsmanager:kafka-1": StoredText((B1.pem + MIDDLE.pem).encode(), encrypted=True),
        "ssm:/kafka/password": StoredText(b"geheim", encrypted=True),
    }
    asked = []

    def read(places: tuple[str, ...], region: str) -> dict[str, StoredText]:
        asked.append((places, region))
        return {place: texts[place] for place in places}

    monkeypatch.setattr("earshot.certificates.node_pem.read_in_aws", read)
    named = Files(
        "secretsmanager:kafka-{node}",
        "ssm:/kafka/{node}.key",
        str(folder / "ca.pem"),
        "ssm:/kafka/password",
        "eu-central-1",
    )
    assert only(read_certificates(named, [1])).store == B1.key_pem() + B1.pem + MIDDLE.pem
    assert asked == [(tuple(sorted(texts)), "eu-central-1")]
    for place in ("ssm:/kafka/1.key", "ssm:/kafka/password"):
        plain = {place: StoredText(texts[place].content, encrypted=False)}
        with monkeypatch.context() as patch, pytest.raises(EarshotError) as caught:
            patch.setattr(
                "earshot.certificates.node_pem.read_in_aws", lambda *_, it=plain: texts | it
            )
            read_certificates(named, [1])
        assert str(caught.value) == (
            f"{place}: is a parameter of the type String, which SSM does not encrypt\n"
            "  allowed: the type SecureString for keys and passwords"
        )

"""What a secured stack keeps: made once, renewed in time, for its owner alone."""

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509

from earshot.certificates.authority import Subject, read_certificate
from earshot.certificates.client import client_properties
from earshot.certificates.store import Store
from earshot.certificates.target import TargetCertificates
from earshot.errors import EarshotError
from earshot.listeners.properties import read_properties
from earshot.listeners.security import CLIENTS, principal
from earshot.listeners.terms import Mechanism, Protocol
from earshot.validation.client import translate
from tests.certificates.made import made
from tests.raised import raised

NOW = datetime(2026, 5, 4, tzinfo=UTC)
WANTED = TargetCertificates(
    stack="test", nodes={"node-1": ("localhost",), "node-2": ("localhost", "b2.example.com")},
    node=Subject("node", "nodes"), users=("validator", "app"), days=90, renew_days=30,
)  # fmt: skip
FILES = ["node-1.pem", "node-2.pem", "validator.pem", "app.pem"]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    made = Store(tmp_path / "security")
    made.fill(WANTED, NOW)
    return made


def names(store: Store) -> list[str]:
    return sorted(path.name for path in store.folder.iterdir())


def contents(store: Store) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in store.folder.iterdir()}


def changed(old: Mapping[str, object], new: Mapping[str, object]) -> set[str]:
    """The keys whose values differ, or that only one of the mappings has."""
    return {key for key in {*old, *new} if old.get(key) != new.get(key)}


def test_everything_is_made_once(store: Store, tmp_path: Path) -> None:
    passwords = ["app.password", "validator.password"]
    assert names(store) == sorted([*FILES, *passwords, "ca.key", "ca.pem"])
    before = contents(store)
    assert store.due(WANTED, NOW) == []
    credentials = store.fill(WANTED, NOW)
    assert contents(store) == before
    assert str(credentials.certificates["node-2"].names) == "localhost, b2.example.com"
    assert credentials.passwords.keys() == {"validator", "app"}
    assert store.password("app") not in str(credentials)
    in_new_folders = Store(tmp_path / "stacks" / "mine")
    in_new_folders.fill(WANTED, NOW)
    assert in_new_folders.due(WANTED, NOW) == []


def test_only_the_owner_can_read_a_secret(store: Store) -> None:
    assert store.folder.stat().st_mode & 0o777 == 0o700
    modes = {path.name: path.stat().st_mode & 0o777 for path in store.folder.iterdir()}
    assert {name: mode for name, mode in modes.items() if mode != 0o600} == {"ca.pem": 0o644}
    store.folder.chmod(0o755)
    store.fill(WANTED, NOW)
    assert store.folder.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(
    ("days", "validity"),
    [
        (-395, "is valid from 2026-05-03 23:55 to 2036-05-01 00:00 UTC, and by the clock of this"),
        (4000, "machine it is 2037-04-16 00:00: clients would refuse the certificates that are"),
    ],
)
def test_an_invalid_authority_issues_nothing(store: Store, days: int, validity: str) -> None:
    """Its clock was wrong, or ten years are over: no client would accept the certificates."""
    now, before = NOW + timedelta(days=days), contents(store)
    for act in (store.fill, store.due, store.unchanged):
        error = raised(EarshotError, act, WANTED, now)
        assert validity in error.observed and "`security.tls.authorities: [2]`" in error.remedy
        assert error.allowed == "an authority that is valid now"
    assert before == contents(store)
    store.fill(authorities(2), now)
    assert store.due(authorities(2), now) == []


def test_subjects_of_certificates(store: Store) -> None:
    node = "CN=node,OU=nodes"
    subjects = {"node-1": node, "node-2": node, "app": principal("app", CLIENTS)}
    for name, subject in subjects.items():
        pem = (store.folder / f"{name}.pem").read_bytes()
        assert x509.load_pem_x509_certificate(pem).subject.rfc4514_string() == subject


def test_a_given_password_takes_the_place_of_the_one_that_is_there(store: Store) -> None:
    given = replace(WANTED, given_passwords={"app": "given-by-hand", "nobody": "is-no-user"})
    before = store.fill(WANTED, NOW).passwords
    assert store.due(given, NOW) == ["app.password"]
    assert store.unchanged(given, NOW).passwords == {"validator": before["validator"]}
    after = store.fill(given, NOW).passwords
    assert store.password("app") == "given-by-hand" and after["app"] != before["app"]
    assert after["validator"] == before["validator"]
    assert store.due(given, NOW) == store.due(WANTED, NOW) == []
    assert "given-by-hand" not in repr(given)
    later = replace(WANTED, numbers={"app": 2})
    assert store.fill(later, NOW).passwords["app"] != after["app"]
    assert store.fill(given, NOW).passwords == after


def test_a_password_is_long_and_known_by_its_digest(store: Store) -> None:
    before = store.fill(WANTED, NOW).passwords
    assert len(store.password("app")) == 32 != len(set(store.password("app")))
    assert store.password("app") != store.password("validator")
    assert all(len(digest) == 12 for digest in before.values())
    (store.folder / "app.password").unlink()
    assert changed(before, store.fill(WANTED, NOW).passwords) == {"app"}


def test_a_password_of_the_users_own_is_accepted_and_cannot_be_tried(store: Store) -> None:
    (store.folder / "app.password").write_text("geheim\n")
    assert store.due(WANTED, NOW) == []
    digest = store.fill(WANTED, NOW).passwords["app"]
    assert store.password("app") == "geheim"
    assert digest != hashlib.sha256(b"geheim").hexdigest()[:12]
    (store.folder / "app.password").write_text("\n")
    assert store.due(WANTED, NOW) == ["app.password"]


def test_other_files_are_not_touched(store: Store) -> None:
    for name in ("notes.txt", ".hidden.pem"):
        (store.folder / name).write_text("mine")
    (store.folder / "gone.pem").write_text("of a user that was")
    assert store.due(WANTED, NOW) == ["gone.pem"]
    store.fill(WANTED, NOW)
    assert {"notes.txt", ".hidden.pem"} <= set(names(store)) and "gone.pem" not in names(store)


@pytest.mark.parametrize(
    ("wanted", "days", "due"),
    [
        (replace(WANTED, nodes={**WANTED.nodes, "node-1": ("b1",)}), 0, ["node-1.pem"]),
        (replace(WANTED, nodes={**WANTED.nodes, "node-3": ("b3",)}), 0, ["node-3.pem"]),
        (replace(WANTED, users=("validator",)), 0, ["app.password", "app.pem"]),
        (replace(WANTED, users=(*WANTED.users, "z")), 0, ["z.pem", "z.password"]),
        (WANTED, 59, []),
        (WANTED, 60, FILES),
    ],
)
def test_which_files_are_due(
    store: Store, wanted: TargetCertificates, days: int, due: list[str]
) -> None:
    now, before = NOW + timedelta(days=days), contents(store)
    assert store.due(wanted, now) == due
    store.fill(wanted, now)
    assert changed(before, contents(store)) == set(due)
    assert store.due(wanted, now) == []


def given(store: Store) -> TargetCertificates:
    """With what others have made for one of the nodes."""
    text = (store.folder / "node-1.pem").read_text()
    return replace(WANTED, given={"node-1": text}, authority="-----THEIRS-----\n")


def test_given_certificates_are_kept_unchanged(tmp_path: Path, store: Store) -> None:
    wanted, other = given(store), Store(tmp_path / "other")
    assert "PRIVATE" not in repr(wanted)
    credentials = other.fill(wanted, NOW)
    assert (other.folder / "node-1.pem").read_text() == wanted.given["node-1"]
    assert (other.folder / "node-1.pem").stat().st_mode & 0o777 == 0o600
    own = (other.folder / "ca.pem").read_text()
    assert other.authority() == (other.folder / "trusted.pem").read_text()
    assert other.authority() == f"-----THEIRS-----\n{own}"
    assert other.due(wanted, NOW + timedelta(days=89)) == [*FILES[1:]]
    for name, certificate in credentials.certificates.items():
        assert credentials.versions[name] != certificate.fingerprint


def test_the_first_end_is_that_of_any_certificate_in_a_chain(tmp_path: Path) -> None:
    root = made("CN=Root", NOW, authority=True, days=900, number=1)
    issuing = made("CN=Issuing", NOW, root, authority=True, days=40, number=2)
    node = made("CN=b1", NOW, issuing, hosts=["localhost"], days=300, number=3)
    chain = {"node-1": node.key_pem() + node.pem + issuing.pem}
    nodes = {"node-1": ("localhost",)}
    wanted = replace(WANTED, nodes=nodes, given=chain, authority=root.pem)
    expires = Store(tmp_path).fill(wanted, NOW).expires
    assert expires == issuing.certificate.not_valid_after_utc


def test_changed_given_certificates_reach_the_nodes(store: Store) -> None:
    wanted = given(store)
    assert store.due(wanted, NOW) == ["trusted.pem"]
    before = store.fill(wanted, NOW).versions
    assert store.due(wanted, NOW) == []
    renewed = replace(wanted, authority="-----ALSO-----\n")
    assert store.due(renewed, NOW) == ["trusted.pem"]
    # nodes that keep the trusted certificates elsewhere must get them, too
    assert changed(before, store.fill(renewed, NOW).versions) == {*before}
    other = replace(wanted, given={"node-1": (store.folder / "node-2.pem").read_text()})
    assert store.due(other, NOW) == ["trusted.pem", "node-1.pem"]


def test_without_certificates_of_others_their_authority_is_no_longer_trusted(store: Store) -> None:
    store.fill(given(store), NOW)
    assert store.due(WANTED, NOW) == ["trusted.pem"]
    store.fill(WANTED, NOW)
    assert store.authority() == (store.folder / "ca.pem").read_text()


def test_an_authority_that_no_node_needs_is_made_anew(store: Store) -> None:
    (store.folder / "ca.key").unlink()
    store.fill(given(store), NOW)
    assert store.due(given(store), NOW) == []


def test_a_file_that_is_no_certificate_is_made_anew(store: Store) -> None:
    (store.folder / "app.pem").write_text("")
    assert store.due(WANTED, NOW) == ["app.pem"]
    store.fill(WANTED, NOW)
    assert read_certificate((store.folder / "app.pem").read_text()).not_after > NOW


@pytest.mark.parametrize("lost", ["ca.key", "ca.pem"])
def test_a_lost_authority_is_not_replaced_while_nodes_trust_it(store: Store, lost: str) -> None:
    (store.folder / lost).unlink()
    assert store.due(WANTED, NOW) == ["ca.pem", *FILES]
    assert str(raised(EarshotError, store.fill, WANTED, NOW)) == (
        f"the authority in {store.folder}: ca.pem or ca.key is missing, and node-1.pem, "
        "node-2.pem are there: nodes with certificates of a new one would not be trusted by the "
        "others\n  fix: put both files back from a copy; or stop the cluster (`pulumi destroy`), "
        f"remove {store.folder}, and all certificates and passwords are regenerated"
    )


@pytest.mark.parametrize("file", ["ca.key", "ca.pem"])
def test_an_authority_of_no_use_is_named(store: Store, tmp_path: Path, file: str) -> None:
    other = Store(tmp_path / "other")
    other.fill(WANTED, NOW)
    for content in ("", "no PEM", (other.folder / file).read_text()):
        (store.folder / file).write_text(content)
        assert str(raised(EarshotError, store.due, WANTED, NOW)) == (
            f"the authority in {store.folder}: ca.pem is not a certificate for the key in ca.key, "
            "or one of them is damaged\n  fix: put both files back from a copy; or stop the "
            f"cluster (`pulumi destroy`), remove {store.folder}, and all certificates and "
            "passwords are regenerated"
        )


def test_a_lost_authority_is_made_anew_where_no_node_is_left(store: Store) -> None:
    for path in store.folder.glob("node-*.pem"):
        path.unlink()
    (store.folder / "ca.key").unlink()
    before = store.authority()
    store.fill(WANTED, NOW)
    assert store.authority() != before
    assert store.due(WANTED, NOW) == []


def test_certificates_of_another_authority_are_made_anew(store: Store, tmp_path: Path) -> None:
    other = Store(tmp_path / "other")
    other.fill(WANTED, NOW)
    for name in ("ca.pem", "ca.key"):
        (store.folder / name).write_bytes((other.folder / name).read_bytes())
    assert store.due(WANTED, NOW) == FILES


@pytest.mark.parametrize(
    ("protocol", "keys"),
    [
        (Protocol.SASL_SSL, {"sasl.mechanism", "sasl.jaas.config"}),
        (Protocol.SSL, {"ssl.keystore.type", "ssl.keystore.location"}),
    ],
)
def test_client_properties_of_a_listener(store: Store, protocol: Protocol, keys: set[str]) -> None:
    text = client_properties(store, "app", Mechanism.SCRAM_SHA_512, protocol)
    values = read_properties(text).values
    trust = {"ssl.truststore.type", "ssl.truststore.certificates", "security.protocol"}
    assert values.keys() == keys | trust
    assert values["security.protocol"] == protocol
    assert values["ssl.truststore.certificates"] == store.authority()
    begun = client_properties(store, "app", Mechanism.SCRAM_SHA_512, protocol, "b1:1,b2:2")
    assert read_properties(begun).values == {**values, "bootstrap.servers": "b1:1,b2:2"}
    expected = {
        "ssl.truststore.type": "PEM",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(store.folder / "app.pem"),
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.jaas.config": "org.apache.kafka.common.security.scram.ScramLoginModule required "
        f'username="app" password="{store.password("app")}";',
    }
    kept = {"ssl.truststore.type", *keys}
    assert {key: values[key] for key in kept} == {key: expected[key] for key in kept}


def test_a_client_may_get_a_certificate_and_a_password(store: Store) -> None:
    mechanism, protocol = Mechanism.SCRAM_SHA_512, Protocol.SASL_SSL
    text = client_properties(store, "app", mechanism, protocol, certified=True)
    properties = translate(read_properties(text).values)
    assert properties["sasl.password"] == store.password("app")
    assert properties["ssl.key.location"] == str(store.folder / "app.pem")


def test_the_validator_gets_what_all_listeners_ask_for(store: Store) -> None:
    text = client_properties(store, "validator", Mechanism.SCRAM_SHA_256)
    properties = translate(read_properties(text).values)
    assert properties["sasl.username"] == "validator"
    assert properties["sasl.password"] == store.password("validator")
    assert properties["sasl.mechanism"] == "SCRAM-SHA-256"
    assert properties["ssl.key.location"] == str(store.folder / "validator.pem")
    assert "security.protocol" not in properties


@pytest.mark.parametrize(
    ("protocol", "file"), [(Protocol.SASL_SSL, "z.password"), (Protocol.SSL, "z.pem")]
)
def test_who_is_no_user_has_no_credentials(store: Store, protocol: Protocol, file: str) -> None:
    error = raised(EarshotError, client_properties, store, "z", Mechanism.SCRAM_SHA_512, protocol)
    assert str(error) == (
        f"{store.folder / file}: cannot be read (No such file or directory)\n"
        "  fix: deploy the stack again: missing files are created again"
    )


@pytest.mark.parametrize(
    "password", ['a"b; x="y', "back\\slash\\", "a b = c # d", "${file:x}", "ü€"]
)
def test_any_password_of_the_users_own_reaches_the_client(store: Store, password: str) -> None:
    (store.folder / "app.password").write_text(password + "\n")
    text = client_properties(store, "app", Mechanism.SCRAM_SHA_512, Protocol.SASL_SSL)
    assert translate(read_properties(text).values)["sasl.password"] == password


def authorities(*numbers: int) -> TargetCertificates:
    return replace(WANTED, authorities=numbers)


def issuer(store: Store, name: str) -> str:
    """The common name of who has issued a key store."""
    pem = (store.folder / f"{name}.pem").read_bytes()
    return x509.load_pem_x509_certificate(pem).issuer.rfc4514_string()


def test_another_authority_takes_over_where_all_trust_both(store: Store) -> None:
    own = store.authority()
    before = store.contents(WANTED)
    assert store.due(authorities(1, 2), NOW) == ["ca@2.pem", "trusted.pem"]
    both = store.fill(authorities(1, 2), NOW)
    assert store.due(authorities(1, 2), NOW) == []
    assert both.certificates == before.certificates
    changed = {it for it in before.versions if before.versions[it] != both.versions[it]}
    assert changed == {"node-1", "node-2"}
    assert store.authority() == own + (store.folder / "ca@2.pem").read_text()
    assert (store.folder / "ca@2.key").stat().st_mode & 0o777 == 0o600
    trusted = store.authority()
    assert store.due(authorities(2, 1), NOW) == FILES
    store.fill(authorities(2, 1), NOW)
    assert store.authority() == trusted
    assert {issuer(store, it) for it in ("node-1", "app")} == {"CN=earshot test 2,OU=authority"}
    assert store.due(authorities(2), NOW) == ["trusted.pem", "ca.key", "ca.pem"]
    alone = store.fill(authorities(2), NOW)
    assert store.due(authorities(2), NOW) == []
    assert alone.versions["node-1"] != alone.certificates["node-1"].fingerprint
    assert store.authority() == (store.folder / "ca@2.pem").read_text()
    assert names(store) == sorted(
        [*FILES, "app.password", "ca@2.key", "ca@2.pem", "trusted.pem", "validator.password"]
    )


def test_an_authority_may_be_replaced_in_one_step(store: Store) -> None:
    """The cluster was stopped: its nodes all start with the new one."""
    store.check(authorities(2), issued=False)
    store.fill(authorities(2), NOW)
    assert issuer(store, "node-2") == "CN=earshot test 2,OU=authority"
    (store.folder / "ca@2.key").unlink()
    with pytest.raises(EarshotError, match=r"ca@2\.pem or ca@2\.key is missing, and node-1\.pem"):
        store.fill(authorities(2), NOW)


def test_a_certificate_that_cannot_be_read_is_of_no_authority(store: Store) -> None:
    (store.folder / "node-1.pem").write_text("")
    with pytest.raises(EarshotError, match=r"is missing, and node-1\.pem are there"):
        store.fill(authorities(2), NOW)


def test_the_authority_ends_too(store: Store) -> None:
    late = NOW + timedelta(days=700)
    expires = store.fill(replace(WANTED, days=3650), late).expires
    assert expires == read_certificate(store.authority()).not_after < late + timedelta(3650)


def test_another_number_is_another_password(store: Store) -> None:
    before, old = store.contents(WANTED).passwords, store.password("app")
    second = replace(WANTED, numbers={"app": 2})
    assert store.due(second, NOW) == ["app@2.password", "app.password"]
    after = store.fill(second, NOW).passwords
    assert store.due(second, NOW) == []
    assert changed(before, after) == {"app"}
    assert store.password("app") != old
    assert (store.folder / "app@2.password").stat().st_mode & 0o777 == 0o600
    assert store.fill(WANTED, NOW).passwords["app"] not in (before["app"], after["app"])
    assert not (store.folder / "app@2.password").exists()


def test_a_key_store_whose_key_is_another_s_or_gone_is_made_anew(store: Store) -> None:
    one, two = (store.folder / f"node-{id}.pem" for id in (1, 2))
    pem, begin = one.read_text(), "-----BEGIN CERTIFICATE"
    key, certificate = pem[: pem.index(begin)], pem[pem.index(begin) :]
    others = two.read_text()[: two.read_text().index(begin)]
    for damaged in (certificate, others + certificate, key[:90] + key[95:] + certificate):
        one.write_text(damaged)
        assert store.due(WANTED, NOW) == ["node-1.pem"]
    store.fill(WANTED, NOW)
    assert store.due(WANTED, NOW) == []


def test_a_certificate_of_a_clock_that_was_ahead_is_made_anew(store: Store) -> None:
    ahead = NOW + timedelta(days=40)
    (store.folder / "node-1.pem").unlink()
    store.fill(WANTED, ahead)
    assert store.due(WANTED, NOW) == ["node-1.pem"]


def test_what_is_no_text_or_no_file_is_one_clear_error_or_made_anew(store: Store) -> None:
    (store.folder / "node-1.pem").write_bytes(b"\xff\xfe")
    (store.folder / "node-2.pem").unlink()
    (store.folder / "node-2.pem").mkdir()
    assert store.due(WANTED, NOW) == ["node-1.pem", "node-2.pem"]
    (store.folder / "ca.pem").write_bytes(b"\xff\xfe")
    assert str(raised(EarshotError, store.due, WANTED, NOW)) == (
        f"{store.folder / 'ca.pem'}: is damaged\n"
        "  fix: put it back from a copy; or remove it and deploy the stack again"
    )

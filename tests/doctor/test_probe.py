"""Resolve, TCP and TLS against sockets of this machine."""

import contextlib
import errno
import re
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from earshot.certificates.authority import Subject, issue, new_authority
from earshot.doctor import probe
from earshot.doctor.probe import (
    MAX_ATTEMPTS,
    Contact,
    Handshake,
    reach,
    resolve,
    tls_context,
    vantage_resolves,
    with_server_answers,
)
from earshot.errors import EarshotError
from earshot.listeners.address import Address
from earshot.names.configured import Configuration
from earshot.names.lookup import Diagnosis, Lookup
from earshot.validation.client import Failure
from earshot.validation.deadline import Deadline
from tests.certificates.handshakes import server_context
from tests.doubles.certificates import self_signed
from tests.doubles.closed_port import closed_port
from tests.doubles.dns_server import dns_server

NODE = Subject("node", "nodes")


@contextlib.contextmanager
def server(context: ssl.SSLContext | None = None, greeting: bytes = b"") -> Iterator[int]:
    """A port of 127.0.0.1 that accepts connections, and speaks TLS with ``context``."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(0.1)
        done = threading.Event()

        def serve() -> None:
            while not done.is_set():
                with contextlib.suppress(OSError):
                    connection, _ = listening.accept()
                    with connection:
                        connection.settimeout(60)
                        if context is not None:
                            with context.wrap_socket(connection, server_side=True) as secured:
                                secured.recv(1)
                        elif greeting:
                            connection.recv(1)
                            connection.sendall(greeting)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield listening.getsockname()[1]
        finally:
            done.set()
            thread.join()


def resolved(host: str, *addresses: str) -> Lookup:
    return Lookup(host, "test", Diagnosis.OK, addresses or ("127.0.0.1",))


def connected_to(port: int, *addresses: str, **options: Any) -> Contact:
    return reach(Address("h", port), resolved("h", *addresses), **options)


def test_resolves_each_host_by_its_own_spelling() -> None:
    lookups = resolve(["localhost", "LOCALHOST", "127.0.0.1"])
    assert lookups["localhost"].ok and lookups["LOCALHOST"].ok
    assert lookups["127.0.0.1"].addresses == ("127.0.0.1",)


def test_a_name_that_another_server_knows_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    name = "kafka.vpn.example"
    denied = Lookup(name, "here", Diagnosis.NXDOMAIN, detail="not known")
    with dns_server({}) as office, dns_server({name: ("192.0.2.7",)}) as vpn:
        own = Configuration((office, vpn))
        monkeypatch.setattr(probe, "configuration", lambda: own)
        lookup = with_server_answers(denied)
        assert lookup.detail == (
            f"not known; the DNS server {vpn} resolves it, but another one denied it first"
        )
        assert lookup.diagnosis is Diagnosis.NXDOMAIN
        others = [
            replace(denied, name="kafka.nobody.example"),
            replace(denied, name="kafka"),  # a search domain may make another name of it
            replace(denied, diagnosis=Diagnosis.TIMEOUT),
        ]
        assert [with_server_answers(item) for item in others] == others
        own = Configuration((vpn,))
        assert with_server_answers(denied) == denied


def test_the_control_name_resolves() -> None:
    assert vantage_resolves()


def test_connects_to_the_first_address_that_accepts() -> None:
    with server() as port:
        contact = connected_to(port)
        assert contact.connected
        assert contact.attempts[0].address == f"127.0.0.1:{port}"
        assert contact.dead_first == () and contact.security is None
        contact = connected_to(port, "127.0.0.2", "127.0.0.1")
    assert contact.connected
    assert [attempt.address for attempt in contact.dead_first] == [f"127.0.0.2:{port}"]


def test_refused() -> None:
    with closed_port() as (_, port):
        contact = connected_to(port)
    assert not contact.connected
    assert [attempt.error for attempt in contact.attempts] == ["refused"]
    assert str(contact.attempts[0]) == f"127.0.0.1:{port} refused the connection"


@pytest.mark.parametrize(
    ("port", "error"), [(0, "no-port"), (1, "refused"), (65_535, "refused"), (65_536, "no-port")]
)
def test_invalid_port_is_not_tried(port: int, error: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(address: object, timeout: float) -> None:
        raise ConnectionRefusedError(errno.ECONNREFUSED, "refused")

    monkeypatch.setattr(socket, "create_connection", refuse)
    assert [attempt.error for attempt in connected_to(port).attempts] == [error]


def test_a_name_without_addresses_is_not_tried() -> None:
    contact = reach(Address("h", 1), Lookup("h", "test", Diagnosis.NXDOMAIN))
    assert contact.attempts == () and not contact.connected


def test_a_silent_address_times_out() -> None:
    with contextlib.ExitStack() as sockets:
        full = sockets.enter_context(socket.socket())
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        for _ in range(4):  # a full backlog drops packets, as a firewall does
            filler = sockets.enter_context(socket.socket())
            filler.setblocking(False)
            filler.connect_ex(full.getsockname())
        contact = connected_to(full.getsockname()[1], limit=0.2)
    assert [attempt.error for attempt in contact.attempts] == ["timeout"]


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A self-signed certificate for broker-1.test and 127.0.0.9, with its key in one file."""
    return self_signed(tmp_path_factory.mktemp("tls"), "DNS:broker-1.test,IP:127.0.0.9")


@pytest.fixture
def tls_port(certificate: Path) -> Iterator[int]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    with server(context) as port:
        yield port


def handshake(host: str, port: int, **client: str) -> Handshake | Failure | None:
    context = tls_context({key.replace("_", "."): value for key, value in client.items()})
    return reach(Address(host, port), resolved(host), context).security


def test_a_good_certificate(tls_port: int, certificate: Path) -> None:
    security = handshake("broker-1.test", tls_port, ssl_ca_location=str(certificate))
    assert isinstance(security, Handshake)
    assert security.version.startswith("TLS") and security.days_left in (9, 10)
    assert security.cipher and security.names == ("broker-1.test", "127.0.0.9")


@pytest.mark.parametrize("host", ["broker-2.test", "127.0.0.1"])
def test_a_certificate_for_other_names(tls_port: int, certificate: Path, host: str) -> None:
    security = handshake(host, tls_port, ssl_ca_location=str(certificate))
    names = "the certificate is for broker-1.test, 127.0.0.9"
    assert isinstance(security, Failure)
    assert (security.error, security.text) == ("certificate-name", names)


NO_HOSTS = ("", ".", ".a", "my_kafka", "broker-1.test.", "a..b", "küche", "fe80::1%lo", "a\0b")


@pytest.mark.parametrize("host", [*NO_HOSTS, "k" * 64])
def test_a_host_of_no_certificate_fails(tls_port: int, certificate: Path, host: str) -> None:
    security = handshake(host, tls_port, ssl_ca_location=str(certificate))
    assert isinstance(security, Failure) and security.error.startswith("certificate-name")


def test_names_are_not_compared_where_the_user_says_so(tls_port: int, certificate: Path) -> None:
    client = {"ssl_endpoint_identification_algorithm": "none", "ssl_ca_location": str(certificate)}
    assert isinstance(handshake("broker-2.test", tls_port, **client), Handshake)


@pytest.mark.parametrize(("algorithm", "compared"), [("", True), ("https", True), ("none", False)])
def test_when_names_are_compared(algorithm: str, compared: bool, certificate: Path) -> None:
    client = {"ssl.endpoint.identification.algorithm": algorithm} if algorithm else {}
    assert tls_context(client).check_hostname is compared
    client["ssl.ca.location"] = str(certificate)
    assert tls_context(client).check_hostname is compared


@pytest.mark.parametrize(
    ("begins", "word", "said"),
    [
        (-40, "certificate-expired", "certificate has expired"),
        (40, "certificate-not-yet-valid", "certificate is not yet valid"),
    ],
)
def test_a_certificate_not_valid_now(begins: int, word: str, said: str, tmp_path: Path) -> None:
    now = datetime.now(UTC)
    authority = new_authority("test", now - timedelta(days=100))
    begin = now + timedelta(days=begins)
    with server(server_context(issue(authority, NODE, ["b1"], 30, begin))) as port:
        (tmp_path / "ca.pem").write_text(authority.certificate)
        security = handshake("b1", port, ssl_ca_location=str(tmp_path / "ca.pem"))
    assert isinstance(security, Failure) and security.error == word
    assert security.text.startswith(f"{said} (by the clock of this machine it is {now.year}-")


def test_an_unknown_authority(tls_port: int) -> None:
    security = handshake("broker-1.test", tls_port)
    assert isinstance(security, Failure) and security.error == "certificate-untrusted"


@pytest.mark.parametrize(
    ("extra", "said"),
    [
        ("-addext extendedKeyUsage=clientAuth", "purpose"),
        ("-newkey rsa:1024", "key too"),
    ],
)
def test_a_certificate_that_no_client_accepts_for_a_server(
    extra: str, said: str, tmp_path: Path
) -> None:
    command = "openssl req -x509 -newkey rsa:2048 -nodes -days 9 -subj /CN=b1 -keyout key.pem"
    command += f" -out cert.pem -addext subjectAltName=DNS:b1 {extra}"
    subprocess.run(command.split(), cwd=tmp_path, check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.set_ciphers("DEFAULT:@SECLEVEL=0")
    context.load_cert_chain(tmp_path / "cert.pem", tmp_path / "key.pem")
    with server(context) as port:
        security = handshake("b1", port, ssl_ca_location=str(tmp_path / "cert.pem"))
    assert isinstance(security, Failure) and security.error == "certificate-unfit"
    assert said in security.text


def test_verification_switched_off(tls_port: int) -> None:
    security = handshake("x.test", tls_port, enable_ssl_certificate_verification="false")
    assert isinstance(security, Handshake) and security.days_left is None


@pytest.mark.parametrize(
    ("greeting", "reason"), [(b"", r".+"), (b"HTTP/1.0 400 Bad Request\r\n\r\n", r"[A-Z_]+")]
)
def test_a_listener_without_tls(greeting: bytes, reason: str) -> None:
    with server(greeting=greeting) as port:
        security = handshake("broker-1.test", port)
    assert isinstance(security, Failure) and security.error == "protocol"
    assert re.fullmatch(reason, security.text)


def test_a_missing_authority_file_is_the_users_error() -> None:
    with pytest.raises(EarshotError, match="ssl"):
        tls_context({"ssl.ca.location": "/does/not/exist.pem"})


@pytest.mark.parametrize(
    "client",
    [
        {"ssl.ca.location": "/ca\0.pem"},
        {"ssl.certificate.location": "/me\0.pem"},
        {"ssl.ca.pem": "-----BEGIN CERTIFICATE-----\nh\u00e9\n-----END CERTIFICATE-----"},
        {"ssl.ca.pem": ""},
    ],
)
def test_what_no_file_is_called_and_no_certificate_holds(client: dict[str, str]) -> None:
    with pytest.raises(EarshotError, match="name a certificate or key that cannot be read"):
        tls_context(client)


def test_a_clients_certificate_in_the_properties_themselves(tmp_path: Path) -> None:
    now = datetime.now(UTC)
    authority = new_authority("test", now)
    issued = issue(authority, NODE, ["b1"], 30, now)
    (ca := tmp_path / "ca.pem").write_text(authority.certificate)
    asking = server_context(issued)
    asking.load_verify_locations(ca)
    asking.verify_mode = ssl.CERT_REQUIRED
    asking.maximum_version = ssl.TLSVersion.TLSv1_2  # a later one refuses after the handshake
    own = {"ssl_certificate_pem": issued.certificate, "ssl_key_pem": issued.key}
    with server(asking) as port:
        refused = handshake("b1", port, ssl_ca_location=str(ca))
        accepted = handshake("b1", port, ssl_ca_location=str(ca), **own)
    assert isinstance(refused, Failure) and isinstance(accepted, Handshake)


ASKING = """
import sys
from earshot.doctor.probe import tls_context
both, *password = sys.argv[1:]
client = {"ssl.certificate.location": both, "ssl.key.location": both}
tls_context(client | dict.fromkeys(["ssl.key.password"] if password else [], "secret"))
"""


def test_no_password_of_a_key_is_asked_for(certificate: Path, tmp_path: Path) -> None:
    """OpenSSL would ask the terminal, and wait; without one, the standard input."""
    command = f"openssl pkey -in {certificate} -aes256 -passout pass:secret"
    key = subprocess.run(command.split(), check=True, capture_output=True, text=True).stdout
    _, begin, chain = certificate.read_text().partition("-----BEGIN CERTIFICATE")
    (both := tmp_path / "both.pem").write_text(key + begin + chain)

    def loads(*password: str) -> bool:
        words = [sys.executable, "-c", ASKING, str(both), *password]
        done = subprocess.run(
            words, input="secret\n", text=True, capture_output=True, start_new_session=True
        )
        assert done.returncode == 0 or "that cannot be read" in done.stderr
        return done.returncode == 0

    assert loads("secret") and not loads()


def test_of_a_name_with_thousands_of_addresses_few_are_tried() -> None:
    addresses = [f"127.0.{n // 250}.{n % 250 + 1}" for n in range(4000)]
    with closed_port() as (_, port):
        assert len(connected_to(port, *addresses, limit=1.0).attempts) == MAX_ATTEMPTS
        assert len(connected_to(port, *addresses, limit=1.0, end=Deadline(0)).attempts) == 1

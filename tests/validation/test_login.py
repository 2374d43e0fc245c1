"""Logins by hand: against a double of a server, which checks what it is shown."""

import base64
import hashlib
import hmac
import struct
from collections.abc import Callable

import pytest

from earshot.validation.client import Failure
from earshot.validation.deadline import Deadline
from earshot.validation.login import Login
from earshot.validation.wire import Exchange, ExchangeError, connect
from tests.doubles.peer import Reply, kafka, listening, reply, text

SALT = b"salt of the user"
NAMES = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}


def handshake(error: int, *names: str) -> Reply:
    return reply(struct.pack(">hi", error, len(names)) + b"".join(map(text, names)))


def said(data: bytes) -> bytes:
    """An answer to SaslAuthenticate."""
    return struct.pack(">h", 0) + text(None) + struct.pack(">i", len(data)) + data


def refused(message: str) -> bytes:
    return struct.pack(">h", 58) + text(message) + struct.pack(">i", -1)


Server = Callable[[bytes], bytes]
"""From what a client shows to the content of the answer."""


def plain(shown: bytes) -> bytes:
    right = shown == b"\0alice\0right"
    return said(b"") if right else refused("Authentication failed: Invalid username or password")


class Scram:
    """A server of SCRAM that keeps alice's salted password and never sees the password."""

    def __init__(self, name: str, rounds: str = "4096", **changes: str) -> None:
        self.name, self.rounds, self.changes = name, rounds, changes
        self.messages: list[str] = []

    def __call__(self, shown: bytes) -> bytes:
        self.messages.append(shown.decode())
        if len(self.messages) == 1:
            nonce = self.messages[0].rpartition("r=")[2] + "server"
            nonce = self.changes.get("r", nonce)
            salt = self.changes.get("s", base64.b64encode(SALT).decode())
            self.messages.append(f"r={nonce},s={salt},i={self.rounds}")
            return said(self.messages[1].encode())
        first = self.messages[0].removeprefix("n,,")
        unsigned, _, proof = self.messages[2].rpartition(",p=")
        signed = ",".join((first, self.messages[1], unsigned)).encode()
        salted = hashlib.pbkdf2_hmac(self.name, b"right", SALT, 4096)
        key = hmac.digest(salted, b"Client Key", self.name)
        signature = hmac.digest(hashlib.new(self.name, key).digest(), signed, self.name)
        if bytes(a ^ b for a, b in zip(base64.b64decode(proof), signature, strict=True)) != key:
            return refused("Authentication failed")
        own = hmac.digest(hmac.digest(salted, b"Server Key", self.name), signed, self.name)
        return said(f"v={self.changes.get('v', base64.b64encode(own).decode())}".encode())


def shown_to(server: Server, login: Login, first: Reply | None = None) -> Failure | None:
    """What a login ends with; None where it is accepted."""

    def authenticate(connection: object, request: bytes) -> None:
        at = 10 + struct.unpack_from(">h", request, 8)[0]
        reply(server(request[at + 4 :]))(connection, request)  # type: ignore[arg-type]

    replies = {17: first or handshake(0, login.mechanism), 36: authenticate}
    end = Deadline(60)
    with listening(kafka(replies)) as peer, connect("127.0.0.1", peer.address, None, end) as made:
        try:
            login.log_in(Exchange(made, end))
        except ExchangeError as error:
            return error.failure
    return None


def login(mechanism: str, password: str = "right", user: str = "alice") -> Login:
    return Login(mechanism, user, password)


def test_a_user_with_the_right_password_gets_in() -> None:
    assert shown_to(plain, login("PLAIN")) is None
    for mechanism, name in NAMES.items():
        assert shown_to(Scram(name), login(mechanism)) is None


def test_the_wrong_password_is_refused_and_not_shown() -> None:
    for server, mechanism in ((plain, "PLAIN"), (Scram("sha256"), "SCRAM-SHA-256")):
        failure = shown_to(server, login(mechanism, "secret"))
        assert failure is not None and failure.error == "authentication"
        assert failure.text.startswith("SASL authentication error: Authentication failed")
        assert "secret" not in failure.text
    assert "secret" not in repr(login("PLAIN", "secret"))


@pytest.mark.parametrize(("first", "error", "sentence"), [
    (handshake(33, "PLAIN", "SCRAM-SHA-512"), "mechanism",
     "SCRAM-SHA-256 is not enabled; supported mechanisms: PLAIN, SCRAM-SHA-512"),
    (handshake(33), "mechanism", "SCRAM-SHA-256 is not enabled; supported mechanisms: none"),
    (handshake(34), "no-login", "the listener does not use SASL"),
    (handshake(1), "authentication", "the login was refused (error 1)"),
])  # fmt: skip
def test_a_listener_that_takes_another_login(first: Reply, error: str, sentence: str) -> None:
    failure = shown_to(Scram("sha256"), login("SCRAM-SHA-256"), first)
    assert failure == Failure(error, sentence)


OF_SERVER = "the server's part of the login "


ROUNDS = "asks for {} rounds of hashing; allowed: 4,096 to 100,000"


@pytest.mark.parametrize(
    ("server", "sentence"),
    [
        (Scram("sha256", r="other"), "does not belong to this login"),
        (Scram("sha256", rounds="2147483647"), ROUNDS.format(2147483647)),
        (Scram("sha256", rounds="1"), ROUNDS.format(1)),
        (Scram("sha256", rounds="-1"), ROUNDS.format(-1)),
        (Scram("sha256", rounds=""), ROUNDS.format("no number of")),
        (Scram("sha256", rounds="\u0664096"), "does not belong to this login"),
        (Scram("sha256", v="AAAA"), "does not prove that it knows the password"),
        (Scram("sha256", v="no base64"), "does not prove that it knows the password"),
    ],
)
def test_a_server_that_does_not_know_the_user(server: Scram, sentence: str) -> None:
    """A peer that asks for two billion rounds would have this machine at work for an hour."""
    failure = shown_to(server, login("SCRAM-SHA-256"))
    assert failure == Failure("authentication", OF_SERVER + sentence)


def test_a_long_refusal_is_shortened() -> None:
    failure = shown_to(lambda shown: refused("x" * 30_000), login("PLAIN"))
    assert failure is not None and len(failure.text) < 300


def test_a_comma_in_a_name_is_no_field() -> None:
    server = Scram("sha256")
    assert shown_to(server, login("SCRAM-SHA-256", user="a,b=c")) is None
    assert server.messages[0].startswith("n,,n=a=2Cb=3Dc,r=")


@pytest.mark.parametrize(
    ("values", "mechanism"),
    [
        ({"sasl.mechanism": "PLAIN"}, "PLAIN"),
        ({"sasl.mechanisms": "SCRAM-SHA-512"}, "SCRAM-SHA-512"),
        ({"sasl.mechanism": "OAUTHBEARER"}, None),
        ({}, None),
    ],
)
def test_logins_that_are_spoken(values: dict[str, str], mechanism: str | None) -> None:
    found = Login.of(values | {"sasl.username": "u", "sasl.password": "p"})
    assert (found and found.mechanism) == mechanism
    assert found is None or (found.user, found.password) == ("u", "p")

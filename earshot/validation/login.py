"""SASL logins with PLAIN and SCRAM, without librdkafka."""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
import struct
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from earshot.listeners.listed import clipped
from earshot.validation.client import ClientSettings
from earshot.validation.wire import (
    ILLEGAL_SASL_STATE,
    SASL_AUTHENTICATE,
    UNSUPPORTED_MECHANISM,
    Exchange,
    ExchangeError,
    sasl_handshake,
)

_HASHES: Final = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
_ITERATIONS: Final = range(4096, 100_001)
"""The allowed SCRAM iterations. Kafka's clients refuse fewer, and its brokers use at most 16,384; a
million take a second of CPU."""
_MAX_TEXT: Final = 200


@dataclass(frozen=True)
class Login:
    """A user, a password and a SASL mechanism."""

    mechanism: str
    user: str
    password: str = field(repr=False)

    @classmethod
    def of(cls, values: ClientSettings) -> Login | None:
        """The login in ``values`` (librdkafka's properties); None for an unsupported mechanism."""
        mechanism = str(values.get("sasl.mechanism") or values.get("sasl.mechanisms") or "")
        if mechanism != "PLAIN" and mechanism not in _HASHES:
            return None
        return cls(
            mechanism, *(str(values.get(f"sasl.{key}", "")) for key in ("username", "password"))
        )

    def log_in(self, exchange: Exchange) -> None:
        """Logs in on ``exchange``. Raises ExchangeError."""
        error, enabled_mechanisms = sasl_handshake(exchange, self.mechanism)
        if error == ILLEGAL_SASL_STATE:
            raise ExchangeError("no-login", "the listener does not use SASL")
        if error == UNSUPPORTED_MECHANISM:
            names = clipped(", ".join(enabled_mechanisms), _MAX_TEXT) or "none"
            text = f"{self.mechanism} is not enabled; supported mechanisms: {names}"
            raise ExchangeError("mechanism", text)
        if error:
            raise ExchangeError("authentication", f"the login was refused (error {error})")
        if self.mechanism == "PLAIN":
            _send(exchange, f"\0{self.user}\0{self.password}".encode())
        else:
            self._scram(exchange, _HASHES[self.mechanism])

    def _scram(self, exchange: Exchange, name: str) -> None:
        """Logs in by SCRAM (RFC 5802, without channel binding)."""
        user = self.user.replace("=", "=3D").replace(",", "=2C")
        nonce = secrets.token_hex(16)
        client_first = f"n={user},r={nonce}"
        challenge = _send(exchange, f"n,,{client_first}".encode()).decode("utf-8", "replace")
        fields = _fields(challenge)
        salt, rounds = _decoded(fields.get("s", "")), fields.get("i", "")
        if not fields.get("r", "").startswith(nonce) or not rounds.isascii():
            raise _server_failure("does not belong to this login")
        if not rounds.isdigit() or len(rounds) > 9 or int(rounds) not in _ITERATIONS:
            allowed = f"allowed: {_ITERATIONS.start:,} to {_ITERATIONS.stop - 1:,}"
            raise _server_failure(
                f"asks for {clipped(rounds, 20) or 'no number of'} rounds of hashing; {allowed}"
            )
        salted_password = _salted_password(name, self.password, salt, int(rounds))
        without_proof = f"c=biws,r={fields['r']}"
        auth_message = f"{client_first},{challenge},{without_proof}".encode()
        key = hmac.digest(salted_password, b"Client Key", name)
        signature = hmac.digest(hashlib.new(name, key).digest(), auth_message, name)
        proof = bytes(a ^ b for a, b in zip(key, signature, strict=True))
        client_final = f"{without_proof},p={base64.b64encode(proof).decode()}"
        server_final = _fields(_send(exchange, client_final.encode()).decode("utf-8", "replace"))
        expected_signature = hmac.digest(
            hmac.digest(salted_password, b"Server Key", name), auth_message, name
        )
        if not hmac.compare_digest(_decoded(server_final.get("v", "")), expected_signature):
            raise _server_failure("does not prove that it knows the password")


def _send(exchange: Exchange, data: bytes) -> bytes:
    body = struct.pack(">i", len(data)) + data
    answer = exchange.request(SASL_AUTHENTICATE, 0, body)
    error, text = answer.number(2), answer.text()
    if error:
        message = clipped(text, _MAX_TEXT) or f"error {error}"
        raise ExchangeError("authentication", f"SASL authentication error: {message}")
    return answer.data(4)


def _fields(message: str) -> dict[str, str]:
    """The attributes of a SCRAM message by their letter."""
    attributes = message.split(",")
    return {attribute[0]: attribute[2:] for attribute in attributes if attribute[1:2] == "="}


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except ValueError:
        return b""


def _server_failure(problem: str) -> ExchangeError:
    return ExchangeError("authentication", f"the server's part of the login {problem}")


@lru_cache(maxsize=16)  # all brokers keep one salt for a user, and every connection needs it
def _salted_password(name: str, password: str, salt: bytes, rounds: int) -> bytes:
    return hashlib.pbkdf2_hmac(name, password.encode(), salt, rounds)

"""A SASL login by hand, with the mechanisms that take a user and a password."""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

from earshot.listeners.listed import clipped
from earshot.validation.wire import SASL_AUTHENTICATE, Exchange, ExchangeError, mechanisms

_HASHES: Final = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
_ITERATIONS: Final = range(4096, 100_001)
"""Rounds of hashing that a server may ask for: Kafka's clients refuse fewer, and its brokers keep
at most 16,384; a million take a second of a processor."""
_UNSUPPORTED_MECHANISM: Final = 33
_NO_LOGIN: Final = 34
_LONGEST_TEXT: Final = 200


@dataclass(frozen=True)
class Login:
    """A user with a password, and the mechanism to show them by."""

    mechanism: str
    user: str
    password: str = field(repr=False)

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Login | None:
        """That of ``values`` (librdkafka's properties); None for a mechanism that is not here."""
        mechanism = str(values.get("sasl.mechanism") or values.get("sasl.mechanisms") or "")
        if mechanism != "PLAIN" and mechanism not in _HASHES:
            return None
        return cls(
            mechanism, *(str(values.get(f"sasl.{key}", "")) for key in ("username", "password"))
        )

    def show(self, exchange: Exchange) -> None:
        """Logs in on ``exchange``. Raises ExchangeError."""
        error, enabled = mechanisms(exchange, self.mechanism)
        if error == _NO_LOGIN:
            raise ExchangeError("no-login", "the listener asks for no login")
        if error == _UNSUPPORTED_MECHANISM:
            names = clipped(", ".join(enabled), _LONGEST_TEXT) or "none"
            text = f"{self.mechanism} is not enabled; supported mechanisms: {names}"
            raise ExchangeError("mechanism", text)
        if error:
            raise ExchangeError("authentication", f"the login was refused (error {error})")
        if self.mechanism == "PLAIN":
            _send(exchange, f"\0{self.user}\0{self.password}".encode())
        else:
            self._scram(exchange, _HASHES[self.mechanism])

    def _scram(self, exchange: Exchange, name: str) -> None:
        """Source: RFC 5802, without channel binding."""
        user = self.user.replace("=", "=3D").replace(",", "=2C")
        nonce = secrets.token_hex(16)
        first = f"n={user},r={nonce}"
        challenge = _send(exchange, f"n,,{first}".encode()).decode("utf-8", "replace")
        fields = _fields(challenge)
        salt, rounds = _decoded(fields.get("s", "")), fields.get("i", "")
        if not fields.get("r", "").startswith(nonce) or not rounds.isascii():
            raise _odd("does not belong to this login")
        if not rounds.isdigit() or len(rounds) > 9 or int(rounds) not in _ITERATIONS:
            most = f"allowed: {_ITERATIONS.start:,} to {_ITERATIONS.stop - 1:,}"
            raise _odd(
                f"asks for {clipped(rounds, 20) or 'no number of'} rounds of hashing; {most}"
            )
        salted = _salted(name, self.password, salt, int(rounds))
        unsigned = f"c=biws,r={fields['r']}"
        signed = f"{first},{challenge},{unsigned}".encode()
        key = hmac.digest(salted, b"Client Key", name)
        signature = hmac.digest(hashlib.new(name, key).digest(), signed, name)
        proof = bytes(a ^ b for a, b in zip(key, signature, strict=True))
        last = f"{unsigned},p={base64.b64encode(proof).decode()}"
        final = _fields(_send(exchange, last.encode()).decode("utf-8", "replace"))
        expected = hmac.digest(hmac.digest(salted, b"Server Key", name), signed, name)
        if not hmac.compare_digest(_decoded(final.get("v", "")), expected):
            raise _odd("does not prove that it knows the password")


def _send(exchange: Exchange, data: bytes) -> bytes:
    body = struct.pack(">i", len(data)) + data
    answer = exchange.request(SASL_AUTHENTICATE, 0, body)
    error, text = answer.number(2), answer.text()
    if error:
        shown = clipped(text, _LONGEST_TEXT) or f"error {error}"
        raise ExchangeError("authentication", f"SASL authentication error: {shown}")
    return answer.data(4)


def _fields(message: str) -> dict[str, str]:
    return {part[0]: part[2:] for part in message.split(",") if part[1:2] == "="}


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except ValueError:
        return b""


def _odd(what: str) -> ExchangeError:
    return ExchangeError("authentication", f"the server's part of the login {what}")


@lru_cache(maxsize=16)  # all brokers keep one salt for a user, and every connection needs it
def _salted(name: str, password: str, salt: bytes, rounds: int) -> bytes:
    return hashlib.pbkdf2_hmac(name, password.encode(), salt, rounds)

"""A login by SCRAM (RFC 5802), as a client: three messages, of which the password is none."""

import base64
import hashlib
import hmac
import secrets
from typing import Final

from earshot.listeners.terms import Mechanism

_HASHES: Final = {Mechanism.SCRAM_SHA_256: "sha256", Mechanism.SCRAM_SHA_512: "sha512"}
_NO_BINDING: Final = "biws"
"""`n,,` in Base64: channel binding is not used."""
_ITERATIONS: Final = range(1, 1_000_001)
"""More would keep this machine busy for long; earshot's users have 4096."""


class ScramClient:
    """One login of ``user``; its name and password are ASCII, and the name has no `,` or `=`."""

    def __init__(self, mechanism: Mechanism, user: str, password: str, nonce: str = "") -> None:
        self.mechanism = mechanism
        self._hash, self._password = _HASHES[mechanism], password.encode()
        self._nonce = nonce or secrets.token_urlsafe(18)
        self._bare = f"n={user},r={self._nonce}"
        self._signature = b""

    @property
    def first(self) -> bytes:
        """The first message."""
        return f"n,,{self._bare}".encode()

    def final(self, answer: bytes) -> bytes:
        """The second message, after the server's ``answer`` to the first. Raises ValueError."""
        values = _attributes(answer)
        nonce, salt = values.get("r", ""), base64.b64decode(values.get("s", ""))
        iterations = int(values.get("i", "0"))
        if not nonce.startswith(self._nonce) or not salt or iterations not in _ITERATIONS:
            raise ValueError("the broker answers the login with something else than SCRAM")
        salted = hashlib.pbkdf2_hmac(self._hash, self._password, salt, iterations)
        bare = f"c={_NO_BINDING},r={nonce}"
        signed = f"{self._bare},{answer.decode()},{bare}".encode()
        key = self._mac(salted, b"Client Key")
        signature = self._mac(hashlib.new(self._hash, key).digest(), signed)
        proof = bytes(one ^ other for one, other in zip(key, signature, strict=True))
        self._signature = self._mac(self._mac(salted, b"Server Key"), signed)
        return f"{bare},p={base64.b64encode(proof).decode()}".encode()

    def check(self, answer: bytes) -> None:
        """Raises ValueError where the server does not know the password itself."""
        signature = base64.b64decode(_attributes(answer).get("v", ""))
        if not hmac.compare_digest(signature, self._signature):
            raise ValueError("the broker does not prove that it knows the password")

    def _mac(self, key: bytes, text: bytes) -> bytes:
        return hmac.new(key, text, self._hash).digest()


def _attributes(message: bytes) -> dict[str, str]:
    pairs = (part.partition("=") for part in message.decode().split(","))
    return {key: value for key, _, value in pairs}

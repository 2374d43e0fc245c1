"""A failure to connect, to log in or to be answered, whichever client has met it."""

from dataclasses import dataclass
from typing import Final

UNKNOWN_TO_BROKER: Final = "authentication"
"""The failure of a login whose user or password a broker does not know."""


@dataclass(frozen=True)
class Failure:
    """A failure: a stable word for it (`error`), and the text of the program that failed."""

    error: str
    text: str


def refuses_certificate(text: str) -> bool:
    """Whether ``text``, of OpenSSL, is from a server that wants another client certificate."""
    lowered = text.lower().replace("_", " ")
    reasons = ("bad certificate", "certificate", "unknown ca", "unsupported certificate")
    return any(f"alert {reason}" in lowered for reason in reasons)

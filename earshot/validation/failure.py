"""A failure to connect, to log in or to get an answer, for all clients."""

from dataclasses import dataclass
from typing import Final

UNKNOWN_TO_BROKER: Final = "authentication"
"""The error of a login whose user or password the broker does not accept."""


@dataclass(frozen=True)
class Failure:
    """A failure: a stable word (`error`), and the text of the program that failed."""

    error: str
    text: str


def refuses_certificate(text: str) -> bool:
    """True if ``text`` (of OpenSSL) means that the server refused the client's certificate."""
    reasons = ("bad certificate", "certificate", "unknown ca", "unsupported certificate")
    return any(_has_alert(text, reason) for reason in reasons)


def refuses_parameter(text: str) -> bool:
    """True if ``text`` (of OpenSSL) means that the server refused a parameter of the handshake. For
    Java, the name of a host may be one."""
    return _has_alert(text, "illegal parameter")


def _has_alert(text: str, reason: str) -> bool:
    return f"alert {reason}" in text.lower().replace("_", " ")

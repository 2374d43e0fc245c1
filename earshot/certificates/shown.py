"""The public data of a node's certificate, which every client sees that connects with TLS."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Self

from earshot.certificates.names import SubjectNames
from earshot.json_object import Document, JsonObject


@dataclass(frozen=True)
class Refusal:
    """Why clients refuse a certificate, what they accept, and the fix."""

    observed: str
    expected: str
    remedy: str


@dataclass(frozen=True)
class ShownCertificate:
    """A certificate and the chain that is sent with it."""

    names: SubjectNames
    not_before: datetime
    not_after: datetime
    """The earliest expiry of the certificate and its chain."""
    key: str
    """SHA-256 of the public key, as hex."""
    missing: str = ""
    """Subject of the first certificate that is neither sent nor trusted; empty if the chain is
    complete."""
    for_servers: bool = True
    for_clients: bool = True
    """Permitted uses; brokers also use it as clients of each other."""
    refusal: Refusal | None = None
    """Why clients refuse a complete chain; None if they accept it."""

    def document(self) -> JsonObject:
        """The certificate as JSON; `read` reads it back."""
        times = {"not_before": self.not_before, "not_after": self.not_after}
        names = {"dns": list(self.names.dns), "addresses": list(self.names.addresses)}
        return {**asdict(self), **{k: v.isoformat() for k, v in times.items()}, "names": names}

    @classmethod
    def read(cls, document: Document) -> Self:
        """The certificate from the result of `document`."""
        names = document["names"]
        times = {k: datetime.fromisoformat(document[k]) for k in ("not_before", "not_after")}
        subject = SubjectNames(tuple(names.get("dns") or ()), tuple(names.get("addresses") or ()))
        refused = Refusal(**refusal) if (refusal := document.get("refusal")) else None
        return cls(**{**document, **times, "names": subject, "refusal": refused})

"""What a node's certificate shows to every client that connects with TLS. Data, no secret."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Self

from earshot.certificates.names import SubjectNames


@dataclass(frozen=True)
class Refusal:
    """Why clients refuse a certificate, what they accept, and how to get that."""

    observed: str
    expected: str
    remedy: str


@dataclass(frozen=True)
class ShownCertificate:
    """A certificate with the chain that is sent along with it."""

    names: SubjectNames
    not_before: datetime
    not_after: datetime
    """The first moment at which it or one of its chain is no longer valid."""
    key: str
    """SHA-256 of the public key, in hexadecimal digits: who has the same, has the same key."""
    missing: str = ""
    """Whose certificate is neither sent nor trusted, so that the chain ends before an authority
    that is; empty where it is complete."""
    for_servers: bool = True
    for_clients: bool = True
    """What it may be used for: brokers show it to each other as clients, too."""
    refusal: Refusal | None = None
    """Why clients refuse it although the chain is complete; None where they accept it."""

    def document(self) -> dict[str, Any]:
        """The certificate as JSON; `read` reads it back."""
        times = {"not_before": self.not_before, "not_after": self.not_after}
        names = {"dns": list(self.names.dns), "addresses": list(self.names.addresses)}
        return {**asdict(self), **{k: v.isoformat() for k, v in times.items()}, "names": names}

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> Self:
        """What `document` wrote."""
        names = document["names"]
        times = {k: datetime.fromisoformat(document[k]) for k in ("not_before", "not_after")}
        subject = SubjectNames(tuple(names.get("dns") or ()), tuple(names.get("addresses") or ()))
        refused = Refusal(**refusal) if (refusal := document.get("refusal")) else None
        return cls(**{**document, **times, "names": subject, "refusal": refused})

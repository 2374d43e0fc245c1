"""One lookup of one name: what was asked, who answered, and which of five things came of it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Diagnosis(StrEnum):
    """What a lookup came to; the four failures have different causes and different remedies."""

    OK = "ok"
    NXDOMAIN = "nxdomain"
    """The name does not exist for this resolver: a typo, the wrong zone, the wrong network."""
    NO_ANSWER = "no-answer"
    """The name exists, without an address record."""
    SERVER_FAILURE = "server-failure"
    """Every server refused or failed: broken delegation, or a resolver that does not serve us."""
    TIMEOUT = "timeout"
    """Nobody answered in time: perhaps the vantage is broken, not the name."""


@dataclass(frozen=True)
class Lookup:
    """The outcome for ``name`` at ``resolver``; frozen, so that it can be shown and compared."""

    name: str
    resolver: str
    """Who was asked, as a report prints it."""
    diagnosis: Diagnosis
    addresses: tuple[str, ...] = ()
    """In the resolver's order, without zones; empty unless the diagnosis is ok."""
    seconds: float = 0.0
    detail: str = ""
    answered: bool = True
    """Whether any server answered at all, be it with a failure."""

    @property
    def ok(self) -> bool:
        return self.diagnosis is Diagnosis.OK

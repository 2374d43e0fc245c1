"""Evidence: why we believe that a name resolves for the clients of a (listener, scope)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from earshot.listeners.model import Scope
from earshot.names.lookup import Lookup

EvidenceKey = tuple[str, Scope, str]
"""(listener name, scope, advertised host)."""


class EvidenceKind(StrEnum):
    """How good the reason is."""

    LIVE = "live"
    """Looked up just now with that scope's resolver."""
    DECLARED = "declared"
    """A resource of the same stack makes it so, and no resolver of the scope can be asked here."""
    NONE = "none"


@dataclass(frozen=True)
class Evidence:
    """What is known of one name for one (listener, scope)."""

    kind: EvidenceKind
    lookup: Lookup | None
    why: str
    declared: tuple[str, ...] = ()
    """Addresses that the declaring resource holds, where it holds any."""

    @property
    def addresses(self) -> tuple[str, ...]:
        """What the name leads to, as far as the evidence goes."""
        if self.kind is EvidenceKind.LIVE and self.lookup is not None:
            return self.lookup.addresses
        return self.declared if self.kind is EvidenceKind.DECLARED else ()

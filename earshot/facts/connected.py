"""Other VPCs whose clients use a cluster's internal listeners, as far as they are known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from earshot.names.lookup import Lookup


@dataclass(frozen=True)
class ConnectedVpc:
    """Another VPC, connected by peering or a Transit Gateway."""

    name: str
    id: str
    cidr: str
    zone: str = ""
    """The private zone that has the brokers' names; empty where AWS gives them."""
    is_associated: bool | None = None
    """Whether that zone is associated with the VPC; None is not known."""
    is_routed: bool | None = None
    """Whether routes lead there from the brokers, and back; None is not known."""
    resolver: tuple[str, ...] = ()
    """DNS servers that answer as the VPC's own does; empty where none can be asked."""
    lookups: Mapping[str, Lookup] = field(default_factory=dict)
    """By host in lower case, what that resolver answered."""

    def document(self) -> dict[str, Any]:
        """The same without lookups, as plain data."""
        return {
            "name": self.name,
            "id": self.id,
            "cidr": self.cidr,
            "zone": self.zone,
            "is_associated": self.is_associated,
            "is_routed": self.is_routed,
            "resolver": list(self.resolver),
        }

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> ConnectedVpc:
        """From a `document`; null values may be left out of it."""
        return cls(
            name=document["name"],
            id=document["id"],
            cidr=document["cidr"],
            zone=document.get("zone", ""),
            is_associated=document.get("is_associated"),
            is_routed=document.get("is_routed"),
            resolver=tuple(document.get("resolver", ())),
        )

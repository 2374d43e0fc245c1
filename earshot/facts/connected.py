"""Other VPCs whose clients use a cluster's internal listeners."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from earshot.json_object import Document, JsonObject
from earshot.names.lookup import Lookup


@dataclass(frozen=True)
class ConnectedVpc:
    """Another VPC, connected by peering or a Transit Gateway."""

    name: str
    id: str
    cidr: str
    zone: str = ""
    """The private zone of the brokers' names; empty if AWS assigns the names."""
    is_associated: bool | None = None
    """Whether the zone is associated with the VPC; None if unknown."""
    is_routed: bool | None = None
    """Whether routes exist between brokers and VPC, in both directions; None if unknown."""
    resolver: tuple[str, ...] = ()
    """DNS servers that answer as the VPC's resolver does; empty if none can be queried."""
    lookups: Mapping[str, Lookup] = field(default_factory=dict)
    """The resolver's answers by host in lower case."""

    def document(self) -> JsonObject:
        """Returns plain data for `read`, without the lookups."""
        fields = {**vars(self), "resolver": list(self.resolver)}
        return {name: value for name, value in fields.items() if name != "lookups"}

    @classmethod
    def read(cls, document: Document) -> ConnectedVpc:
        """Reads a `document`, in which null values may be absent."""
        return cls(**{**document, "resolver": tuple(document.get("resolver", ()))})

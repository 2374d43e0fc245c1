"""What every placement makes of a cluster's spec."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from earshot.certificates.shown import ShownCertificate
from earshot.facts.cloud import Cloud
from earshot.listeners.model import ClusterPlan
from earshot.placement.node_container import NodeContainer
from earshot.placement.plan import NodeNames


@dataclass(frozen=True, kw_only=True)
class Planned:
    """The plan of a spec, and what its placement knows besides; mappings are by node id."""

    plan: ClusterPlan
    names: Mapping[int, NodeNames]
    notes: tuple[str, ...]
    """What a user should know about the names."""
    containers: Mapping[int, NodeContainer] = field(default_factory=dict)
    """Empty where nodes are none."""
    certificates: Mapping[int, ShownCertificate] = field(default_factory=dict)
    """Where others have made them."""

    @property
    def addresses(self) -> dict[int, tuple[str, ...]]:
        """Each node's own addresses, where the placement gives them."""
        return {}

    @property
    def cloud(self) -> Cloud | None:
        """What surrounds nodes that are instances."""
        return None

    def container_of(self, node_id: int) -> str:
        """The name of a node's container, with its host's where there are several; else empty."""
        return ""

"""The facts about one cluster that rules check."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

from earshot.listeners.properties import NodeSettings
from earshot.listeners.render import annotated

if TYPE_CHECKING:
    from datetime import datetime

    from earshot.certificates.shown import ShownCertificate
    from earshot.facts.cloud import Instance
    from earshot.facts.connected import ConnectedVpc
    from earshot.facts.security_groups import Clients
    from earshot.facts.strimzi import StrimziKafka
    from earshot.listeners.model import ClusterPlan, Listener, Node
    from earshot.listeners.terms import Scope
    from earshot.names.evidence import Evidence, EvidenceKey
    from earshot.topology.container import Container
    from earshot.topology.model import Deployment


class NotKnown(Enum):
    """In place of facts that exist and are not known yet."""

    YET = "not known yet"


@dataclass(frozen=True)
class ClusterFacts:
    """The known facts about one cluster.

    ``plan`` is None if the settings cannot be read as a plan. By node id: ``settings`` (raw
    properties), ``addresses`` (the node's own IP addresses), ``containers``, ``instances`` (EC2)
    and ``certificates`` (those of another authority, checked at ``now``). ``evidence`` has the
    lookups and declarations of advertised names. ``waivers`` maps a name in lower case to the
    reason why it need not resolve here. ``clients`` may connect to the instances, None if not
    stated; ``connected`` are other VPCs with clients. ``deployment`` has the containers and clients
    of a file or program, ``strimzi`` its `Kafka` resources.
    """

    plan: ClusterPlan | None
    settings: Mapping[int, NodeSettings] = field(default_factory=dict)
    placement: str = "local"
    addresses: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    evidence: Mapping[EvidenceKey, Evidence] = field(default_factory=dict)
    waivers: Mapping[str, str] = field(default_factory=dict)
    containers: Mapping[int, Container] = field(default_factory=dict)
    instances: Mapping[int, Instance] = field(default_factory=dict)
    clients: Clients | None = None
    connected: tuple[ConnectedVpc, ...] = ()
    deployment: Deployment | None = None
    strimzi: tuple[StrimziKafka, ...] = ()
    certificates: Mapping[int, ShownCertificate] = field(default_factory=dict)
    now: datetime | None = None

    @classmethod
    def of(cls, plan: ClusterPlan, placement: str = "local") -> ClusterFacts:
        """The facts about a plan of earshot, with the settings that it renders."""
        rendered = {node.id: annotated(plan, node) for node in plan.nodes}
        return cls(plan=plan, settings=rendered, placement=placement)

    @property
    def nodes(self) -> tuple[Node, ...]:
        """The nodes of the plan; empty without a plan."""
        return self.plan.nodes if self.plan is not None else ()

    @property
    def kafka_version(self) -> str:
        """The cluster's Kafka version, or an empty string."""
        if self.plan is not None:
            return self.plan.kafka_version
        versions = (setting.notes.get("kafka_version", "") for setting in self.settings.values())
        return next(filter(None, versions), "")

    def advertised(self) -> Iterator[tuple[Node, Listener, Scope]]:
        """Every (node, listener, scope) of the plan, in its order."""
        for node in self.nodes:
            for listener in node.listeners:
                for scope in listener.scopes:
                    yield node, listener, scope

    def bootstraps(self) -> Iterator[tuple[Node, Listener, Scope]]:
        """Every (node, listener, scope) with a bootstrap name.

        The host of the returned listener is the bootstrap name instead of the advertised name. A
        name that several brokers share is returned once.
        """
        seen: set[tuple[str, Scope, str]] = set()
        for node, listener, scope in self.advertised():
            for host in listener.hosts[1:]:
                if (key := (listener.name, scope, str(host))) not in seen:
                    seen.add(key)
                    yield node, listener.model_copy(update={"host": host}), scope

    def evidence_for(self, listener: Listener, scope: Scope) -> Evidence | None:
        """The evidence that the listener's advertised host resolves for ``scope``."""
        return self.evidence.get((listener.name, scope, str(listener.host)))

    def advertised_addresses(self, listener: Listener, scope: Scope) -> tuple[str, ...]:
        """The advertised host, and the addresses that it resolves to by the evidence."""
        evidence = self.evidence_for(listener, scope)
        addresses = evidence.addresses if evidence else ()
        return tuple(dict.fromkeys((str(listener.host), *addresses)))

    def waiver_reason(self, host: str) -> str:
        """The waiver's reason for ``host``, or an empty string."""
        return self.waivers.get(host.lower(), "")

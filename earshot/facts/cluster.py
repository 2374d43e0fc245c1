"""The facts that rules check: all of them given, nothing here looks anything up."""

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
    """What a caller hands over in place of facts that exist, and that are not known here yet."""

    YET = "not known yet"


@dataclass(frozen=True)
class ClusterFacts:
    """One cluster as far as it is known.

    ``plan`` is None where settings were given that cannot be read as one; ``settings`` holds each
    node's raw properties by node id; ``addresses`` its own provisioned IP addresses; ``waivers``
    maps a name (lower case) to the reason why it need not resolve here; ``containers`` holds
    what each node runs in, by node id, where it runs in a container; ``instances`` what it runs
    on, where that is an EC2 instance; ``clients`` says who may connect there, None that it has
    said; ``connected`` are other VPCs with clients; ``certificates`` what each node shows, by node
    id, where others have made it, and ``now`` when that is checked.
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
        """The facts about a plan that earshot computed: the settings are those it renders."""
        rendered = {node.id: annotated(plan, node) for node in plan.nodes}
        return cls(plan=plan, settings=rendered, placement=placement)

    @property
    def nodes(self) -> tuple[Node, ...]:
        """Those of the plan; none without one."""
        return self.plan.nodes if self.plan is not None else ()

    @property
    def kafka_version(self) -> str:
        """The version that the cluster is for, or an empty text."""
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
        """Every (node, listener, scope) whose first connections go to a name of their own, once
        for all brokers; the listener has that name as its host."""
        seen: set[tuple[str, Scope, str]] = set()
        for node, listener, scope in self.advertised():
            for host in listener.hosts[1:]:
                if (key := (listener.name, scope, str(host))) not in seen:
                    seen.add(key)
                    yield node, listener.model_copy(update={"host": host}), scope

    def evidence_for(self, listener: Listener, scope: Scope) -> Evidence | None:
        """What shows that the listener's advertised host resolves for ``scope``."""
        return self.evidence.get((listener.name, scope, str(listener.host)))

    def advertised_addresses(self, listener: Listener, scope: Scope) -> tuple[str, ...]:
        """The advertised host, and every address that it resolves to by the evidence."""
        evidence = self.evidence_for(listener, scope)
        found = (str(listener.host), *(evidence.addresses if evidence else ()))
        return tuple(dict.fromkeys(found))

    def waiver_reason(self, host: str) -> str:
        """The waiver's reason for ``host``, or an empty text."""
        return self.waivers.get(host.lower(), "")

"""Brokers on EC2 instances of any program, checked with the resources of their stack."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from earshot.checks.instances import InstanceBroker, NameEvidence, name_evidence
from earshot.facts.cloud import Instance
from earshot.facts.cluster import ClusterFacts
from earshot.listeners.model import ClusterPlan
from earshot.listeners.properties import NodeSettings
from earshot.names.evidence import EvidenceKey
from earshot.names.kinds import ip_of
from earshot.names.policy import ResolverPolicy, SystemResolvers
from earshot.rules import kl007_security_groups, kl011_resolves, kl012_same_broker
from earshot.rules.evaluate import evaluate, remarks, rules_at
from earshot.rules.rule import AppliedAt, Finding, FindingState, Severity
from earshot.sources.clusters import QUORUM
from earshot.sources.hosted_zones import Zones
from earshot.sources.instance import instance_facts, is_computed
from earshot.sources.instance_network import InstanceNetwork, instance_network
from earshot.sources.stack_resources import RegisteredStack


@dataclass(frozen=True)
class StackEvaluation:
    """Findings and remarks, each with the URN of its container or instance."""

    findings: tuple[tuple[str, Finding], ...] = ()
    remarks: tuple[tuple[str, str], ...] = ()


def evaluate_stack(
    brokers: Iterable[InstanceBroker],
    stack: RegisteredStack,
    policies: Mapping[str, ResolverPolicy],
    asked: SystemResolvers,
) -> StackEvaluation:
    """The findings about ``brokers`` from the resources of ``stack``.

    ``policies`` are the resolver policies by instance URN; ``asked`` provides the resolvers.
    Findings that an instance's own inputs showed are not repeated.
    """
    networks: dict[str, InstanceNetwork] = {}
    members: list[_Member] = []
    for broker in brokers:
        instance = stack.get(broker.holder)
        if instance is None:
            continue
        network = networks.setdefault(broker.holder, instance_network(stack, instance))
        facts = instance_facts(broker.written, network.own_name)
        if facts.plan is not None:
            members.append(_Member(broker, facts.plan, facts.settings))
    zones, evaluation = Zones(stack), StackEvaluation()
    for cluster in _clusters(members):
        policy = policies.get(cluster[0].broker.holder, ResolverPolicy())
        checked = _Cluster(cluster, networks).evaluate(zones, policy, asked)
        findings, remarks = evaluation.findings + checked.findings, checked.remarks
        evaluation = StackEvaluation(findings, evaluation.remarks + remarks)
    return evaluation


class _Member(NamedTuple):
    """A broker with its plan and settings."""

    broker: InstanceBroker
    plan: ClusterPlan
    settings: Mapping[int, NodeSettings]


def _clusters(read: list[_Member]) -> list[list[_Member]]:
    """Groups of brokers with the same quorum and names, and different ids."""
    clusters: dict[tuple[str, ...], list[_Member]] = {}
    for member in read:
        holder, values = member.broker.holder, member.broker.written.settings.values
        quorum = next(filter(None, map(values.get, QUORUM)), holder)
        (id,) = member.settings
        key: tuple[str, ...] = (quorum, member.plan.inter_broker, member.plan.controller)
        while any(id in other.settings for other in clusters.get(key, ())):
            key = (*key, holder)
        clusters.setdefault(key, []).append(member)
    return list(clusters.values())


class _Cluster:
    """Nodes that are checked together."""

    def __init__(self, members: list[_Member], around: Mapping[str, InstanceNetwork]) -> None:
        plans = [member.plan for member in members]
        self._brokers = {id: member.broker for member in members for id in member.settings}
        self._networks = {id: around[broker.holder] for id, broker in self._brokers.items()}
        self._plan: ClusterPlan = plans[0].model_copy(
            update={"nodes": tuple(node for plan in plans for node in plan.nodes)}
        )
        self._numbers = {ip_of(text) for own in self._networks.values() for text in own.addresses}
        self._settings = {id: setting for one in members for id, setting in one.settings.items()}

    def evaluate(
        self, zones: Zones, policy: ResolverPolicy, asked: SystemResolvers
    ) -> StackEvaluation:
        facts = ClusterFacts(
            plan=self._plan,
            settings=self._settings,
            placement="aws",
            addresses={id: network.addresses for id, network in self._networks.items()},
            waivers=policy.waivers,
            instances={
                id: Instance(ingress=network.ingress, elastic=network.elastic)
                for id, network in self._networks.items()
            },
        )
        named = name_evidence(facts, self._networks, zones, policy, asked)
        facts = replace(facts, evidence=named.evidence)
        first = self._plan.nodes[0].id
        findings = (
            (self._brokers[first if finding.node is None else finding.node].holder, finding)
            for finding in evaluate(facts, rules_at(AppliedAt.INSTANCES))
            if not self._is_reported(finding)
        )
        return StackEvaluation(
            tuple((holder, self._adjusted(finding, named)) for holder, finding in findings),
            tuple((self._brokers[first].holder, text) for text in remarks(facts)),
        )

    def _adjusted(self, finding: Finding, evidence: NameEvidence) -> Finding:
        if finding.listener is None or finding.scope is None or finding.host is None:
            return finding
        key: EvidenceKey = (finding.listener, finding.scope, finding.host)
        if finding.rule == kl012_same_broker.RULE.id and finding.state is FindingState.VIOLATED:
            addresses = {ip_of(text) for text in evidence.evidence[key].addresses}
            if not addresses & self._numbers:  # a load balancer may be in front of the broker
                return replace(finding, severity=Severity.WARNING)
        if finding.rule == kl011_resolves.RULE.id and key in evidence.undecided:
            return replace(
                finding,
                state=FindingState.UNKNOWN,
                observed=f"{finding.observed}; {evidence.undecided[key]}",
                remedy="nothing where the update makes it known; else give a resolver of its "
                "scope, or waive it with a reason",
            )
        return finding

    def _is_reported(self, finding: Finding) -> bool:
        """Whether the rule reported the listener before, or its host is computed."""
        if finding.state is FindingState.UNKNOWN and finding.node is None:
            return any(broker.written.places for broker in self._brokers.values())
        if finding.node is None:
            return False
        broker = self._brokers[finding.node]
        listener = self._plan.node(finding.node).listener(finding.listener or "")
        is_unknown = listener is not None and is_computed(listener.host)
        is_hidden = is_unknown and finding.rule != kl007_security_groups.RULE.id
        return is_hidden or broker.has_reported(finding)

"""The check of a cluster's plan, for the gate, the policy pack and `earshot plan --check`."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime

from earshot.certificates.shown import ShownCertificate
from earshot.checks.connected import with_lookups
from earshot.checks.containers import evidence
from earshot.config.document import Spec
from earshot.facts.cloud import Cloud
from earshot.facts.cluster import ClusterFacts, NotKnown
from earshot.listeners.listed import numbered, shortened
from earshot.listeners.model import ClusterPlan
from earshot.listeners.terms import Scope
from earshot.names.evidence import Declaration, EvidenceKey, gather
from earshot.names.machine import own_addresses
from earshot.names.policy import ResolverPolicy
from earshot.placement import PlacementPlan
from earshot.placement_registry import in_containers, on_this_machine
from earshot.rules import (
    kl006_container_ports,
    kl007_security_groups,
    kl009_lasting_address,
    kl010_certificates,
    kl012_same_broker,
)
from earshot.rules.evaluate import RULES, CheckResult, evaluate, remarks
from earshot.rules.rule import Finding, FindingState, Rule
from earshot.sources.docker_container import read_container
from earshot.topology.container import Container

AWS = "aws"
_ANY_ID = "-"
"""A cluster id, which no rule checks."""


def check_plan(
    plan: ClusterPlan,
    placement: str,
    policy: ResolverPolicy,
    *,
    addresses: Mapping[int, tuple[str, ...]] | None = None,
    containers: Mapping[int, Container] | NotKnown | None = None,
    cloud: Cloud | None = None,
    declared: Mapping[EvidenceKey, Declaration] | None = None,
    certificates: Mapping[int, ShownCertificate] | None = None,
) -> CheckResult:
    """Looks up the plan's names as ``policy`` defines, and applies every rule.

    By node id: ``addresses`` (an empty tuple if unknown; those of this machine are detected),
    ``containers`` (`NotKnown.YET` if they are not known yet) and ``certificates`` (empty if
    earshot issues them, for a plan with `security`). ``cloud`` is the network of instances on AWS;
    ``declared`` are declared names, for callers without ``cloud``.

    Omitted facts disable no rule: nodes then have no container, and their addresses, security
    groups and certificates give findings of state unknown.
    """
    if on_this_machine(placement):
        addresses = dict.fromkeys((node.id for node in plan.nodes), own_addresses())
    not_known_yet = isinstance(containers, NotKnown)
    facts = replace(
        ClusterFacts.of(plan, placement),
        addresses=dict(addresses or {}),
        waivers=policy.waivers,
        containers={} if isinstance(containers, NotKnown) else dict(containers or {}),
        instances=cloud.instances if cloud else {},
        clients=cloud.clients if cloud else None,
        certificates=certificates or {},
        now=datetime.now(UTC),
    )
    declared = cloud.declared if cloud else declared
    evidence_by_key = (
        evidence(facts, policy, declared=declared)
        if in_containers(placement)
        else gather(plan, policy, placement, declared)
    )
    connected = with_lookups(plan, cloud.connected, policy) if cloud else ()
    facts = replace(facts, evidence=evidence_by_key, connected=connected)
    notes = remarks(facts)
    rules: Collection[Rule] = RULES
    if in_containers(placement) and all(facts.addresses.get(node.id) == () for node in plan.nodes):
        rules = [rule for rule in RULES if rule is not kl012_same_broker.RULE]
        notes += tuple(_not_compared(facts))
    findings = evaluate(facts, rules)
    if not_known_yet or any(container.unknown for container in facts.containers.values()):
        findings = tuple(_without_network_names(findings))
    are_certificates_known = bool(certificates) or (
        certificates is not None and plan.security is not None
    )
    left_out = [
        *_without_containers(facts, not_known_yet=not_known_yet),
        *(() if are_certificates_known else _without_certificates(facts)),
        *(_without_cloud(facts, cloud) if placement == AWS else ()),
    ]
    return CheckResult((*findings, *left_out), notes)


def _without_network_names(findings: Iterable[Finding]) -> Iterator[Finding]:
    """``findings`` without those on names of unknown Docker networks, which KL006 reports."""
    comparing = {rule.id for rule in RULES if rule.compares_names}
    for finding in findings:
        if finding.rule not in comparing or finding.scope in (Scope.HOST, Scope.EXTERNAL):
            yield finding


def _not_compared(facts: ClusterFacts) -> Iterator[str]:
    """The note that KL012 did not compare hosts with unknown addresses."""
    rule = kl012_same_broker.RULE
    asked = {finding.listener for finding in rule.findings(facts)}
    hosts = dict.fromkeys(
        str(listener.host) for _, listener, _ in facts.advertised() if listener.name in asked
    )
    if hosts:
        yield (
            f"{rule.id}: whether {shortened(list(hosts))} leads to the brokers advertising it is "
            "not checked, as the addresses of their hosts are not known here; `earshot doctor` and "
            "the validation ask which broker answers"
        )


def _without_containers(facts: ClusterFacts, *, not_known_yet: bool) -> Iterator[Finding]:
    """The finding that the containers of some nodes are unknown."""
    missing = [node.id for node in facts.nodes if node.id not in facts.containers]
    if not_known_yet:
        yield _unknown(
            kl006_container_ports.RULE, "containers", "nothing yet: the update checks it"
        )
    elif missing and in_containers(facts.placement):
        missing_text = f"the containers of {numbered('node', missing)}"
        yield _unknown(
            kl006_container_ports.RULE,
            missing_text,
            "state `nodes.ID.container`, what each container publishes and is called",
        )


def _without_certificates(facts: ClusterFacts) -> Iterator[Finding]:
    """The findings of KL010 about unknown certificates."""
    if any(listener.protocol.tls for node in facts.nodes for listener in node.listeners):
        yield from kl010_certificates.RULE.findings(facts)


def _without_cloud(facts: ClusterFacts, cloud: Cloud | None) -> Iterator[Finding]:
    """The findings that the AWS network of some or all instances is unknown."""
    instances = cloud.instances if cloud is not None else {}
    missing = [node.id for node in facts.nodes if node.id not in instances]
    if not missing:
        return
    around = "what surrounds the instances"
    if instances:
        around += f" of {numbered('node', missing)}"
    remedy = "in an update, run the policy pack, which reads the groups and Elastic IPs that the "
    remedy += "stack creates; a caller of the library passes them as `cloud`"
    for rule in (kl007_security_groups.RULE, kl009_lasting_address.RULE):
        yield _unknown(rule, around, remedy)


def _unknown(rule: Rule, subject: str, remedy: str) -> Finding:
    """The finding that ``rule`` cannot be checked, as ``subject`` is unknown."""
    return rule.finding(
        f"{subject}: not known yet",
        "its value, checked again when it is known",
        state=FindingState.UNKNOWN,
        remedy=remedy,
    )


def check_planned(spec: Spec, planned: PlacementPlan, policy: ResolverPolicy) -> CheckResult:
    """Checks the plan of ``spec`` with the facts that its placement adds."""
    containers = planned.containers.items()
    return check_plan(
        planned.plan,
        spec.placement,
        policy,
        addresses=dict.fromkeys((node.id for node in planned.plan.nodes), ()) | planned.addresses,
        containers={id: read_container(container.inputs(_ANY_ID)) for id, container in containers},
        cloud=planned.cloud,
        certificates=planned.certificates,
    )

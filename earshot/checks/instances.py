"""Brokers on EC2 instances of any program, checked one by one from their own inputs.

This module also gathers the evidence for advertised names: EC2's names, the stack's records, and
DNS. Other checks of the stack's resources are in `instance_stack`.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from earshot.checks.lone_settings import advice_in_user_data, mistakes_in_user_data
from earshot.facts.cluster import ClusterFacts
from earshot.facts.settings import node_id, readable_entries
from earshot.listeners.grammar import Bad, read_listeners
from earshot.listeners.model import ClusterPlan
from earshot.listeners.render import settings
from earshot.listeners.terms import Scope
from earshot.names.aws import Ec2Name, Interface, declaration, read_name, resolution
from earshot.names.evidence import Declaration, Evidence, EvidenceKey, EvidenceKind, gather
from earshot.names.kinds import NameKind, ip_of, kind_of
from earshot.names.policy import ResolverPolicy, SystemResolvers
from earshot.names.reachability import Expectation, location_of, outlook
from earshot.rules import (
    kl002_kafka,
    kl003_kind_of_address,
    kl004_unique_address,
    kl011_resolves,
)
from earshot.rules.evaluate import evaluate, rules_at
from earshot.rules.rule import AppliedAt, Finding, FindingState
from earshot.sources.hosted_zones import RecordLookup, Zones
from earshot.sources.instance import instance_facts
from earshot.sources.instance_network import InstanceNetwork
from earshot.sources.user_data import UserDataFile
from earshot.topology.container import folded, is_loopback

_ADDRESSES = ("listeners", "advertised.listeners")
_VOTERS = ("controller.quorum.voters",)


@dataclass(frozen=True)
class InstanceBroker:
    """A broker in an instance's user data, and the findings from its own inputs."""

    holder: str
    """The instance's URN."""
    written: UserDataFile
    findings: tuple[Finding, ...] = ()

    def has_reported(self, finding: Finding) -> bool:
        """Whether its own findings include ``finding``, or a refusal of the same address."""
        key = (finding.rule, finding.listener, finding.scope)
        if any((finding.rule, finding.listener, finding.scope) == key for finding in self.findings):
            return True
        refused = [finding for finding in self.findings if finding.rule == kl002_kafka.RULE.id]
        return finding.rule == kl003_kind_of_address.RULE.id and any(
            refusal.listener == finding.listener
            or (finding.scope is Scope.CONTROLLER and refusal.inputs == _VOTERS)
            for refusal in refused
        )


def skipped_rules(written: UserDataFile) -> dict[str, str]:
    """The reasons why rules are not applied to all of ``written``, by rule id."""
    reasons = {}
    path = written.path or "its properties file"
    computed = [key for key in written.computed if key not in written.places]
    if not written.whole:
        reasons["KL008"] = f"the earlier content of {path} is not known"
    elif computed:
        reasons["KL008"] = f"the instance computes {', '.join(computed)}"
    if not mistakes_in_user_data([written]) and (unread := _unread(written)):
        reasons["KL011"] = f"{unread}; it may be right, and is not looked up"
    return reasons


def _unread(written: UserDataFile) -> str:
    """The first listener that the strict grammar refuses, with the reason, or an empty string."""
    values = written.settings.values
    for key in filter(values.get, _ADDRESSES):
        for entry in read_listeners(values[key]):
            if isinstance(entry, Bad):
                return f"{key}: {entry.error.object} {entry.error.observed}"
    return ""


class InstanceRun:
    """The brokers of one run, in the order of their instances' registration."""

    def __init__(self) -> None:
        self._brokers: dict[str, list[InstanceBroker]] = {}
        self._advertised: dict[tuple[str, int], str] = {}
        self.asked = SystemResolvers()
        """The resolvers, also for later checks of these brokers."""

    @property
    def brokers(self) -> tuple[InstanceBroker, ...]:
        """All checked brokers."""
        return tuple(broker for brokers in self._brokers.values() for broker in brokers)

    def evaluate(
        self, holder: str, written: Iterable[UserDataFile], policy: ResolverPolicy
    ) -> tuple[Finding, ...]:
        """The findings from the inputs of the instance ``holder`` and of earlier ones.

        A repeated ``holder`` replaces the former one.
        """
        self._brokers[holder] = [self._broker(holder, file, policy) for file in written]
        brokers = self._brokers[holder]
        computed = (finding for broker in brokers for finding in _computed(broker.written))
        reported = tuple(finding for broker in brokers for finding in broker.findings)
        advice = () if reported else advice_in_user_data(broker.written for broker in brokers)
        return (*reported, *computed, *advice)

    def _broker(self, holder: str, written: UserDataFile, policy: ResolverPolicy) -> InstanceBroker:
        facts = replace(instance_facts(written), waivers=policy.waivers)
        facts = replace(facts, evidence=dns_only_evidence(facts, policy, self.asked))
        silent = skipped_rules(written)
        id = node_id(written.settings.values)
        role = written.settings.role
        refused = mistakes_in_user_data([written])
        broker = InstanceBroker(
            holder, written, tuple(replace(refusal, node=id, role=role) for refusal in refused)
        )
        rules = [
            rule
            for rule in rules_at(AppliedAt.INSTANCE)
            if rule.needs == "plan" and rule.id not in silent
        ]
        findings = evaluate(facts, rules)
        new_findings = [
            finding
            for finding in findings
            if not (_is_undecided(finding) or broker.has_reported(finding))
        ]
        return replace(
            broker, findings=(*broker.findings, *new_findings, *self._claim(holder, facts))
        )

    def _claim(self, holder: str, facts: ClusterFacts) -> Iterator[Finding]:
        """Findings for addresses that earlier instances advertise."""
        for node in facts.nodes:
            for listener in node.listeners:
                host = str(listener.host)
                if listener.known and not is_loopback(host):
                    key = (folded(host), listener.port)
                    other = self._advertised.setdefault(key, holder)
                    if other != holder:
                        yield kl004_unique_address.RULE.finding(
                            f"advertises {listener.advertised}, which instance "
                            f"{other.rsplit('::', 1)[-1]} has taken",
                            "a host:port of its own for every listener of every broker",
                            node=node,
                            listener=listener,
                        )


def _is_undecided(finding: Finding) -> bool:
    """Whether other resources may decide it: an unknown host, a name that they may declare."""
    if finding.state is FindingState.UNKNOWN:
        return True
    scope, host = finding.scope, finding.host
    if finding.rule != kl011_resolves.RULE.id or scope is None or host is None:
        return False
    return not resolves_nowhere(host, scope)


def _computed(written: UserDataFile) -> Iterator[Finding]:
    """Findings for values that only the instance computes."""
    for key in written.computed:
        if key in written.places or key.endswith("listeners"):
            subject = "a listener's host" if key in written.places else key
            yield kl011_resolves.RULE.finding(
                f"{subject} is computed on the instance: {written.shown(key)}",
                "a name that the program gives it",
                state=FindingState.UNKNOWN,
                remedy="advertise the name of a resource (an Elastic IP, a record), or prove the "
                "listeners where their clients are with `earshot doctor`",
                inputs=("user data",),
            )


def disagreements(plan: ClusterPlan, written: UserDataFile) -> Iterator[str]:
    """Where ``written`` gives a node other listeners than ``plan``, one sentence each.

    The order of a list means nothing; a list that cannot be read agrees with no other.
    """
    values = written.settings.values
    id = node_id(values)
    node = next((node for node in plan.nodes if node.id == id), None)
    if node is None:
        ids = ", ".join(str(node.id) for node in plan.nodes)
        yield f"{written.path} sets up node {id}, and the plan that was checked has {ids}"
        return
    planned = settings(plan, node)
    for key in _ADDRESSES:
        actual, expected = values.get(key), planned.get(key)
        if _entries(actual) != _entries(expected):
            yield (
                f"node {id}: {written.path} has {key}={actual or '(nothing)'}, and the plan that "
                f"was checked {expected or '(nothing)'}"
            )


def _entries(text: str | None) -> object:
    entries = list(read_listeners(text)) if text else []
    good = dict(readable_entries(entries))
    return good if len(good) == len(entries) else text


@dataclass
class NameEvidence:
    """The evidence for every advertised name."""

    evidence: dict[EvidenceKey, Evidence] = field(default_factory=dict)
    undecided: dict[EvidenceKey, str] = field(default_factory=dict)
    """The unknown fact that may be evidence, by name without evidence."""


def name_evidence(
    facts: ClusterFacts,
    networks: Mapping[int, InstanceNetwork],
    zones: Zones,
    policy: ResolverPolicy,
    asked: SystemResolvers | None = None,
) -> NameEvidence:
    """The evidence for the names in the plan; ``networks`` are the nodes' networks by node id.

    A name whose record does not exist yet is not looked up, as a DNS server would cache its
    absence.
    """
    if facts.plan is None:
        return NameEvidence()
    lookups: dict[EvidenceKey, RecordLookup] = {}
    for node, listener, scope in facts.advertised():
        host = listener.host
        if isinstance(host, str) and ip_of(host) is None and scope is not Scope.HOST:
            key: EvidenceKey = (listener.name, scope, host)
            if key not in lookups or lookups[key].declaration is None:
                lookups[key] = _record(host, scope, networks[node.id], zones)
    declared = {key: lookup.declaration for key, lookup in lookups.items() if lookup.declaration}
    waiting = {key for key, lookup in lookups.items() if lookup.pending}
    evidence = gather(facts.plan, policy, "aws", declared, asked, skipped=waiting)
    evidence |= {key: _pending_evidence(declared[key]) for key in waiting}
    for key, lookup in lookups.items():
        evidence[key] = _with_record(evidence[key], lookup, key[2])
    undecided = {
        key: lookup.why
        for key, lookup in lookups.items()
        if lookup.undecided and evidence[key].kind is EvidenceKind.NONE
    }
    return NameEvidence(evidence, undecided)


def dns_only_evidence(
    facts: ClusterFacts, policy: ResolverPolicy, asked: SystemResolvers | None = None
) -> dict[EvidenceKey, Evidence]:
    """The evidence for names that no resource can declare, such as `ip-...` for scope external.

    Only a DNS server may resolve them, such as one behind a VPN.
    """
    if facts.plan is None:
        return {}
    others = {
        (listener.name, scope, str(listener.host))
        for _, listener, scope in facts.advertised()
        if not resolves_nowhere(str(listener.host), scope)
    }
    return gather(facts.plan, policy, "aws", asked=asked, skipped=others)


def resolves_nowhere(host: str, scope: Scope) -> bool:
    """Whether a name of this kind resolves for no client of ``scope``."""
    return outlook(kind_of(host), location_of(scope, "aws")).resolves is Expectation.NO


def _record(host: str, scope: Scope, network: InstanceNetwork, zones: Zones) -> RecordLookup:
    name = read_name(host)
    if name is not None:
        return _of_ec2(host, name, scope, network)
    if scope is Scope.EXTERNAL:
        zone_record = zones.declared_outside(host)
    else:
        zone_record = zones.declared_inside(host, network.vpc, network.dns)
    unnamed = "a record or a zone is not known yet, or its VPC is not known here"
    return replace(zone_record, why=unnamed) if zone_record.undecided else zone_record


def _of_ec2(host: str, name: Ec2Name, scope: Scope, network: InstanceNetwork) -> RecordLookup:
    elastic_ips = [address for address in network.elastic if isinstance(address, str)]
    public = name.kind is NameKind.EC2_PUBLIC
    if network.dns is None:
        return RecordLookup(why="the DNS attributes of its VPC are not known here", undecided=True)
    if network.dns.off:
        off = " and ".join(network.dns.off)
        return RecordLookup(why=f"{off} of the VPC: off, so that AWS gives no such name")
    unknown = public and len(elastic_ips) < len(network.elastic)
    if network.region is None or network.private is None or unknown:
        return RecordLookup(why="the addresses of its instance are not known yet", undecided=True)
    address = name.address if public and name.address in (*elastic_ips, *network.addresses) else ""
    interface = Interface(network.region, network.private, address, elastic=address in elastic_ips)
    declared = declaration(host, scope, interface, network.dns)
    if declared:
        return RecordLookup(declared)
    why = resolution(host, location_of(scope, "aws"), interface, network.dns).why
    return RecordLookup(why=why)


def _with_record(evidence: Evidence, lookup: RecordLookup, host: str) -> Evidence:
    """``evidence`` with the reason of ``lookup`` if the name is not declared."""
    if lookup.declaration is not None or not lookup.why or lookup.undecided:
        return evidence
    name = read_name(host)
    lent_by_aws = name is not None and "of the VPC: off" in lookup.why
    if evidence.kind is EvidenceKind.NONE or lent_by_aws:
        why = lookup.why if lent_by_aws else f"{evidence.why}; {lookup.why}"
        return Evidence(EvidenceKind.NONE, None, why)
    return evidence


def _pending_evidence(declared: Declaration) -> Evidence:
    why = f"{declared.why}; not looked up: the record is still to be made"
    return Evidence(EvidenceKind.DECLARED, None, why, declared.addresses)

"""KL011: every advertised name resolves at the location of its clients."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from earshot.facts.cluster import ClusterFacts
from earshot.listeners.terms import Scope, UnknownHost
from earshot.names.evidence import Evidence, EvidenceKind
from earshot.names.kinds import NameKind, kind_of
from earshot.names.lookup import Diagnosis
from earshot.names.reachability import TABLE, Expectation, location_of, outlook
from earshot.rules.rule import WAITING, AppliedAt, Finding, FindingState, Rule

if TYPE_CHECKING:
    from earshot.listeners.model import Listener, Node

_NOT_ASKED = Evidence(EvidenceKind.NONE, None, "it was not looked up")
_REMEDIES = {
    Diagnosis.NXDOMAIN: "create the record in a zone that these clients use, or advertise a name "
    "that exists there",
    Diagnosis.NO_ANSWER: "give the name an A or AAAA record, or advertise one that has it",
    Diagnosis.SERVER_FAILURE: "fix the delegation of the name's zone, or give a resolver that "
    "answers for scope {scope}",
    Diagnosis.TIMEOUT: "see whether the resolver can be reached from here, or give another one "
    "for scope {scope}",
}


def check(facts: ClusterFacts) -> Iterator[Finding]:
    """A name without evidence is a violation; an unknown host gives a finding of state unknown."""
    for node, listener, scope in (*facts.advertised(), *facts.bootstraps()):
        if isinstance(listener.host, UnknownHost):
            yield RULE.finding(
                f"its host is not known yet: {listener.host.what}",
                "a name that resolves, checked again with the value",
                node=node,
                listener=listener.name,
                scope=scope,
                state=FindingState.UNKNOWN,
                remedy=WAITING,
            )
            continue
        kind, location = kind_of(listener.host), location_of(scope, facts.placement)
        if kind is NameKind.LOCALHOST and outlook(kind, location).reaches is Expectation.ITSELF:
            continue  # KL003 reports that it resolves to the client itself
        evidence = facts.evidence_for(listener, scope) or _NOT_ASKED
        if evidence.kind is EvidenceKind.NONE and not facts.waiver_reason(listener.host):
            yield _violation(facts, node, listener, scope, evidence)


def _violation(
    facts: ClusterFacts, node: Node, listener: Listener, scope: Scope, evidence: Evidence
) -> Finding:
    host = str(listener.host)
    location = location_of(scope, facts.placement)
    lookup, remedy = evidence.lookup, ""
    observed = f"nothing shows that {host} resolves: {evidence.why}"
    if lookup is not None:
        detail = f" ({lookup.detail})" if lookup.detail else ""
        observed = f"{host} does not resolve at {lookup.resolver}: {lookup.diagnosis}{detail}"
        remedy = _REMEDIES[lookup.diagnosis].format(scope=scope)
    if evidence.hint:
        observed += f"; {evidence.hint}"
        remedy = "advertise the full name, with its domain"
    if evidence.note:
        observed += f"; {evidence.note}"
    kind = kind_of(host)
    if outlook(kind, location).resolves is Expectation.NO:
        observed += f"; it is {kind}: {TABLE[kind].note}"
        remedy = f"advertise another name: this one never resolves {location}"
    return RULE.finding(
        observed,
        f"a name that resolves {location}",
        node=node,
        listener=listener,
        scope=scope,
        evidence=evidence,
        remedy=remedy,
    )


RULE = Rule(
    id="KL011",
    title="Every advertised name resolves for its clients",
    reason="A client that cannot resolve the advertised name reaches the bootstrap address and "
    "then no broker, and retries forever.",
    remedy="name a DNS server of these clients (`names.resolvers`), create the name in the same "
    "program or say in `declared` what creates it, or waive it with a reason (`names.waived`)",
    source="https://kafka.apache.org/documentation/#brokerconfigs_advertised.listeners",
    check=check,
    inputs=("advertised.listeners", "evidence"),
    applied_at=(AppliedAt.PLAN, AppliedAt.CONTAINER, AppliedAt.INSTANCE, AppliedAt.INSTANCES),
    compares_names=True,
)

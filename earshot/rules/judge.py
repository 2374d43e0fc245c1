"""`judge`: every rule over the facts of one cluster."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from earshot.names.evidence import EvidenceKind
from earshot.rules.catalogue import RULES
from earshot.rules.facts import Facts
from earshot.rules.finding import Finding
from earshot.rules.registry import Rule


def judge(facts: Facts, rules: Iterable[Rule] = RULES) -> tuple[Finding, ...]:
    """What ``rules`` find, in the order of the rules and, within one, of the plan.

    A rule that does not hold for the cluster's Kafka version, or lacks what it judges, is left
    out; `unjudged` names it. A finding about a node in a container names the container too.
    """
    return tuple(
        _placed(facts, finding)
        for rule in rules
        if not rule.silent(facts)
        for finding in rule.check(facts)
    )


def _placed(facts: Facts, finding: Finding) -> Finding:
    container = facts.containers.get(finding.node) if finding.node is not None else None
    return finding if container is None else replace(finding, container=container.name)


def unjudged(facts: Facts, rules: Iterable[Rule] = RULES) -> tuple[tuple[Rule, str], ...]:
    """The rules that `judge` leaves out, each with its reason: silence is not success."""
    return tuple((rule, reason) for rule in rules if (reason := rule.silent(facts)))


def remarks(facts: Facts) -> tuple[str, ...]:
    """What was accepted on something less than a live lookup: declared names, waived names."""
    told: dict[str, tuple[str, dict[str, None]]] = {}
    for _, listener, scope in facts.advertised():
        host = str(listener.host)
        evidence = facts.evidence_for(listener, scope)
        if facts.waived(host):
            said = f"{host} is waived: {facts.waived(host)}"
        elif evidence is not None and evidence.kind is EvidenceKind.DECLARED:
            said = f"{host} is taken on its declaration: {evidence.why}"
        else:
            continue
        _, where = told.setdefault(host, (said, {}))
        where[f"listener {listener.name} (scope {scope})"] = None
    return tuple(f"{', '.join(where)}: {said}" for said, where in told.values())

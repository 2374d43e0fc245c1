"""`RULES`, all rules in the order of their ids, and their evaluation over one cluster's facts."""

import importlib
import pkgutil
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from earshot import rules
from earshot.facts.cluster import ClusterFacts
from earshot.listeners.listed import shortened
from earshot.names.evidence import Evidence, EvidenceKind
from earshot.rules.grouped import shape
from earshot.rules.rule import AppliedAt, Finding, Rule, Severity


def _rules_by_id() -> dict[str, Rule]:
    """The `RULE` of every module named `klNNN_subject`, by id."""
    names = sorted(module.name for module in pkgutil.iter_modules(rules.__path__))
    modules = (
        importlib.import_module(f"{rules.__name__}.{name}")
        for name in names
        if re.match(r"kl\d{3}_", name)
    )
    return {module.RULE.id: module.RULE for module in modules if hasattr(module, "RULE")}


RULES: tuple[Rule, ...] = tuple(rule for _, rule in sorted(_rules_by_id().items()))


def rules_at(place: AppliedAt) -> tuple[Rule, ...]:
    """The rules that are applied at ``place``, in the order of their ids."""
    return tuple(rule for rule in RULES if place in rule.applied_at)


@dataclass(frozen=True)
class CheckResult:
    """Findings, and remarks on names that not every DNS server resolves."""

    findings: tuple[Finding, ...] = ()
    remarks: tuple[str, ...] = ()


def evaluate(facts: ClusterFacts, rules: Iterable[Rule] = RULES) -> tuple[Finding, ...]:
    """The findings of ``rules``, in the order of the rules and then of the plan.

    Rules that do not apply to ``facts`` are skipped. A finding about a node in a container names
    the container.
    """
    findings = [
        _with_container(facts, finding)
        for rule in rules
        if rule.applies(facts)
        for finding in rule.findings(facts)
    ]
    caused = {
        (finding.container, finding.listener)
        for finding in findings
        if finding.severity is Severity.ERROR and not finding.is_consequence
    }
    return tuple(
        finding
        for finding in findings
        if not (finding.is_consequence and (finding.container, finding.listener) in caused)
    )


def _with_container(facts: ClusterFacts, finding: Finding) -> Finding:
    container = facts.containers.get(finding.node) if finding.node is not None else None
    return finding if container is None else replace(finding, container=container.name)


def remarks(facts: ClusterFacts) -> tuple[str, ...]:
    """Remarks on names that are declared, waived, or resolved by only some DNS servers.

    Names that are accepted for the same reason share a remark.
    """
    places: dict[tuple[str, str, str], dict[str, None]] = {}
    for _, listener, scope in facts.advertised():
        host = str(listener.host)
        accepted = _acceptance(facts.waiver_reason(host), facts.evidence_for(listener, scope))
        if accepted is not None:
            subjects = places.setdefault((host, *accepted), {})
            subjects[f"listener {listener.name} (scope {scope})"] = None
    by_reason: dict[tuple[str, str, str], dict[str, str]] = {}
    for (host, kind, why), subjects in places.items():
        # numbers identify a waiver's ticket and a DNS server
        reason = shape(why, [host]) if kind == "declared" else why
        by_reason.setdefault((kind, reason, ", ".join(subjects)), {})[host] = why
    return tuple(
        f"{subjects}: {shortened(list(why))} {_REMARK_VERBS[kind][len(why) > 1]}: {_first_of(why)}"
        for (kind, _, subjects), why in by_reason.items()
    )


_REMARK_VERBS: Final = {
    "waived": ("is waived", "are waived"),
    "declared": ("is taken on its declaration", "are taken on their declarations"),
    "partly": ("is not resolved by every DNS server", "are not resolved by every DNS server"),
}
"""The verb phrase for one name, and for several."""


def _acceptance(waived: str | None, evidence: Evidence | None) -> tuple[str, str] | None:
    """A key of `_REMARK_VERBS` and the reason; None if every server resolves the name."""
    if waived:
        return "waived", waived
    if evidence is not None and evidence.kind is EvidenceKind.DECLARED:
        return "declared", evidence.why
    if evidence is not None and evidence.lookup and evidence.lookup.unresolved_at:
        return "partly", "; ".join(evidence.lookup.unresolved_at)
    return None


def _first_of(reasons: Mapping[str, str]) -> str:
    host, why = next(iter(reasons.items()))
    return f"{why} ({host}; the others alike)" if len(set(reasons.values())) > 1 else why

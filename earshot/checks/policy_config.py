"""The configuration of the rules: the policy pack's, which the gate and `plan --check` read too."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from earshot.errors import EarshotError
from earshot.json_object import Document
from earshot.names.policy import ResolverPolicy, read_policy
from earshot.project import Project
from earshot.rules.evaluate import RULES, CheckResult
from earshot.rules.rule import Finding, FindingState, Severity

STACK_SUFFIX = "-stack"
OTHER_POLICIES = (
    "all",
    "names",
    "as-approved",
    "advice",
    "advice-stack",
    "no-gate",
    "not-known-yet",
    "not-known-yet-stack",
    "repeated",
)
"""Keys of a configuration that name no rule."""
_LEVEL = "enforcementLevel"


class Level(StrEnum):
    """The effect of a finding: it stops the update, it is shown, or it is left out."""

    MANDATORY = "mandatory"
    ADVISORY = "advisory"
    DISABLED = "disabled"


@dataclass(frozen=True)
class PolicyConfig:
    """How names are looked up, and the level of each rule that has another one than its own."""

    names: ResolverPolicy = field(default_factory=ResolverPolicy)
    levels: Mapping[str, Level] = field(default_factory=dict)
    """By rule id, as in KL011."""

    def refused(self, checked: CheckResult) -> list[Finding]:
        """The findings that stop an update."""
        return [finding for finding in checked.findings if self._level(finding) is Level.MANDATORY]

    def shown(self, checked: CheckResult) -> list[Finding]:
        """The findings that stop nothing: warnings, and values that are not known yet."""
        return [finding for finding in checked.findings if self._level(finding) is Level.ADVISORY]

    def remarks(self, checked: CheckResult) -> list[str]:
        """The remarks of a check, and one on the errors that disabled rules leave out."""
        left_out = [
            finding.rule
            for finding in checked.findings
            if self._level(finding) is Level.DISABLED
            and (finding.state, finding.severity) == (FindingState.VIOLATED, Severity.ERROR)
        ]
        count = f"{len(left_out)} error{'' if len(left_out) == 1 else 's'}"
        rules = ", ".join(sorted(set(left_out)))
        text = f"{count} left out, because the policy disables {rules}"
        return [*checked.remarks, *([text] if left_out else ())]

    def _level(self, finding: Finding) -> Level:
        level = self.levels.get(finding.rule)
        rule = next(rule for rule in RULES if rule.id == finding.rule)
        if level is Level.DISABLED:
            return level
        if finding.state is not FindingState.VIOLATED or finding.severity is not rule.severity:
            return Level.ADVISORY
        default = Level.MANDATORY if rule.severity is Severity.ERROR else Level.ADVISORY
        return level or default


def read_config(document: Document) -> PolicyConfig:
    """The configuration that ``document`` describes. Raises ValueError with every problem."""
    problems = [*unknown_ids(document), *repeated_ids(document)]
    levels: dict[str, Level] = {}
    names: Document = {}
    default = None
    for key, value in document.items():
        properties = value if isinstance(value, Mapping) else {_LEVEL: value}
        level = properties.get(_LEVEL)
        if level is not None and level not in (*Level, "remediate"):
            problems.append(f"{key}: found {level!r}; allowed: {', '.join(Level)}")
        elif key.lower() == "names":
            names = {name: entry for name, entry in properties.items() if name != _LEVEL}
        elif unknown := [name for name in properties if name != _LEVEL]:
            problems.append(f"{key}: {', '.join(unknown)}: no such property; allowed: {_LEVEL}")
        elif level is not None:
            # no rule has a remediation: Pulumi takes `remediate` as mandatory, too
            level = Level.MANDATORY if level == "remediate" else Level(level)
            if key.lower() == "all":
                default = level
            else:
                levels[key.upper()] = level
    try:
        policy = read_policy(names)
    except ValueError as reason:
        problems.append(f"names: {reason}")
        policy = ResolverPolicy()
    if problems:
        raise ValueError("; ".join(problems))
    ids = [rule.id for rule in RULES]
    all_levels = {id: levels.get(id, default) for id in ids}
    return PolicyConfig(
        policy, {id: level for id, level in all_levels.items() if level is not None}
    )


def unknown_ids(keys: Iterable[str]) -> list[str]:
    """The problems of keys that name no policy."""
    ids = {rule.id.lower() for rule in RULES}
    allowed = {*ids, *(f"{id}{STACK_SUFFIX}" for id in ids), *OTHER_POLICIES}
    wrong = sorted(key for key in keys if key.lower() not in allowed)
    if not wrong:
        return []
    rules = ", ".join(rule.id for rule in RULES)
    other_policies = ", ".join(OTHER_POLICIES)
    text = f"{rules}, each with {STACK_SUFFIX} for checks at the end, {other_policies}"
    return [f"{', '.join(wrong)}: no such policy; allowed: {text}"]


def repeated_ids(keys: Iterable[str]) -> list[str]:
    """The problems of keys that name one policy, whose case does not count."""
    spellings: dict[str, list[str]] = {}
    for key in keys:
        spellings.setdefault(key.lower(), []).append(key)
    return [
        f"{', '.join(them)}: are one policy; allowed: one of them"
        for them in spellings.values()
        if len(them) > 1
    ]


def stack_config(project: Project, stack: str) -> PolicyConfig:
    """The configuration for ``stack``: its file in policies/config, or its template's.

    Raises EarshotError for a file that is not such a configuration.
    """
    document, shown = project.policy_document(stack)
    try:
        return read_config(document)
    except ValueError as reason:
        raise EarshotError(
            shown,
            observed=f"cannot be read as a configuration of the pack ({reason})",
            allowed="levels by rule id (mandatory, advisory, disabled), and lookups in `names`",
        ) from None

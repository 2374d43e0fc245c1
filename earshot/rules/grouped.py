"""Groups of findings for reports: findings of several brokers with one cause are one block.

The findings remain one per broker, for counts and filters.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter

from earshot.listeners.listed import MAX_SHOWN, by_key, numbered, several
from earshot.listeners.terms import Role
from earshot.rules.rule import WAITING, Finding, FindingState

_NUMBER = re.compile(r"\d+", re.ASCII)
_COMMON = attrgetter("rule", "severity", "state", "listener", "scope", "diagnosis", "resolver")


@dataclass(frozen=True)
class FindingGroup:
    """One or more findings of one rule, listener, scope and resolver, whose texts differ only in
    names and numbers."""

    findings: tuple[Finding, ...]

    @property
    def first(self) -> Finding:
        return self.findings[0]

    @property
    def subject(self) -> str:
        """`brokers 1 to 3, listener EXTERNAL (scope external)`, after the containers' names."""
        containers = dict.fromkeys(
            finding.container for finding in self.findings if finding.container
        )
        containers_text = several("container", list(containers)) if containers else ""
        parts = (containers_text, *_nodes(self.findings), self.first.where)
        return ", ".join(filter(None, parts)) or "cluster"

    def __str__(self) -> str:
        """Four lines, and one for each of the first texts if there are several."""
        first, groups = self.first, by_key((finding.observed, finding) for finding in self.findings)
        if len(groups) == 1:
            lines = [f"{self.subject}: {first.observed} [{first.rule}]"]
        else:
            lines = [f"{self.subject}: {len(groups)} findings that are alike [{first.rule}]"]
            lines += [
                f"  {self._nodes_prefix(findings)}{text}"
                for text, findings in list(groups.items())[:MAX_SHOWN]
            ]
            lines += [f"  and {len(groups) - MAX_SHOWN} more"] if len(groups) > MAX_SHOWN else []
        return "\n".join(
            [
                *lines,
                f"  expected: {first.expected}{self._of_the_first('expected')}",
                f"  fix: {first.fix}{self._of_the_first('fix')}",
                f"  source: {first.source}",
            ]
        )

    def _nodes_prefix(self, findings: Sequence[Finding]) -> str:
        everywhere = {finding.node for finding in findings} == {
            finding.node for finding in self.findings
        }
        names = ", ".join(_nodes(findings))
        return f"{names}: " if names and not everywhere else ""

    def _of_the_first(self, field: str) -> str:
        if len({getattr(finding, field) for finding in self.findings}) == 1:
            return ""
        return f" ({', '.join(_nodes(self.findings[:1])) or 'the first'}; the others alike)"


def grouped(findings: Iterable[Finding]) -> tuple[FindingGroup, ...]:
    """``findings`` grouped by `cause`, in the order of their first ones.

    Hosts that are not known yet are reported by one rule.
    """
    by_cause = by_key((cause(finding), finding) for finding in _without_repeated_waits([*findings]))
    return tuple(FindingGroup(tuple(group)) for group in by_cause.values())


def _without_repeated_waits(findings: Sequence[Finding]) -> Iterator[Finding]:
    waiting = [
        finding
        for finding in findings
        if finding.state is FindingState.UNKNOWN and finding.remedy == WAITING
    ]
    shown_ids = {id(finding) for finding in waiting if finding.node is not None} or {
        id(finding) for finding in waiting[:1]
    }
    hidden_ids = {id(finding) for finding in waiting} - shown_ids
    return (finding for finding in findings if id(finding) not in hidden_ids)


def cause(finding: Finding) -> object:
    """A hashable key that is equal for findings of one cause."""
    names = (finding.host or "", finding.container)
    texts = (finding.observed, finding.expected, finding.remedy)
    shapes = (shape(text, names) for text in texts)
    return (*_COMMON(finding), *shapes, _lines_key(finding, names))


def _lines_key(finding: Finding, names: Iterable[str]) -> object:
    """A key of the lines to write: equal for similar lines of one broker each, while lines of
    several brokers are one remedy and must be equal."""
    if len({line.service for line in finding.lines}) > 1:
        return finding.lines
    return shape("; ".join(map(str, finding.lines)), names)


def shape(text: str, names: Iterable[str]) -> str:
    """``text`` with placeholders for its numbers and ``names``."""
    for name in sorted(filter(None, names), key=len, reverse=True):
        text = text.replace(name, "%")
    return _NUMBER.sub("#", text)


def _nodes(findings: Sequence[Finding]) -> list[str]:
    """`brokers 1 to 3` and `controller 4`, one text per role."""
    ids = by_key((finding.role, finding.node) for finding in findings if finding.node is not None)
    return [numbered(str(role), ids[role]) for role in Role if role in ids]

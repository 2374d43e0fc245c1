"""The page about the rules, generated: `python -m tests.rules.page > docs/rules.md`."""

import sys
from collections.abc import Iterable

from earshot.names.kinds import NameKind
from earshot.names.reachability import TABLE
from earshot.placement_registry import ClientLocation
from earshot.rules.evaluate import RULES
from earshot.rules.examples import example_of
from earshot.rules.reports import REPORTS, FailureReport, link
from earshot.rules.rule import Rule

_HEAD = """\
# Rules

earshot applies these rules before a broker starts. Each finding contains the id of its rule, the
broker, listener and scope, the observed and the expected value, and the fix. If a fact is not known
yet, as in a first preview, the finding is "unknown": neither a violation nor a pass.

Each rule has a short file that breaks it, and the corrected file: a Compose file, a manifest, or
the properties of brokers, with an empty line between two brokers. Listeners called EXTERNAL are for
clients on other machines. Comments contain facts that a rule needs in addition to the settings.

This page is generated from the rules (`python -m tests.rules.page`).
"""

_VANTAGES = """\
## Which clients each kind of host works for

Predictions, from which the rules take their explanations. Each cell says first whether the host
resolves for a client there, then whether what it resolves to leads to the broker; "itself" means
that it leads to the client's own machine or container.
"""


_REPORTS = """\
## Reports behind the rules

The failures that users reported, by kind, with some of the reports.
"""


def page(rules: Iterable[Rule] = RULES) -> str:
    """The page as Markdown."""
    listed = list(rules)
    summaries = ((_linked(it), it.title, str(it.severity), f"`{it.kafka}`") for it in listed)
    parts = [_HEAD, _table(("id", "title", "severity", "Kafka"), summaries)]
    parts += map(_section, listed)
    parts += [_REPORTS, _table(("what happens", "rules", "reports"), map(_reported, REPORTS))]
    parts.append(_VANTAGES)
    parts.append(_table(("host", *map(str, ClientLocation), "note"), map(_outlooks, NameKind)))
    return "\n".join(parts)


def _linked(rule: Rule) -> str:
    anchor = f"{rule.id} {rule.title}".lower().replace(" ", "-")
    anchor = "".join(char for char in anchor if char.isalnum() or char in "-_")
    return f"[{rule.id}](#{anchor})"


def _reported(report: FailureReport) -> tuple[str, ...]:
    rules = {rule.id: rule for rule in RULES}
    links = (f"[{text}]({link(text)})" for text in report.reported)
    return report.title, ", ".join(_linked(rules[id]) for id in report.rules), ", ".join(links)


def _section(rule: Rule) -> str:
    shown = example_of(rule.id)
    return (
        f"## {rule.id} {rule.title}\n\n"
        f"{rule.reason}\n\n"
        f"- Fix: {rule.remedy}.\n"
        f"- Severity: {rule.severity}. Applies to Kafka `{rule.kafka}`.\n"
        f"- Applied {rule.applied}.\n"
        f"- Source: <{rule.source}>\n\n"
        f"Bad:\n\n```{shown.form}\n{shown.bad}```\n\n"
        f"Good:\n\n```{shown.form}\n{shown.good}```\n"
    )


def _outlooks(kind: NameKind) -> tuple[str, ...]:
    row = TABLE[kind]
    cells = (f"{item.resolves}, {item.reaches}" for item in row.outlooks.values())
    return str(kind), *cells, f"[{row.note}]({row.source})"


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


if __name__ == "__main__":
    sys.stdout.write(page())

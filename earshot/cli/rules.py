"""`earshot rules`: prints the registry of rules."""

import json as encoder
import sys
import textwrap

from earshot.cli.output import emit
from earshot.errors import EarshotError
from earshot.report.terminal import Terminal, columns
from earshot.rules.evaluate import RULES
from earshot.rules.examples import example_of
from earshot.rules.reports import REPORTS
from earshot.rules.rule import Rule

STANDS_FOR = "reported"
FIELDS = ("id", "title", "reason", "remedy", "source", "severity", "kafka", "applied")


def run(id: str | None, *, json: bool) -> None:
    """Prints all rules, or the rule ``id``. Raises EarshotError for an unknown id."""
    chosen = RULES if id is None else (_rule(id),)
    terminal = Terminal.of(sys.stdout)
    if json:
        emit(encoder.dumps([_facts(rule) | _example(rule) for rule in chosen], indent=2) + "\n")
    elif id is None:
        emit(table(chosen))
    else:
        emit(in_full(chosen[0], terminal))


def table(rules: tuple[Rule, ...]) -> str:
    """A line per rule."""
    rows = [(rule.id, rule.severity, f"Kafka {rule.kafka}", rule.title) for rule in rules]
    return "\n".join([*columns(rows), "", "earshot rules ID shows one in full"]) + "\n"


def in_full(rule: Rule, terminal: Terminal) -> str:
    """All facts of a rule, with a bad and a good example."""
    width = max(len(name) for name in (*FIELDS, STANDS_FOR))
    lines = [terminal.bold(f"{rule.id}: {rule.title}")]
    facts = [(name, text) for name, text in _facts(rule).items() if name not in ("id", "title")]
    lines += [terminal.field(name, text, width) for name, text in facts]
    for kind, text in _example(rule).items():
        lines += ["", terminal.bold(f"{kind}:"), textwrap.indent(text, "  ").rstrip()]
    return "\n".join(lines) + "\n"


def _example(rule: Rule) -> dict[str, str]:
    example = example_of(rule.id)
    return {"bad": example.bad, "good": example.good}


def _facts(rule: Rule) -> dict[str, str]:
    reports = [report for report in REPORTS if rule.id in report.rules]
    reported_by = "; ".join(f"{report.title} ({', '.join(report.reported)})" for report in reports)
    facts = {name: str(getattr(rule, name)) for name in FIELDS}
    return facts | ({STANDS_FOR: reported_by} if reported_by else {})


def _rule(id: str) -> Rule:
    rules_by_id = {rule.id: rule for rule in RULES}
    if id.upper() not in rules_by_id:
        allowed = ", ".join(rules_by_id)
        raise EarshotError(f"rule {id}", observed="there is no rule with this id", allowed=allowed)
    return rules_by_id[id.upper()]

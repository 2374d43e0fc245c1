"""Rules over advertised listeners: one module each, judged over facts that are given."""

from earshot.rules.catalogue import RULES
from earshot.rules.facts import Facts
from earshot.rules.finding import Finding, Severity, State
from earshot.rules.judge import judge, remarks, unjudged
from earshot.rules.registry import Rule

__all__ = [
    "RULES",
    "Facts",
    "Finding",
    "Rule",
    "Severity",
    "State",
    "judge",
    "remarks",
    "unjudged",
]

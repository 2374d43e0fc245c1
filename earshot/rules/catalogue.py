"""All rules, in the order of their ids."""

from __future__ import annotations

from earshot.rules import kl011_resolves, kl012_same_broker
from earshot.rules.registry import Rule

RULES: tuple[Rule, ...] = (
    kl011_resolves.RULE,
    kl012_same_broker.RULE,
)

"""All rules, in the order of their ids."""

from __future__ import annotations

from earshot.rules.registry import Rule

RULES: tuple[Rule, ...] = ()

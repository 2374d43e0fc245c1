"""All rules, in the order of their ids: every `RULE` of a module that is called `klNNN_subject`."""

from __future__ import annotations

import importlib
import pkgutil
import re

from earshot import rules
from earshot.rules.registry import Rule


def _found() -> dict[str, Rule]:
    names = sorted(module.name for module in pkgutil.iter_modules(rules.__path__))
    modules = (
        importlib.import_module(f"{rules.__name__}.{name}")
        for name in names
        if re.match(r"kl\d{3}_", name)
    )
    return {item.RULE.id: item.RULE for item in modules if hasattr(item, "RULE")}


RULES: tuple[Rule, ...] = tuple(rule for _, rule in sorted(_found().items()))

"""What each rule says it has looked at, which every finding hands on."""

from __future__ import annotations

import importlib
import pkgutil
from pathlib import Path

import earshot.rules
from tests.goldens import is_golden


def test_the_inputs_of_every_rule_are_as_on_disk() -> None:
    lines = []
    for module in pkgutil.iter_modules(earshot.rules.__path__):
        found = importlib.import_module(f"earshot.rules.{module.name}")
        if hasattr(found, "INPUTS"):
            lines.append(f"{module.name}: {', '.join(found.INPUTS)}\n")
    is_golden("".join(lines), Path(__file__).parent / "inputs.txt")

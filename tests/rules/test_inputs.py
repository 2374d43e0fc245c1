"""The inputs that each rule declares, which every finding contains."""

import importlib
import pkgutil
import re
from pathlib import Path

import earshot.rules
from tests.goldens import is_golden


def test_the_inputs_of_every_rule_are_as_on_disk() -> None:
    lines = []
    for module in pkgutil.iter_modules(earshot.rules.__path__):
        found = importlib.import_module(f"earshot.rules.{module.name}")
        if re.match(r"kl\d", module.name) and hasattr(found, "RULE") and found.RULE.inputs:
            lines.append(f"{module.name}: {', '.join(found.RULE.inputs)}\n")
    is_golden("".join(lines), Path(__file__).parent / "inputs.txt")

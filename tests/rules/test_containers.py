"""KL006 and KL014 against their examples on disk, texts included."""

from __future__ import annotations

from pathlib import Path

import pytest

from earshot.rules import RULES, State, judge
from tests.rules.container_examples import load
from tests.rules.examples import described, files

RULE_OF = {rule.id: rule for rule in RULES}


@pytest.mark.parametrize(
    "path", [*files("KL006"), *files("KL014")], ids=lambda p: "/".join(p.parts[-3:])
)
def test_an_example_gives_the_findings_it_states(path: Path) -> None:
    rule = RULE_OF[path.parts[-3]]
    facts, expected = load(path)
    found = judge(facts, [rule])
    assert [described(item, rule) for item in found] == expected
    violated = any(item.state is State.VIOLATED for item in found)
    assert violated == (path.parts[-2] == "fail")
    for item in found:
        assert item.container and item.container in item.subject
        assert item.line.endswith(f"[{rule.id}] {rule.source}")

"""Every rule against its examples on disk; the texts are part of what is expected."""

from __future__ import annotations

from pathlib import Path

import pytest

from earshot.rules.evaluate import RULES, evaluate
from earshot.rules.registry import FindingState
from tests.rules.examples import described, files, load

RAW = ("KL001", "KL002", "KL006", "KL014", "KL015", "KL016", "KL017", "KL018")
"""Their examples are settings that need not even be readable, a container's inputs, or whole
files; they have tests of their own."""
RULE_OF = {rule.id: rule for rule in RULES}


@pytest.mark.parametrize(
    "path",
    [path for path in files() if path.parts[-3] not in RAW],
    ids=lambda p: "/".join(p.parts[-3:]),
)
def test_an_example_gives_the_findings_it_states(path: Path) -> None:
    rule = RULE_OF[path.parts[-3]]
    facts, expected = load(path)
    found = evaluate(facts, [rule])
    assert [described(item, rule) for item in found] == expected
    violated = any(item.state is FindingState.VIOLATED for item in found)
    assert violated == (path.parts[-2] == "fail")
    for item in found:
        assert item.line.endswith(f"[{rule.id}] {rule.source}")
        assert item.observed in item.line and item.expected in item.line


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_every_rule_has_examples_that_pass_and_that_fail(rule: object) -> None:
    id = getattr(rule, "id", "")
    examples = Path(__file__).parent / "examples" / id
    assert list((examples / "pass").iterdir())
    assert list((examples / "fail").iterdir())

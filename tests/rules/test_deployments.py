"""KL015 to KL017 against their examples on disk, which are Compose files; texts included."""

from __future__ import annotations

from pathlib import Path

import pytest

from earshot.checks.deployment import mistakes
from earshot.facts.cluster import ClusterFacts
from earshot.rules.evaluate import RULES, evaluate
from earshot.rules.registry import FindingState
from tests.rules.deployment_examples import load, services
from tests.rules.examples import described, files

IDS = ("KL015", "KL016", "KL017")
RULE_OF = {rule.id: rule for rule in RULES}
EXAMPLES = [path for id in IDS for path in files(id)]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: "/".join(p.parts[-3:]))
def test_an_example_gives_the_findings_it_states(path: Path) -> None:
    rule = RULE_OF[path.parts[-3]]
    facts, expected = load(path)
    found = evaluate(facts, [rule])
    assert [described(item, rule) for item in found] == expected
    violated = any(item.state is FindingState.VIOLATED for item in found)
    assert violated == (path.parts[-2] == "fail")
    for item in found:
        assert item.container and item.container in item.subject
        assert item.line.endswith(f"[{rule.id}] {rule.source}")


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: "/".join(p.parts[-3:]))
def test_an_example_has_the_one_mistake_that_it_is_about(path: Path) -> None:
    found = {item.rule for item in mistakes(services(path.read_text()))}
    beside = {
        "second_broker": {"KL016"},  # what misleads its client misleads the other broker
        "anothers_address": {"KL016"},
    }
    own = {path.parts[-3]} if path.parts[-2] == "fail" else set()
    assert found == own | beside.get(path.stem, set())


def test_without_a_whole_file_the_rules_are_left_out() -> None:
    facts = ClusterFacts(plan=None)
    rules = [RULE_OF[id] for id in IDS]
    assert evaluate(facts, rules) == ()
    assert [tuple(rule.findings(facts)) for rule in rules] == [(), (), ()]
    assert not any(rule.applies(facts) for rule in rules)

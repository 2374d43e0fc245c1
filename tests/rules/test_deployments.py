"""The Compose files among the examples on disk have no other mistake than the one they show."""

from pathlib import Path

import pytest

from earshot.checks.deployment import mistakes
from earshot.facts.cluster import ClusterFacts
from earshot.rules.evaluate import RULES, evaluate
from tests.rules.deployment_examples import services
from tests.rules.plan_examples import files

IDS = tuple(rule.id for rule in RULES if rule.needs == "deployment")
RULE_OF = {rule.id: rule for rule in RULES}
EXAMPLES = [path for id in IDS for path in files(id)]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: "/".join(p.parts[-3:]))
def test_an_example_has_the_one_mistake_that_it_is_about(path: Path) -> None:
    found = {finding.rule for finding in mistakes(services(path.read_text()))}
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
    assert not any(list(rule.findings(facts)) for rule in rules)
    assert not any(rule.applies(facts) for rule in rules)

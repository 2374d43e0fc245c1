"""Every rule against its examples on disk; the texts are part of what is expected.

An example is the input of a rule, of any form. `EARSHOT_WRITE_GOLDENS=1` writes what is found.
"""

import os
import re
from pathlib import Path

import pytest
import yaml

from earshot.facts.cluster import ClusterFacts
from earshot.rules.evaluate import RULES, evaluate
from earshot.rules.rule import FindingState
from earshot.sources.strimzi import read_strimzi
from earshot.yaml_reading.document import read_yaml_documents
from tests.goldens import VARIABLE, is_golden
from tests.rules import (
    container_examples,
    deployment_examples,
    plan_examples,
    settings_examples,
)
from tests.rules.plan_examples import described, files

RULE_OF = {rule.id: rule for rule in RULES}
_FOUND = re.compile(r"^(x-)?findings:.*", re.MULTILINE | re.DOTALL)


def load(path: Path) -> tuple[ClusterFacts, list[dict[str, str]]]:
    """The facts of an example of any form, and the findings that its rule is expected to yield."""
    text = path.read_text()
    if re.search(r"^apiVersion:", text, re.MULTILINE):
        *documents, stated = read_yaml_documents(text, path.name)
        kafkas = read_strimzi(documents)
        assert kafkas and isinstance(stated, dict)
        return ClusterFacts(plan=None, strimzi=kafkas), [*stated["findings"]]
    keys = {*yaml.safe_load(text)}
    if "nodes" in keys:
        return plan_examples.load(path)
    if "containers" in keys:
        return container_examples.load(path)
    if "services" in keys:
        return deployment_examples.load(path)
    return settings_examples.load(path)


@pytest.mark.parametrize("path", files(), ids=lambda p: "/".join(p.parts[-3:]))
def test_an_example_gives_the_findings_it_states(path: Path) -> None:
    rule = RULE_OF[path.parts[-3]]
    facts, expected = load(path)
    findings = evaluate(facts, [rule])
    listed = [described(item, rule) for item in findings]
    if os.environ.get(VARIABLE) and listed != expected:
        written = yaml.safe_dump(listed, sort_keys=False, width=100, allow_unicode=True)
        text = _FOUND.sub(lambda m: f"{m[1] or ''}findings:\n{written}", path.read_text())
        is_golden(text, path)
    else:
        assert listed == expected
    violated = any(item.state is FindingState.VIOLATED for item in findings)
    assert violated == (path.parts[-2] == "fail")
    for item in findings:
        assert item.line.endswith(f"[{rule.id}] {item.source}")
        assert item.observed in item.line and item.expected in item.line


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_every_rule_has_examples_that_pass_and_that_fail(rule: object) -> None:
    id = getattr(rule, "id", "")
    assert files(id, "pass") and files(id, "fail")

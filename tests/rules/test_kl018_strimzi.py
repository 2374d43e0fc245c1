from __future__ import annotations

from pathlib import Path

import pytest

from earshot.facts.cluster import ClusterFacts
from earshot.rules.evaluate import evaluate
from earshot.rules.kl018_strimzi import RULE
from earshot.sources.strimzi import read_strimzi
from earshot.yaml_document import read_yaml_documents
from tests.rules.examples import described, files


@pytest.mark.parametrize("path", files("KL018"), ids=lambda p: "/".join(p.parts[-2:]))
def test_an_example_gives_the_findings_it_states(path: Path) -> None:
    *documents, stated = read_yaml_documents(path.read_text(), path.name)
    found = read_strimzi(documents)
    assert found
    facts = ClusterFacts(plan=None, strimzi=tuple(item.kafka for item in found))
    assert isinstance(stated, dict)
    assert [described(item, RULE) for item in evaluate(facts, [RULE])] == stated["findings"]
    assert bool(stated["findings"]) == (path.parts[-2] == "fail")


def test_without_such_a_resource_nothing_is_checked() -> None:
    assert not RULE.applies(ClusterFacts(plan=None))

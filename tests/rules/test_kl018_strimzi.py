from earshot.facts.cluster import ClusterFacts
from earshot.rules.kl018_strimzi import RULE


def test_without_such_a_resource_nothing_is_checked() -> None:
    assert not RULE.applies(ClusterFacts(plan=None))

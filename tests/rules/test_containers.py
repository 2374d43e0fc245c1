"""KL006 and KL014 of plans of earshot itself."""

from dataclasses import replace

import pytest

from earshot.facts.cluster import ClusterFacts
from earshot.listeners.model import ClusterPlan, Listener, Node
from earshot.listeners.render import environment
from earshot.listeners.terms import Role, Scope, UnknownHost
from earshot.rules.evaluate import RULES, evaluate
from earshot.topology.container import Container, JoinedNetwork, PublishedPort

RULE_OF = {rule.id: rule for rule in RULES}


def plan_of(host: str | UnknownHost, port: int) -> ClusterPlan:
    listeners = (
        Listener(name="IN", scopes=(Scope.INTERNAL,), bind_port=19092, host="k1", port=19092),
        Listener(name="OUT", scopes=(Scope.EXTERNAL,), bind_port=9092, host=host, port=port),
    )
    return ClusterPlan(
        kafka_version="4.1.1",
        inter_broker="IN",
        controller="CONTROLLER",
        replication_factor=1,
        min_insync_replicas=1,
        nodes=(Node(id=1, roles=(Role.BROKER,), listeners=listeners),),
    )


def boxed(plan: ClusterPlan, host_port: int) -> ClusterFacts:
    """A plan that earshot computed, in a container that it describes."""
    env = environment(plan, plan.nodes[0])
    made = Container(
        "k1",
        "apache/kafka:4.1.1",
        networks=(JoinedNetwork("kafka", ("k1",)),),
        published=(PublishedPort(9092, host_port),),
        env=env | {"CLUSTER_ID": "Mk", "KAFKA_CONTROLLER_QUORUM_VOTERS": "9@c:1"},
    )
    return replace(ClusterFacts.of(plan, "docker"), containers={1: made})


@pytest.mark.parametrize(("port", "rules"), [(39092, []), (9092, ["KL006"])])
def test_a_plan_of_earshot_itself_is_checked_alike(port: int, rules: list[str]) -> None:
    facts = boxed(plan_of("docker-host.example.com", port), 39092)
    findings = evaluate(facts, [RULE_OF["KL006"], RULE_OF["KL014"]])
    assert [finding.rule for finding in findings] == rules


def test_a_host_that_is_not_known_yet_is_no_violation() -> None:
    facts = boxed(plan_of(UnknownHost(what="Elastic IP"), 9092), 39092)
    assert evaluate(facts, [RULE_OF["KL006"]]) == ()


def test_without_containers_the_rules_are_left_out() -> None:
    facts = ClusterFacts.of(plan_of("h.example.com", 9092), "docker")
    rules = [RULE_OF["KL006"], RULE_OF["KL014"]]
    assert evaluate(facts, rules) == ()
    assert not any(rule.applies(facts) for rule in rules)

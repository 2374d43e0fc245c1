"""The check of a whole plan: what a caller leaves out silences no rule."""

from typing import Any

import pytest

from earshot.checks.plan import check_plan
from earshot.facts.cloud import Cloud, Instance
from earshot.facts.cluster import NotKnown
from earshot.facts.security_groups import Clients
from earshot.listeners.model import ClusterPlan, Listener, Node, SecurityPlan
from earshot.listeners.terms import Mechanism, Protocol, Role, Scope
from earshot.names.policy import ResolverPolicy
from earshot.rules.rule import FindingState
from earshot.topology.container import Container, JoinedNetwork

NAME = "kafka.missing.invalid"
POLICY = ResolverPolicy()


def plan(host: str = NAME, protocol: Protocol = Protocol.PLAINTEXT) -> ClusterPlan:
    """One node with one listener for clients, at ``host``."""
    listeners = (
        Listener(
            name="INTERNAL", protocol=protocol, scopes=(Scope.INTERNAL,), bind_host="0.0.0.0",
            bind_port=9092, host=host, port=9092,
        ),
        Listener(
            name="CONTROLLER", protocol=Protocol.PLAINTEXT, scopes=(Scope.CONTROLLER,),
            bind_host="0.0.0.0", bind_port=9093, host=host, port=9093,
        ),
    )  # fmt: skip
    return ClusterPlan(
        kafka_version="4.1.1",
        inter_broker="INTERNAL",
        controller="CONTROLLER",
        replication_factor=1,
        min_insync_replicas=1,
        nodes=(Node(id=1, roles=(Role.BROKER, Role.CONTROLLER), listeners=listeners),),
    )


def found(placement: str, made: ClusterPlan | None = None, **facts: Any) -> set[tuple[str, str]]:
    """Rule and state of each finding."""
    checked = check_plan(made or plan(), placement, POLICY, **facts)
    return {(finding.rule, str(finding.state)) for finding in checked.findings}


@pytest.mark.parametrize("placement", ["local", "docker", "aws"])
def test_by_default_a_name_that_does_not_resolve_is_named(placement: str) -> None:
    assert ("KL011", "violated") in found(placement)


def test_containers_that_are_not_known_yet_are_said_by_the_caller() -> None:
    later = found("docker", containers=NotKnown.YET)
    assert ("KL006", "unknown") in later
    assert not {rule for rule, _ in later} & {"KL011", "KL012"}


@pytest.mark.parametrize(
    "containers", [NotKnown.YET, {1: Container("kafka", unknown=("networks",))}]
)
def test_names_for_clients_outside_are_judged_without_the_networks(containers: Any) -> None:
    inside = plan()
    (node,) = inside.nodes
    clients = node.listeners[0].model_copy(update={"name": "CLIENTS", "scopes": (Scope.EXTERNAL,)})
    node = node.model_copy(update={"listeners": (*node.listeners, clients)})
    made = inside.model_copy(update={"nodes": (node,)})
    checked = check_plan(made, "docker", POLICY, containers=containers)
    names = [finding for finding in checked.findings if finding.rule == "KL011"]
    assert [finding.listener for finding in names] == ["CLIENTS"]


@pytest.mark.parametrize("facts", [{}, {"containers": None}, {"containers": {}}])
def test_containers_that_are_left_out_are_unknown_and_the_names_judged(facts: Any) -> None:
    assert {("KL006", "unknown"), ("KL011", "violated")} <= found("docker", **facts)
    assert "KL006" not in {rule for rule, _ in found("local", **facts)}


def test_containers_whose_networks_hold_the_name_are_its_evidence() -> None:
    network = JoinedNetwork("net", aliases=(NAME,))
    held = {1: Container("kafka", networks=(network,))}
    assert not {rule for rule, _ in found("docker", containers=held)} & {"KL011"}


def test_addresses_that_are_left_out_are_unknown_and_not_right() -> None:
    literal = plan("203.0.113.7")
    assert ("KL012", "unknown") in found("docker", literal)
    assert ("KL012", "violated") in found("docker", literal, addresses={1: ("203.0.113.8",)})


def test_a_caller_that_does_not_know_addresses_is_told_what_is_not_compared() -> None:
    literal = plan("203.0.113.7")
    checked = check_plan(literal, "docker", POLICY, addresses={1: ()})
    assert "KL012" not in {it.rule for it in checked.findings}
    (said,) = (it for it in checked.remarks if it.startswith("KL012"))
    assert said.startswith("KL012: whether 203.0.113.7 leads to the brokers advertising it is not")
    known = check_plan(literal, "docker", POLICY, addresses={1: ("203.0.113.7",)})
    assert not any("KL012" in it for it in known.remarks)
    nothing = check_plan(plan(), "docker", POLICY, addresses={1: ()})
    assert not any("KL012" in it for it in nothing.remarks)


def test_what_surrounds_instances_is_unknown_where_it_is_left_out() -> None:
    said = found("aws")
    assert {("KL007", "unknown"), ("KL009", "unknown")} <= said
    cloud = Cloud(instances={}, clients=Clients((), ()), declared={})
    assert {("KL007", "unknown"), ("KL009", "unknown")} <= found("aws", cloud=cloud)
    assert not {rule for rule, _ in found("docker")} & {"KL007", "KL009"}


def test_an_instance_that_is_left_out_beside_others_is_unknown() -> None:
    one = plan()
    two = one.model_copy(update={"nodes": (*one.nodes, one.nodes[0].model_copy(update={"id": 2}))})
    cloud = Cloud({1: Instance((), ())}, Clients((), ()), {})
    checked = check_plan(two, "aws", POLICY, cloud=cloud)
    texts = [finding.observed for finding in checked.findings if finding.rule in ("KL007", "KL009")]
    expected = "what surrounds the instances of node 2: not known yet"
    assert texts.count(expected) == 2


def test_certificates_that_are_left_out_are_unknown() -> None:
    tls = plan(protocol=Protocol.SSL)
    security = SecurityPlan(folder="/tls", mechanism=Mechanism.SCRAM_SHA_512)
    secured = tls.model_copy(update={"security": security})
    assert ("KL010", "unknown") in found("local", tls)
    assert ("KL010", "unknown") in found("local", tls, certificates={})
    assert ("KL010", "unknown") in found("local", secured)
    assert "KL010" not in {rule for rule, _ in found("local", secured, certificates={})}
    assert "KL010" not in {rule for rule, _ in found("local")}


def test_unknown_is_no_violation() -> None:
    checked = check_plan(plan(), "docker", POLICY, containers=NotKnown.YET)
    states = {finding.state for finding in checked.findings if finding.rule == "KL006"}
    assert states == {FindingState.UNKNOWN}

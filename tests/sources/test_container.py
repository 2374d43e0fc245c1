from __future__ import annotations

from typing import Any

import pytest

from earshot.checks.containers import declarations
from earshot.facts.cluster import ClusterFacts
from earshot.facts.settings import has_lone_quorum, node_id
from earshot.listeners.model import ClusterPlan, Listener, Node
from earshot.listeners.terms import Protocol, Role, Scope
from earshot.sources.container import version_of
from earshot.sources.image_settings import effective_properties
from earshot.topology.container import Container, JoinedNetwork, PublishedPort
from tests.rules.container_examples import container
from tests.sources.containers import container_facts


def listeners(facts: ClusterFacts) -> list[str]:
    """The addresses of the only node, and the scopes."""
    assert facts.plan is not None
    (node,) = facts.plan.nodes
    return [f"{listener} {'+'.join(listener.scopes)}" for listener in node.listeners]


def test_inputs_become_a_plan_of_one_node() -> None:
    facts = container()
    assert facts.plan is not None and facts.placement == "docker"
    (node,) = facts.plan.nodes
    assert (node.id, node.roles) == (1, (Role.BROKER, Role.CONTROLLER))
    assert listeners(facts) == [
        "INTERNAL://kafka1:19092 internal",
        "HOST://localhost:9092 host",
        "CONTROLLER://kafka1:9093 controller",
    ]
    assert facts.plan.inter_broker == "INTERNAL" and facts.kafka_version == "4.1.1"
    assert facts.containers[1].published == (PublishedPort(9092, 9092),)


def test_the_plan_has_what_the_inputs_set() -> None:
    facts = container(
        {
            "KAFKA_LISTENERS": "INTERNAL://10.0.0.5:19092,CONTROLLER://:9093,SECOND://:9095",
            "KAFKA_CONTROLLER_LISTENER_NAMES": "CONTROLLER,SECOND",
            "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": "INTERNAL:SSL,CONTROLLER:SASL_SSL",
            "KAFKA_ADVERTISED_LISTENERS": "INTERNAL://kafka1:19092",
        }
    )
    controller = (Scope.CONTROLLER,)
    internal = Listener(
        name="INTERNAL",
        protocol=Protocol.SSL,
        scopes=(Scope.INTERNAL,),
        bind_host="10.0.0.5",
        bind_port=19092,
        host="kafka1",
        port=19092,
    )
    first = Listener(
        name="CONTROLLER",
        protocol=Protocol.SASL_SSL,
        scopes=controller,
        bind_port=9093,
        host="kafka1",
        port=9093,
    )
    second = Listener(name="SECOND", scopes=controller, bind_port=9095, host="kafka1", port=9093)
    roles = (Role.BROKER, Role.CONTROLLER)
    assert facts.plan == ClusterPlan(
        kafka_version="4.1.1",
        inter_broker="INTERNAL",
        controller="CONTROLLER",
        replication_factor=1,
        min_insync_replicas=1,
        nodes=(Node(id=1, roles=roles, listeners=(internal, first, second)),),
    )


@pytest.mark.parametrize(("bind", "host"), [("", "kafka1"), ("inner", "inner")])
def test_a_controller_without_a_voter_is_at_its_bind_address_or_its_container_s_name(
    bind: str, host: str
) -> None:
    facts = container(
        {
            "KAFKA_CONTROLLER_QUORUM_VOTERS": "2@kafka2:9093",
            "KAFKA_LISTENERS": f"INTERNAL://:19092,CONTROLLER://{bind}:9093",
            "KAFKA_ADVERTISED_LISTENERS": "INTERNAL://kafka1:19092",
        }
    )
    assert listeners(facts)[1] == f"CONTROLLER://{host}:9093 controller"


def test_names_of_protocols_and_of_controllers_may_be_left_out() -> None:
    env = {"KAFKA_BROKER_ID": "7", "KAFKA_LISTENERS": "SSL://k:1,OTHER://k:2"}
    env["KAFKA_SECURITY_INTER_BROKER_PROTOCOL"] = "SSL"
    plan = container_facts(env, name="k", networks=[{"name": "n"}]).plan
    assert plan is not None
    assert (plan.inter_broker, plan.controller) == ("SSL", "CONTROLLER")
    (node,) = plan.nodes
    assert [listener.protocol for listener in node.listeners] == ["SSL", "PLAINTEXT"]
    assert (node.id, node.roles) == (7, (Role.BROKER,))


def test_variables_may_be_a_list() -> None:
    facts = container_facts(
        ["KAFKA_NODE_ID=3", "KAFKA_LISTENERS=PLAINTEXT://:9092", "X=a=b", "EMPTY"], name="k"
    )
    assert facts.settings[3].values["listeners"] == "PLAINTEXT://:9092"
    assert facts.containers[3].env["X"] == "a=b" and facts.containers[3].env["EMPTY"] == ""


@pytest.mark.parametrize(
    ("inputs", "unknown"),
    [
        ({"envs": [None]}, "variables"),
        ({"envs": {}, "ports": [None]}, "ports"),
        ({"envs": {}, "ports": [{"internal": 1, "external": None}]}, "ports"),
        ({"envs": {}, "networks": [{"name": None}]}, "a network"),
    ],
)
def test_unknown_inputs_make_no_plan(inputs: dict[str, Any], unknown: str) -> None:
    facts = container_facts(name="k", **inputs)
    assert facts.plan is None
    assert facts.containers[0].unknown == (unknown,)


NO_PORTS: dict[str, object] = {"ports": []}


@pytest.mark.parametrize(("env", "inputs", "scopes"), [
    # a note with scopes counts
    ({"EARSHOT_SCOPES": "HOST:host+external,INTERNAL:nonsense"}, {},
     ["internal", "host+external", "controller"]),
    # one listener for brokers and clients outside
    ({"KAFKA_LISTENERS": "INTERNAL://:9092",
      "KAFKA_ADVERTISED_LISTENERS": "INTERNAL://kafka.example.com:9092"}, {},
     ["internal+external"]),
    # without evidence, the widest scope
    ({"KAFKA_ADVERTISED_LISTENERS": "INTERNAL://kafka1:1,HOST://other.example.com:9092"}, NO_PORTS,
     ["internal", "external", "controller"]),
    ({}, NO_PORTS, ["internal", "host", "controller"]),
])  # fmt: skip
def test_scopes(env: dict[str, str | None], inputs: dict[str, object], scopes: list[str]) -> None:
    assert [text.split()[-1] for text in listeners(container(env, **inputs))] == scopes


def test_the_defaults_of_the_image_are_known() -> None:
    facts = container_facts({}, name="kafka1", image="apache/kafka:4.1.1")
    assert listeners(facts) == ["PLAINTEXT://localhost:9092 host"]


OLDEST = {"KAFKA_ADVERTISED_HOST_NAME": "h.example.com"}
PORT_9094 = {"KAFKA_ADVERTISED_PORT": "9094"}
KAFKA0 = {"KAFKA_ADVERTISED_LISTENERS": "A://kafka0:29092"}
WURSTMEISTER = "wurstmeister/kafka:2"


@pytest.mark.parametrize(("image", "env", "listeners"), [
    ("confluentinc/cp-kafka:7.5.0",
     {"KAFKA_ADVERTISED_LISTENERS": "A://kafka0:29092,B://localhost:9092"},
     "A://0.0.0.0:29092,B://0.0.0.0:9092"),
    ("apache/kafka:4.1.1", KAFKA0, "A://0.0.0.0:29092"),
    ("x", KAFKA0, "A://0.0.0.0:29092"),
    (WURSTMEISTER, KAFKA0, "PLAINTEXT://:9092"),
    ("bitnami/kafka:4", {"KAFKA_CFG_NODE_ID": "1"}, "PLAINTEXT://:9092"),
    ("x", {"KAFKA_PORT": "9099", "KAFKA_BROKER_ID": "1"}, "PLAINTEXT://:9099"),
    ("x", OLDEST | PORT_9094, "PLAINTEXT://0.0.0.0:9094"),
    (WURSTMEISTER, OLDEST | PORT_9094, "PLAINTEXT://:9092"),
])  # fmt: skip
def test_listeners_that_are_not_set_are_derived(
    image: str, env: dict[str, str], listeners: str
) -> None:
    assert effective_properties(Container("k", image, env=env))["listeners"] == listeners


@pytest.mark.parametrize(
    ("env", "advertised"),
    [
        (OLDEST, "PLAINTEXT://h.example.com:9092"),
        (OLDEST | PORT_9094, "PLAINTEXT://h.example.com:9094"),
        (OLDEST | {"KAFKA_PORT": "9099"}, "PLAINTEXT://h.example.com:9099"),
        (OLDEST | {"KAFKA_PORT": "9099"} | PORT_9094, "PLAINTEXT://h.example.com:9094"),
        (OLDEST | {"KAFKA_ADVERTISED_LISTENERS": "A://k:1"}, "A://k:1"),
    ],
)
def test_the_oldest_way_of_advertising_is_read(env: dict[str, str], advertised: str) -> None:
    properties = effective_properties(Container("k", env=env))
    assert properties["advertised.listeners"] == advertised


@pytest.mark.parametrize(
    ("values", "id"),
    [
        ({"node.id": "7"}, 7),
        ({"broker.id": "8"}, 8),
        ({"node.id": "7", "broker.id": "8"}, 7),
        ({}, 0),
        ({"node.id": "x"}, 0),
        ({"node.id": "-1"}, 0),
        ({"node.id": "2147483647"}, 2147483647),
        ({"node.id": "2147483648"}, 0),
    ],
)
def test_the_id_of_a_node(values: dict[str, str], id: int) -> None:
    assert node_id(values) == id


@pytest.mark.parametrize(
    ("voters", "roles", "alone"),
    [
        ("1@localhost:9093", "broker,controller", True),
        ("1@127.0.0.1:9093", "broker", True),
        ("1@localhost:9093", "controller", False),
        ("1@kafka1:9093", "broker,controller", False),
        ("2@localhost:9093", "broker,controller", False),
        ("1@localhost:9093,2@localhost:9094", "broker,controller", False),
        ("", "broker,controller", False),
    ],
)
def test_whether_a_node_is_its_only_voter(voters: str, roles: str, alone: bool) -> None:
    values = {"node.id": "1", "process.roles": roles, "controller.quorum.voters": voters}
    assert has_lone_quorum(values) is alone


def test_an_unreadable_listener_is_left_out() -> None:
    facts = container(
        {"KAFKA_ADVERTISED_LISTENERS": "INTERNAL://kafka1:19092,HOST://bad_host:9092"}
    )
    assert [text.partition(":")[0] for text in listeners(facts)] == ["INTERNAL", "CONTROLLER"]


@pytest.mark.parametrize(
    ("env", "is_planned"),
    [
        ({"KAFKA_LISTENERS": "nonsense"}, False),
        ({"KAFKA_INTER_BROKER_LISTENER_NAME": "lower"}, False),
        ({"KAFKA_CONTROLLER_LISTENER_NAMES": "lower"}, False),
        # not known yet
        ({"KAFKA_LISTENERS": None}, False),
        ({"KAFKA_LOG_DIRS": None}, True),
    ],
)
def test_a_container_without_listeners_or_their_names_has_no_plan(
    env: dict[str, str | None], is_planned: bool
) -> None:
    assert (container(env).plan is not None) is is_planned


@pytest.mark.parametrize(
    ("image", "version"),
    [
        ("apache/kafka:4.1.1", "4.1.1"),
        ("apache/kafka:3.7.0", ""),
        ("apache/kafka", ""),
        ("confluentinc/cp-kafka:8.0.0", ""),
    ],
)
def test_versions_are_those_of_tags(image: str, version: str) -> None:
    assert version_of(image) == version


def test_networks_declare_the_names_of_their_members() -> None:
    names = declarations(container())
    assert {key[::2] for key in names} == {("INTERNAL", "kafka1"), ("CONTROLLER", "kafka1")}
    assert names["INTERNAL", Scope.INTERNAL, "kafka1"].why == (
        "container kafka1 has this name on network kafka"
    )
    bridge = [{"name": "bridge"}]
    assert declarations(container(networks=bridge)) == {}, "the default bridge resolves no names"


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ("one TWO three one.net three.net 10.0.0.5", True),
        ("net localhost 10.0.0.6 two.net", False),
    ],
)
def test_a_container_has_several_names(names: str, expected: bool) -> None:
    network = JoinedNetwork("net", ("three",), "10.0.0.5")
    container = Container("One", hostname="two", networks=(network,))
    assert {container.has_name(name) for name in names.split()} == {expected}

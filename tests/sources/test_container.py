from __future__ import annotations

import pytest

from earshot.checks.containers import declarations
from earshot.facts.settings import has_lone_quorum, node_id
from earshot.listeners.model import ClusterPlan, Listener, Node
from earshot.listeners.terms import Protocol, Role, Scope
from earshot.sources.container import version_of
from earshot.sources.image_settings import effective_properties
from earshot.topology.container import Container, JoinedNetwork, PublishedPort
from tests.rules.container_examples import container
from tests.sources.containers import container_facts


def scopes(envs: dict[str, str | None], **inputs: object) -> dict[str, tuple[Scope, ...]]:
    facts = container(envs, **inputs)
    assert facts.plan is not None
    return {item.name: item.scopes for item in facts.plan.nodes[0].listeners}


def test_inputs_become_a_plan_of_one_node() -> None:
    facts = container()
    assert facts.plan is not None and facts.placement == "docker"
    (node,) = facts.plan.nodes
    assert (node.id, node.roles) == (1, (Role.BROKER, Role.CONTROLLER))
    assert [str(item) for item in node.listeners] == [
        "INTERNAL://kafka1:19092",
        "HOST://localhost:9092",
        "CONTROLLER://kafka1:9093",
    ]
    assert facts.plan.inter_broker == "INTERNAL" and facts.kafka_version == "4.1.1"
    assert facts.containers[1].published == (PublishedPort(9092, 9092),)
    assert scopes({}) == {
        "INTERNAL": (Scope.INTERNAL,),
        "HOST": (Scope.HOST,),
        "CONTROLLER": (Scope.CONTROLLER,),
    }


def test_the_whole_plan_is_what_the_inputs_say() -> None:
    facts = container(
        {
            "KAFKA_LISTENERS": "INTERNAL://10.0.0.5:19092,CONTROLLER://:9093,SECOND://:9095",
            "KAFKA_CONTROLLER_LISTENER_NAMES": "CONTROLLER,SECOND",
            "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": "INTERNAL:SSL,CONTROLLER:SASL_SSL",
            "KAFKA_ADVERTISED_LISTENERS": "INTERNAL://kafka1:19092",
        }
    )
    assert facts.plan == ClusterPlan(
        kafka_version="4.1.1",
        inter_broker="INTERNAL",
        controller="CONTROLLER",
        replication_factor=1,
        min_insync_replicas=1,
        nodes=(
            Node(
                id=1,
                roles=(Role.BROKER, Role.CONTROLLER),
                listeners=(
                    Listener(
                        name="INTERNAL",
                        protocol=Protocol.SSL,
                        scopes=(Scope.INTERNAL,),
                        bind_host="10.0.0.5",
                        bind_port=19092,
                        host="kafka1",
                        port=19092,
                    ),
                    Listener(
                        name="CONTROLLER",
                        protocol=Protocol.SASL_SSL,
                        scopes=(Scope.CONTROLLER,),
                        bind_host="0.0.0.0",
                        bind_port=9093,
                        host="kafka1",
                        port=9093,
                    ),
                    Listener(
                        name="SECOND",
                        protocol=Protocol.PLAINTEXT,
                        scopes=(Scope.CONTROLLER,),
                        bind_host="0.0.0.0",
                        bind_port=9095,
                        host="kafka1",
                        port=9093,
                    ),
                ),
            ),
        ),
    )


def test_a_controller_that_no_voter_names_is_at_its_bind_address_or_its_containers_name() -> None:
    voters = {"KAFKA_CONTROLLER_QUORUM_VOTERS": "2@kafka2:9093"}
    for bind, host in (("", "kafka1"), ("inner", "inner")):
        listeners = f"INTERNAL://:19092,CONTROLLER://{bind}:9093"
        facts = container(
            {
                **voters,
                "KAFKA_LISTENERS": listeners,
                "KAFKA_ADVERTISED_LISTENERS": "INTERNAL://kafka1:19092",
            }
        )
        assert facts.plan is not None
        assert str(facts.plan.nodes[0].listeners[1]) == f"CONTROLLER://{host}:9093"


def test_names_of_protocols_and_of_controllers_may_be_left_out() -> None:
    env = {"KAFKA_BROKER_ID": "7", "KAFKA_LISTENERS": "SSL://k:1,OTHER://k:2"}
    env["KAFKA_SECURITY_INTER_BROKER_PROTOCOL"] = "SSL"
    facts = container_facts(env, name="k", networks=[{"name": "n"}])
    assert facts.plan is not None
    assert (facts.plan.inter_broker, facts.plan.controller) == ("SSL", "CONTROLLER")
    assert [item.protocol for item in facts.plan.nodes[0].listeners] == ["SSL", "PLAINTEXT"]
    assert (facts.plan.nodes[0].id, facts.plan.nodes[0].roles) == (7, (Role.BROKER,))


def test_variables_may_come_as_a_list() -> None:
    facts = container_facts(
        ["KAFKA_NODE_ID=3", "KAFKA_LISTENERS=PLAINTEXT://:9092", "X=a=b", "EMPTY"], name="k"
    )
    assert facts.settings[3].values["listeners"] == "PLAINTEXT://:9092"
    assert facts.containers[3].env["X"] == "a=b" and facts.containers[3].env["EMPTY"] == ""


@pytest.mark.parametrize(
    ("inputs", "said"),
    [
        ({"envs": [None]}, "variables"),
        ({"envs": {}, "ports": [None]}, "ports"),
        ({"envs": {}, "ports": [{"internal": 1, "external": None}]}, "ports"),
        ({"envs": {}, "networks": [{"name": None}]}, "a network"),
    ],
)
def test_what_is_not_known_yet_makes_no_plan(inputs: dict[str, object], said: str) -> None:
    facts = container_facts(name="k", **inputs)  # type: ignore[arg-type]
    assert facts.plan is None
    assert facts.containers[0].unknown == (said,)


def test_scopes_that_are_said_count() -> None:
    said = scopes({"EARSHOT_SCOPES": "HOST:host+external,INTERNAL:nonsense"})
    assert said["HOST"] == (Scope.HOST, Scope.EXTERNAL)
    assert said["INTERNAL"] == (Scope.INTERNAL,)


def test_one_listener_for_brokers_and_outside_has_both_scopes() -> None:
    said = scopes(
        {
            "KAFKA_LISTENERS": "INTERNAL://:9092",
            "KAFKA_ADVERTISED_LISTENERS": "INTERNAL://kafka.example.com:9092",
        }
    )
    assert said == {"INTERNAL": (Scope.INTERNAL, Scope.EXTERNAL)}


def test_where_nothing_tells_the_widest_is_assumed() -> None:
    said = scopes(
        {"KAFKA_ADVERTISED_LISTENERS": "INTERNAL://kafka1:19092,HOST://other.example.com:9092"},
        ports=[],
    )
    assert said["HOST"] == (Scope.EXTERNAL,)
    assert scopes({}, ports=[])["HOST"] == (Scope.HOST,)


def test_the_defaults_of_the_image_are_known() -> None:
    facts = container_facts({}, name="kafka1", image="apache/kafka:4.1.1")
    assert facts.plan is not None
    assert [str(item) for item in facts.plan.nodes[0].listeners] == ["PLAINTEXT://localhost:9092"]


@pytest.mark.parametrize(
    ("env", "image", "listeners"),
    [
        (
            {"KAFKA_ADVERTISED_LISTENERS": "A://kafka0:29092,B://localhost:9092"},
            "confluentinc/cp-kafka:7.5.0",
            "A://0.0.0.0:29092,B://0.0.0.0:9092",
        ),
        *(
            ({"KAFKA_ADVERTISED_LISTENERS": "A://kafka0:29092"}, image, "A://0.0.0.0:29092")
            for image in ("apache/kafka:4.1.1", "x")
        ),
        (
            {"KAFKA_ADVERTISED_LISTENERS": "A://kafka0:29092"},
            "wurstmeister/kafka:2",
            "PLAINTEXT://:9092",
        ),
        ({"KAFKA_CFG_NODE_ID": "1"}, "bitnami/kafka:4", "PLAINTEXT://:9092"),
        ({"KAFKA_PORT": "9099", "KAFKA_BROKER_ID": "1"}, "x", "PLAINTEXT://:9099"),
    ],
)
def test_listeners_that_are_not_set_are_derived(
    env: dict[str, str], image: str, listeners: str
) -> None:
    assert effective_properties(Container("k", image, env=env))["listeners"] == listeners


def test_the_oldest_way_of_advertising_is_read() -> None:
    env = {"KAFKA_ADVERTISED_HOST_NAME": "h.example.com", "KAFKA_ADVERTISED_PORT": "9094"}
    assert effective_properties(Container("k", env=env))["advertised.listeners"] == (
        "PLAINTEXT://h.example.com:9094"
    )


@pytest.mark.parametrize(
    ("image", "listeners"),
    [("x", "PLAINTEXT://0.0.0.0:9094"), ("wurstmeister/kafka:2", "PLAINTEXT://:9092")],
)
def test_images_that_derive_listeners_do_so_from_the_oldest_way_too(
    image: str, listeners: str
) -> None:
    env = {"KAFKA_ADVERTISED_HOST_NAME": "h.example.com", "KAFKA_ADVERTISED_PORT": "9094"}
    assert effective_properties(Container("k", image, env=env))["listeners"] == listeners


@pytest.mark.parametrize(
    ("more", "address"),
    [
        ({}, "h.example.com:9092"),
        ({"KAFKA_PORT": "9099"}, "h.example.com:9099"),
        ({"KAFKA_PORT": "9099", "KAFKA_ADVERTISED_PORT": "9094"}, "h.example.com:9094"),
    ],
)
def test_the_oldest_way_takes_the_port_that_is_nearest(more: dict[str, str], address: str) -> None:
    env = {"KAFKA_ADVERTISED_HOST_NAME": "h.example.com", **more}
    assert (
        effective_properties(Container("k", env=env))["advertised.listeners"]
        == f"PLAINTEXT://{address}"
    )


def test_the_newer_way_of_advertising_outweighs_the_oldest() -> None:
    env = {"KAFKA_ADVERTISED_HOST_NAME": "h", "KAFKA_ADVERTISED_LISTENERS": "A://k:1"}
    assert effective_properties(Container("k", env=env))["advertised.listeners"] == "A://k:1"


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
def test_whether_a_node_asks_itself_alone(voters: str, roles: str, alone: bool) -> None:
    values = {"node.id": "1", "process.roles": roles, "controller.quorum.voters": voters}
    assert has_lone_quorum(values) is alone


def test_what_cannot_be_read_is_passed_over() -> None:
    facts = container(
        {"KAFKA_ADVERTISED_LISTENERS": "INTERNAL://kafka1:19092,HOST://bad_host:9092"}
    )
    assert facts.plan is not None
    assert facts.plan.nodes[0].listener("HOST") is None
    assert container({"KAFKA_LISTENERS": "nonsense"}).plan is None


@pytest.mark.parametrize(
    ("image", "version"),
    [
        ("apache/kafka:4.1.1", "4.1.1"),
        ("apache/kafka:3.7.0", ""),
        ("apache/kafka", ""),
        ("confluentinc/cp-kafka:8.0.0", ""),
    ],
)
def test_versions_are_taken_from_tags_that_say_them(image: str, version: str) -> None:
    assert version_of(image) == version


def test_networks_declare_the_names_of_their_members() -> None:
    found = declarations(container())
    assert {key[::2] for key in found} == {("INTERNAL", "kafka1"), ("CONTROLLER", "kafka1")}
    assert found["INTERNAL", Scope.INTERNAL, "kafka1"].why == (
        "container kafka1 has this name on network kafka"
    )
    bridge = [{"name": "bridge"}]
    assert declarations(container(networks=bridge)) == {}, "the default bridge resolves no names"


def test_a_container_answers_to_all_of_its_names() -> None:
    made = Container(
        "One",
        hostname="two",
        networks=(JoinedNetwork("net", ("three",), "10.0.0.5"),),
        published=(),
    )
    for name in ("one", "TWO", "three", "one.net", "three.net", "10.0.0.5"):
        assert made.has_name(name)
    for name in ("net", "localhost", "10.0.0.6", "two.net"):
        assert not made.has_name(name)


@pytest.mark.parametrize(
    "name", ["KAFKA_INTER_BROKER_LISTENER_NAME", "KAFKA_CONTROLLER_LISTENER_NAMES"]
)
def test_with_a_name_that_kafka_refuses_there_is_no_plan(name: str) -> None:
    assert container({name: "lower"}).plan is None
    assert container().plan is not None


def test_of_variables_that_are_not_known_yet_listeners_alone_leave_no_plan() -> None:
    assert container({"KAFKA_LISTENERS": None}).plan is None
    assert container({"KAFKA_LOG_DIRS": None}).plan is not None

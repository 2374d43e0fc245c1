from __future__ import annotations

import pytest

from earshot.listeners.model import Role, Scope
from earshot.rules.container import Container, Network, PublishedPort
from earshot.rules.container_facts import container_facts, effective, version_of
from earshot.rules.container_names import declarations
from tests.rules.container_examples import container


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


def test_variables_may_come_as_a_list() -> None:
    facts = container_facts(
        ["KAFKA_NODE_ID=3", "KAFKA_LISTENERS=PLAINTEXT://:9092", "X=a=b", "EMPTY"], name="k"
    )
    assert facts.settings[3].values["listeners"] == "PLAINTEXT://:9092"
    assert facts.containers[3].env["X"] == "a=b" and facts.containers[3].env["EMPTY"] == ""


@pytest.mark.parametrize(
    ("inputs", "said"),
    [
        ({"envs": {"KAFKA_LISTENERS": None}}, "variable KAFKA_LISTENERS"),
        ({"envs": [None]}, "a variable"),
        ({"envs": {}, "ports": [None]}, "a published port"),
        (
            {"envs": {}, "ports": [{"internal": 1, "external": None}]},
            "the host's port for 1",
        ),
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
        ({"KAFKA_CFG_NODE_ID": "1"}, "bitnami/kafka:4", "PLAINTEXT://:9092"),
        ({"KAFKA_PORT": "9099", "KAFKA_BROKER_ID": "1"}, "x", "PLAINTEXT://:9099"),
    ],
)
def test_listeners_that_are_not_set_are_derived(
    env: dict[str, str], image: str, listeners: str
) -> None:
    assert effective(Container("k", image, env=env))["listeners"] == listeners


def test_the_oldest_way_of_advertising_is_read() -> None:
    env = {"KAFKA_ADVERTISED_HOST_NAME": "h.example.com", "KAFKA_ADVERTISED_PORT": "9094"}
    assert effective(Container("k", env=env))["advertised.listeners"] == (
        "PLAINTEXT://h.example.com:9094"
    )


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
        "One", hostname="two", networks=(Network("net", ("three",), "10.0.0.5"),), published=()
    )
    for name in ("one", "TWO", "three", "one.net", "10.0.0.5"):
        assert made.answers_to(name)
    for name in ("net", "localhost", "10.0.0.6", "three.net"):
        assert not made.answers_to(name)

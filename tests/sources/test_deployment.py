"""From services to brokers with their listeners: what an image makes of what a file shows."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from earshot.facts.settings import NEWEST, BrokerSettings, Unreadable
from earshot.listeners.address import Address
from earshot.listeners.terms import Protocol
from earshot.sources.deployment import deployment
from earshot.sources.service import Service
from earshot.topology.broker import Broker, Endpoint
from earshot.topology.container import Container, PublishedPort
from tests.sources.services import APACHE, BITNAMI, CONFLUENT, UNKNOWN, service


def broker(image: str, env: Mapping[str, str], **inputs: object) -> Broker:
    (broker_of_service,) = deployment([service(image, env, **inputs)]).brokers  # type: ignore[arg-type]
    return broker_of_service


def listeners(broker: Broker) -> dict[str, tuple[str, str]] | None:
    """By name, where it binds and what it advertises; `?` for what is not known."""
    if broker.endpoints is None:
        return None
    return {
        endpoint.name: (
            str(endpoint.bind),
            "?" if endpoint.advertised is None else str(endpoint.advertised),
        )
        for endpoint in broker.endpoints
    }


def test_a_broker_s_listeners() -> None:
    env = {
        "KAFKA_NODE_ID": "7",
        "KAFKA_PROCESS_ROLES": "broker,controller",
        "KAFKA_LISTENERS": "inner://:19092,OUTER://0.0.0.0:9092,CONTROLLER://:9093",
        "KAFKA_ADVERTISED_LISTENERS": "INNER://kafka:19092,OUTER://localhost:29092",
        "KAFKA_CONTROLLER_LISTENER_NAMES": "CONTROLLER",
        "KAFKA_INTER_BROKER_LISTENER_NAME": "INNER",
        "KAFKA_CONTROLLER_QUORUM_VOTERS": "8@b:9093, 7@kafka:9093",
    }
    assert broker(APACHE, env) == Broker(
        service="kafka",
        container=Container("kafka", APACHE, env=env),
        id=7,
        endpoints=(
            Endpoint("INNER", Address("", 19092), Address("kafka", 19092)),
            Endpoint("OUTER", Address("0.0.0.0", 9092), Address("localhost", 29092)),
            Endpoint("CONTROLLER", Address("", 9093), None, True, Protocol.PLAINTEXT),
        ),
        inter_broker="INNER",
        cluster="7@kafka:9093,8@b:9093",
        is_broker=True,
        is_controller=True,
        voters={8: Address("b", 9093), 7: Address("kafka", 9093)},
        quorum_protocol=Protocol.PLAINTEXT,
        cluster_id="5L6g3nShT-eMCtK--X86sw",
        is_image_known=True,
    )


ADVERTISED = "KAFKA_ADVERTISED_LISTENERS"
OF_BITNAMI = "KAFKA_CFG_ADVERTISED_LISTENERS"
LOCAL = {"PLAINTEXT": ("0.0.0.0:9092", "localhost:9092")}


@pytest.mark.parametrize(
    ("image", "env", "expected"),
    [
        *((image, {ADVERTISED: "PLAINTEXT://localhost:9092"}, LOCAL)
          for image in (APACHE, CONFLUENT, UNKNOWN)),
        # bitnami's listener is PLAINTEXT at 9092
        (
            BITNAMI,
            {OF_BITNAMI: "PLAINTEXT://localhost:9093"},
            {"PLAINTEXT": (":9092", "localhost:9093")},
        ),
        (BITNAMI, {OF_BITNAMI: "OUTER://localhost:9092"}, None),
        (BITNAMI, {OF_BITNAMI: "PLAINTEXT://kafka:9092,OUTER://localhost:9093"}, None),
        # an image may advertise an address by default
        *((image, {variable: "PLAINTEXT://:9092"}, {"PLAINTEXT": (":9092", advertised)})
          for image, variable, advertised in (
              (APACHE, "KAFKA_LISTENERS", "kafka:9092"),
              (UNKNOWN, "KAFKA_LISTENERS", "?"),
              (BITNAMI, "KAFKA_CFG_LISTENERS", "kafka:9092"),
          )),
        # a listener that is not advertised
        (
            APACHE,
            {"KAFKA_LISTENERS": "A://:1,B://:2", ADVERTISED: "A://kafka:1"},
            {"A": (":1", "kafka:1"), "B": (":2", "?")},
        ),
    ],
)  # fmt: skip
def test_defaults_of_images(
    image: str, env: dict[str, str], expected: dict[str, tuple[str, str]] | None
) -> None:
    assert listeners(broker(image, env)) == expected


SASL = {
    "KAFKA_CFG_LISTENERS": "A://:9092",
    "KAFKA_CFG_LISTENER_SECURITY_PROTOCOL_MAP": "A:SASL_PLAINTEXT",
}


@pytest.mark.parametrize(
    ("image", "more", "advertised"),
    [
        ("bitnami/kafka:latest", {}, "kafka:9092"),
        ("bitnamilegacy/kafka:4.0.0", {}, "kafka:9092"),
        (BITNAMI, {}, "kafka:9092"),
        ("bitnami/kafka:3.4.0", {}, "?"),  # its script sets more with SASL
        ("bitnami/kafka:${TAG}", {}, "?"),
        ("bitnami/kafka", {"unknown": ("env_file",)}, "?"),
        ("bitnami/kafka", {"mounts": ("/bitnami/kafka/config",)}, "?"),
        ("bitnami/kafka", {"mounts": ("/docker-entrypoint-initdb.d",)}, "?"),
        ("bitnami/kafka", {"env": SASL | {"KAFKA_EXTRA_FLAGS": "--override a=b"}}, "?"),
    ],
)
def test_bitnami_leaves_unset_listeners_to_kafka(
    image: str, more: Mapping[str, object], advertised: str
) -> None:
    bitnami = broker(image, **{"env": SASL, **more})  # type: ignore[arg-type]
    assert listeners(bitnami) == {"A": (":9092", advertised)}


def test_without_a_host_the_hostname_is_advertised() -> None:
    env = {"KAFKA_LISTENERS": "PLAINTEXT://:9092"}
    named_broker = broker(APACHE, env, hostname="k1")
    assert listeners(named_broker) == {"PLAINTEXT": (":9092", "k1:9092")}


@pytest.mark.parametrize(
    ("attribute", "env", "value"),
    [
        *(("endpoints", {"KAFKA_LISTENERS": "A://:1"} | env, None) for env in (
            {"KAFKA_LISTENERS": "A://${HOST}:1"},
            {"KAFKA_ADVERTISED_LISTENERS": "A://$HOST:1"},
            {"KAFKA_ADVERTISED_LISTENERS": "A://${HOST}:${PORT}"},
            {"KAFKA_ADVERTISED_LISTENERS": "A://_{PORT_COMMAND}"},
            {"KAFKA_ADVERTISED_LISTENERS": "${ALL}"},
            {"KAFKA_LISTENERS": "nonsense"},
            {"KAFKA_CONTROLLER_LISTENER_NAMES": "${NAMES}"},
        )),
        ("id", {"KAFKA_NODE_ID": " 5 "}, 5),
        ("id", {"KAFKA_BROKER_ID": "5"}, 5),
        ("id", {"KAFKA_NODE_ID": "5", "KAFKA_BROKER_ID": "6"}, 5),
        ("id", {"KAFKA_NODE_ID": "-1"}, None),
        ("id", {"KAFKA_NODE_ID": "${ID}"}, None),
        ("id", {"KAFKA_NODE_ID": "9" * 5000}, None),
        ("id", {"KAFKA_LISTENERS": "A://:1"}, None),
        ("cluster", {"KAFKA_CONTROLLER_QUORUM_VOTERS": "2@b:1, 1@a:1"}, "1@a:1,2@b:1"),
        ("cluster", {"KAFKA_CONTROLLER_QUORUM_BOOTSTRAP_SERVERS": "b:1,a:1"}, "a:1,b:1"),
        ("cluster", {"KAFKA_ZOOKEEPER_CONNECT": " z:2181/kafka "}, "z:2181/kafka"),
        ("cluster", {"KAFKA_ZOOKEEPER_CONNECT": "$ZOOKEEPER"}, "of kafka alone"),
        ("cluster", {"KAFKA_CONTROLLER_QUORUM_VOTERS": "1@${NAME}:1"}, "of kafka alone"),
        ("cluster", {"KAFKA_LISTENERS": "A://:1"}, "of kafka alone"),
        ("cluster", {"KAFKA_CONTROLLER_QUORUM_VOTERS": "1@localhost:1"}, "of kafka alone"),
        ("cluster", {"KAFKA_ZOOKEEPER_CONNECT": "localhost:2181"}, "of kafka alone"),
    ],
)  # fmt: skip
def test_listeners_id_and_cluster_of_a_broker(
    attribute: str, env: dict[str, str], value: object
) -> None:
    assert getattr(broker(APACHE, env), attribute) == value


def test_brokers_on_the_host_s_network_share_its_loopback() -> None:
    env = {"KAFKA_ZOOKEEPER_CONNECT": "localhost:2181"}
    assert broker(APACHE, env, network_mode="host").cluster == "localhost:2181"


@pytest.mark.parametrize("host", ["${HOST}", "b-${N}.example.com", "_{HOSTNAME_COMMAND}"])
@pytest.mark.parametrize("binds", [{}, {"KAFKA_LISTENERS": "A://0.0.0.0:9,B://0.0.0.0:2"}])
def test_the_port_is_known_beside_an_unknown_host(host: str, binds: dict[str, str]) -> None:
    env = {"KAFKA_ADVERTISED_LISTENERS": f"A://{host}:9,B://kafka:2"}
    hidden = broker(APACHE, env | binds)
    assert listeners(hidden) == {"A": ("0.0.0.0:9", "?"), "B": ("0.0.0.0:2", "kafka:2")}
    assert [endpoint.template for endpoint in hidden.endpoints or ()] == [Address(host, 9), None]


def test_of_a_file_that_was_not_read_listeners_are_not_known() -> None:
    env = {"KAFKA_ADVERTISED_LISTENERS": "A://kafka:1"}
    assert listeners(broker(APACHE, env, unknown=("env_file",))) is None
    assert listeners(broker(APACHE, env, unknown=("ports",))) == {"A": ("0.0.0.0:1", "kafka:1")}


def test_what_a_command_sets_is_not_known() -> None:
    env = {"KAFKA_LISTENERS": "A://:1", "KAFKA_ADVERTISED_LISTENERS": "A://kafka:1"}
    command = (
        "sh -c 'export KAFKA_ADVERTISED_LISTENERS=A://$$(hostname):1 && /etc/kafka/docker/run'"
    )
    settings = service(APACHE, env, command).settings
    assert (settings.values, settings.complete) == ({"listeners": "A://:1"}, False)


@pytest.mark.parametrize(
    ("ports", "advertised"),
    [
        ((PublishedPort(9092, 29092),), "kafka:29092"),
        ((PublishedPort(9092, None),), None),
        ((), None),
    ],
)
def test_wurstmeister_asks_docker_for_its_published_port(
    ports: tuple[PublishedPort, ...], advertised: str | None
) -> None:
    env = {"KAFKA_ADVERTISED_HOST_NAME": "kafka"}
    wurstmeister = broker(
        "wurstmeister/kafka", env, published=ports, mounts=("/var/run/docker.sock",)
    )
    expected = {"PLAINTEXT": (":9092", advertised)} if advertised else None
    assert listeners(wurstmeister) == expected


@pytest.mark.parametrize(
    ("roles", "reported"),
    [
        ("broker", (True, False)),
        ("controller", (False, True)),
        ("broker, controller", (True, True)),
        ("", (True, False)),
    ],
)
def test_roles(roles: str, reported: tuple[bool, bool]) -> None:
    node = broker(APACHE, {"KAFKA_NODE_ID": "1", "KAFKA_PROCESS_ROLES": roles})
    assert (node.is_broker, node.is_controller) == reported


def test_voters_that_a_variable_stands_for_are_not_known() -> None:
    env = {"KAFKA_CONTROLLER_QUORUM_VOTERS": "1@kafka:9093,2@${SECOND}:9093"}
    assert broker(APACHE, env).voters == {}


def test_an_unknown_release_is_that_of_the_option_or_the_newest() -> None:
    unknown = BrokerSettings({}, True, None)
    assert unknown.read().version == NEWEST
    assert unknown.read((3, 9)).version == (3, 9)
    assert BrokerSettings({}, True, (4, 1)).read((3, 9)).version == (4, 1)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"zookeeper.connect": "z:1"}, True),
        ({"zookeeper.connect": "z:1", "process.roles": "broker"}, False),
        ({}, False),
    ],
)
def test_settings_without_roles_are_of_zookeeper(values: dict[str, str], expected: bool) -> None:
    assert BrokerSettings(values, True, None).is_zookeeper is expected


def test_a_deployment_has_all_containers_and_clients_by_their_settings() -> None:
    app = Service("app", Container("app", env={"KAFKA_BROKERS": "kafka:9092"}))
    result = deployment([app, service(APACHE)])
    assert list(result.containers) == ["app", "kafka"]
    assert [broker.service for broker in result.brokers] == ["kafka"]
    (client,) = result.bootstraps
    assert (client.service, client.setting) == ("app", "KAFKA_BROKERS")


words = st.text(max_size=20) | st.sampled_from(
    ["A://:1", "A://h:1,B://:2", "broker,controller", "1", "${X}", "1@a:1", "A:SSL", "9" * 5000]
)
images = st.sampled_from(
    [APACHE, CONFLUENT, BITNAMI, UNKNOWN, "wurstmeister/kafka", "confluentinc/cp-kafka:5.0.0"]
)
settings = st.sampled_from(
    ["LISTENERS", "ADVERTISED_LISTENERS", "NODE_ID", "BROKER_ID", "PROCESS_ROLES",
     "ZOOKEEPER_CONNECT", "CONTROLLER_QUORUM_VOTERS", "CONTROLLER_LISTENER_NAMES", "PORT",
     "LISTENER_SECURITY_PROTOCOL_MAP", "INTER_BROKER_LISTENER_NAME", "ADVERTISED_HOST_NAME"]
)  # fmt: skip


@given(images | st.text(max_size=30), st.dictionaries(settings, words), st.booleans(), words)
@example("apache/kafka:4.1.1", {"NODE_ID": "0\x1f"}, False, "")
def test_any_service_is_read(
    image: str, values: dict[str, str], is_prefixed: bool, properties: str
) -> None:
    prefix = "KAFKA_CFG_" if is_prefixed else "KAFKA_"
    env = {prefix + name: value for name, value in values.items()}
    candidate = service(image, env, properties=properties)
    assert len(deployment([candidate]).brokers) <= 1
    try:
        assert isinstance(candidate.settings.read().listeners, dict)
    except Unreadable:
        return

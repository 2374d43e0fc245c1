"""A service runs a broker or not, and its image passes settings to Kafka."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from earshot.facts.settings import NEWEST, BrokerSettings
from earshot.sources.service import Service, brokers_among, image_release, with_empty
from tests.sources.services import APACHE, BITNAMI, CONFLUENT, UNKNOWN, service


@pytest.mark.parametrize(
    ("image", "release"),
    [
        ("apache/kafka:3.9.1", (3, 9)),
        ("apache/kafka-native:4.1.0", (4, 1)),
        ("apache/kafka", NEWEST),
        ("apache/kafka:latest", NEWEST),
        ("registry.example.com:5000/apache/kafka", NEWEST),
        ("apache/kafka:4", NEWEST),
        ("bitnami/kafka:3", (3, 9)),
        ("bitnami/kafka:2", (2, 8)),
        ("bitnami/kafka:latest", NEWEST),
        ("bitnamilegacy/kafka:4.0.0-debian-12-r1", (4, 0)),
        ("confluentinc/cp-kafka:8.0.0", (4, 0)),
        ("confluentinc/cp-kafka:7.9.1", (3, 9)),
        ("confluentinc/cp-kafka:5.5.1", (2, 5)),
        ("confluentinc/cp-kafka:7", (3, 9)),
        ("confluentinc/cp-server:latest", NEWEST),
        ("wurstmeister/kafka", (2, 8)),
        ("wurstmeister/kafka:2.13-2.8.1", (2, 8)),
        ("apache/kafka:trunk", None),
        ("apache/kafka:${TAG}", None),
        ("apache/kafka@sha256:" + "0" * 64, None),
        ("apache/kafka:4.1.1@sha256:" + "0" * 64, (4, 1)),
        ("apache/kafka:" + "9" * 5000, None),
        ("apache/kafka:" + "9" * 5000 + ".1", None),
        (UNKNOWN, None),
        ("", None),
    ],
)
def test_which_kafka_is_in_an_image(image: str, release: tuple[int, int] | None) -> None:
    assert image_release(image) == release


@pytest.mark.parametrize(("candidate", "runs"), [
    (service(APACHE), True),
    (service("redis:7"), False),
    (service(UNKNOWN, {"KAFKA_ADVERTISED_LISTENERS": "A://k:1"}), True),
    (service(UNKNOWN, {"KAFKA_CFG_NODE_ID": "1"}), True),
    (service("example/app", {"KAFKA_BOOTSTRAP_SERVERS": "k:1"}), False),
    (service(APACHE, command="kafka-topics --bootstrap-server kafka:9092"), False),
    (service(CONFLUENT, {"KAFKA_BROKER_ID": "1"}, "sleep infinity"), False),
    (service(CONFLUENT, {"KAFKA_BROKER_ID": "1"}, "cub kafka-ready -b kafka:9092"), False),
    (service(CONFLUENT, {"KAFKA_BROKER_ID": "1"}, "bash -c /etc/confluent/docker/run"), True),
    (service(CONFLUENT, {"KAFKA_BROKER_ID": "1"},
             "bash -c '/etc/confluent/docker/run & kafka-topics --create'"), True),
    (service("example/java", command="bin/kafka-server-start.sh c.properties"), True),
    (service("example/java", properties="listeners=A://:1"), True),
    (service(UNKNOWN, {"KAFKA_ADVERTISED_LISTENERS": "A://k:1"}, "sleep infinity"), False),
])  # fmt: skip
def test_which_services_run_a_broker(candidate: Service, runs: bool) -> None:
    assert bool(brokers_among([candidate])) is runs


def test_variables_are_passed_to_kafka() -> None:
    env = {"KAFKA_NODE_ID": "1", "KAFKA_LISTENERS": "A://:1", "KAFKA_ADVERTISED_LISTENERS": ""}
    values = {"node.id": "1", "listeners": "A://:1"}
    assert service(APACHE, env).settings == BrokerSettings(values, True, (4, 1), 1)
    defaults = service(APACHE).settings.values
    assert defaults["advertised.listeners"] == "PLAINTEXT://localhost:9092"


@pytest.mark.parametrize(
    ("image", "is_passed"), [(APACHE, True), (CONFLUENT, True), ("wurstmeister/kafka", False)]
)
def test_an_empty_variable_is_passed_by_some_images(image: str, is_passed: bool) -> None:
    broker = service(image, {"KAFKA_NUM_PARTITIONS": ""})
    assert ("num.partitions" in with_empty(broker, broker.settings).values) is is_passed


@pytest.mark.parametrize("unread", ["env_file", "variables", "envFrom", "mounted files"])
def test_what_an_image_derives_is_not_known_where_variables_are_unread(unread: str) -> None:
    def values(image: str, env: dict[str, str]) -> Mapping[str, str]:
        return service(image, env, unknown=(unread,)).settings.values

    advertised = {"KAFKA_ADVERTISED_LISTENERS": "A://k:1"}
    assert values(APACHE, {}) == {}
    assert values(APACHE, advertised) == {"advertised.listeners": "A://k:1"}
    assert values(APACHE, advertised | {"KAFKA_LISTENERS": "A://:1"})["listeners"] == "A://:1"
    assert values(BITNAMI, {"KAFKA_CFG_LISTENERS": "A://:1"}) == {"listeners": "A://:1"}


def test_old_images_take_a_host_and_a_port() -> None:
    env = {"KAFKA_ADVERTISED_HOST_NAME": "kafka", "KAFKA_ZOOKEEPER_CONNECT": "z:1"}
    values = service("wurstmeister/kafka", env).settings.values
    assert (values["listeners"], values["advertised.listeners"]) == (
        "PLAINTEXT://:9092",
        "PLAINTEXT://kafka:9092",
    )
    assert "listeners" not in service(APACHE, env).settings.values


def test_a_mounted_file_and_options_of_a_start_command_count() -> None:
    env = {"KAFKA_NODE_ID": "2"}
    mounted = service(APACHE, env, properties="node.id=1\nlisteners=A://:1\n")
    assert mounted.settings.values == {"node.id": "2", "listeners": "A://:1"}
    command = "kafka-server-start.sh c.properties --override listeners=A://:1 --override=node.id=3"
    values = {"listeners": "A://:1", "node.id": "3"}
    assert service(APACHE, env, command).settings == BrokerSettings(values, False, (4, 1), 1)


@pytest.mark.parametrize(
    ("candidate", "complete"),
    [
        (service(APACHE), True),
        (service(CONFLUENT), True),
        (service(BITNAMI), True),
        (service("bitnami/kafka:3.1.0"), False),  # it sets what is absent
        *((service(image), True) for image in ("bitnamilegacy/kafka:4.0.0", "bitnami/kafka")),
        (service("bitnami/kafka:${TAG}"), False),
        (service("bitnami/kafka:4.0", {"KAFKA_EXTRA_FLAGS": "--override a=b"}), False),
        (service("bitnami/kafka:4.0", {"KAFKA_MOUNTED_CONF_DIR": "/conf"}), False),
        (service("bitnami/kafka", mounts=("/bitnami/kafka/config",)), False),
        (service(BITNAMI, {"KAFKA_CFG_LISTENERS": "SASL_SSL://:9092"}), False),
        (service(UNKNOWN), False),
        (service("confluentinc/confluent-local:7.6.0"), False),
        (service(APACHE, is_built=True), False),
        (service(APACHE, command="/etc/kafka/docker/run"), False),
        (service(APACHE, unknown=("env_file",)), False),
        (service(APACHE, mounts=("/mnt/shared/config",)), False),
        (service(APACHE, mounts=("/opt/kafka/config/server.properties",)), False),
        (service(APACHE, mounts=("/var/lib/kafka/data",)), True),
    ],
)
def test_whether_the_file_has_all_settings(candidate: Service, complete: bool) -> None:
    assert candidate.settings.complete is complete


SERVERS = "controller.quorum.bootstrap.servers"


@pytest.mark.parametrize(
    ("image", "more", "servers"),
    [
        ("bitnami/kafka", {}, "localhost:9093"),
        ("bitnamisecure/kafka:4.1.0", {}, "localhost:9093"),
        ("bitnamilegacy/kafka:4.0.0", {}, None),
        (BITNAMI, {}, None),
        (APACHE, {"env": {"KAFKA_NODE_ID": "1"}}, None),
        ("bitnami/kafka", {"unknown": ("env_file",)}, None),
        ("bitnami/kafka", {"mounts": ("/bitnami/kafka/config",)}, None),
        ("bitnami/kafka", {"env": {"KAFKA_CONTROLLER_QUORUM_VOTERS": "1@a:1"}}, None),
        ("bitnami/kafka", {"env": {"KAFKA_CFG_CONTROLLER_QUORUM_BOOTSTRAP_SERVERS": "a:1"}}, "a:1"),
    ],
)
def test_bitnami_4_1_seeks_its_controller_at_localhost(
    image: str, more: Mapping[str, object], servers: str | None
) -> None:
    values = service(image, **more).settings.values  # type: ignore[arg-type]
    assert values.get(SERVERS) == servers

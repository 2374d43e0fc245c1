"""Which security protocol a client speaks."""

from __future__ import annotations

from dataclasses import replace

import pytest

from earshot.sources.client_protocol import client_protocol
from earshot.sources.compose import Service
from earshot.topology.container import Container

UI = "kafbat/kafka-ui:v1"
UI_SETTING = "KAFKA_CLUSTERS_0_BOOTSTRAPSERVERS"
REGISTRY = "confluentinc/cp-schema-registry:7.9.0"
STORE = "SCHEMA_REGISTRY_KAFKASTORE_BOOTSTRAP_SERVERS"


def spoken(image: str, setting: str, env: dict[str, str], value: str = "kafka:9092") -> str:
    service = Service("app", Container("app", image, env={setting: value, **env}))
    return client_protocol(service, setting, value)


@pytest.mark.parametrize(
    ("image", "setting", "env", "protocol"),
    [
        (UI, UI_SETTING, {}, "PLAINTEXT"),
        (UI, UI_SETTING, {"DYNAMIC_CONFIG_ENABLED": "true"}, "PLAINTEXT"),
        (UI, UI_SETTING, {"KAFKA_CLUSTERS_0_PROPERTIES_SECURITY_PROTOCOL": "SASL_SSL"}, "SASL_SSL"),
        (UI, UI_SETTING, {"KAFKA_CLUSTERS_1_PROPERTIES_SECURITY_PROTOCOL": "SSL"}, ""),
        (UI, UI_SETTING, {"KAFKA_CLUSTERS_0_PROPERTIES_SASL_JAAS_CONFIG": "x"}, ""),
        (UI, UI_SETTING, {"SPRING_CONFIG_ADDITIONAL-LOCATION": "/config.yml"}, ""),
        (REGISTRY, STORE, {}, "PLAINTEXT"),
        (REGISTRY, STORE, {"SCHEMA_REGISTRY_KAFKASTORE_SECURITY_PROTOCOL": "ssl"}, "SSL"),
        (REGISTRY, STORE, {"SCHEMA_REGISTRY_KAFKASTORE_SECURITY_PROTOCOL": "${P}"}, ""),
        ("confluentinc/cp-kafka-connect:7.9.0", "CONNECT_BOOTSTRAP_SERVERS",
         {"CONNECT_CONFIG_STORAGE_TOPIC": "c"}, "PLAINTEXT"),
        ("example/app", "KAFKA_BOOTSTRAP_SERVERS", {}, ""),
        ("example/app", "KAFKA_BOOTSTRAP_SERVERS", {"KAFKA_SECURITY_PROTOCOL": "SSL"}, "SSL"),
        ("example/app", "KAFKA_BROKERS", {"KAFKA_SECURITY_PROTOCOL": "SSL"}, ""),
    ],
)  # fmt: skip
def test_a_protocol(image: str, setting: str, env: dict[str, str], protocol: str) -> None:
    assert spoken(image, setting, env) == protocol


def test_the_registry_takes_the_protocol_before_an_address() -> None:
    assert spoken(REGISTRY, STORE, {}, "SASL_SSL://kafka:9092") == "SASL_SSL"
    assert spoken("example/app", "KAFKA_BOOTSTRAP_SERVERS", {}, "SSL://kafka:9092") == ""


@pytest.mark.parametrize(
    "more",
    [{"mounts": ("/etc/kafkaui",)}, {"unknown": ("env_file",)}, {"image": "${UI}/kafka-ui"}],
)
def test_what_may_say_more_leaves_it_unknown(more: dict[str, object]) -> None:
    container = replace(Container("app", UI, env={UI_SETTING: "kafka:9092"}), **more)  # type: ignore[arg-type]
    assert client_protocol(Service("app", container), UI_SETTING, "kafka:9092") == ""


def test_a_command_or_a_build_leaves_it_unknown() -> None:
    container = Container("app", UI, env={UI_SETTING: "kafka:9092"})
    for service in (Service("app", container, ("sh",)), Service("app", container, is_built=True)):
        assert client_protocol(service, UI_SETTING, "kafka:9092") == ""

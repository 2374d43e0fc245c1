from __future__ import annotations

import textwrap

import pytest

from earshot.sources.compose import Service, read_compose
from earshot.sources.open_listeners import MAX_SHOWN, open_listeners, open_values

CP = "confluentinc/cp-kafka:7.6.0"
BOTH = "{KAFKA_LISTENERS: 'A://:1', KAFKA_ADVERTISED_LISTENERS: 'A://k:1'}"


def services(body: str, **files: str) -> tuple[Service, ...]:
    def read(path: str) -> str:
        if path not in files:
            raise FileNotFoundError(path)
        return files[path]

    text = f"services:\n  k:\n{textwrap.indent(textwrap.dedent(body), '    ')}"
    return read_compose(text, "compose.yml", {}, read, lenient=True).services


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("environment: {KAFKA_ADVERTISED_LISTENERS: 'A://k:1'}", ""),
        (
            "environment: {KAFKA_ADVERTISED_LISTENERS: 'A://${IP}:1'}",
            "KAFKA_ADVERTISED_LISTENERS is not known: A://${IP}:1",
        ),
        ("environment: [KAFKA_LISTENERS]", "KAFKA_LISTENERS is not known: ${KAFKA_LISTENERS}"),
        (
            "environment: {KAFKA_LISTENER_SECURITY_PROTOCOL_MAP: '${MAP}'}",
            "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP is not known: ${MAP}",
        ),
        ("environment: {KAFKA_LOG_DIRS: '${DIR}'}", ""),
        ("env_file: gone.env", "env_file could not be read, and may set its listeners"),
        (f"env_file: gone.env\nenvironment: {BOTH}", ""),
        ("env_file: gone.env\nenvironment: {KAFKA_LISTENERS: 'A://:1'}",
         "env_file could not be read, and may set its listeners"),
        ("env_file: gone.env\ncommand: sleep infinity", ""),
        ("extends: {file: gone.yml, service: k}",
         "extends could not be read, and may set its listeners"),
    ],
)  # fmt: skip
def test_why_the_listeners_of_a_broker_are_not_known(body: str, why: str) -> None:
    assert [*open_listeners(services(f"image: {CP}\n{body}"))] == ([("k", why)] if why else [])


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("command: redpanda start --kafka-addr 0.0.0.0:1 --advertise-kafka-addr k:1", ""),
        (
            "command: redpanda start --kafka-addr 0.0.0.0:1 --advertise-kafka-addr ${IP}:1",
            "an address in its command is not known: ${IP}:1",
        ),
        (
            "command: redpanda start --set redpanda.advertised_kafka_api[0].address=${IP}",
            "an address in its command is not known: ${IP}",
        ),
        ("env_file: gone.env", "env_file could not be read, and may set its listeners"),
        ("command: rpk topic list --brokers ${IP}:1", ""),
    ],
)
def test_why_the_listeners_of_redpanda_are_not_known(body: str, why: str) -> None:
    found = services(f"image: redpandadata/redpanda:v24.1.1\n{body}")
    assert [*open_listeners(found)] == ([("k", why)] if why else [])


def test_the_name_of_an_older_variable_is_told() -> None:
    body = """
        image: wurstmeister/kafka:2.12-2.5.0
        environment: {KAFKA_ADVERTISED_HOST_NAME: '${IP}', KAFKA_ZOOKEEPER_CONNECT: 'zk:2181'}
    """
    why = "KAFKA_ADVERTISED_HOST_NAME is not known: PLAINTEXT://${IP}:9092"
    assert [*open_listeners(services(body))] == [("k", why)]


def test_what_a_shell_computes_is_no_gap() -> None:
    start = "kafka-server-start.sh c --override advertised.listeners=A://$$(hostname -f):1"
    assert [*open_listeners(services(f"image: solsson/kafka\ncommand: {start}"))] == []


WRITTEN = "its command writes the properties of Kafka, which are not read"
STARTED = "its command starts Kafka with properties that are not read"


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("sh -c 'echo listeners=A://:1 > a; kafka-server-start.sh a'", WRITTEN),
        ("sh -c 'echo advertised.listeners = A://k:1 >> a; exec /etc/kafka/docker/run'", WRITTEN),
        ("kafka-server-start.sh a.properties", STARTED),
        ("kafka-server-start.sh a.properties --override node.id=1", STARTED),
        ("sh -c 'kafka-server-start.sh a --override \"listeners=A://:1\"'", STARTED),
        ("kafka-server-start.sh a --override listeners=A://:1 --override=listeners=A://:1", ""),
        ("sh -c 'export KAFKA_LISTENERS=A://:1; /etc/kafka/docker/run'", ""),
    ],
)
def test_a_command_that_sets_the_listeners_itself(command: str, why: str) -> None:
    body = f"image: {CP}\ncommand: {command}\nenvironment: {{KAFKA_NODE_ID: '1'}}"
    assert [*open_listeners(services(body))] == ([("k", why)] if why else [])


def test_what_an_image_computes_when_it_starts_is_no_gap() -> None:
    body = """
        image: wurstmeister/kafka
        environment:
          HOSTNAME_COMMAND: hostname -i
          KAFKA_ADVERTISED_LISTENERS: A://_{HOSTNAME_COMMAND}:1
    """
    assert [*open_listeners(services(body))] == []


def test_a_value_is_shown_without_secrets_and_cut() -> None:
    (shown,) = open_values({"listeners": "A://user:hunter2@${IP}:1"})
    assert "hunter2" not in shown
    (long,) = open_values({"listeners": "A://${IP}:1," * 100})
    assert len(long) < MAX_SHOWN + 50

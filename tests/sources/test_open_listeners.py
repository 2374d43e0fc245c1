from __future__ import annotations

import textwrap

import pytest

from earshot.sources.compose import read_compose
from earshot.sources.open_listeners import MAX_SHOWN, open_listeners, open_values

CP = "confluentinc/cp-kafka:7.6.0"
BOTH = "{KAFKA_LISTENERS: 'A://:1', KAFKA_ADVERTISED_LISTENERS: 'A://k:1'}"


def read(path: str) -> str:
    raise FileNotFoundError(path)


UNREAD = "env_file could not be read, and may set its listeners"
WRITTEN = "its command writes the properties of Kafka, which are not read"
STARTED = "its command starts Kafka with properties that are not read"
REDPANDA = "redpandadata/redpanda:v24.1.1"


@pytest.mark.parametrize(("image", "body", "why"), [
    (CP, "environment: {KAFKA_ADVERTISED_LISTENERS: 'A://k:1'}", ""),
    (CP, "environment: {KAFKA_ADVERTISED_LISTENERS: 'A://${IP}:1'}",
     "KAFKA_ADVERTISED_LISTENERS is not known: A://${IP}:1"),
    (CP, "environment: [KAFKA_LISTENERS]", "KAFKA_LISTENERS is not known: ${KAFKA_LISTENERS}"),
    (CP, "environment: {KAFKA_LISTENER_SECURITY_PROTOCOL_MAP: '${MAP}'}",
     "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP is not known: ${MAP}"),
    (CP, "environment: {KAFKA_LOG_DIRS: '${DIR}'}", ""),
    (CP, "env_file: gone.env", UNREAD),
    (CP, f"env_file: gone.env\nenvironment: {BOTH}", ""),
    (CP, "env_file: gone.env\nenvironment: {KAFKA_LISTENERS: 'A://:1'}", UNREAD),
    (CP, "env_file: gone.env\ncommand: sleep infinity", ""),
    (CP, "extends: {file: gone.yml, service: k}", UNREAD.replace("env_file", "extends")),
    (REDPANDA, "command: redpanda start --kafka-addr 0.0.0.0:1 --advertise-kafka-addr k:1", ""),
    (REDPANDA, "command: redpanda start --kafka-addr 0.0.0.0:1 --advertise-kafka-addr ${IP}:1",
     "an address in its command is not known: ${IP}:1"),
    (REDPANDA, "command: redpanda start --set redpanda.advertised_kafka_api[0].address=${IP}",
     "an address in its command is not known: ${IP}"),
    ("apache/kafka:4.1.1",
     "command: sh -c 'KAFKA_ADVERTISED_LISTENERS=A://k:1 /etc/kafka/docker/run'",
     "its command sets KAFKA_ADVERTISED_LISTENERS, which is not read"),
    (REDPANDA, "env_file: gone.env", UNREAD),
    (REDPANDA, "command: rpk topic list --brokers ${IP}:1", ""),
    # an older variable
    ("wurstmeister/kafka:2.12-2.5.0",
     "environment: {KAFKA_ADVERTISED_HOST_NAME: '${IP}', KAFKA_ZOOKEEPER_CONNECT: 'z:1'}",
     "KAFKA_ADVERTISED_HOST_NAME is not known: PLAINTEXT://${IP}:9092"),
    ("example/events", "environment: {KAFKA_ADVERTISED_HOST_NAME: kafka}",
     "only some images read KAFKA_ADVERTISED_HOST_NAME: whether this one does is unknown"),
    ("example/events", ("environment: {KAFKA_ADVERTISED_HOST_NAME: kafka, "
     "KAFKA_ADVERTISED_LISTENERS: 'A://kafka:9092'}"), ""),
    # values that a shell or the image computes at the start
    ("solsson/kafka",
     ("command: kafka-server-start.sh c --override advertised.listeners=A://$$(hostname -f):1"),
     ""),
    ("wurstmeister/kafka", ("environment: {HOSTNAME_COMMAND: hostname -i, "
                            "KAFKA_ADVERTISED_LISTENERS: 'A://_{HOSTNAME_COMMAND}:1'}"), ""),
    *((CP, f"command: {command}\nenvironment: {{KAFKA_NODE_ID: '1'}}", why)
      for command, why in (
        ("sh -c 'echo listeners=A://:1 > a; kafka-server-start.sh a'", WRITTEN),
        ("sh -c 'echo advertised.listeners = A://k:1 >> a; exec /etc/kafka/docker/run'", WRITTEN),
        ("kafka-server-start.sh a.properties", STARTED),
        ("kafka-server-start.sh a.properties --override node.id=1", STARTED),
        ("sh -c 'kafka-server-start.sh a --override \"listeners=A://:1\"'", STARTED),
        ("kafka-server-start.sh a --override listeners=A://:1 --override=listeners=A://:1", ""),
        ("sh -c 'export KAFKA_LISTENERS=A://:1; /etc/kafka/docker/run'", ""),
    )),
])  # fmt: skip
def test_why_the_listeners_of_a_broker_are_not_known(image: str, body: str, why: str) -> None:
    text = f"services:\n  k:\n    image: {image}\n{textwrap.indent(body, '    ')}"
    services = read_compose(text, "compose.yml", {}, read, lenient=True).services
    assert [*open_listeners(services)] == ([("k", why)] if why else [])


def test_a_value_is_shown_without_secrets_and_cut() -> None:
    (shown,) = open_values({"listeners": "A://user:hunter2@${IP}:1"})
    assert "hunter2" not in shown
    (long,) = open_values({"listeners": "A://${IP}:1," * 100})
    assert len(long) < MAX_SHOWN + 50

"""KL016: replicas of one Compose service that have one node id or one advertised address."""

from __future__ import annotations

import pytest

from earshot.checks.deployment import mistakes
from tests.rules.deployment_examples import services, verdicts

KRAFT = """
    environment:
      KAFKA_NODE_ID: {id}
      KAFKA_PROCESS_ROLES: broker,controller
      KAFKA_CONTROLLER_LISTENER_NAMES: CONTROLLER
      KAFKA_CONTROLLER_QUORUM_VOTERS: 1@{voter}:9093
      KAFKA_LISTENERS: PLAINTEXT://:9092,CONTROLLER://:9093
      KAFKA_ADVERTISED_LISTENERS: "PLAINTEXT://{host}:9092"
      KAFKA_LISTENER_SECURITY_PROTOCOL_MAP: CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
"""
ZOOKEEPER = """
    environment:
      KAFKA_ZOOKEEPER_CONNECT: zookeeper:2181
"""
REDPANDA = """  kafka:
    image: redpandadata/redpanda:v24.1.1
    scale: 2
    command: redpanda start --kafka-addr 0.0.0.0:9092 --advertise-kafka-addr kafka:9092
"""
SLOT = '"{{.Task.Slot}}"'
ERROR = ("KL016", "kafka", "error")


def broker(
    keys: str,
    *,
    id: str = "1",
    host: str = "kafka",
    voter: str = "kafka",
    image: str = "apache/kafka:4.1.1",
) -> str:
    settings = KRAFT.format(id=id, host=host, voter=voter)
    return f"  kafka:\n    image: {image}\n    {keys}{settings}"


def with_zookeeper(image: str, *variables: str) -> str:
    lines = "".join(f"      {variable}\n" for variable in variables)
    zookeeper = "  zookeeper: {image: 'zookeeper:3.9'}\n"
    return f"{zookeeper}  kafka:\n    image: {image}\n    scale: 2{ZOOKEEPER}{lines}"


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ("deploy: {replicas: 2}", [ERROR]),
        ("deploy: {mode: replicated, replicas: 10}", [ERROR]),
        ("scale: 2", [ERROR]),
        ("scale: '3'", [ERROR]),
        ("deploy: {replicas: 1}", []),
        ("scale: 1", []),
        ("deploy: {}", []),
        # the number of a Swarm's nodes is unknown, and so is a variable
        ("deploy: {mode: global}", []),
        ("deploy: {mode: global, replicas: 2}", []),
        ("scale: ${BROKERS}", []),
        # an image that is built may choose another id
        ("scale: 2\n    build: .", [("KL016", "kafka", "warning")]),
    ],
)
def test_number_of_replicas(keys: str, expected: list[tuple[str, str, str]]) -> None:
    assert verdicts(broker(keys)) == expected


def test_message_names_what_replicas_share() -> None:
    (finding,) = mistakes(services(f"services:\n{broker('scale: 3')}"))
    assert finding.observed == (
        "runs 3 times with one configuration: all replicas have the node id 1 and the advertised "
        "address kafka:9092"
    )


@pytest.mark.parametrize(("text", "shared"), [
    (broker("scale: 2", id=SLOT, host="kafka-{{.Task.Slot}}"), ""),
    (broker("scale: 2", id=SLOT), "the advertised address kafka:9092"),
    (broker("scale: 2", host="kafka-{{.Task.Slot}}"), "the node id 1"),
    # each replica is a cluster of its own
    (broker("scale: 2", host="localhost", voter="localhost"), ""),
    ("  kafka: {image: 'apache/kafka:4.1.1', scale: 2}", ""),
    (with_zookeeper("confluentinc/cp-kafka:7.5.0", "KAFKA_BROKER_ID: 1",
                    "KAFKA_ADVERTISED_LISTENERS: PLAINTEXT://kafka:9092"),
     "the node id 1 and the advertised address kafka:9092"),
    (with_zookeeper("confluentinc/cp-kafka:7.5.0",
                    "KAFKA_ADVERTISED_LISTENERS: PLAINTEXT://kafka:9092"),
     "the advertised address kafka:9092"),
    # the image chooses the id and advertises the container's own name
    (with_zookeeper("wurstmeister/kafka:2.13-2.8.1", "KAFKA_LISTENERS: PLAINTEXT://:9092"), ""),
    (with_zookeeper("wurstmeister/kafka:2.13-2.8.1", "HOSTNAME_COMMAND: hostname",
                    "KAFKA_LISTENERS: PLAINTEXT://:9092",
                    "KAFKA_ADVERTISED_LISTENERS: PLAINTEXT://_{HOSTNAME_COMMAND}:9092"), ""),
    (REDPANDA, "the advertised address kafka:9092"),
])  # fmt: skip
def test_what_replicas_share(text: str, shared: str) -> None:
    observed = [
        finding.observed.partition("all replicas have ")[2]
        for finding in mistakes(services(f"services:\n{text}\n"))
        if finding.rule == "KL016"
    ]
    assert observed == ([shared] if shared else [])

"""The health check of a broker is a client in its container."""

import pytest

from tests.rules.deployment_examples import verdicts

KRAFT = """
      KAFKA_NODE_ID: 1
      KAFKA_PROCESS_ROLES: broker,controller
      KAFKA_CONTROLLER_LISTENER_NAMES: CONTROLLER
      KAFKA_CONTROLLER_QUORUM_VOTERS: 1@kafka:9093
      KAFKA_LISTENERS: INNER://:29092,HOST://:9092,CONTROLLER://:9093
      KAFKA_INTER_BROKER_LISTENER_NAME: INNER
      KAFKA_LISTENER_SECURITY_PROTOCOL_MAP: INNER:PLAINTEXT,HOST:PLAINTEXT,CONTROLLER:PLAINTEXT"""


def checked(test: str, advertised: str = "INNER://kafka:29092,HOST://localhost:9092") -> str:
    return f"""
  kafka:
    image: apache/kafka:4.1.1
    ports: ["9092:9092", "19092:9092"]
    healthcheck: {{test: {test}}}
    environment: {KRAFT}
      KAFKA_ADVERTISED_LISTENERS: {advertised}
"""


TOPICS = "kafka-topics.sh --list --bootstrap-server"
WARNED = [("KL015", "kafka", "warning")]


@pytest.mark.parametrize(("text", "expected"), [
    (checked(f'["CMD-SHELL", "{TOPICS} localhost:9092"]'), []),
    (checked(f'["CMD-SHELL", "{TOPICS} kafka:29092 || exit 1"]'), []),
    (checked("nc -z localhost 9999"), []),
    (checked(f"{TOPICS} localhost:9095"), WARNED),
    (checked(f'["CMD", "bash", "-c", "{TOPICS} $$HOSTNAME:9095"]'), []),
    (checked(f"{TOPICS} localhost:9092", "INNER://kafka:29092,HOST://localhost:19092"), WARNED),
    (
        checked(
            f"{TOPICS} localhost:9092", "INNER://kafka:29092,HOST://localhost:9093"
        ).replace("19092:9092", "9093:9092"),
        WARNED,
    ),
    (checked(f"{TOPICS} localhost:9092", "INNER://kafka:29092,HOST://broker.example:9092"), []),
    (checked(f"{TOPICS} localhost:9092", "INNER://kafka:29092,HOST://elsewhere:9092"), []),
])  # fmt: skip
def test_a_health_check_is_a_client_in_the_container_of_its_broker(
    text: str, expected: list[tuple[str, str, str]]
) -> None:
    assert verdicts(text) == expected

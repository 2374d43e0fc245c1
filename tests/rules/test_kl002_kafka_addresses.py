"""KL002: Java clients of TLS listeners refuse names with an underscore."""

from __future__ import annotations

import pytest

from earshot.checks.deployment import mistakes
from earshot.checks.lone_settings import mistakes_in_properties
from earshot.rules.rule import Severity
from tests.rules.deployment_examples import services

UNVERIFIED = "ssl.endpoint.identification.algorithm"


def severities(host: str, protocol: str, more: str = "") -> list[Severity]:
    text = f"""
broker.id=1
zookeeper.connect=zookeeper:2181
listeners=EXTERNAL://:9092
advertised.listeners=EXTERNAL://{host}:9092
listener.security.protocol.map=EXTERNAL:{protocol}
inter.broker.listener.name=EXTERNAL
ssl.keystore.location=/k
{more}
"""
    findings = mistakes_in_properties(text)
    assert all(finding.listener == "EXTERNAL" for finding in findings)
    return [finding.severity for finding in findings if "underscore" in finding.observed]


@pytest.mark.parametrize(
    ("host", "protocol", "more", "expected"),
    [
        ("kafka_1.example.com", "SSL", "", [Severity.ERROR]),
        ("kafka_1.example.com", "SASL_SSL", "", [Severity.ERROR]),
        ("kafka_1", "SSL", "", [Severity.ERROR]),
        ("kafka.my_zone", "SSL", f"{UNVERIFIED}=https", [Severity.ERROR]),
        ("kafka_1", "SSL", f"{UNVERIFIED}=", [Severity.WARNING]),
        ("kafka_1", "SSL", f"listener.name.external.{UNVERIFIED}=", [Severity.WARNING]),
        ("kafka_1.example.com", "PLAINTEXT", "", []),
        ("kafka_1.example.com", "SASL_PLAINTEXT", "", []),
        ("kafka-1.example.com", "SSL", "", []),
        ("kafka_${ID}", "SSL", "", []),
        ("kafka_1", "${PROTOCOL}", "", []),
        ("your_server_ip", "SSL", "", []),  # a placeholder, which is another finding
    ],
)
def test_underscore_in_a_name(
    host: str, protocol: str, more: str, expected: list[Severity]
) -> None:
    assert severities(host, protocol, more) == expected


@pytest.mark.parametrize(
    ("variable", "expected"), [("https", Severity.ERROR), ("''", Severity.WARNING)]
)
def test_underscore_in_an_alias_of_a_compose_file(variable: str, expected: Severity) -> None:
    text = f"""
services:
  zookeeper: {{image: "confluentinc/cp-zookeeper:7.5.0"}}
  kafka:
    image: confluentinc/cp-kafka:7.5.0
    networks: {{default: {{aliases: [kafka_1]}}}}
    environment:
      KAFKA_ZOOKEEPER_CONNECT: zookeeper:2181
      KAFKA_ADVERTISED_LISTENERS: SSL://kafka_1:9092
      KAFKA_INTER_BROKER_LISTENER_NAME: SSL
      KAFKA_SSL_KEYSTORE_FILENAME: k
      KAFKA_SSL_KEYSTORE_CREDENTIALS: c
      KAFKA_SSL_KEY_CREDENTIALS: c
      KAFKA_SSL_TRUSTSTORE_FILENAME: t
      KAFKA_SSL_TRUSTSTORE_CREDENTIALS: c
      KAFKA_SSL_ENDPOINT_IDENTIFICATION_ALGORITHM: {variable}
"""
    (finding,) = mistakes(services(text))
    assert (finding.rule, finding.container, finding.severity) == ("KL002", "kafka", expected)
    assert "kafka_1" in finding.observed and "Illegal given domain name" in finding.observed

"""KL002: words that stand in place of an advertised host."""

import pytest

from earshot.checks.deployment import mistakes
from earshot.checks.lone_settings import mistakes_in_properties
from earshot.rules.rule import Severity
from tests.rules.deployment_examples import services

PLACEHOLDERS = (
    "your.host.name", "YOUR_IP", "your-server-ip", "public-ip", "EC2_PUBLIC_IP", "hostip",
    "x.x.x.x", "xxx.xxx.xxx.xxx", "CHANGEME", "replace_this_host", "ip-address",
)  # fmt: skip
HOSTS = (
    "kafka",
    "ip-10-0-0-1.ec2.internal",
    "youri.example.com",
    "replica-1",
    "exchange.me",
    "publicity",
    "xxx.example.com",
    "equip",
    "localhost",
    "yourhost" + "a" * 50 + "1",
    "your" + ".a" * 100 + "1",
    "host" * 15 + "1",
)


def properties(host: str) -> str:
    return f"""
broker.id=1
zookeeper.connect=zookeeper:2181
listeners=PLAINTEXT://:9092
advertised.listeners=PLAINTEXT://{host}:9092
"""


@pytest.mark.parametrize("host", PLACEHOLDERS)
def test_a_placeholder_is_a_warning(host: str) -> None:
    (finding,) = mistakes_in_properties(properties(host))
    assert (finding.rule, finding.listener, finding.severity) == (
        "KL002",
        "PLAINTEXT",
        Severity.WARNING,
    )


@pytest.mark.parametrize("host", HOSTS)
def test_a_name_is_none(host: str) -> None:
    assert mistakes_in_properties(properties(host)) == ()


def test_it_is_named_in_a_compose_file() -> None:
    text = """
services:
  zookeeper: {image: "confluentinc/cp-zookeeper:7.5.0"}
  kafka:
    image: confluentinc/cp-kafka:7.5.0
    ports: ["9092:9092"]
    environment:
      KAFKA_ZOOKEEPER_CONNECT: zookeeper:2181
      KAFKA_ADVERTISED_LISTENERS: PLAINTEXT://your-public-ip:9092
"""
    (finding,) = mistakes(services(text))
    assert (finding.rule, finding.container, finding.severity) == (
        "KL002",
        "kafka",
        Severity.WARNING,
    )

"""Brokers whose `zookeeper.connect` leads to no ZooKeeper of their file."""

import pytest

from earshot.checks.deployment import mistakes
from earshot.rules.rule import Finding
from tests.rules.deployment_examples import services

FILE = """services:
  zk:
    image: {image}
    ports: ["{published}"]
    environment:
      {port}
    {zookeeper}
  kafka:
    image: {kafka}
    ports: ["9092:9092"]
    environment:
      KAFKA_BROKER_ID: 1
      KAFKA_ZOOKEEPER_CONNECT: {connect}
      KAFKA_ADVERTISED_LISTENERS: PLAINTEXT://localhost:9092
      KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR: 1
    {broker}
{more}
"""
CONFLUENT = "confluentinc/cp-zookeeper:7.6.0"


def shown_findings(*arguments: str, **settings: str) -> list[tuple[str, str, str]]:
    """The rule, the container and the text of each of `zookeeper_findings`."""
    return [
        (finding.rule, finding.container, finding.observed)
        for finding in zookeeper_findings(*arguments, **settings)
    ]


def zookeeper_findings(
    connect: str,
    image: str = CONFLUENT,
    port: str = "ZOOKEEPER_CLIENT_PORT: 2181",
    *,
    zookeeper: str = "",
    broker: str = "",
    kafka: str = "confluentinc/cp-kafka:7.6.0",
    more: str = "",
    published: str = "22181:2181",
) -> tuple[Finding, ...]:
    text = FILE.format(
        connect=connect,
        image=image,
        port=port,
        zookeeper=zookeeper,
        broker=broker,
        kafka=kafka,
        more=more,
        published=published,
    )
    return mistakes(services(text))


@pytest.mark.parametrize(
    ("connect", "broker", "remedy"),
    [
        ("localhost:2181", "", "set zookeeper.connect to zk:2181"),
        # Docker gives no names on the host's network
        ("zk:2181", "network_mode: host", "set zookeeper.connect to the address of a ZooKeeper"),
    ],
)
def test_the_fix_is_an_address_that_the_broker_reaches(
    connect: str, broker: str, remedy: str
) -> None:
    (finding,) = zookeeper_findings(connect, broker=broker)
    assert finding.remedy == remedy


@pytest.mark.parametrize(
    ("connect", "reason"),
    [
        ("zk:22181", "ZooKeeper of zk listens at port 2181"),
        ("localhost:2181", "it is the client itself"),
        ("127.0.0.1:2181/kafka", "it is the client itself"),
        ("zookeeper:2181", "zookeeper"),
        ("zookeeper", "zookeeper"),
        ("zk1:2181,zk2:2181,zk:2182/chroot", "zk1:2181: "),
    ],
)
def test_an_address_without_a_zookeeper(connect: str, reason: str) -> None:
    ((rule, container, observed),) = shown_findings(connect)
    assert (rule, container) == ("KL016", "kafka")
    assert observed.startswith("zookeeper.connect leads to no ZooKeeper") and reason in observed


@pytest.mark.parametrize(
    ("image", "port", "connect", "is_lost"),
    [
        ("zookeeper:3.9", "A: b", "zk:22181", True),
        ("zookeeper:3.9", "A: b", "zk:2181", False),
        ("bitnami/zookeeper:3.9", "ZOO_PORT_NUMBER: 32181", "zk:2181", True),
        ("bitnami/zookeeper:3.9", "ZOO_PORT_NUMBER: 32181", "zk:32181", False),
        (CONFLUENT, "ZOOKEEPER_CLIENT_PORT: 32181", "zk:2181", True),
        (CONFLUENT, "ZOOKEEPER_CLIENT_PORT: 32181", "zk:32181/kafka", False),
        (CONFLUENT, "ZOOKEEPER_CLIENT_PORT: ${PORT}", "zk:32181", False),
        ("zookeeper:3.9", "ZOO_CFG_EXTRA: secureClientPort=2281", "zk:2281", False),
        ("registry.example.org/zookeeper:1", "A: b", "zk:2199", False),
    ],
)
def test_the_port_of_zookeeper(image: str, port: str, connect: str, is_lost: bool) -> None:
    assert bool(shown_findings(connect, image, port)) is is_lost


@pytest.mark.parametrize(
    ("connect", "options"),
    [
        ("zk:2181", {}),
        ("zookeeper:2181,zk:2181", {}),
        ("zookeeper.example.com:2181", {}),
        ("${ZOOKEEPER}:2181", {}),
        ("zookeeper:2181", {"image": "redis:7"}),  # another file may have it
        ("zookeeper:2181", {"image": "example/zookeeper-exporter:1"}),
        ("localhost:2181", {"kafka": "spotify/kafka"}),
        ("zookeeper:2181", {"zookeeper": "hostname: zookeeper"}),
        ("zookeeper:2181", {"zookeeper": "container_name: zookeeper"}),
        ("zookeeper:2181", {"broker": "extra_hosts: ['zookeeper:10.0.0.1']"}),
        ("zookeeper:2181", {"more": "networks: {default: {external: true}}"}),
        ("localhost:2181", {"broker": "network_mode: host"}),
        ("localhost:2181", {"zookeeper": "network_mode: 'service:kafka'"}),
        ("localhost:2181", {"broker": "command: sh -c 'zookeeper & kafka'"}),
        ("localhost:2181", {"broker": "build: ."}),
        ("127.0.0.1:2181", {"image": "redis:7", "broker": "network_mode: host"}),
        ("localhost:2181", {"image": "redis:7", "zookeeper": "network_mode: 'service:kafka'"}),
        ("localhost:2181", {"image": "redis:7", "broker": "network_mode: 'service:zk'"}),
        ("zk.internal:2181", {"image": "redis:7"}),
        ("zk:22181", {"zookeeper": "command: zkServer.sh start-foreground other.cfg"}),
        ("zk:22181", {"zookeeper": "volumes: ['./zoo.cfg:/conf/zoo.cfg']"}),
    ],
)
def test_addresses_that_may_lead_to_zookeeper(connect: str, options: dict[str, str]) -> None:
    assert [item for item in shown_findings(connect, **options) if item[0] == "KL016"] == []


@pytest.mark.parametrize("connect", ["localhost:2181", "127.0.0.1/kafka", "localhost,127.0.0.1"])
def test_the_loopback_of_a_broker_without_a_zookeeper_in_the_file(connect: str) -> None:
    assert [item[:2] for item in shown_findings(connect, "redis:7")] == [("KL016", "kafka")]


@pytest.mark.parametrize(("published", "severity"), [("2181:2181", "warning"), ("9:9", "error")])
def test_a_name_that_the_machine_may_have_is_a_warning(published: str, severity: str) -> None:
    findings = zookeeper_findings("zookeper:2181", published=published)
    assert [(finding.rule, str(finding.severity)) for finding in findings] == [("KL016", severity)]


def test_a_zookeeper_on_another_network() -> None:
    ((rule, _, observed),) = shown_findings(
        "zk:2181",
        zookeeper="networks: [a]",
        broker="networks: [b]",
        more="networks: {a: {}, b: {}}",
    )
    assert rule == "KL016" and "zk:2181" in observed


DEBEZIUM = """services:
  zk: {{image: "zookeeper:3.8"}}
  kafka:
    image: {image}
    environment: {{{variables}}}
"""


@pytest.mark.parametrize(
    ("variables", "reason"),
    [
        ("ZOOKEEPER_CONNECT: zk:2181", ""),
        (
            "ZOOKEEPER_CONNECT: zk:2182",
            "zk:2182: ZooKeeper of zk listens at port 2181",
        ),
        (  # the image sets `zookeeper.connect` to its own variable
            "ZOOKEEPER_CONNECT: localhost:2181, KAFKA_ZOOKEEPER_CONNECT: zk:2181",
            "localhost:2181: it is the client itself, and nothing listens at port 2181",
        ),
        ("ZOOKEEPER_CONNECT: localhost:2181, CLUSTER_ID: 5Yr1SIgYQz-b-dgRabWx4g", ""),
        ("KAFKA_ZOOKEEPER_CONNECT: localhost:2181", ""),  # a link may give ZOOKEEPER_CONNECT
    ],
)
def test_the_own_variable_of_debezium(variables: str, reason: str) -> None:
    found = mistakes(services(DEBEZIUM.format(image="debezium/kafka:1.9", variables=variables)))
    assert [(finding.observed, finding.remedy) for finding in found] == (
        [
            (
                f"ZOOKEEPER_CONNECT leads to no ZooKeeper ({reason})",
                "set ZOOKEEPER_CONNECT to zk:2181",
            )
        ]
        if reason
        else []
    )
    other = DEBEZIUM.format(image="example/kafka:1", variables=variables)
    assert mistakes(services(other)) == ()

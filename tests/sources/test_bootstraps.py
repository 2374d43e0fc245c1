"""Which of a service's settings name brokers, and which look like it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from earshot.listeners.address import Address, read_address
from earshot.sources.bootstraps import bootstraps
from earshot.sources.service import Service
from earshot.topology.broker import Bootstrap
from earshot.topology.container import Container

KAFKA = Address("kafka", 9092)


NAMES = """
BOOTSTRAP_SERVERS bootstrap.servers BOOTSTRAPSERVERS BOOTSTRAP_BROKERS KAFKA_BOOTSTRAP_SERVERS
KAFKA_BOOTSTRAP_SERVER SPRING_KAFKA_BOOTSTRAP-SERVERS SPRING_CLOUD_STREAM_KAFKA_BINDER_BROKER_LIST
CONNECT_BOOTSTRAP_SERVERS KAFKA_CLUSTERS_0_BOOTSTRAPSERVERS KAFKA_BROKERCONNECT KAFKA_BROKERS
SCHEMA_REGISTRY_KAFKASTORE_BOOTSTRAP_SERVERS APP_KAFKA_BROKER KAFKA_BROKER_URL KAFKA_HOSTS
KAFKA_BROKER_ADDRESSES KAFKA_SERVERS KAFKA_SERVERS_1 BOOTSTRAP_SERVERS_CONFIG
TEST_BOOTSTRAP_SERVERS_CONFIG KAFKA_BROKERS_LIST
"""
OTHER_NAMES = """
KAFKA_ADVERTISED_LISTENERS KAFKA_LISTENERS KAFKA_ZOOKEEPER_CONNECT SCHEMA_REGISTRY_URL
KAFKA_REST_URL REDIS_SERVERS KAFKA_BROKER_ID MY_KAFKA_BROKERS_TOPIC
"""


def read(
    env: dict[str, str] | None = None,
    command: str = "",
    *,
    is_broker: bool = False,
    ports: tuple[int, ...] = (),
) -> list[Bootstrap]:
    service = Service("app", Container("app", env=env or {}), tuple(command.split()))
    return list(bootstraps([service], ["app"] if is_broker else [], ports))


@pytest.mark.parametrize("name", NAMES.split())
def test_names_of_bootstrap_settings(name: str) -> None:
    assert read({name: "kafka:9092"}) == [Bootstrap("app", name, (KAFKA,))]


@pytest.mark.parametrize("name", OTHER_NAMES.split())
def test_names_of_other_settings(name: str) -> None:
    assert read({name: "kafka:9092"}) == []


LIKELY_NAMES = """
KAFKA KAFKA_ENDPOINT KAFKA_URI KAFKA_BOOTSTRAP KAFKA_NODES KAFKA_SEEDS KAFKA_CONNECTION_STRING
KAFKA_CONSUMER_BROKER BROKERS BROKER_ADDRESS ConnectionStrings__Kafka kafka.seed.brokers
"""
NO_ADDRESSES = ["", "kafka", "0.0.0.0:9092", "${KAFKA}:9092", "http://kafka:9092", "a kafka:9092"]


@pytest.mark.parametrize("name", LIKELY_NAMES.split())
def test_any_variable_of_kafka_with_the_port_of_a_broker_is_a_bootstrap(name: str) -> None:
    value = "kafka:9092,b:9093"
    client = Bootstrap("app", name, (KAFKA, Address("b", 9093)))
    assert read({name: value}, ports=(9092, 9093)) == [client]
    assert read({name: value}, ports=(9092,)) == read({name: value}) == []
    assert read({name: value}, ports=(9092, 9093), is_broker=True) == []
    for other in NO_ADDRESSES:
        assert read({name: other}, ports=(9092,)) == []


OTHERS_NAMES = """
KAFKA_ADVERTISED_LISTENERS KAFKA_LISTEN_ADDR KAFKA_BIND KAFKA_EXTERNAL_URL PUBLIC_KAFKA_ENDPOINT
KAFKA_HOST_ADDRESS KAFKA_OUTSIDE KAFKA_CONTROLLER_QUORUM_VOTERS REDIS_ADDR MQTT_BROKER
RABBITMQ_BROKER CELERY_BROKER_URL
"""


@pytest.mark.parametrize("name", OTHERS_NAMES.split())
def test_a_variable_that_may_be_another_s_address_is_no_bootstrap(name: str) -> None:
    assert read({name: "kafka:9092"}, ports=(9092,)) == []


def test_a_variable_of_any_name_does_not_count_beside_one_that_is_known() -> None:
    env = {"KAFKA_LOCAL": "localhost:9092", "KAFKA_BROKERS": "kafka:9092"}
    assert read(env, ports=(9092,)) == [Bootstrap("app", "KAFKA_BROKERS", (KAFKA,))]


@pytest.mark.parametrize(
    ("command", "is_client"),
    [
        ("app --kafka-url=kafka:9092", True),
        ("app -brokers=kafka:9092", True),
        ("app --kafka kafka:9092", True),
        ("app --listen=kafka:9092", False),
        ("app --advertise-addr=kafka:9092", False),
        ("app --kafka-url=kafka:1234", False),
        ("app --kafka-proxy localhost:9092", False),
        ("app --kafka-url=kafka", False),
        ("app KAFKA=kafka:9092", False),
    ],
)
def test_an_option_with_the_port_of_a_broker_is_a_bootstrap(command: str, is_client: bool) -> None:
    assert read(None, command, ports=(9092,)) == [Bootstrap("app", "command", (KAFKA,))] * is_client


@pytest.mark.parametrize(
    ("value", "count"),
    [
        ("-Xmx1g -Dspring.kafka.bootstrap-servers=kafka:9092", 1),
        ('{"spring": {"kafka": {"bootstrap-servers": "kafka:9092"}}}', 1),
        ('{"spring.kafka.bootstrap-servers": ["kafka:9092"]}', 1),
        ('{"kafka": {"bootstrapServers": "kafka:9092"}}', 1),
        ("-Dno.bootstrap=kafka:9092", 0),
        # whole configurations
        ('{connections: {local: {properties: {bootstrap.servers: "kafka:9092"}}}}', 1),
        ("bootstrap.servers=kafka:9092\nacks=all", 1),
        ('{"bootstrap.servers": "kafka:9092"}', 1),
    ],
)
def test_a_value_may_contain_a_setting_of_kafka_or_spring(value: str, count: int) -> None:
    assert read({"JAVA_OPTS": value}) == [Bootstrap("app", "JAVA_OPTS", (KAFKA,))] * count


@pytest.mark.parametrize(
    ("value", "addresses"),
    [
        ("kafka:9092", "kafka:9092"),
        ("a:9092,b_1:9093", "a:9092 b_1:9093"),
        ("a:9092, b:9093 c:9094;d:9095", "a:9092 b:9093 c:9094 d:9095"),
        ("PLAINTEXT://kafka:9092", "kafka:9092"),
        ("SASL_SSL://a:9092,SASL_SSL://b:9092", "a:9092 b:9092"),
        ("['kafka:9092','b:1234']", "kafka:9092 b:1234"),
        ('"kafka:9092"', "kafka:9092"),
        ("x:1234,[::1]:9092", "x:1234 [::1]:9092"),
        ("192.0.2.7:9092", "192.0.2.7:9092"),
    ],
)
def test_addresses(value: str, addresses: str) -> None:
    expected = tuple(read_address(address) for address in addresses.split())
    assert read({"KAFKA_BROKERS": value}) == [Bootstrap("app", "KAFKA_BROKERS", expected)]


@pytest.mark.parametrize("value", [
    *NO_ADDRESSES[:2], "kafka:", "kafka:9092,other", "kafka:9092,", "kafka:99999",
    "${BROKER}:9092", "{{ broker }}:9092", "http://kafka:9092", "https://kafka:9092/path",
    "kafka:" + "9" * 5000,
    "[::1]:9092",  # its brackets are taken for a list's
])  # fmt: skip
def test_a_value_that_is_not_wholly_addresses_is_not_read(value: str) -> None:
    assert read({"KAFKA_BROKERS": value}) == []


@pytest.mark.parametrize(
    ("command", "is_client"),
    [
        ("kafka-topics --bootstrap-server kafka:9092 --list", True),
        ("kafka-topics --bootstrap-server=kafka:9092 --list", True),
        ("kafka-topics --bootstrap-servers kafka:9092", True),
        ("kafka-topics --bootstrap-server $BROKER --list", False),
        ("kafka-topics --bootstrap-server kafka", False),
        ("kafka-topics --zookeeper zookeeper:2181", False),
        ("kafka-console-producer --broker-list kafka:9092", True),
        ("exporter --kafka.server=kafka:9092", True),
        ("java -Dspring.kafka.bootstrap-servers=kafka:9092 -jar app.jar", True),
        ("app --spring.kafka.bootstrap-servers=kafka:9092", True),
        ("server --listen kafka:9092", False),
        ("sh -c 'kafka-topics --bootstrap-server kafka:9092; sleep 1'", True),
        ('sh -c "kafka-topics --bootstrap-server kafka:9092"', True),
        ("cub kafka-ready -b kafka:9092 1 20", True),
        ("cub kafka-ready --config c.properties -b kafka:9092 1 20", True),
        ("kcat -b kafka:9092 -L", True),
        ("kafkacat -b kafka:9092 -L", True),
    ],
)
def test_a_command_that_names_brokers(command: str, is_client: bool) -> None:
    assert read(None, command) == [Bootstrap("app", "command", (KAFKA,))] * is_client


def test_each_variable_and_each_command_is_one_client() -> None:
    env = {"A_BOOTSTRAP_SERVERS": "kafka:9092", "B_BOOTSTRAP_SERVERS": "kafka:9092"}
    command = "--bootstrap-server kafka:9092 ; --bootstrap-server kafka:9092"
    settings = [bootstrap.setting for bootstrap in read(env, command)]
    assert settings == [*env, "command", "command"]
    repeated = "exporter --kafka.server=kafka:9092 --kafka.server=b:1234"
    assert read(None, repeated) == [Bootstrap("app", "command", (KAFKA, Address("b", 1234)))]


@pytest.mark.parametrize(
    ("env", "command"),
    [
        ({"KAFKA_CONTROLLER_QUORUM_BOOTSTRAP_SERVERS": "kafka:9093"}, ""),
        ({"KAFKA_CFG_CONTROLLER_QUORUM_BOOTSTRAP_SERVERS": "kafka:9093"}, ""),
        ({}, "sh -c 'kafka-topics --bootstrap-server localhost:9092 & /etc/kafka/docker/run'"),
    ],
)
def test_the_quorum_and_the_command_of_a_broker_are_no_clients(
    env: dict[str, str], command: str
) -> None:
    assert read(env, command, is_broker=True) == []
    assert read(env, command) != []


def test_a_broker_with_a_metrics_reporter_is_a_client() -> None:
    env = {"CONFLUENT_METRICS_REPORTER_BOOTSTRAP_SERVERS": "kafka:9092"}
    assert read(env, is_broker=True) == []  # only the reporter reads it
    reported = {"KAFKA_METRIC_REPORTERS": "io.confluent.metrics.reporter.ConfluentMetricsReporter"}
    assert read(env | reported, is_broker=True) == [Bootstrap("app", next(iter(env)), (KAFKA,))]


@pytest.mark.timeout(20)
@pytest.mark.parametrize("word", ["cub kafka-ready ", "-", "--a", "bootstrap.servers ", "_"])
def test_a_long_text_is_read_in_seconds(word: str) -> None:
    text = word * (500_000 // len(word))
    assert read({"X": text, text: "x", "BROKER_LIST": text}, text) == []


@given(st.text(max_size=40) | st.text(alphabet="ak:/[]0123456789.-,'\" ${", max_size=40))
def test_any_value_is_read_as_a_whole_or_not_at_all(value: str) -> None:
    for bootstrap in read({"KAFKA_BROKERS": value}, f"--bootstrap-server {value}"):
        assert bootstrap.addresses
        assert all(address.host and 0 <= address.port <= 65_535 for address in bootstrap.addresses)

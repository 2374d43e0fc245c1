"""Clients that are found outside of plain variables, and what images and ports leave open."""

import pytest

from earshot.checks.deployment import mistakes
from tests.rules.deployment_examples import observations, services

BROKER = """
  kafka:
    image: apache/kafka:4.1.1
    ports: ["9092:9092"]
    environment:
      KAFKA_NODE_ID: 1
      KAFKA_PROCESS_ROLES: broker,controller
      KAFKA_CONTROLLER_LISTENER_NAMES: CONTROLLER
      KAFKA_CONTROLLER_QUORUM_VOTERS: 1@kafka:9093
      KAFKA_LISTENERS: INNER://:29092,HOST://:9092,CONTROLLER://:9093
      KAFKA_ADVERTISED_LISTENERS: INNER://kafka:29092,HOST://localhost:9092
      KAFKA_INTER_BROKER_LISTENER_NAME: INNER
      KAFKA_LISTENER_SECURITY_PROTOCOL_MAP: INNER:PLAINTEXT,HOST:PLAINTEXT,CONTROLLER:PLAINTEXT
"""
TLS = BROKER.replace("INNER:PLAINTEXT", "INNER:SSL") + (
    "      KAFKA_SSL_KEYSTORE_LOCATION: /etc/kafka/secrets/broker.jks\n"
)
FILES = {
    "./worker.properties": "bootstrap.servers={}\ngroup.id=workers\n",
    "./ksql.properties": "bootstrap.servers={}\nlisteners=http://0.0.0.0:8088\n",
    "./spring.yml": "spring:\n  kafka:\n    bootstrap-servers: {}\n",
    "./ui.yaml": "kafka:\n  clusters:\n    - name: all\n      bootstrapServers: {}\n",
    "./console.yaml": 'kafka:\n  brokers: ["{}"]\n',
    "./logstash.conf": 'input {{ kafka {{\n  bootstrap_servers => "{}"\n}} }}\n',
    "./vector.toml": '[sources.kafka]\nbootstrap_servers = "{}"\n',
    "./akhq.yml": "akhq:\n  connections:\n    a:\n      properties:\n"
    "        bootstrap.servers: {}  # of kafka\n",
}


def client(*lines: str) -> str:
    return "\n".join(["  app:", "    image: registry.example.com/app:1", *lines])


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize(("address", "well"), [("kafka:29092", True), ("kafka:9092", False)])
def test_a_mounted_file_is_a_client(name: str, address: str, well: bool) -> None:
    mounted = client(f"    volumes: ['{name}:/etc/app/{name[2:]}']")
    listed = observations(BROKER + mounted, {name: FILES[name].format(address)})
    assert [item[:2] for item in listed] == ([] if well else [("KL015", "kafka")])


def test_what_a_variable_says_counts_before_a_mounted_file() -> None:
    app = client(
        "    volumes: ['./spring.yml:/etc/app/application.yml']",
        "    environment: {SPRING_KAFKA_BOOTSTRAP_SERVERS: 'kafka:29092'}",
    )
    assert (
        observations(BROKER + app, {"./spring.yml": FILES["./spring.yml"].format("kafka:9092")})
        == []
    )


@pytest.mark.parametrize(("lines", "rules"), [
    (["    command: spark-submit job.py kafka:9092 events"], [("KL015", "kafka")]),
    (["    command: spark-submit job.py kafka:29092 events"], []),
    (["    command: spark-submit job.py localhost:9092 events"], [("KL015", "app")]),
    (["    command: serve localhost:8080"], []),  # no port of a broker
    (["    command: serve --listen localhost:9092"], []),
    (["    command: socat TCP-LISTEN:9092,fork localhost:9092"], []),
    (["    environment: {KAFKA_HOST: kafka, KAFKA_PORT: '9092'}"], [("KL015", "kafka")]),
    (["    environment: {KAFKA_HOST: kafka, KAFKA_PORT: '29092'}"], []),
    (["    environment: {DB_HOST: kafka, DB_PORT: '9092'}"], []),
    (["    environment:", "      CONSOLE: |", "        kafka:", "          brokers: [kafka:9092]"],
     [("KL015", "kafka")]),
])  # fmt: skip
def test_arguments_pairs_and_inline_yaml(lines: list[str], rules: list[tuple[str, str]]) -> None:
    assert [item[:2] for item in observations(BROKER + client(*lines))] == rules


def test_a_connector_is_its_worker_s_client() -> None:
    connector = r'{"config": {"database.history.kafka.bootstrap.servers": "kafka:9092"}}'
    setup = client(f"    command: >\n      curl -d '{connector}' http://connect:8083/connectors")
    connect = "\n  connect:\n    image: registry.example.com/connect:1\n"
    ((rule, broker, observed),) = observations(BROKER + setup + connect)
    assert (rule, broker) == ("KL015", "kafka")
    assert observed.startswith("connect bootstraps to HOST")


@pytest.mark.parametrize(("image", "variables"), [
    ("kafbat/kafka-ui:v1.2.0", "KAFKA_CLUSTERS_0_BOOTSTRAPSERVERS"),
    ("confluentinc/cp-schema-registry:7.9.0", "SCHEMA_REGISTRY_KAFKASTORE_BOOTSTRAP_SERVERS"),
    ("confluentinc/cp-kafka-connect:7.9.0", "CONNECT_BOOTSTRAP_SERVERS"),
])  # fmt: skip
def test_a_client_without_tls_on_a_listener_with_tls(image: str, variables: str) -> None:
    text = f"  app:\n    image: {image}\n    environment:\n      {variables}: kafka:29092\n"
    protocol = {
        "KAFKA_CLUSTERS_0_BOOTSTRAPSERVERS": "KAFKA_CLUSTERS_0_PROPERTIES_SECURITY_PROTOCOL"
    }.get(variables, variables.replace("BOOTSTRAP_SERVERS", "SECURITY_PROTOCOL"))
    spoken = f"      {protocol}: SSL\n"
    assert [item[:2] for item in observations(TLS + text) if item[0] == "KL015"] == [
        ("KL015", "app")
    ]
    assert observations(TLS + text + spoken) == []
    assert observations(BROKER + text) == []
    assert [item[:2] for item in observations(BROKER + text + spoken)] == [("KL015", "app")]


CONNECT = "confluentinc/cp-kafka-connect:7.9.0"
DEBEZIUM = "quay.io/debezium/connect:2.7"


def worker(image: str, **variables: str) -> str:
    address = "BOOTSTRAP_SERVERS" if image == DEBEZIUM else "CONNECT_BOOTSTRAP_SERVERS"
    lines = {address: "kafka:29092"} | variables
    return "\n".join(
        (
            f"  app:\n    image: {image}\n    environment:",
            *(f"      {name}: {value}" for name, value in lines.items()),
            "",
        )
    )


@pytest.mark.parametrize(("broker", "image", "variables", "said"), [
    (BROKER, DEBEZIUM, {"CONNECT_SECURITY_PROTOCOL": "SASL_SSL"}, "app speaks SASL_SSL"),
    (TLS, DEBEZIUM, {}, "app speaks PLAINTEXT"),
    (TLS, DEBEZIUM, {"CONNECT_SECURITY_PROTOCOL": "SSL"}, ""),
    (BROKER, CONNECT, {"CONNECT_PRODUCER_SECURITY_PROTOCOL": "SASL_SSL"}, "app speaks SASL_SSL"),
    (BROKER, DEBEZIUM, {"CONNECT_CONSUMER_SECURITY_PROTOCOL": "SSL"}, "app speaks SSL"),
    (TLS, CONNECT, {"CONNECT_SECURITY_PROTOCOL": "SSL", "CONNECT_PRODUCER_SECURITY_PROTOCOL": "SSL",
                    "CONNECT_CONSUMER_SECURITY_PROTOCOL": "PLAINTEXT"}, "app speaks PLAINTEXT"),
    (BROKER, CONNECT,
     {"CONNECT_SECURITY_PROTOCOL": "SASL_SSL", "CONNECT_PRODUCER_SECURITY_PROTOCOL": "SASL_SSL",
      "CONNECT_CONSUMER_SECURITY_PROTOCOL": "SASL_SSL"}, "app speaks SASL_SSL"),
    (BROKER, CONNECT, {"CONNECT_PRODUCER_SECURITY_PROTOCOL": "PLAINTEXT"}, ""),
    (BROKER, CONNECT, {"CONNECT_PRODUCER_SECURITY_PROTOCOL": "${PROTOCOL}"}, ""),
    (BROKER, CONNECT, {"CONNECT_PRODUCER_SECURITY_PROTOCOL": "SSL",
                       "CONNECT_PRODUCER_BOOTSTRAP_SERVERS": "kafka.example.com:9093"}, ""),
    (BROKER, "example.org/connect:1", {"CONNECT_PRODUCER_SECURITY_PROTOCOL": "SSL"}, ""),
])  # fmt: skip
def test_what_a_worker_of_connect_and_its_connectors_speak(
    broker: str, image: str, variables: dict[str, str], said: str
) -> None:
    listed = [
        item for item in observations(broker + worker(image, **variables)) if item[0] == "KL015"
    ]
    assert len(listed) == bool(said)
    assert all(name == "app" and said in observed for _, name, observed in listed)


SASL = BROKER.replace("INNER:PLAINTEXT", "INNER:SASL_PLAINTEXT") + (
    "      KAFKA_SASL_ENABLED_MECHANISMS: PLAIN\n"
    "      KAFKA_SASL_MECHANISM_INTER_BROKER_PROTOCOL: PLAIN\n"
    "      KAFKA_OPTS: -Djava.security.auth.login.config=/jaas.conf\n"
)


@pytest.mark.parametrize(("image", "protocol", "mechanism"), [
    (CONNECT, "CONNECT_SECURITY_PROTOCOL", "CONNECT_SASL_MECHANISM"),
    (DEBEZIUM, "CONNECT_SECURITY_PROTOCOL", "CONNECT_SASL_MECHANISM"),
    ("confluentinc/cp-schema-registry:7.9.0", "SCHEMA_REGISTRY_KAFKASTORE_SECURITY_PROTOCOL",
     "SCHEMA_REGISTRY_KAFKASTORE_SASL_MECHANISM"),
    ("kafbat/kafka-ui:v1.2.0", "KAFKA_CLUSTERS_0_PROPERTIES_SECURITY_PROTOCOL",
     "KAFKA_CLUSTERS_0_PROPERTIES_SASL_MECHANISM"),
    ("confluentinc/cp-kafka-rest:7.9.0", "KAFKA_REST_CLIENT_SECURITY_PROTOCOL",
     "KAFKA_REST_CLIENT_SASL_MECHANISM"),
])  # fmt: skip
def test_a_client_with_a_protocol_as_mechanism(image: str, protocol: str, mechanism: str) -> None:
    address = {
        CONNECT: "CONNECT_BOOTSTRAP_SERVERS",
        DEBEZIUM: "BOOTSTRAP_SERVERS",
        "confluentinc/cp-schema-registry:7.9.0": "SCHEMA_REGISTRY_KAFKASTORE_BOOTSTRAP_SERVERS",
        "kafbat/kafka-ui:v1.2.0": "KAFKA_CLUSTERS_0_BOOTSTRAPSERVERS",
        "confluentinc/cp-kafka-rest:7.9.0": "KAFKA_REST_BOOTSTRAP_SERVERS",
    }[image]

    def of_app(broker: str, spoken: str, used: str) -> list[str]:
        text = (
            f"  app:\n    image: {image}\n    environment:\n      {address}: kafka:29092\n"
            f"      {protocol}: {spoken}\n      {mechanism}: {used}\n"
        )
        return [observed for _, name, observed in observations(broker + text) if name == "app"]

    (observed,) = of_app(SASL, "SASL_PLAINTEXT", "SASL_PLAINTEXT")
    assert observed.startswith(f"{mechanism}: SASL_PLAINTEXT is a security protocol")
    assert of_app(SASL, "SASL_PLAINTEXT", "PLAIN") == []
    assert of_app(SASL, "SASL_PLAINTEXT", "COMPANY-TOKEN") == []
    assert of_app(BROKER, "PLAINTEXT", "SASL_PLAINTEXT") == []


def test_a_worker_that_reaches_no_broker_is_reported_once() -> None:
    text = worker(
        CONNECT,
        CONNECT_BOOTSTRAP_SERVERS="kafka:29999",
        CONNECT_PRODUCER_SECURITY_PROTOCOL="SSL",
    )
    assert [item[:2] for item in observations(BROKER + text)] == [("KL015", "app")]


@pytest.mark.parametrize(
    ("broker", "servers", "protocol", "rules"),
    [
        (BROKER, "SSL://kafka:29092", "", ["KL014"]),
        (TLS, "SSL://kafka:29092", "", ["KL014"]),
        (BROKER, "DOCKER://kafka:29092", "", ["KL014"]),
        (BROKER, "SASL_SSL://kafka:29092,SSL://kafka:29092", "", ["KL014"]),
        (TLS, "PLAINTEXT://kafka:29092", "SSL", ["KL014"]),
        (TLS, "SSL://kafka:29092", "SSL", []),
        (BROKER, "PLAINTEXT://kafka:29092", "", []),
        (BROKER, "SSL://kafka:29092,kafka:29092", "", []),
        (BROKER, "${PROTOCOL}://kafka:29092", "", []),
        (BROKER, "SSL://kafka:29092", "${PROTOCOL}", []),
        (BROKER, "SSL://kafka:29092", "SSL", ["KL015"]),
    ],
)
def test_schema_registry_ignores_addresses_of_another_protocol(
    broker: str, servers: str, protocol: str, rules: list[str]
) -> None:
    text = (
        "  app:\n    image: confluentinc/cp-schema-registry:7.9.0\n    environment:\n"
        f"      SCHEMA_REGISTRY_KAFKASTORE_BOOTSTRAP_SERVERS: {servers}\n"
    )
    if protocol:
        text += f"      SCHEMA_REGISTRY_KAFKASTORE_SECURITY_PROTOCOL: {protocol}\n"
    assert [item[0] for item in observations(broker + text) if item[1] == "app"] == rules


def test_a_client_of_an_unknown_image_may_speak_anything() -> None:
    assert observations(TLS + client("    environment: {KAFKA_BROKERS: 'kafka:29092'}")) == []


@pytest.mark.parametrize(
    ("ports", "advertised", "level"),
    [
        ("'9092'", "kafka:9092", "warning"),
        ("'9092'", "localhost:9092", "error"),
        ("{target: 9092}", "localhost:9092", "error"),
        ("'${PORT}:9092'", "kafka:9092", "error"),
        ("'${PORT:-}:9092'", "kafka:9092", "warning"),
        ("{target: 9092, published: '${PORT}'}", "kafka:9092", "error"),
        ("'${IP}:9092:9092'", "kafka:9092", "error"),
        ("'${PORT}:9092'", "localhost:9092", ""),
        ("'${PORT}:9092'", "localhost:${PORT}", ""),
        ("'${PORTS}'", "kafka:9092", ""),
        ("'${PORT}:9999'", "kafka:9092", ""),
    ],
)
def test_ports_of_the_machine_that_are_not_known(ports: str, advertised: str, level: str) -> None:
    text = BROKER.replace("'9092:9092'", ports).replace('"9092:9092"', ports)
    text = text.replace("HOST://localhost:9092", f"HOST://{advertised}")
    findings = mistakes(services(f"services:\n{text}\n"))
    assert [(finding.rule, str(finding.severity)) for finding in findings] == (
        [("KL017", level)] if level else []
    )


BITNAMI = """
  kafka:
    image: {image}
    ports: ["9092:9092"]
    environment:
      ALLOW_PLAINTEXT_LISTENER: "yes"
      KAFKA_CFG_NODE_ID: 1
      KAFKA_CFG_PROCESS_ROLES: broker,controller
      KAFKA_CFG_CONTROLLER_LISTENER_NAMES: CONTROLLER
      KAFKA_CFG_CONTROLLER_QUORUM_VOTERS: 1@kafka:9093
      KAFKA_CFG_LISTENERS: INNER://:9092,CONTROLLER://:9093
      KAFKA_CFG_ADVERTISED_LISTENERS: INNER://localhost:9092
      KAFKA_CFG_INTER_BROKER_LISTENER_NAME: INNER
"""
MAPPED = "      KAFKA_CFG_LISTENER_SECURITY_PROTOCOL_MAP: INNER:PLAINTEXT,CONTROLLER:PLAINTEXT\n"


@pytest.mark.parametrize("image", ["bitnami/kafka:3.9", "bitnamilegacy/kafka:3.7.1-debian-12-r4"])
def test_what_bitnami_s_new_script_is_not_given_is_not_set(image: str) -> None:
    text = BITNAMI.format(image=image)
    assert [item[:2] for item in observations(text)] == [("KL002", "kafka")]
    assert observations(text + MAPPED) == []
    mounted = "    volumes: ['./conf:/bitnami/kafka/config']\n"
    assert observations(text + mounted) == []


@pytest.mark.parametrize("image", ["bitnami/kafka:3.1.0", "bitnami/kafka:${TAG}"])
def test_of_an_older_or_unknown_script_of_bitnami_it_is_not_known(image: str) -> None:
    assert observations(BITNAMI.format(image=image)) == []

"""Kinds of files that people have: what is said of each, and of most of them nothing."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from earshot.checks.deployment import mistakes
from earshot.checks.lone_settings import is_of_broker, mistakes_in_properties
from tests.rules.deployment_examples import services

Told = tuple[str, str | None, str]


@dataclass(frozen=True)
class Case:
    """A file, and (rule, service, level) of all that is said."""

    id: str
    text: str
    expected: tuple[Told, ...] = ()


KRAFT = """
      KAFKA_NODE_ID: 1
      KAFKA_PROCESS_ROLES: broker,controller
      KAFKA_LISTENERS: PLAINTEXT://:29092,HOST://:9092,CONTROLLER://:9093
      KAFKA_LISTENER_SECURITY_PROTOCOL_MAP: PLAINTEXT:PLAINTEXT,HOST:PLAINTEXT,CONTROLLER:PLAINTEXT
      KAFKA_CONTROLLER_LISTENER_NAMES: CONTROLLER
      KAFKA_CONTROLLER_QUORUM_VOTERS: 1@localhost:9093"""
ZOOKEEPER = """
      KAFKA_BROKER_ID: 1
      KAFKA_ZOOKEEPER_CONNECT: zookeeper:2181"""
KRAFT_ADVERTISED = f"""{KRAFT}
      KAFKA_ADVERTISED_LISTENERS: PLAINTEXT://kafka:29092,HOST://localhost:9092"""
APACHE = """
services:
  kafka:
    image: apache/kafka:3.9.0"""
CONFLUENT = """
services:
  zookeeper: {image: "confluentinc/cp-zookeeper:7.5.0"}
  kafka:
    image: confluentinc/cp-kafka:7.5.0"""
FOR_HOST_ALONE = f"""{CONFLUENT}
    ports: ["9092:9092"]
    environment: {ZOOKEEPER}
      KAFKA_ADVERTISED_LISTENERS: PLAINTEXT://localhost:9092
"""
MISLED_CLIENTS = (("KL015", "kafka", "error"),)

CASES = (
    # What a container binds must be its own.
    Case(
        "binds a name of nothing",
        f"""{CONFLUENT}
    environment: {ZOOKEEPER}
      KAFKA_LISTENERS: PLAINTEXT://nothing:9092
      KAFKA_ADVERTISED_LISTENERS: PLAINTEXT://kafka:9092
""",
        (("KL002", "kafka", "error"),),
    ),
    Case(
        "binds the name of another container",
        f"""{CONFLUENT}
    environment: {ZOOKEEPER}
      KAFKA_LISTENERS: PLAINTEXT://other:9092
      KAFKA_ADVERTISED_LISTENERS: PLAINTEXT://kafka:9092
  other: {{image: app}}
""",
        (("KL002", "kafka", "error"),),
    ),
    Case(
        "binds its own name",
        f"""{CONFLUENT}
    environment: {ZOOKEEPER}
      KAFKA_LISTENERS: PLAINTEXT://kafka:9092
      KAFKA_ADVERTISED_LISTENERS: PLAINTEXT://kafka:9092
""",
        (),
    ),
    Case(
        "binds its hostname",
        f"""{CONFLUENT}
    hostname: inner
    environment: {ZOOKEEPER}
      KAFKA_LISTENERS: PLAINTEXT://inner:9092
      KAFKA_ADVERTISED_LISTENERS: PLAINTEXT://kafka:9092
""",
        (),
    ),
    Case(
        "binds a name that its hosts file has",
        f"""{CONFLUENT}
    extra_hosts: ['elsewhere:10.0.0.7']
    environment: {ZOOKEEPER}
      KAFKA_LISTENERS: PLAINTEXT://elsewhere:9092
      KAFKA_ADVERTISED_LISTENERS: PLAINTEXT://kafka:9092
""",
        (),
    ),
    Case(
        "binds a name that another file may explain",
        f"""{CONFLUENT}
    networks: [shared]
    environment: {ZOOKEEPER}
      KAFKA_LISTENERS: PLAINTEXT://elsewhere:9092
      KAFKA_ADVERTISED_LISTENERS: PLAINTEXT://kafka:9092
networks: {{shared: {{external: true}}}}
""",
        (),
    ),
    # Source and target of a mirror, each alone in its quorum: two clusters with one node 1 each.
    Case(
        "two clusters that each ask themselves",
        f"""
services:
  one:
    image: apache/kafka:3.9.0
    ports: ["9092:9092"]
    environment: {KRAFT}
      KAFKA_ADVERTISED_LISTENERS: PLAINTEXT://one:29092,HOST://localhost:9092
  two:
    image: apache/kafka:3.9.0
    ports: ["9192:9092"]
    environment: {KRAFT}
      KAFKA_ADVERTISED_LISTENERS: PLAINTEXT://two:29092,HOST://localhost:9192
  mirror:
    image: mirror
    environment: ["SOURCE_BOOTSTRAP_SERVERS=one:29092", "TARGET_BOOTSTRAP_SERVERS=two:29092"]
""",
    ),
    # `docker compose --profile kraft up`: one of two brokers, under one name and on one port.
    Case(
        "alternatives by profile",
        f"""
services:
  zookeeper: {{image: "confluentinc/cp-zookeeper:7.5.0"}}
  plain:
    image: confluentinc/cp-kafka:7.5.0
    profiles: [plain]
    networks: {{default: {{aliases: [kafka]}}}}
    ports: ["9092:9092"]
    environment: {ZOOKEEPER}
      KAFKA_ADVERTISED_LISTENERS: PLAINTEXT://kafka:29092,HOST://localhost:9092
      KAFKA_LISTENER_SECURITY_PROTOCOL_MAP: PLAINTEXT:PLAINTEXT,HOST:PLAINTEXT
  other:
    image: confluentinc/cp-kafka:7.5.0
    profiles: [other]
    networks: {{default: {{aliases: [kafka]}}}}
    ports: ["9092:9092"]
    environment: {ZOOKEEPER}
      KAFKA_ADVERTISED_LISTENERS: PLAINTEXT://kafka:29092,HOST://localhost:9092
      KAFKA_LISTENER_SECURITY_PROTOCOL_MAP: PLAINTEXT:PLAINTEXT,HOST:PLAINTEXT
  app: {{image: app, environment: {{KAFKA_BROKERS: "kafka:29092"}}}}
""",
    ),
    # An addition to another file (`docker compose -f base.yml -f more.yml`), as the extra broker of
    # https://github.com/confluentinc/cp-demo: what it depends on stands in the other file.
    Case(
        "an overlay",
        f"""
services:
  more:
    image: confluentinc/cp-kafka:7.5.0
    depends_on: [kafka]
    environment: {ZOOKEEPER}
      KAFKA_ADVERTISED_LISTENERS: PLAINTEXT://more:9092
      KAFKA_REST_BOOTSTRAP_SERVERS: kafka:9092
""",
    ),
    # Mechanisms by listener, as in https://github.com/confluentinc/cp-demo, and none in general.
    Case(
        "mechanisms of the listener itself",
        f"""{CONFLUENT}
    environment: {ZOOKEEPER}
      KAFKA_LISTENERS: INTERNAL://:9092
      KAFKA_ADVERTISED_LISTENERS: INTERNAL://kafka:9092
      KAFKA_LISTENER_SECURITY_PROTOCOL_MAP: INTERNAL:SASL_PLAINTEXT
      KAFKA_INTER_BROKER_LISTENER_NAME: INTERNAL
      KAFKA_SASL_MECHANISM_INTER_BROKER_PROTOCOL: PLAIN
      KAFKA_LISTENER_NAME_INTERNAL_SASL_ENABLED_MECHANISMS: PLAIN
      KAFKA_LISTENER_NAME_INTERNAL_PLAIN_SASL_JAAS_CONFIG: org.example.Module required;
""",
    ),
    # A script that makes topics, with the broker's variables by an anchor: no second broker.
    Case(
        "another command in the broker's image",
        f"""{APACHE}
    environment: &settings {KRAFT}
      KAFKA_ADVERTISED_LISTENERS: PLAINTEXT://kafka:29092,HOST://localhost:9092
  topics:
    image: apache/kafka:3.9.0
    environment: *settings
    command: ["/bin/bash", "/scripts/create-topics.sh"]
""",
    ),
    # Topics made by a script in bitnami's newest image, which is told where ZooKeeper is.
    Case(
        "another command with a broker's variable",
        """
services:
  topics:
    image: bitnami/kafka:latest
    environment: ["KAFKA_CFG_ZOOKEEPER_CONNECT=zookeeper:2181"]
    command: ["/bin/bash", "-c", "/create_topic.sh"]
""",
    ),
    # https://github.com/wurstmeister/kafka-docker: `start-kafka.sh` asks Docker for the port.
    Case(
        "a port that the image asks Docker for",
        """
services:
  zookeeper: {image: wurstmeister/zookeeper}
  kafka:
    image: wurstmeister/kafka
    ports: ["19092:9092"]
    environment:
      KAFKA_ADVERTISED_HOST_NAME: localhost
      KAFKA_ZOOKEEPER_CONNECT: zookeeper:2181
    volumes: ["/var/run/docker.sock:/var/run/docker.sock"]
""",
    ),
    Case(
        "a port that was given, so that the image asks for none",
        """
services:
  zookeeper: {image: wurstmeister/zookeeper}
  kafka:
    image: wurstmeister/kafka
    ports: ["19092:9092"]
    environment:
      KAFKA_ADVERTISED_HOST_NAME: localhost
      KAFKA_ADVERTISED_PORT: 9092
      KAFKA_ZOOKEEPER_CONNECT: zookeeper:2181
    volumes: ["/var/run/docker.sock:/var/run/docker.sock"]
""",
        (("KL017", "kafka", "error"),),
    ),
    # The same script: without KAFKA_LISTENERS it says so and exits.
    Case(
        "wurstmeister without listeners",
        """
services:
  zookeeper: {image: wurstmeister/zookeeper}
  kafka:
    image: wurstmeister/kafka
    environment:
      KAFKA_ADVERTISED_LISTENERS: PLAINTEXT://kafka:9092
      KAFKA_ZOOKEEPER_CONNECT: zookeeper:2181
""",
        (("KL014", "kafka", "error"),),
    ),
    # The same script adds no listener, protocol or role of its own to what is set.
    Case(
        "two listeners on one port, in wurstmeister's image",
        """
services:
  zookeeper: {image: wurstmeister/zookeeper}
  kafka:
    image: wurstmeister/kafka:latest
    ports: ["9092:9092"]
    environment:
      KAFKA_LISTENERS: INSIDE://0.0.0.0:9092,OUTSIDE://0.0.0.0:9092
      KAFKA_ADVERTISED_LISTENERS: INSIDE://kafka:9092,OUTSIDE://localhost:9092
      KAFKA_LISTENER_SECURITY_PROTOCOL_MAP: INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT
      KAFKA_INTER_BROKER_LISTENER_NAME: INSIDE
      KAFKA_ZOOKEEPER_CONNECT: zookeeper:2181
""",
        (("KL002", "kafka", "error"),),
    ),
    # https://github.com/bitnami/containers/tree/main/bitnami/kafka#notable-changes: since 3.5.1
    # nobody has to allow plaintext, and a mode has to be chosen.
    Case(
        "bitnami before and since its script was rewritten",
        """
services:
  before:
    image: bitnami/kafka:3.4.0
    environment: [KAFKA_CFG_ZOOKEEPER_CONNECT=zookeeper:2181]
  allowed:
    image: bitnami/kafka:3.4.0
    environment: [KAFKA_CFG_ZOOKEEPER_CONNECT=zookeeper:2181, ALLOW_PLAINTEXT_LISTENER=yes]
  secured:
    image: bitnami/kafka:2.8.1
    environment: [KAFKA_CFG_LISTENERS=SASL_SSL://:9092, KAFKA_CFG_ZOOKEEPER_CONNECT=third:2181]
  since:
    image: bitnami/kafka:3.3.2
    environment: [KAFKA_CFG_ZOOKEEPER_CONNECT=other:2181]
  neither:
    image: bitnami/kafka:3.6
  default:
    image: bitnami/kafka:4.0
""",
        (("KL014", "before", "error"), ("KL014", "neither", "error")),
    ),
    # https://github.com/tulios/kafkajs/issues/1042: whoever comes in by it is told of no address of
    # the other's (LISTENER_NOT_FOUND).
    Case(
        "a listener that one broker lacks",
        f"""
services:
  zookeeper: {{image: "confluentinc/cp-zookeeper:7.5.0"}}
  one:
    image: confluentinc/cp-kafka:7.5.0
    environment: {ZOOKEEPER}
      KAFKA_ADVERTISED_LISTENERS: PLAINTEXT://one:9092,OTHER://one:9093
      KAFKA_LISTENER_SECURITY_PROTOCOL_MAP: PLAINTEXT:PLAINTEXT,OTHER:PLAINTEXT
  two:
    image: confluentinc/cp-kafka:7.5.0
    environment:
      KAFKA_BROKER_ID: 2
      KAFKA_ZOOKEEPER_CONNECT: zookeeper:2181
      KAFKA_ADVERTISED_LISTENERS: PLAINTEXT://two:9092
  old: {{image: app, environment: ["KAFKA_BROKERS=one:9092,two:9092"]}}
  new: {{image: app, environment: ["KAFKA_BROKERS=one:9093"]}}
""",
        (("KL015", "two", "error"),),
    ),
    # https://docs.docker.com/reference/compose-file/services/#network_mode: behind a VPN's
    # container a broker has its network, its names and its published ports.
    Case(
        "a broker in the network of another container",
        f"""
services:
  zookeeper: {{image: "confluentinc/cp-zookeeper:7.5.0"}}
  vpn: {{image: vpn, ports: ["9092:9092"]}}
  kafka:
    image: confluentinc/cp-kafka:7.5.0
    network_mode: service:vpn
    environment: {ZOOKEEPER}
      KAFKA_ADVERTISED_LISTENERS: PLAINTEXT://vpn:29092,HOST://localhost:9092
      KAFKA_LISTENER_SECURITY_PROTOCOL_MAP: PLAINTEXT:PLAINTEXT,HOST:PLAINTEXT
  beside:
    image: app
    network_mode: service:kafka
    environment: ["KAFKA_BROKERS=localhost:9092"]
  inside: {{image: app, environment: ["KAFKA_BROKERS=vpn:29092"]}}
  sent: {{image: app, environment: ["KAFKA_BROKERS=vpn:9092"]}}
  another: {{image: app, environment: ["KAFKA_BROKERS=vpn:9999"]}}
""",
        (("KL015", "kafka", "error"),),
    ),
    # Bitnami's image with nothing but an advertised address for the host.
    Case(
        "bitnami's own listener",
        """
services:
  zookeeper: {image: "bitnami/zookeeper:3.8"}
  kafka:
    image: bitnami/kafka:3.4
    ports: ["9092:9092"]
    environment:
      - KAFKA_CFG_ZOOKEEPER_CONNECT=zookeeper:2181
      - KAFKA_CFG_ADVERTISED_LISTENERS=PLAINTEXT://localhost:9092
  app: {image: app, environment: ["KAFKA_BROKERS=kafka:9092"]}
""",
        MISLED_CLIENTS,
    ),
    # AKHQ's whole configuration in one variable (https://akhq.io/docs/installation.html).
    Case(
        "a configuration within a variable",
        f"""{FOR_HOST_ALONE}
  akhq:
    image: tchiotludo/akhq
    environment:
      AKHQ_CONFIGURATION: |
        akhq:
          connections:
            local:
              properties:
                bootstrap.servers: "kafka:9092"
""",
        MISLED_CLIENTS,
    ),
    # An option of Spring Boot.
    Case(
        "an option with a dotted name",
        f"""{FOR_HOST_ALONE}
  app: {{image: app, command: "java -jar app.jar --spring.kafka.bootstrap-servers=kafka:9092"}}
""",
        MISLED_CLIENTS,
    ),
    # https://github.com/danielqsj/kafka_exporter takes one server an option, and needs one of them.
    Case(
        "options that make one list",
        f"""{APACHE}
    environment: {KRAFT_ADVERTISED}
  exporter:
    image: danielqsj/kafka-exporter
    command: ["--kafka.server=kafka:29092", "--kafka.server=kafka:39092"]
""",
    ),
    # A REST proxy's address in a variable that is called like Kafka's.
    Case(
        "an address of HTTP",
        f"""{APACHE}
    environment: {KRAFT_ADVERTISED}
  app: {{image: app, environment: {{KAFKA_URL: "http://kafka:8082"}}}}
""",
    ),
    # Compose's own names of containers, as older files have them: `myproject_kafka_1`.
    Case(
        "the name that Compose makes",
        f"""{APACHE}
    environment: {KRAFT_ADVERTISED}
  app: {{image: app, environment: {{KAFKA_BROKERS: "myproject_kafka_1:29092"}}}}
""",
    ),
    # A stack of Swarm, whose hostnames are templates.
    Case(
        "a hostname by a template",
        f"""{APACHE}
    hostname: "broker-{{{{.Task.Slot}}}}"
    environment: {KRAFT_ADVERTISED}
  app: {{image: app, environment: {{KAFKA_BROKERS: "broker-1:29092"}}}}
""",
    ),
    # A server that others know by its own name, which its containers may resolve too.
    Case(
        "a name that may be the machine's",
        f"""{CONFLUENT}
    ports: ["9092:9092"]
    environment: {ZOOKEEPER}
      KAFKA_ADVERTISED_LISTENERS: PLAINTEXT://server7:9092
  app: {{image: app, environment: {{KAFKA_BROKERS: "kafka:9092"}}}}
""",
        (("KL015", "kafka", "warning"),),
    ),
    # The same without a published port: the name can be nobody's.
    Case(
        "a name that nobody has",
        f"""{CONFLUENT}
    environment: {ZOOKEEPER}
      KAFKA_ADVERTISED_LISTENERS: PLAINTEXT://broker:9092
  app: {{image: app, environment: {{KAFKA_BROKERS: "kafka:9092"}}}}
""",
        MISLED_CLIENTS,
    ),
    # A script finds the address first, and then runs the image's own command.
    Case(
        "an address that a script finds",
        f"""{CONFLUENT}
    ports: ["9092:9092"]
    environment: {ZOOKEEPER}
      KAFKA_ADVERTISED_LISTENERS: PLAINTEXT://kafka:9092
    command: bash -c 'export KAFKA_ADVERTISED_LISTENERS=PLAINTEXT://$$(hostname -i):9092;
      /etc/confluent/docker/run'
""",
    ),
    # confluent-local listens where its own defaults say, not where the advertised list does.
    Case(
        "defaults of confluent-local",
        """
services:
  broker:
    image: confluentinc/confluent-local:7.5.0
    environment: {KAFKA_ADVERTISED_LISTENERS: "PLAINTEXT://broker:9092"}
  app: {image: app, environment: {KAFKA_BROKERS: "broker:29092"}}
""",
    ),
    # cp-enterprise-kafka, which cp-server has replaced: its latest is not known.
    Case(
        "an image that is made no more",
        f"""
services:
  zookeeper: {{image: "confluentinc/cp-zookeeper:7.5.0"}}
  kafka:
    image: confluentinc/cp-enterprise-kafka:latest
    environment: {ZOOKEEPER}
      KAFKA_ADVERTISED_LISTENERS: PLAINTEXT://kafka:9092
""",
    ),
    # What Kafka refuses since 4.0 alone, in an image whose tag nobody has set.
    Case(
        "a release that is not known",
        """
services:
  kafka:
    image: confluentinc/cp-kafka:${TAG}
    environment:
      KAFKA_NODE_ID: 1
      KAFKA_PROCESS_ROLES: controller
      KAFKA_CONTROLLER_QUORUM_VOTERS: 1@kafka:9093
      KAFKA_LISTENERS: CONTROLLER://kafka:9093
      KAFKA_CONTROLLER_LISTENER_NAMES: CONTROLLER
      KAFKA_INTER_BROKER_LISTENER_NAME: CONTROLLER
      KAFKA_LISTENER_SECURITY_PROTOCOL_MAP: CONTROLLER:PLAINTEXT
      CLUSTER_ID: MkU3OEVBNTcwNTJENDM2Qk
""",
    ),
    # Kafka reads an empty voter host as localhost: `0@:9093`.
    Case(
        "a voter without a host",
        f"""
services:
  kafka:
    image: bitnami/kafka:3.5.1
    ports: ["9092:9092"]
    environment: {KRAFT.replace("KAFKA_", "KAFKA_CFG_").replace("1@localhost", "1@")}
      KAFKA_CFG_ADVERTISED_LISTENERS: PLAINTEXT://kafka:29092,HOST://localhost:9092
""",
    ),
    # A voter at 0.0.0.0 is accepted, and stops Kafka 4.1 while it starts.
    Case(
        "a voter everywhere",
        f"""
services:
  kafka:
    image: apache/kafka:4.1.1
    environment: {KRAFT.replace("1@localhost", "1@0.0.0.0")}
      KAFKA_ADVERTISED_LISTENERS: PLAINTEXT://kafka:29092,HOST://localhost:9092
""",
        (("KL002", "kafka", "error"),),
    ),
    # On the host's network an empty advertised host is the machine's own name.
    Case(
        "no advertised host on the host's network",
        f"""
services:
  kafka:
    image: bitnami/kafka:3.5.1
    network_mode: host
    environment: {KRAFT.replace("KAFKA_", "KAFKA_CFG_")}
      KAFKA_CFG_ADVERTISED_LISTENERS: PLAINTEXT://:29092,HOST://:9092
  console: {{image: console, network_mode: host, environment: {{KAFKA_BROKERS: "localhost:9092"}}}}
""",
    ),
    # Two clusters for two sets of tests, copied with their ports: `docker compose up` fails.
    Case(
        "a port of the machine for two",
        f"""
services:
  one:
    image: apache/kafka:3.9.0
    ports: ["9092:9092"]
    environment: {KRAFT}
      KAFKA_ADVERTISED_LISTENERS: PLAINTEXT://one:29092,HOST://localhost:9092
  two:
    image: apache/kafka:3.9.0
    ports: ["9092:9092"]
    environment: {KRAFT}
      KAFKA_ADVERTISED_LISTENERS: PLAINTEXT://two:29092,HOST://localhost:9092
  three: {{image: nginx, ports: ["127.0.0.1:9092:80"]}}
""",
        (("KL017", "two", "error"), ("KL017", "one", "error")),
    ),
    # A web page and its proxy on one port: no broker's business.
    Case(
        "a port for two others",
        f"""{FOR_HOST_ALONE}
  page: {{image: nginx, ports: ["80:80"]}}
  proxy: {{image: nginx, ports: ["80:80"]}}
""",
    ),
    # Bound to localhost in the container: the published port leads to nobody.
    Case(
        "a published listener on loopback",
        f"""{APACHE}
    ports: ["9092:9092"]
    environment: {KRAFT.replace("HOST://:9092", "HOST://localhost:9092")}
      KAFKA_ADVERTISED_LISTENERS: PLAINTEXT://kafka:29092,HOST://localhost:9092
""",
        (("KL017", "kafka", "error"),),
    ),
    # The port was changed where it is published, and not where it is advertised.
    Case(
        "a name of the machine with another port",
        f"""{APACHE}
    ports: ["9192:9092"]
    environment: {KRAFT}
      KAFKA_ADVERTISED_LISTENERS: PLAINTEXT://kafka:29092,HOST://kafka.example.com:9092
""",
        (("KL017", "kafka", "warning"),),
    ),
    # A second address of the machine for the second broker, under the name of the first.
    Case(
        "one name for two brokers",
        """
services:
  zookeeper: {image: "confluentinc/cp-zookeeper:7.5.0"}
  one:
    image: confluentinc/cp-kafka:7.5.0
    ports: ["192.0.2.1:9092:9092"]
    environment: &settings
      KAFKA_BROKER_ID: 1
      KAFKA_ZOOKEEPER_CONNECT: zookeeper:2181
      KAFKA_ADVERTISED_LISTENERS: PLAINTEXT://one:29092,HOST://kafka.example.com:9092
      KAFKA_LISTENER_SECURITY_PROTOCOL_MAP: PLAINTEXT:PLAINTEXT,HOST:PLAINTEXT
  two:
    image: confluentinc/cp-kafka:7.5.0
    ports: ["192.0.2.2:9092:9092"]
    environment:
      <<: *settings
      KAFKA_BROKER_ID: 2
      KAFKA_ADVERTISED_LISTENERS: PLAINTEXT://two:29092,HOST://kafka.example.com:9092
""",
        (("KL016", "two", "error"),),
    ),
    # A controller with the address of a metrics reporter that it does not run.
    Case(
        "a setting that nobody reads",
        """
services:
  controller:
    image: confluentinc/cp-server:8.0.0
    environment:
      KAFKA_NODE_ID: 1
      KAFKA_PROCESS_ROLES: controller
      KAFKA_CONTROLLER_QUORUM_VOTERS: 1@controller:9093
      KAFKA_LISTENERS: CONTROLLER://controller:9093
      KAFKA_CONTROLLER_LISTENER_NAMES: CONTROLLER
      CLUSTER_ID: MkU3OEVBNTcwNTJENDM2Qk
      CONFLUENT_METRICS_REPORTER_BOOTSTRAP_SERVERS: localhost:19092
""",
    ),
    # https://github.com/confluentinc/cp-demo: whose image it is says a variable that nobody set.
    Case(
        "a registry that is not known",
        f"""
services:
  kafka:
    image: ${{REPOSITORY}}/cp-kafka:7.5.0
    ports: ["9092:9092"]
    environment: {ZOOKEEPER}
      KAFKA_ADVERTISED_LISTENERS: PLAINTEXT://kafka:9092
  app: {{image: app, environment: {{KAFKA_BROKERS: "kafka:9092"}}}}
""",
        (("KL017", "kafka", "warning"),),
    ),
    # A port that another container takes: what is advertised for it is right.
    Case(
        "one port of the machine for a broker and for something else",
        f"""
services:
  other: {{image: other, ports: ["9092:9092"]}}
  kafka:
    image: confluentinc/cp-kafka:7.5.0
    ports: ["9092:9092"]
    environment: {ZOOKEEPER}
      KAFKA_ADVERTISED_LISTENERS: PLAINTEXT://localhost:9092
""",
        (("KL017", "kafka", "error"),),
    ),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_what_is_said_of_a_file(case: Case) -> None:
    found = mistakes(services(case.text))
    assert tuple((item.rule, item.container, str(item.severity)) for item in found) == case.expected


PROPERTIES = {
    # a template of another language, and one of Jinja that leaves lines out
    "placeholders": "broker.id=0\nzookeeper.connect={zk}\nlisteners={kind}://{host}:{port}\n",
    "angle brackets": "broker.id=0\nzookeeper.connect=z:2181\nlisteners=SSL://<HOST>:9093\n",
    "at signs": "broker.id=0\nzookeeper.connect=z:2181\nlisteners=PLAINTEXT://@HOST@:9092\n",
    "statements": "node.id=1\nprocess.roles=broker\n{% if x %}\n{% endif %}\nlisteners=PLAINTEXT://:9092\n",
    # the fixture of apache/kafka's docker examples: variables of the container complete it
    "a part": "process.roles=broker\nadvertised.listeners=PLAINTEXT://broker:19092\n",
    # listeners come from `--override` of the start command
    "without listeners": "broker.id=1\nzookeeper.connect=z\nsecurity.inter.broker.protocol=SSL\n",
}


@pytest.mark.parametrize("text", PROPERTIES.values(), ids=PROPERTIES)
def test_a_file_that_something_else_completes_is_left_alone(text: str) -> None:
    assert not mistakes_in_properties(text)


def test_an_old_rest_proxy_is_no_broker() -> None:
    assert not is_of_broker("zookeeper.connect=localhost:2181\nlisteners=http://0.0.0.0:8082\n")

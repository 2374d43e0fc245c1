"""Common kinds of files with their findings; most have none."""

from dataclasses import dataclass

import pytest
import yaml

from earshot.checks.deployment import mistakes
from earshot.checks.lone_settings import is_of_broker, mistakes_in_properties
from tests.rules.deployment_examples import services

ReportedFinding = tuple[str, str | None, str]
Service = dict[str, object]
APACHE = "apache/kafka:3.9.0"
CONFLUENT = "confluentinc/cp-kafka:7.5.0"
HOST_MAP = "PLAINTEXT:PLAINTEXT,HOST:PLAINTEXT"
ZOOKEEPER = {"KAFKA_BROKER_ID": 1, "KAFKA_ZOOKEEPER_CONNECT": "zookeeper:2181"}
KRAFT = {
    "KAFKA_NODE_ID": 1,
    "KAFKA_PROCESS_ROLES": "broker,controller",
    "KAFKA_LISTENERS": "PLAINTEXT://:29092,HOST://:9092,CONTROLLER://:9093",
    "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": f"{HOST_MAP},CONTROLLER:PLAINTEXT",
    "KAFKA_CONTROLLER_LISTENER_NAMES": "CONTROLLER",
    "KAFKA_CONTROLLER_QUORUM_VOTERS": "1@localhost:9093",
}
PUBLISHED = ["9092:9092"]
BOTH = "PLAINTEXT://kafka:29092,HOST://localhost:9092"


@dataclass(frozen=True)
class Case:
    """The services of a file, and (rule, service, level) of each finding."""

    id: str
    services: dict[str, Service]
    expected: tuple[ReportedFinding, ...] = ()
    networks: Service | None = None


def with_zookeeper(
    advertised: str,
    listeners: str = "",
    protocols: str = "",
    variables: Service | None = None,
    image: str = CONFLUENT,
    **keys: object,
) -> Service:
    """A broker that uses ZooKeeper; ``variables`` are more of its variables."""
    env: Service = {**ZOOKEEPER, "KAFKA_ADVERTISED_LISTENERS": advertised}
    env |= {"KAFKA_LISTENERS": listeners} if listeners else {}
    env |= {"KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": protocols} if protocols else {}
    return {"image": image, "environment": env | (variables or {}), **keys}


def kraft(
    advertised: str = BOTH, variables: Service | None = None, image: str = APACHE, **keys: object
) -> Service:
    """A broker that is its own quorum; bitnami's image has another prefix of variables."""
    env = {**KRAFT, **(variables or {}), "KAFKA_ADVERTISED_LISTENERS": advertised}
    if image.startswith("bitnami"):
        env = {name.replace("KAFKA_", "KAFKA_CFG_"): value for name, value in env.items()}
    return {"image": image, "environment": env, **keys}


def wurstmeister(image: str = "wurstmeister/kafka", **variables: object) -> Service:
    env = {f"KAFKA_{name}": value for name, value in variables.items()}
    return {"image": image, "environment": env | {"KAFKA_ZOOKEEPER_CONNECT": "zookeeper:2181"}}


def app(servers: str) -> Service:
    return {"image": "app", "environment": {"KAFKA_BROKERS": servers}}


def confluent(kafka: Service, **others: Service) -> dict[str, Service]:
    """A file of ZooKeeper, ``kafka`` and ``others``."""
    return {"zookeeper": {"image": "confluentinc/cp-zookeeper:7.5.0"}, "kafka": kafka, **others}


def variables_of(image: str, *variables: str) -> Service:
    return {"image": image, "environment": list(variables)}


FOR_KAFKA = "PLAINTEXT://kafka:9092"
FOR_HOST_ALONE = with_zookeeper("PLAINTEXT://localhost:9092", ports=PUBLISHED)
OLD_ZOOKEEPER: Service = {"image": "wurstmeister/zookeeper"}
ASKS_DOCKER = {"ports": ["19092:9092"], "volumes": ["/var/run/docker.sock:/var/run/docker.sock"]}
MISLED_CLIENTS = (("KL015", "kafka", "error"),)
REFUSED = (("KL002", "kafka", "error"),)
WRONG_PORT = (("KL017", "kafka", "error"),)

CASES = (
    # What a container binds must be its own.
    Case("binds a name of nothing",
         confluent(with_zookeeper(FOR_KAFKA, "PLAINTEXT://nothing:9092")), REFUSED),
    Case("binds the name of another container",
         confluent(with_zookeeper(FOR_KAFKA, "PLAINTEXT://other:9092"), other={"image": "app"}),
         REFUSED),
    Case("binds its own name", confluent(with_zookeeper(FOR_KAFKA, FOR_KAFKA))),
    Case("binds its hostname",
         confluent(with_zookeeper(FOR_KAFKA, "PLAINTEXT://inner:9092", hostname="inner"))),
    Case("binds a name that its hosts file has",
         confluent(with_zookeeper(FOR_KAFKA, "PLAINTEXT://elsewhere:9092",
                                  extra_hosts=["elsewhere:10.0.0.7"]))),
    Case("binds a name that another file may explain",
         confluent(with_zookeeper(FOR_KAFKA, "PLAINTEXT://elsewhere:9092", networks=["shared"])),
         networks={"shared": {"external": True}}),
    # Source and target of a mirror, each alone in its quorum: two clusters with one node 1 each.
    Case("two clusters that each ask themselves",
         {"one": kraft(BOTH.replace("kafka", "one"), ports=PUBLISHED),
          "two": kraft("PLAINTEXT://two:29092,HOST://localhost:9192", ports=["9192:9092"]),
          "mirror": variables_of("mirror", "SOURCE_BOOTSTRAP_SERVERS=one:29092",
                                 "TARGET_BOOTSTRAP_SERVERS=two:29092")}),
    # `docker compose --profile kraft up`: one of two brokers, under one name and on one port.
    Case("alternatives by profile",
         {"zookeeper": {"image": "confluentinc/cp-zookeeper:7.5.0"},
          **{name: with_zookeeper(BOTH, protocols=HOST_MAP, profiles=[name],
                                  networks={"default": {"aliases": ["kafka"]}}, ports=PUBLISHED)
             for name in ("plain", "other")}, "app": app("kafka:29092")}),
    # An addition to another file (`docker compose -f base.yml -f more.yml`), as the extra broker of
    # https://github.com/confluentinc/cp-demo: its dependencies are in the other file.
    Case("an overlay",
         {"more": with_zookeeper("PLAINTEXT://more:9092", depends_on=["kafka"],
                                 variables={"KAFKA_REST_BOOTSTRAP_SERVERS": "kafka:9092"})}),
    # Mechanisms by listener, as in https://github.com/confluentinc/cp-demo, and none in general.
    Case("mechanisms of the listener itself",
         confluent(with_zookeeper("INTERNAL://kafka:9092", "INTERNAL://:9092",
                                  "INTERNAL:SASL_PLAINTEXT",
                                  {"KAFKA_INTER_BROKER_LISTENER_NAME": "INTERNAL",
                                   "KAFKA_SASL_MECHANISM_INTER_BROKER_PROTOCOL": "PLAIN",
                                   "KAFKA_LISTENER_NAME_INTERNAL_SASL_ENABLED_MECHANISMS": "PLAIN",
                                   "KAFKA_LISTENER_NAME_INTERNAL_PLAIN_SASL_JAAS_CONFIG":
                                   "org.example.Module required;"}))),
    # A script that makes topics, with the broker's variables by an anchor: no second broker.
    Case("another command in the broker's image",
         {"kafka": kraft(), "topics": kraft(command=["/bin/bash", "/scripts/create-topics.sh"])}),
    # Topics made by a script in bitnami's newest image, which has the address of ZooKeeper.
    Case("another command with a broker's variable",
         {"topics": {**variables_of("bitnami/kafka:latest",
                                    "KAFKA_CFG_ZOOKEEPER_CONNECT=zookeeper:2181"),
                     "command": ["/bin/bash", "-c", "/create_topic.sh"]}}),
    # https://github.com/wurstmeister/kafka-docker: `start-kafka.sh` asks Docker for the port.
    Case("a port that the image asks Docker for",
         {"zookeeper": OLD_ZOOKEEPER,
          "kafka": wurstmeister(ADVERTISED_HOST_NAME="localhost") | ASKS_DOCKER},
         (("KL016", "kafka", "error"),)),  # the broker itself does not listen at that port
    Case("a port that was given, so that the image asks for none",
         {"zookeeper": OLD_ZOOKEEPER,
          "kafka": wurstmeister(ADVERTISED_HOST_NAME="localhost", ADVERTISED_PORT=9092)
          | ASKS_DOCKER},
         WRONG_PORT),
    # The same script: without KAFKA_LISTENERS it exits with a message.
    Case("wurstmeister without listeners",
         {"zookeeper": OLD_ZOOKEEPER, "kafka": wurstmeister(ADVERTISED_LISTENERS=FOR_KAFKA)},
         (("KL014", "kafka", "error"),)),
    # The same script adds no listener, protocol or role to the settings.
    Case("two listeners on one port, in wurstmeister's image",
         {"zookeeper": OLD_ZOOKEEPER,
          "kafka": wurstmeister("wurstmeister/kafka:latest",
                                LISTENERS="INSIDE://0.0.0.0:9092,OUTSIDE://0.0.0.0:9092",
                                ADVERTISED_LISTENERS="INSIDE://kafka:9092,OUTSIDE://localhost:9092",
                                LISTENER_SECURITY_PROTOCOL_MAP="INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT",
                                INTER_BROKER_LISTENER_NAME="INSIDE") | {"ports": PUBLISHED}},
         REFUSED),
    # https://github.com/bitnami/containers/tree/main/bitnami/kafka#notable-changes: since 3.5.1
    # plaintext needs no permission, and a mode is required.
    Case("bitnami before and since its script was rewritten",
         {"before": variables_of("bitnami/kafka:3.4.0",
                                 "KAFKA_CFG_ZOOKEEPER_CONNECT=zookeeper:2181"),
          "allowed": variables_of("bitnami/kafka:3.4.0",
                                  "KAFKA_CFG_ZOOKEEPER_CONNECT=zookeeper:2181",
                                  "ALLOW_PLAINTEXT_LISTENER=yes"),
          "secured": variables_of("bitnami/kafka:2.8.1", "KAFKA_CFG_LISTENERS=SASL_SSL://:9092",
                                  "KAFKA_CFG_ZOOKEEPER_CONNECT=third:2181"),
          "since": variables_of("bitnami/kafka:3.3.2", "KAFKA_CFG_ZOOKEEPER_CONNECT=other:2181"),
          "neither": {"image": "bitnami/kafka:3.6"}, "four": {"image": "bitnami/kafka:4.0"},
          "newest": {"image": "bitnamisecure/kafka"}},
         (("KL014", "before", "error"), ("KL014", "neither", "error"), ("KL014", "four", "error"),
          ("KL014", "newest", "error"))),
    # https://github.com/tulios/kafkajs/issues/1042: whoever comes in by it is told of no address of
    # the other's (LISTENER_NOT_FOUND).
    Case("a listener that one broker lacks",
         {"zookeeper": {"image": "confluentinc/cp-zookeeper:7.5.0"},
          "one": with_zookeeper("PLAINTEXT://one:9092,OTHER://one:9093",
                                protocols="PLAINTEXT:PLAINTEXT,OTHER:PLAINTEXT"),
          "two": with_zookeeper("PLAINTEXT://two:9092", variables={"KAFKA_BROKER_ID": 2}),
          "old": variables_of("app", "KAFKA_BROKERS=one:9092,two:9092"),
          "new": variables_of("app", "KAFKA_BROKERS=one:9093")}, (("KL015", "two", "error"),)),
    # https://docs.docker.com/reference/compose-file/services/#network_mode: behind a VPN's
    # container a broker has its network, its names and its published ports.
    Case("a broker in the network of another container",
         {"zookeeper": {"image": "confluentinc/cp-zookeeper:7.5.0"},
          "vpn": {"image": "vpn", "ports": PUBLISHED},
          "kafka": with_zookeeper(BOTH.replace("kafka", "vpn"), protocols=HOST_MAP,
                                  network_mode="service:vpn"),
          "beside": {**app("localhost:9092"), "network_mode": "service:kafka"},
          "inside": app("vpn:29092"), "sent": app("vpn:9092"), "another": app("vpn:9999")},
         MISLED_CLIENTS),
    # Bitnami's image with nothing but an advertised address for the host.
    Case("bitnami's own listener",
         {"zookeeper": {"image": "bitnami/zookeeper:3.8"},
          "kafka": {**variables_of("bitnami/kafka:3.4",
                                   "KAFKA_CFG_ZOOKEEPER_CONNECT=zookeeper:2181",
                                   "KAFKA_CFG_ADVERTISED_LISTENERS=PLAINTEXT://localhost:9092"),
                    "ports": PUBLISHED}, "app": app("kafka:9092")}, MISLED_CLIENTS),
    # AKHQ's whole configuration in one variable (https://akhq.io/docs/installation.html).
    Case(
        "a configuration within a variable",
        confluent(
            FOR_HOST_ALONE,
            akhq={
                "image": "tchiotludo/akhq",
                "environment": {
                    "AKHQ_CONFIGURATION": """akhq:
  connections:
    local:
      properties:
        bootstrap.servers: "kafka:9092"
"""
                },
            },
        ),
        MISLED_CLIENTS,
    ),
    # An option of Spring Boot.
    Case("an option with a dotted name",
         confluent(FOR_HOST_ALONE,
                   app={"image": "app",
                        "command":
                        "java -jar app.jar --spring.kafka.bootstrap-servers=kafka:9092"}),
         MISLED_CLIENTS),
    # https://github.com/danielqsj/kafka_exporter takes one server an option, and needs one of them.
    Case("options that make one list",
         {"kafka": kraft(),
          "exporter": {"image": "danielqsj/kafka-exporter",
                       "command": ["--kafka.server=kafka:29092", "--kafka.server=kafka:39092"]}}),
    # A REST proxy's address in a variable that is called like Kafka's.
    Case("an address of HTTP",
         {"kafka": kraft(), "app": variables_of("app", "KAFKA_URL=http://kafka:8082")}),
    # Compose's own names of containers, as older files have them: `myproject_kafka_1`.
    Case("the name that Compose makes", {"kafka": kraft(), "app": app("myproject_kafka_1:29092")}),
    # A stack of Swarm, whose hostnames are templates.
    Case("a hostname by a template",
         {"kafka": kraft(hostname="broker-{{.Task.Slot}}"), "app": app("broker-1:29092")}),
    # A server that others know by its own name, which its containers may resolve too.
    Case("a name that may be the machine's",
         confluent(with_zookeeper("PLAINTEXT://server7:9092", ports=PUBLISHED),
                   app=app("kafka:9092")), (("KL015", "kafka", "warning"),)),
    # The same without a published port: nothing can have the name.
    Case("a name that no container has",
         confluent(with_zookeeper("PLAINTEXT://broker:9092"), app=app("kafka:9092")),
         MISLED_CLIENTS),
    # A script finds the address first, and then runs the image's own command.
    Case(
        "an address that a script finds",
        confluent(
            with_zookeeper(
                FOR_KAFKA,
                ports=PUBLISHED,
                command="bash -c 'export KAFKA_ADVERTISED_LISTENERS=PLAINTEXT://$$(hostname -i)"
                ":9092; /etc/confluent/docker/run'",
            )
        ),
    ),
    # confluent-local listens where its own defaults say, not where the advertised list does.
    Case("defaults of confluent-local",
         {"broker": variables_of("confluentinc/confluent-local:7.5.0",
                                 "KAFKA_ADVERTISED_LISTENERS=PLAINTEXT://broker:9092"),
          "app": app("broker:29092")}),
    # cp-enterprise-kafka, which cp-server has replaced: its latest is not known.
    Case("an image that is made no more",
         confluent(with_zookeeper(FOR_KAFKA, image="confluentinc/cp-enterprise-kafka:latest"))),
    # What Kafka refuses since 4.0 alone, in an image whose tag is a variable.
    Case("a release that is not known",
         {"kafka": variables_of("confluentinc/cp-kafka:${TAG}", "KAFKA_NODE_ID=1",
                                "KAFKA_PROCESS_ROLES=controller",
                                "KAFKA_CONTROLLER_QUORUM_VOTERS=1@kafka:9093",
                                "KAFKA_LISTENERS=CONTROLLER://kafka:9093",
                                "KAFKA_CONTROLLER_LISTENER_NAMES=CONTROLLER",
                                "KAFKA_INTER_BROKER_LISTENER_NAME=CONTROLLER",
                                "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP=CONTROLLER:PLAINTEXT",
                                "CLUSTER_ID=MkU3OEVBNTcwNTJENDM2Qk")}),
    # Kafka reads an empty voter host as localhost: `0@:9093`.
    Case("a voter without a host",
         {"kafka": kraft(variables={"KAFKA_CONTROLLER_QUORUM_VOTERS": "1@:9093"},
                         image="bitnami/kafka:3.5.1", ports=PUBLISHED)}),
    # A voter at 0.0.0.0 is accepted, and stops Kafka 4.1 while it starts.
    Case("a voter everywhere",
         {"kafka": kraft(variables={"KAFKA_CONTROLLER_QUORUM_VOTERS": "1@0.0.0.0:9093"},
                         image="apache/kafka:4.1.1")}, REFUSED),
    # On the host's network an empty advertised host is the machine's own name.
    Case("no advertised host on the host's network",
         {"kafka": kraft("PLAINTEXT://:29092,HOST://:9092", image="bitnami/kafka:3.5.1",
                         network_mode="host"),
          "console": {**app("localhost:9092"), "image": "console", "network_mode": "host"}}),
    # Two clusters for two sets of tests, copied with their ports: `docker compose up` fails.
    Case("a port of the machine for two",
         {"one": kraft(BOTH.replace("kafka", "one"), ports=PUBLISHED),
          "two": kraft(BOTH.replace("kafka", "two"), ports=PUBLISHED),
          "three": {"image": "nginx", "ports": ["127.0.0.1:9092:80"]}},
         (("KL017", "two", "error"), ("KL017", "one", "error"))),
    # A web page and its proxy on one port: no broker's business.
    Case("a port for two others",
         confluent(FOR_HOST_ALONE, page={"image": "nginx", "ports": ["80:80"]},
                   proxy={"image": "nginx", "ports": ["80:80"]})),
    # Bound to localhost in the container: the published port leads to no listener.
    Case("a published listener on loopback",
         {"kafka": kraft(variables={"KAFKA_LISTENERS":
                                    "PLAINTEXT://:29092,HOST://localhost:9092,CONTROLLER://:9093"},
                         ports=PUBLISHED)}, WRONG_PORT),
    # The port was changed where it is published, and not where it is advertised.
    Case("a name of the machine with another port",
         {"kafka": kraft("PLAINTEXT://kafka:29092,HOST://kafka.example.com:9092",
                         ports=["9192:9092"])}, (("KL017", "kafka", "warning"),)),
    # A second address of the machine for the second broker, under the name of the first.
    Case("one name for two brokers",
         {"zookeeper": {"image": "confluentinc/cp-zookeeper:7.5.0"},
          **{name: with_zookeeper(f"PLAINTEXT://{name}:29092,HOST://kafka.example.com:9092",
                                  protocols=HOST_MAP, variables={"KAFKA_BROKER_ID": id},
                                  ports=[f"192.0.2.{id}:9092:9092"])
             for id, name in ((1, "one"), (2, "two"))}}, (("KL016", "two", "error"),)),
    # A controller with the address of a metrics reporter that it does not run.
    Case(
        "a setting that nobody reads",
        {
            "controller": variables_of(
                "confluentinc/cp-server:8.0.0",
                "KAFKA_NODE_ID=1",
                "KAFKA_PROCESS_ROLES=controller",
                "KAFKA_CONTROLLER_QUORUM_VOTERS=1@controller:9093",
                "KAFKA_LISTENERS=CONTROLLER://controller:9093",
                "KAFKA_CONTROLLER_LISTENER_NAMES=CONTROLLER",
                "CLUSTER_ID=MkU3OEVBNTcwNTJENDM2Qk",
                "CONFLUENT_METRICS_REPORTER_BOOTSTRAP_SERVERS=localhost:19092",
            )
        },
    ),
    # https://github.com/confluentinc/cp-demo: the image's registry is a variable without a value.
    Case("a registry that is not known",
         {"kafka": with_zookeeper(FOR_KAFKA, image="${REPOSITORY}/cp-kafka:7.5.0", ports=PUBLISHED),
          "app": app("kafka:9092")}, (("KL017", "kafka", "warning"),)),
    # A port that another container takes: what is advertised for it is right.
    Case("one port of the machine for a broker and for something else",
         {"other": {"image": "other", "ports": PUBLISHED}, "kafka": FOR_HOST_ALONE}, WRONG_PORT),
)  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_what_is_said_of_a_file(case: Case) -> None:
    document = {"services": case.services, "networks": case.networks or {}}
    findings = mistakes(services(yaml.safe_dump(document, sort_keys=False)))
    reported = [(finding.rule, finding.container, str(finding.severity)) for finding in findings]
    assert tuple(reported) == case.expected


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

"""Failures from public reports, and the rules that find them before a deployment."""

from dataclasses import dataclass


@dataclass(frozen=True)
class FailureReport:
    """One kind of failure: the ``rules`` that find it, and where it was ``reported``: issues and
    pull requests of GitHub as `owner/name#number`."""

    title: str
    rules: tuple[str, ...]
    reported: tuple[str, ...]


REPORTS = (
    FailureReport(
        "a client in a container, or on another machine, is sent to `localhost`",
        ("KL003", "KL006", "KL015"),
        (
            "confluentinc/cp-docker-images#796",
            "provectus/kafka-ui#2021",
            "provectus/kafka-ui#3221",
            "testcontainers/testcontainers-python#170",
        ),
    ),
    FailureReport(
        "a broker in a container listens on `localhost` alone",
        ("KL006", "KL017"),
        ("provectus/kafka-ui#1073",),
    ),
    FailureReport(
        "the published port is another than the advertised one, or leads to another listener",
        ("KL006", "KL017"),
        (
            "wurstmeister/kafka-docker#417",
            "wurstmeister/kafka-docker#424",
            "wurstmeister/kafka-docker#595",
            "confluentinc/cp-docker-images#831",
            "conduktor/kafka-stack-docker-compose#32",
        ),
    ),
    FailureReport(
        "clients outside get a private name or address of EC2",
        ("KL003", "KL011"),
        (
            "aws-quickstart/quickstart-confluent-kafka#31",
            "aws-quickstart/quickstart-confluent-kafka#63",
            "aws-quickstart/quickstart-confluent-kafka#88",
            "wurstmeister/kafka-docker#183",
            "wurstmeister/kafka-docker#506",
        ),
    ),
    FailureReport(
        "brokers talk to each other over their public names",
        ("KL008",),
        ("aws-quickstart/quickstart-confluent-kafka#64",),
    ),
    FailureReport(
        "a security group lets clients or brokers not in",
        ("KL007",),
        ("bitnami/charts#2427", "wurstmeister/kafka-docker#507"),
    ),
    FailureReport(
        "several brokers advertise one address", ("KL004", "KL016"), ("bitnami/charts#1820",)
    ),
    FailureReport(
        "a name leads to another broker",
        ("KL012", "KL016"),
        ("IBM/sarama#846", "confluentinc/librdkafka#3277"),
    ),
    FailureReport(
        "a listener has a port too many, or a template went wrong",
        ("KL002",),
        ("bitnami/charts#25580", "bitnami/charts#25030", "bitnami/charts#19429"),
    ),
    FailureReport(
        "a variable was not replaced, or holds two values",
        ("KL002",),
        ("bitnami/bitnami-docker-kafka#81", "testcontainers/testcontainers-python#637"),
    ),
    FailureReport(
        "the id of a container is advertised",
        ("KL003", "KL011", "KL014"),
        (
            "confluentinc/confluent-kafka-go#70",
            "wurstmeister/kafka-docker#17",
            "grafana/metrictank#1286",
        ),
    ),
    FailureReport(
        "clients on the machine bootstrap on the port for containers, and get names of containers",
        ("KL017",),
        ("bitnami/bitnami-docker-kafka#128",),
    ),
    FailureReport(
        "`inter.broker.listener.name` is wrong or missing",
        ("KL002",),
        ("bitnami/bitnami-docker-kafka#252", "bitnami/bitnami-docker-kafka#152"),
    ),
    FailureReport(
        "CONTROLLER is missing in the map of protocols, or a variable is empty",
        ("KL002", "KL014"),
        ("bitnami/containers#70995", "bitnami/containers#43918", "bitnami/containers#34896"),
    ),
    FailureReport(
        "a controller sets `advertised.listeners`, and its image or Kafka refuses it",
        ("KL002", "KL014"),
        ("bitnami/containers#16243",),
    ),
    FailureReport(
        "a voter of the quorum is not where it is listed",
        ("KL011", "KL016"),
        ("bitnami/containers#67247", "bitnami/charts#17715", "strimzi/test-container#122"),
    ),
    FailureReport(
        "the address of a broker is another after a restart",
        ("KL009",),
        ("confluentinc/confluent-kafka-python#990", "wurstmeister/kafka-docker#492"),
    ),
    FailureReport(
        "brokers have listeners of other names",
        ("KL015", "KL017"),
        ("tulios/kafkajs#1042", "wurstmeister/kafka-docker#566", "apache/kafka#5189"),
    ),
    FailureReport(
        "an image takes the name of a listener for its protocol",
        ("KL014",),
        ("confluentinc/kafka-images#99", "rmoff/kafka-listeners#2"),
    ),
    FailureReport(
        "Kubernetes sets `KAFKA_PORT=tcp://...` for a Service called kafka",
        ("KL014",),
        (
            "confluentinc/cp-docker-images#388",
            "confluentinc/cp-docker-images#779",
            "helm/charts#5089",
            "wurstmeister/kafka-docker#122",
        ),
    ),
    FailureReport(
        "one variable takes away all that apache/kafka sets by itself",
        ("KL014",),
        ("apache/kafka#17705", "apache/kafka#18844"),
    ),
)
"""Failures that a rule finds, the most frequent first."""


def link(reported: str) -> str:
    """The URL of `owner/name#number`; GitHub redirects an issue's URL to a pull request."""
    name, _, number = reported.partition("#")
    return f"https://github.com/{name}/issues/{number}"

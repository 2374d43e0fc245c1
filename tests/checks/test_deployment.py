"""What an image or Kafka refuses, without further findings; and deployments without a mistake.

What the rules about several containers find is in `tests/rules/examples`.
"""

import re
from collections.abc import Mapping

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from earshot.checks.deployment import mistakes
from earshot.errors import EarshotError
from earshot.facts.settings import BrokerSettings
from earshot.listeners.image_demands import BITNAMI_SCRIPT
from earshot.rules.kl002_kafka import startup_refusals
from earshot.rules.rule import Finding, Severity
from tests.listeners.oracle import VERSIONS
from tests.rules.deployment_examples import services
from tests.rules.vectors import VECTORS, Vector

ZOOKEEPER = {
    "KAFKA_ZOOKEEPER_CONNECT": "zookeeper:2181",
    "KAFKA_ADVERTISED_LISTENERS": "PLAINTEXT://kafka:9092",
}
KRAFT = {
    "CLUSTER_ID": "MkU3OEVBNTcwNTJENDM2Qk",
    "KAFKA_NODE_ID": "1",
    "KAFKA_PROCESS_ROLES": "broker,controller",
    "KAFKA_LISTENERS": "PLAINTEXT://:9092,CONTROLLER://:9093",
    "KAFKA_ADVERTISED_LISTENERS": "PLAINTEXT://kafka:9092",
    "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "KAFKA_CONTROLLER_LISTENER_NAMES": "CONTROLLER",
    "KAFKA_CONTROLLER_QUORUM_VOTERS": "1@kafka:9093",
}
CONTROLLER = {
    "CLUSTER_ID": "MkU3OEVBNTcwNTJENDM2Qk",
    "KAFKA_NODE_ID": "1",
    "KAFKA_PROCESS_ROLES": "controller",
    "KAFKA_LISTENERS": "CONTROLLER://:9093",
    "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": "CONTROLLER:PLAINTEXT",
    "KAFKA_CONTROLLER_LISTENER_NAMES": "CONTROLLER",
    "KAFKA_CONTROLLER_QUORUM_VOTERS": "1@kafka:9093",
}
CP7, CP8 = "confluentinc/cp-kafka:7.6.0", "confluentinc/cp-kafka:8.0.0"
APACHE = "apache/kafka:4.1.1"
REPLACED = ("KAFKA_ADVERTISED_HOST", "KAFKA_ADVERTISED_PORT", "KAFKA_PORT")


def compose(image: str, env: Mapping[str, str | None], **keys: object) -> str:
    """A file with one broker; a variable that is None is taken away."""
    given = {name: value for name, value in env.items() if value is not None}
    return yaml.safe_dump({"services": {"kafka": {"image": image, "environment": given, **keys}}})


def findings_of(image: str, env: Mapping[str, str | None], **keys: object) -> tuple[Finding, ...]:
    return mistakes(services(compose(image, env, **keys)))


def reported(image: str, env: Mapping[str, str | None], **keys: object) -> list[tuple[str, str]]:
    return [(finding.rule, finding.observed) for finding in findings_of(image, env, **keys)]


WHAT_STARTS: list[tuple[str, Mapping[str, str | None]]] = [
    (CP7, ZOOKEEPER),
    (CP7, KRAFT),
    (CP8, KRAFT),
    (APACHE, KRAFT),
    ("apache/kafka", {}),
    ("apache/kafka:3.9.1", KRAFT | {"CLUSTER_ID": None}),
    (CP8, CONTROLLER),
    (APACHE, CONTROLLER),
    # ZooKeeper on a Kafka that has it, or may have it
    ("bitnami/kafka:3.6.0", ZOOKEEPER),
    ("bitnami/kafka:3.9.0", ZOOKEEPER),
    ("example/kafka", ZOOKEEPER),
    *(("example/kafka", ZOOKEEPER | {name: "x"}) for name in REPLACED),
    ("example/kafka:4.0.0", ZOOKEEPER),  # an image of an unknown maker
    ("confluentinc/cp-kafka:${TAG}", ZOOKEEPER),
    ("wurstmeister/kafka", ZOOKEEPER | {"KAFKA_LISTENERS": "PLAINTEXT://:9092"}),
    # a ZooKeeper that was forgotten is ignored
    (APACHE, KRAFT | {"KAFKA_ZOOKEEPER_CONNECT": "zookeeper:2181"}),
    # a variable that is not set may leave nothing
    (CP7, CONTROLLER | {"KAFKA_ADVERTISED_LISTENERS": "${ADVERTISED}"}),
]


@pytest.mark.parametrize(
    ("image", "env", "keys"),
    [
        *((image, env, {}) for image, env in WHAT_STARTS),
        # what is missing may come from elsewhere
        *((CP8, KRAFT | {"CLUSTER_ID": None}, keys) for keys in (
            {"env_file": "gone.env"},
            {"command": "sh -c 'CLUSTER_ID=$$(make-one) /etc/confluent/docker/run'"},
            {"build": "."},
            {"extends": {"file": "gone.yml", "service": "kafka"}},
            {"volumes": ["./x:/etc/kafka/server.properties"]},
        )),
        # the name of an image that is built tells nothing
        *((image, env, {"build": "."})
          for image in (APACHE, CP7, "confluentinc/cp-kafka:latest", "bitnami/kafka:4.0")
          for env in (ZOOKEEPER | {"KAFKA_PORT": "9092"}, CONTROLLER, {"KAFKA_NODE_ID": "1"})),
    ],
)  # fmt: skip
def test_what_starts(image: str, env: Mapping[str, str | None], keys: dict[str, object]) -> None:
    assert reported(image, env, **keys) == []


MISSING = "does not set {}, and {} refuses to start"
ADVERTISED = "KAFKA_ADVERTISED_LISTENERS"


@pytest.mark.parametrize(("image", "env", "observed", "expected", "remedy"), [
    *((image, ZOOKEEPER,
       f"{image} is Kafka 4, which has no ZooKeeper, and zookeeper.connect is set",
       "process.roles, node.id and a KRaft quorum, or an image of Kafka 3",
       "`earshot adopt` writes the settings for KRaft") for image in (
        CP8, "confluentinc/cp-kafka:latest", "confluentinc/cp-kafka",
        "confluentinc/cp-server:8.1.0", APACHE, "apache/kafka:latest", "bitnami/kafka:4.0.0",
        "bitnami/kafka:latest", "registry.example.com/bitnamilegacy/kafka:4.0",
    )),
    *((image, env, MISSING.format(missing, image), missing, f"set {missing}")
      for image, env, missing in (
        (CP7, KRAFT | {"CLUSTER_ID": None}, "CLUSTER_ID"),
        (CP8, KRAFT | {"CLUSTER_ID": None}, "CLUSTER_ID"),
        (CP8, CONTROLLER | {"CLUSTER_ID": None}, "CLUSTER_ID"),
        (CP8, KRAFT | {ADVERTISED: None}, ADVERTISED),
        (CP7, KRAFT | {ADVERTISED: None, "CLUSTER_ID": None}, f"{ADVERTISED}, CLUSTER_ID"),
        (CP7, ZOOKEEPER | {"KAFKA_ZOOKEEPER_CONNECT": None}, "KAFKA_ZOOKEEPER_CONNECT"),
        (CP7, ZOOKEEPER | {ADVERTISED: None}, ADVERTISED),
        (CP8, {ADVERTISED: "A://kafka:1"}, "KAFKA_PROCESS_ROLES"),
    )),
    *((image, CONTROLLER | {ADVERTISED: "CONTROLLER://kafka:9093"},
       f"is a controller only and sets {ADVERTISED}: the image exits",
       "no such variable on a controller", f"take {ADVERTISED} away")
      for image in (CP7, CP8, APACHE)),
    *((CP7, ZOOKEEPER | others | {name: "x"}, f"sets {name}, and {CP7} refuses to start",
       f"KAFKA_LISTENERS and {ADVERTISED}, which replace it", f"take {name} away")
      for name, others in (
        *((name, {}) for name in REPLACED),
        ("KAFKA_ADVERTISED_HOST", {"KAFKA_PORT": "1"}),  # only the first refusal is reported
      )),
])  # fmt: skip
def test_what_an_image_refuses(
    image: str, env: dict[str, str | None], observed: str, expected: str, remedy: str
) -> None:
    (finding,) = findings_of(image, env)
    assert (finding.rule, finding.container) == ("KL014", "kafka")
    assert (finding.observed, finding.expected, finding.remedy) == (observed, expected, remedy)


def test_an_empty_cluster_id_is_for_the_script_of_the_image() -> None:
    assert reported(CP8, KRAFT | {"CLUSTER_ID": ""}) == []
    (finding,) = findings_of(CP7, KRAFT | {"CLUSTER_ID": ""})
    assert finding.observed == f"does not set CLUSTER_ID, and {CP7} refuses to start"


# https://github.com/confluentinc/cp-all-in-one/blob/7.3.0-post/cp-all-in-one-kraft/update_run.sh
@pytest.mark.parametrize("tag", ["7.0.1", "7.3.3"])
@pytest.mark.parametrize("id", [None, "", "MkU3OEVBNTcwNTJENDM2Qk"])
def test_cp_kafka_before_7_4_asks_every_node_for_zookeeper(tag: str, id: str | None) -> None:
    image = f"confluentinc/cp-kafka:{tag}"
    (finding,) = findings_of(image, KRAFT | {"CLUSTER_ID": id})
    assert (finding.rule, finding.observed, finding.expected, finding.remedy) == (
        "KL014",
        f"does not set KAFKA_ZOOKEEPER_CONNECT, and {image} refuses to start",
        "KAFKA_ZOOKEEPER_CONNECT, or an image of 7.4 or later, whose script knows KRaft",
        "set KAFKA_ZOOKEEPER_CONNECT, or take an image of 7.4 or later, whose script knows KRaft",
    )
    assert (
        reported(image, KRAFT, command="bash -c '/tmp/update_run.sh && /etc/confluent/docker/run'")
        == []
    )
    assert reported(image, KRAFT, volumes=["./configure:/etc/confluent/docker/configure"]) == []


BY_SERVERS = KRAFT | {
    "KAFKA_CONTROLLER_QUORUM_VOTERS": None,
    "KAFKA_CONTROLLER_QUORUM_BOOTSTRAP_SERVERS": "kafka:9093",
}


# the wrapper in Kafka's jar formats without a flag: it ended with 1 in 3.9.2, 4.0.2, 4.2.1, 4.4.0
@pytest.mark.parametrize("image", ["apache/kafka:3.9.1", APACHE, "apache/kafka:latest", CP8])
def test_a_controller_that_lists_no_voters_is_not_formatted(image: str) -> None:
    needed = "KAFKA_CONTROLLER_QUORUM_VOTERS"
    (finding,) = findings_of(image, BY_SERVERS)
    assert (finding.rule, finding.observed, finding.expected) == (
        "KL014",
        f"does not set {needed}, and {image} refuses to start",
        needed,
    )
    assert finding.source == "https://github.com/apache/kafka/pull/18844"
    assert reported(image, BY_SERVERS | {needed: "1@kafka:9093"}) == []
    assert reported(image, BY_SERVERS, command="sh -c '/format.sh && /etc/kafka/docker/run'") == []
    broker = {
        "KAFKA_PROCESS_ROLES": "broker",
        "KAFKA_LISTENERS": "PLAINTEXT://:9092",
        "KAFKA_CONTROLLER_QUORUM_BOOTSTRAP_SERVERS": "controller:9093",
    }
    assert reported(image, BY_SERVERS | broker) == []


def test_bitnami_4_formats_a_controller_that_lists_no_voters() -> None:
    env = {name.replace("KAFKA_", "KAFKA_CFG_"): value for name, value in BY_SERVERS.items()}
    assert (
        reported("bitnami/kafka:4.0", {**env, "KAFKA_KRAFT_CLUSTER_ID": "abcdefghijklmnopqrstuv"})
        == []
    )


def test_a_variable_with_a_misspelt_name_is_named_where_it_is_missing() -> None:
    right, wrong = "KAFKA_ADVERTISED_LISTENERS", "KAFKA_ADVERTISED_LISTNERS"
    (finding,) = findings_of(CP7, ZOOKEEPER | {right: None, wrong: "PLAINTEXT://kafka:9092"})
    assert (finding.observed, finding.remedy, finding.inputs[0]) == (
        (
            f"does not set KAFKA_ADVERTISED_LISTENERS, and {CP7} refuses to start; "
            "KAFKA_ADVERTISED_LISTNERS is set, which is none of Kafka's"
        ),
        "rename KAFKA_ADVERTISED_LISTNERS to KAFKA_ADVERTISED_LISTENERS",
        "KAFKA_ADVERTISED_LISTNERS",
    )


def test_a_variable_with_a_misspelt_name_that_nothing_depends_on_is_a_warning() -> None:
    """As https://github.com/DanilaNN/Route256 has it."""
    misspelt = {"KAFKA_LISTNERS": "PLAINTEXT://:9092"}
    (finding,) = findings_of(CP7, ZOOKEEPER | misspelt)
    assert (
        finding.rule,
        finding.severity,
        finding.observed,
        finding.expected,
        finding.remedy,
        finding.inputs,
    ) == (
        "KL014",
        Severity.WARNING,
        (
            "sets KAFKA_LISTNERS, which becomes listners: Kafka has no such property, and takes no "
            "notice of it"
        ),
        "KAFKA_LISTENERS",
        "rename it to KAFKA_LISTENERS",
        ("KAFKA_LISTNERS",),
    )
    for changed in ({"build": "."}, {"command": "/etc/confluent/docker/run"}):
        assert findings_of(CP7, ZOOKEEPER | misspelt, **changed) == ()
    (other,) = findings_of(CP7, ZOOKEEPER | misspelt | {"KAFKA_ZOOKEEPER_CONNECT": None})
    assert "LISTNERS" not in other.observed, "what is missing is another"


@pytest.mark.parametrize("image", [CP7, CP8, APACHE, "apache/kafka:4.2.0"])
def test_a_controller_alone_may_set_what_it_advertises_to_nothing(image: str) -> None:
    assert reported(image, CONTROLLER | {"KAFKA_ADVERTISED_LISTENERS": ""}) == []
    somewhere = "CONTROLLER://${HOST}:9093"
    assert len(reported(image, CONTROLLER | {"KAFKA_ADVERTISED_LISTENERS": somewhere})) == 1


@pytest.mark.parametrize(
    ("image", "name", "is_refused"),
    [  # each as Kafka of that release answered
        ("apache/kafka:3.9.1", "KAFKA_SECURITY_INTER_BROKER_PROTOCOL", True),
        ("apache/kafka:4.2.0", "KAFKA_SECURITY_INTER_BROKER_PROTOCOL", True),
        ("apache/kafka:4.1.1", "KAFKA_ADVERTISED_LISTENERS", True),
        ("apache/kafka:4.2.0", "KAFKA_ADVERTISED_LISTENERS", True),
        ("apache/kafka:4.2.0", "KAFKA_INTER_BROKER_LISTENER_NAME", True),
        ("apache/kafka:4.2.0", "KAFKA_LISTENERS", False),  # the script derives them
        ("apache/kafka:4.2.0", "KAFKA_CONTROLLER_QUORUM_BOOTSTRAP_SERVERS", False),
        ("apache/kafka:4.2.0", "KAFKA_EARLY_START_LISTENERS", False),
        ("apache/kafka:4.2.0", "KAFKA_METRIC_REPORTERS", False),
        ("confluentinc/cp-kafka:7.6.0", "KAFKA_SECURITY_INTER_BROKER_PROTOCOL", True),
        ("confluentinc/cp-kafka:8.0.0", "KAFKA_SECURITY_INTER_BROKER_PROTOCOL", True),
        ("confluentinc/cp-kafka:8.0.0", "KAFKA_LISTENERS", False),
        ("confluentinc/cp-kafka:8.0.0", "KAFKA_LOG_DIRS", False),  # the script gives one
        ("confluentinc/confluent-local:7.6.0", "KAFKA_SECURITY_INTER_BROKER_PROTOCOL", False),
    ],
)
def test_images_hand_over_what_is_set_to_nothing(image: str, name: str, is_refused: bool) -> None:
    env = KRAFT | {name: ""}
    if name == "KAFKA_LISTENERS":
        env = env | {"KAFKA_ADVERTISED_LISTENERS": "PLAINTEXT://kafka:9092,CONTROLLER://kafka:9093"}
    refusals = reported(image, env)
    assert bool(refusals) is is_refused, refusals
    assert all(rule == "KL002" for rule, _ in refusals)
    assert reported(image, env, command="sleep infinity") == []


BITNAMI_SASL: dict[str, str | None] = {
    "KAFKA_CFG_ZOOKEEPER_CONNECT": "zookeeper:2181",
    "KAFKA_CFG_LISTENERS": "INTERNAL://:9092,CONTROLLER://:9093",
    "KAFKA_CFG_ADVERTISED_LISTENERS": "INTERNAL://kafka:9092",
    "KAFKA_CFG_LISTENER_SECURITY_PROTOCOL_MAP": "INTERNAL:SASL_SSL,CONTROLLER:SASL_PLAINTEXT",
    "KAFKA_CFG_INTER_BROKER_LISTENER_NAME": "INTERNAL",
    "KAFKA_CFG_SASL_MECHANISM_INTER_BROKER_PROTOCOL": "PLAIN",
    "KAFKA_CFG_SASL_MECHANISM_CONTROLLER_PROTOCOL": "PLAIN",
}


@pytest.mark.parametrize("tag", ["3.4", "3.9.0", "3.7.1-debian-12-r4", "3"])
@pytest.mark.parametrize(
    "missing",
    [
        "KAFKA_CFG_SASL_MECHANISM_INTER_BROKER_PROTOCOL",
        "KAFKA_CFG_SASL_MECHANISM_CONTROLLER_PROTOCOL",
    ],
)
def test_the_mechanism_that_bitnami_asks_for(tag: str, missing: str) -> None:
    image = f"bitnami/kafka:{tag}"
    assert reported(image, BITNAMI_SASL) == []
    (finding,) = findings_of(image, BITNAMI_SASL | {missing: None})
    assert (finding.rule, finding.observed, finding.expected, finding.remedy, finding.source) == (
        "KL014",
        f"does not set {missing}, and {image} refuses to start",
        missing,
        f"set {missing}",
        BITNAMI_SCRIPT,
    )


@pytest.mark.parametrize(
    ("tag", "keys"),
    [
        ("3.3", {}),
        ("3.4.0", {}),  # may be older than the script
        ("3.9", {"env_file": "gone.env"}),
        ("3.9", {"command": "/opt/bitnami/scripts/kafka/run.sh"}),
        ("${TAG}", {}),
    ],
)
def test_where_bitnamis_script_may_be_another(tag: str, keys: dict[str, object]) -> None:
    lacking: dict[str, str | None] = {name: None for name in BITNAMI_SASL if "MECHANISM" in name}
    assert reported(f"bitnami/kafka:{tag}", BITNAMI_SASL | lacking, **keys) == []


@pytest.mark.parametrize(
    ("name", "asked"), [("OTHER", True), ("KAFKA_NODE_ID", False), ("KAFKA_NODE_ID_COMMAND", False)]
)
@pytest.mark.parametrize("tag", ["3.9", "4.0", "4.1.0-debian-12-r0", "latest"])
def test_the_id_that_bitnami_asks_for(name: str, asked: bool, tag: str) -> None:
    env = {name.replace("KAFKA_", "KAFKA_CFG_", 1): value for name, value in KRAFT.items()}
    image = f"bitnami/kafka:{tag}"
    assert reported(image, env) == []
    refusals = reported(image, env | {"KAFKA_CFG_NODE_ID": None, name: "1"})
    expected = ("KL014", f"does not set KAFKA_CFG_NODE_ID, and {image} refuses to start")
    assert refusals == ([expected] if asked else [])


OF_BITNAMI = {name.replace("KAFKA_", "KAFKA_CFG_", 1): value for name, value in KRAFT.items()}
NAMES, VOTERS = "controller.listener.names", "controller.quorum.voters"
SERVERS = "controller.quorum.bootstrap.servers"


@pytest.mark.parametrize(("image", "missing", "observed"), [
    # as https://github.com/newrelic/newrelic-ruby-agent/issues/3092 and
    # https://github.com/bitnami/containers/issues/80579 have it
    *((f"{name}/kafka{tag}", variable, observed)
      for name, tag in (("bitnami", ""), ("bitnami", ":4.0"), ("bitnamilegacy", ":4.0.0-r1"))
      for variable, observed in (
        ("PROCESS_ROLES", "does not set KAFKA_CFG_PROCESS_ROLES, and {} refuses to start"),
        ("CONTROLLER_LISTENER_NAMES", f"{NAMES}: is not set; Kafka does not start"),
    )),
    ("bitnami/kafka:4.0", "CONTROLLER_QUORUM_VOTERS",
     f"{VOTERS}: is not set, nor is {SERVERS}; Kafka does not start"),
    # which have a default of controller.quorum.bootstrap.servers, or may have it
    ("bitnami/kafka:4.1", "CONTROLLER_QUORUM_VOTERS", None),
    ("bitnami/kafka", "CONTROLLER_QUORUM_VOTERS", None),
])  # fmt: skip
def test_what_bitnami_4_asks_for(image: str, missing: str, observed: str | None) -> None:
    env = {**OF_BITNAMI, f"KAFKA_CFG_{missing}": None}
    assert [text for _, text in reported(image, OF_BITNAMI)] == []
    refusals = [text for _, text in reported(image, env)]
    assert refusals == ([] if observed is None else [observed.format(image)])
    for path in ("/bitnami/kafka/config", "/opt/bitnami/kafka/config/server.properties"):
        assert reported(image, env, volumes=[f"./mine:{path}"]) == []


@pytest.mark.parametrize(
    ("tag", "more", "is_refused"),
    [
        ("3.9", {}, True),
        ("3.4", {"KAFKA_CFG_ZOOKEEPER_METADATA_MIGRATION_ENABLE": "no"}, True),
        ("3.9", {"KAFKA_CFG_ZOOKEEPER_METADATA_MIGRATION_ENABLE": "true"}, False),
        ("3.9", {"KAFKA_CFG_ZOOKEEPER_METADATA_MIGRATION_ENABLE": "${MIGRATES}"}, False),
        ("3.9", {"KAFKA_CFG_ZOOKEEPER_CONNECT": ""}, False),
        ("3.4.0", {"ALLOW_PLAINTEXT_LISTENER": "yes"}, False),
        ("4.0", {}, False),
    ],
)
def test_bitnami_3_refuses_zookeeper_beside_kraft(
    tag: str, more: dict[str, str], is_refused: bool
) -> None:
    image, name = f"bitnami/kafka:{tag}", "KAFKA_CFG_ZOOKEEPER_CONNECT"
    refusal = ("KL014", f"sets {name}, and {image} refuses to start")
    refusals = reported(image, {**OF_BITNAMI, name: "zookeeper:2181", **more})
    assert refusals == ([refusal] if is_refused else [])


LATER: dict[str, str | None] = {  # what it advertises is decided when it starts
    **KRAFT,
    "KAFKA_ADVERTISED_LISTENERS": None,
    "KAFKA_LISTENERS": "LAN://:9092,CONTROLLER://:9093",
    "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": "LAN:PLAINTEXT,CONTROLLER:PLAINTEXT,WAN:PLAINTEXT",
    "KAFKA_INTER_BROKER_LISTENER_NAME": "LAN",
}
EXPORTS = "sh -c 'export KAFKA_ADVERTISED_LISTENERS=LAN://$$(hostname):9092; /etc/kafka/docker/run'"
THREE = "LAN://:9092,OTHER://:9094,CONTROLLER://:9093"
UNMAPPED = (
    "listeners: OTHER has no protocol: listener.security.protocol.map has LAN, CONTROLLER, WAN; "
    "Kafka does not start"
)
UNBOUND = "inter.broker.listener.name: WAN is not advertised; Kafka does not start"


@pytest.mark.parametrize(
    "mode",
    [
        {},
        {"KAFKA_PROCESS_ROLES": None},  # it may be a controller only
        {name: None for name in KRAFT if "LISTENER" not in name} | ZOOKEEPER,
    ],
)
@pytest.mark.parametrize(
    ("image", "keys"),
    [
        ("apache/kafka:3.9.1", {"command": EXPORTS}),
        (CP7, {"env_file": "gone.env"}),
        ("example/kafka:1", {}),
    ],
)
@pytest.mark.parametrize(
    ("change", "observed"),
    [
        ({}, None),
        ({"LISTENERS": THREE}, UNMAPPED),
        ({"LISTENERS": THREE, "ADVERTISED_LISTENERS": "${ALL}"}, UNMAPPED),
        ({"LISTENERS": THREE, "LISTENER_SECURITY_PROTOCOL_MAP": "${MAP}"}, None),
        ({"LISTENERS": THREE, "LISTENER_SECURITY_PROTOCOL_MAP": None}, None),
        ({"INTER_BROKER_LISTENER_NAME": "WAN"}, UNBOUND),
        ({"INTER_BROKER_LISTENER_NAME": "WAN", "ADVERTISED_LISTENERS": "${ALL}"}, UNBOUND),
        ({"INTER_BROKER_LISTENER_NAME": "WAN", "LISTENERS": "${ALL}"}, None),
        ({"INTER_BROKER_LISTENER_NAME": "${NAME}"}, None),
        ({"INTER_BROKER_LISTENER_NAME": None}, None),
    ],
)
def test_listeners_are_compared_although_the_advertised_ones_are_not_known(
    image: str,
    keys: dict[str, object],
    mode: dict[str, str | None],
    change: dict[str, str | None],
    observed: str | None,
) -> None:
    changed = {f"KAFKA_{name}": value for name, value in change.items()}
    env = {**LATER, **mode, "KAFKA_ADVERTISED_LISTENERS": None, **changed}
    of_brokers = observed == UNBOUND
    is_open = of_brokers and not {"KAFKA_PROCESS_ROLES", "KAFKA_ZOOKEEPER_CONNECT"} & {
        name for name, value in env.items() if value
    }
    expected = [("KL002", observed)] if observed and not is_open else []
    assert reported(image, env, **keys) == expected


@pytest.mark.parametrize(
    ("protocol", "is_refused"), [("SSL", True), ("PLAINTEXT", False), ("${PROTOCOL}", False)]
)
@pytest.mark.parametrize("variable", ["CUSTOM_INIT_SCRIPT", "OTHER"])
def test_a_protocol_between_brokers_excludes_a_name_that_is_not_in_sight(
    protocol: str, is_refused: bool, variable: str
) -> None:
    env = ZOOKEEPER | {
        "KAFKA_LISTENERS": "PLAINTEXT://:9092,SASL_SSL://:9093",
        "KAFKA_ADVERTISED_LISTENERS": "PLAINTEXT://kafka:9092,SASL_SSL://kafka:9093",
        "KAFKA_SECURITY_INTER_BROKER_PROTOCOL": protocol,
        "KAFKA_OPTS": "-Djava.security.auth.login.config=/jaas.conf",
        variable: "echo prepared",
    }
    observed = "security.inter.broker.protocol: SSL is not advertised; Kafka does not start"
    refusals = reported("wurstmeister/kafka:2.13-2.8.1", env)
    assert [finding for finding in refusals if finding[1] == observed] == (
        [("KL002", observed)] if is_refused else []
    )


def test_two_ranges_of_all_ports_are_checked_in_time() -> None:
    every = {"image": "example/app", "ports": ["1-65535:1-65535"]}
    assert mistakes(services(yaml.safe_dump({"services": {"a": every, "b": every}}))) == ()


def test_two_listeners_that_are_derived_on_one_port() -> None:
    env = ZOOKEEPER | {
        "KAFKA_ADVERTISED_LISTENERS": "INNER://kafka:9092,OUTER://localhost:9092",
        "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": "INNER:PLAINTEXT,OUTER:PLAINTEXT",
        "KAFKA_INTER_BROKER_LISTENER_NAME": "INNER",
    }
    (finding,) = findings_of(CP7, env)
    assert (finding.rule, finding.listener, finding.observed, finding.expected, finding.remedy) == (
        "KL002",
        "OUTER",
        (
            "listeners: port 9092 is bound by INNER://0.0.0.0:9092 and OUTER://0.0.0.0:9092; "
            "Kafka does not start"
        ),
        "a port of its own for each listener, or exactly one IPv4 and one IPv6 address on it",
        "move OUTER to another port",
    )
    apart = "INNER://kafka:9092,OUTER://localhost:29092"
    assert reported(CP7, env | {"KAFKA_ADVERTISED_LISTENERS": apart}) == []
    bound = {"KAFKA_LISTENERS": "INNER://:9092,OUTER://:9093"}
    assert reported(CP7, env | bound, ports=["9092:9093"]) == []


@pytest.mark.parametrize(
    ("image", "host", "refused"),
    [
        ("apache/kafka:3.9.0", "0.0.0.0", True),
        ("confluentinc/cp-kafka:7.9.0", "0.0.0.0", True),
        ("apache/kafka:3.9.0", "", False),
        ("apache/kafka:3.9.1", "0.0.0.0", False),
        ("apache/kafka:3.9", "0.0.0.0", False),
    ],
)
def test_kafka_3_9_0_refuses_a_controller_on_every_interface(
    image: str, host: str, refused: bool
) -> None:
    """KAFKA-18281; `kafka-storage` of 3.9.0 refuses it as well."""
    listeners = {"KAFKA_LISTENERS": f"PLAINTEXT://:9092,CONTROLLER://{host}:9093"}
    findings = findings_of(image, KRAFT | listeners)
    fix = "write CONTROLLER://:9093 into listeners, or use a release after 3.9.0"
    assert [finding.remedy for finding in findings] == ([fix] if refused else [])


@pytest.mark.parametrize(("change", "observed"), [
    ({"KAFKA_LISTENERS": "PLAINTEXT://:9092,CONTROLLER//:9093"},
     "listeners: listener entry 'CONTROLLER//:9093' has no ://"),
    ({"KAFKA_ADVERTISED_LISTENERS": "PLAINTEXT://kafka"},
     "advertised.listeners: listener entry 'PLAINTEXT://kafka' has no port number at its end"),
    ({"KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": "PLAINTEXT:TLS,CONTROLLER:PLAINTEXT"},
     ("listener.security.protocol.map: protocol map entry 'PLAINTEXT:TLS' names the "
      "protocol 'TLS'")),
    ({"KAFKA_CONTROLLER_QUORUM_VOTERS": "kafka:9093"},
     "controller.quorum.voters: voter entry 'kafka:9093' has no @"),
    ({"KAFKA_ADVERTISED_LISTENERS": "PLAINTEXT://0.0.0.0:9092"},
     "advertised.listeners: PLAINTEXT advertises 0.0.0.0:9092; Kafka does not start"),
    ({"KAFKA_ADVERTISED_LISTENERS": "OUTER://kafka:9092"},
     ("advertised.listeners: OUTER has no protocol: listener.security.protocol.map has "
      "PLAINTEXT, CONTROLLER; Kafka does not start")),
])  # fmt: skip
def test_what_kafka_refuses(change: dict[str, str], observed: str) -> None:
    assert reported(APACHE, KRAFT | change) == [("KL002", observed)]


def test_of_a_broker_that_does_not_start_nothing_more_is_said() -> None:
    ui = "\n  ui: {image: ui, environment: {BOOTSTRAP_SERVERS: 'kafka:9092'}}\n"
    wrong = compose(CP8, ZOOKEEPER | {"KAFKA_ADVERTISED_LISTENERS": "PLAINTEXT://localhost:9092"})
    assert [finding.rule for finding in mistakes(services(wrong + ui))] == ["KL014"]
    starts = wrong.replace(CP8, CP7)
    assert [finding.rule for finding in mistakes(services(starts + ui))] == ["KL015"]


# what passes validation, and stops Kafka a step later; `tests/judge` asks for that step too
STOPPED_LATER = [
    {"controller.quorum.voters": "9@0.0.0.0:9093"},
    {"process.roles": "broker", "controller.listener.names": "controller"},
]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    "vector", VECTORS, ids=[f"{index}-{vector.name}" for index, vector in enumerate(VECTORS)]
)
def test_what_kafka_takes_is_not_refused(vector: Vector, version: str) -> None:
    release = tuple(map(int, version.split(".")[:2]))
    assert len(release) == 2
    findings = startup_refusals(BrokerSettings(vector.values, True, (release[0], release[1])))
    takes = vector.kafka[VERSIONS.index(version)] == "."
    if takes and not any(values.items() <= vector.values.items() for values in STOPPED_LATER):
        assert findings == ()


names = st.from_regex(r"[a-z][a-z0-9]{0,8}", fullmatch=True).filter(lambda it: it != "localhost")
ports = st.integers(1025, 65_535)


@st.composite
def sound(draw: st.DrawFn) -> str:
    """A cluster that tells containers its services' names, and the machine its published ports."""
    brokers = draw(st.lists(names, min_size=1, max_size=4, unique=True))
    published = draw(st.lists(ports, min_size=4, max_size=4, unique=True))
    inner, outer, control = draw(st.lists(ports, min_size=3, max_size=3, unique=True))
    voters = ",".join(f"{id}@{name}:{control}" for id, name in enumerate(brokers, 1))
    services_by_name: dict[str, object] = {}
    for id, (name, port) in enumerate(zip(brokers, published, strict=False), 1):
        services_by_name[name] = {
            "image": draw(st.sampled_from([APACHE, CP7, CP8, "example/kafka"])),
            "ports": [f"{port}:{outer}"],
            "environment": KRAFT | {
                "KAFKA_NODE_ID": str(id),
                "KAFKA_LISTENERS": f"IN://:{inner},OUT://0.0.0.0:{outer},CONTROLLER://:{control}",
                "KAFKA_ADVERTISED_LISTENERS": f"IN://{name}:{inner},OUT://localhost:{port}",
                "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP":
                    "IN:PLAINTEXT,OUT:PLAINTEXT,CONTROLLER:PLAINTEXT",
                "KAFKA_INTER_BROKER_LISTENER_NAME": "IN",
                "KAFKA_CONTROLLER_QUORUM_VOTERS": voters,
            },
        }  # fmt: skip
    begins = draw(st.lists(st.sampled_from(brokers), min_size=1, unique=True))
    services_by_name["the-client"] = {
        "image": "example/app",
        "environment": {"BOOTSTRAP_SERVERS": ",".join(f"{name}:{inner}" for name in begins)},
    }
    services_by_name["on-the-machine"] = {
        "image": "example/app",
        "network_mode": "host",
        "environment": {"BOOTSTRAP_SERVERS": f"localhost:{published[0]}"},
    }
    return yaml.safe_dump({"services": services_by_name})


@settings(max_examples=25)
@given(sound())
def test_a_cluster_that_gives_each_client_its_own_address_has_no_mistake(text: str) -> None:
    assert mistakes(services(text)) == ()


@settings(max_examples=25)
@given(sound())
def test_a_client_that_begins_at_the_listener_for_the_machine_is_sent_astray(text: str) -> None:
    document = yaml.safe_load(text)
    brokers = [name for name in document["services"] if "-" not in name]
    settings = document["services"][brokers[0]]["environment"]["KAFKA_LISTENERS"]
    outer = re.search(r"OUT://0.0.0.0:(\d+)", settings)
    assert outer is not None
    env = document["services"]["the-client"]["environment"]
    env["BOOTSTRAP_SERVERS"] = f"{brokers[0]}:{outer[1]}"
    findings = mistakes(services(yaml.safe_dump(document)))
    assert [(finding.rule, finding.container, finding.listener) for finding in findings] == [
        ("KL015", name, "OUT") for name in sorted(brokers)
    ]


values = st.text(max_size=12) | st.sampled_from(
    ["A://:1", "A://h:1,B://localhost:2", "broker,controller", "${X}", "1", "1@a:1", "9" * 5000,
     "A:PLAINTEXT,B:SSL", "A", "z:2181", "localhost:9092", "a:1,b:1"]
)  # fmt: skip
variables = st.sampled_from(
    [*KRAFT, *ZOOKEEPER, "KAFKA_CFG_NODE_ID", "KAFKA_INTER_BROKER_LISTENER_NAME", "KAFKA_BROKERS",
     "KAFKA_BROKER_ID", "KAFKA_PORT", "BOOTSTRAP_SERVERS", "KAFKA_ADVERTISED_HOST_NAME"]
)  # fmt: skip
any_service = st.fixed_dictionaries(
    {"environment": st.dictionaries(variables, values)},
    optional={
        "image": st.sampled_from([CP7, CP8, APACHE, "bitnami/kafka", "wurstmeister/kafka", "x/y"]),
        "ports": st.lists(st.sampled_from(["9092", "9092:9092", "1:1", "9-8:1", "${X}"])),
        "network_mode": st.sampled_from(["host", "none", "bridge", "service:a", "service:z", "n"]),
        "hostname": st.sampled_from(["a", "h", "${X}", "a.b"]),
        "command": values,
        "profiles": st.lists(st.sampled_from("xy")),
        "extra_hosts": st.lists(st.sampled_from(["h:127.0.0.1", "h", "a:host-gateway", ":"])),
        "networks": st.lists(st.sampled_from(["n", "m"]), unique=True),
    },
)


@settings(max_examples=80)
@given(st.dictionaries(st.sampled_from("abcd"), any_service, min_size=1))
def test_any_services_are_checked_or_refused_in_one_clear_error(
    services_by_name: dict[str, dict[str, object]],
) -> None:
    try:
        findings = mistakes(services(yaml.safe_dump({"services": services_by_name})))
    except EarshotError as error:
        assert str(error)
        return
    for finding in findings:
        assert finding.container in services_by_name
        assert finding.observed and finding.expected and finding.remedy

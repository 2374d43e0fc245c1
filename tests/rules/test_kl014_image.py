"""What the start scripts of images refuse."""

import pytest

from earshot.facts.settings import BrokerSettings
from earshot.listeners.image_demands import STORAGE_TOOL
from earshot.listeners.images import release_of
from earshot.rules.kl014_image import _wurstmeister, changed, refusals
from earshot.topology.container import Container

IMAGE = "wurstmeister/kafka:2.13-2.8.1"
NONE = f"sets no listeners, and {IMAGE} refuses to start"
ADVERTISED = f"sets KAFKA_ADVERTISED_LISTENERS alone, and {IMAGE} refuses to start"


@pytest.mark.parametrize(
    ("env", "observed"),
    [
        ({}, [NONE]),
        ({"HOSTNAME_COMMAND": "hostname"}, []),
        ({"KAFKA_ADVERTISED_LISTENERS": "A://h:1"}, [ADVERTISED]),
        ({"KAFKA_ADVERTISED_LISTENERS": "A://h:1", "HOSTNAME_COMMAND": "hostname"}, [ADVERTISED]),
        ({"KAFKA_ADVERTISED_LISTENERS": "A://h:1", "KAFKA_LISTENERS": "A://:1"}, []),
        ({"KAFKA_ADVERTISED_HOST_NAME": "h"}, []),
    ],
)
def test_wurstmeister_needs_listeners_or_a_name(env: dict[str, str], observed: list[str]) -> None:
    container = Container("kafka", IMAGE, env=env)
    assert [found.observed for found in _wurstmeister(container)] == observed


CP6 = "confluentinc/cp-kafka:7.6.1"
BITNAMI6 = "bitnami/kafka:3.6"
INITIAL = "KAFKA_INITIAL_CONTROLLERS"
UUID = "550e8400-e29b-41d4-a716-446655440000"


def reported(image: str, env: dict[str, str], mounts: tuple[str, ...] = ()) -> list[str]:
    """What is said of a node of KRaft with these variables."""
    settings = BrokerSettings({"process.roles": "broker"}, False, release_of(image))
    container = Container("kafka", image, env=env, mounts=mounts)
    return [found.observed for found in refusals(container, settings, plain=True)]


@pytest.mark.parametrize(
    ("id", "is_taken"),
    [  # each as StorageTool of 3.5.2 and 3.6.2 answered; 3.7.2 to 4.4.0 took them all
        ("MkU3OEVBNTcwNTJENDM2Qk", True),
        ("-L6g3nShT-eMCtK--X86sw", True),
        ("AAAAAAAAAAAAAAAAAAAAAA", True),
        ("AAAAAAAAAAAAAAAAAAAAAP", True),
        ("ciWo7IWazngRchmPES6q5A==", True),
        ("my-cluster", False),
        ("1", False),
        (UUID, False),
        (UUID.replace("-", ""), False),
        ("abcdefghijklmnopqrstu", False),
        ("abcdefghijklmnopqrstuv=", False),
        ("abcdefghijklmnopqrstuvw", False),
        ("abcdefghijklmnopqrst+/", False),
        ("abcdefghijklmnopqrst==", False),
        ("MkU3OEVBNTcwNTJENDM2Qk ", False),
        ('"MkU3OEVBNTcwNTJENDM2Qk"', False),
    ],
)
def test_kafka_before_3_7_takes_only_a_uuid_as_cluster_id(id: str, is_taken: bool) -> None:
    refused = [f"sets CLUSTER_ID to {id!a}, and {CP6} refuses to start"]
    assert reported(CP6, {"CLUSTER_ID": id}) == ([] if is_taken else refused)
    assert reported("confluentinc/cp-kafka:7.7.0", {"CLUSTER_ID": id}) == []
    assert reported("apache/kafka:3.7.0", {"CLUSTER_ID": id}) == []


@pytest.mark.parametrize(
    ("image", "env", "mounts"),
    [
        (CP6, {"CLUSTER_ID": "${CLUSTER_ID}"}, ()),
        (CP6, {"CLUSTER_ID": "{{ id }}"}, ()),
        (CP6, {"CLUSTER_ID": "my-cluster"}, ("/etc/confluent/docker/ensure",)),
        ("confluentinc/cp-kafka:7.3.3", {"CLUSTER_ID": "my-cluster"}, ()),  # has it not formatted
        ("confluentinc/cp-kafka:latest", {"CLUSTER_ID": "my-cluster"}, ()),
        (BITNAMI6, {"KAFKA_CLUSTER_ID": "my-cluster"}, ()),  # read from 4.0 on
        (BITNAMI6, {"KAFKA_KRAFT_CLUSTER_ID": ""}, ()),
        (BITNAMI6, {"KAFKA_KRAFT_CLUSTER_ID": "a", "KAFKA_KRAFT_CLUSTER_ID_FILE": "/id"}, ()),
        (BITNAMI6, {"KAFKA_KRAFT_CLUSTER_ID": "a", "KAFKA_SKIP_KRAFT_STORAGE_INIT": "yes"}, ()),
        ("bitnami/kafka:3.7", {"KAFKA_KRAFT_CLUSTER_ID": "my-cluster"}, ()),
    ],
)
def test_a_cluster_id_that_kafka_does_not_get_is_not_refused(
    image: str, env: dict[str, str], mounts: tuple[str, ...]
) -> None:
    given = {"KAFKA_CFG_NODE_ID": "1", "KAFKA_ADVERTISED_LISTENERS": "A://kafka:1"}
    assert reported(image, given | env, mounts) == []


@pytest.mark.parametrize(
    ("image", "roles", "servers", "env", "is_refused"),
    [
        ("bitnami/kafka:4.3.0", "broker,controller", "kafka:9093", {}, True),
        ("bitnamilegacy/kafka:4.3", "controller", "a:9093,b:9093", {}, True),
        ("bitnami/kafka:4.3.0", "broker", "kafka:9093", {}, False),
        ("bitnami/kafka:4.3.0", "controller", "localhost:9093", {}, False),
        ("bitnami/kafka:4.3.0", "controller", "", {}, False),
        ("bitnami/kafka:4.0.0", "controller", "kafka:9093", {}, False),
        ("bitnami/kafka:4.3.0", "controller", "kafka:9093", {INITIAL: "1@kafka:9093:x"}, False),
        ("bitnami/kafka:4.3.0", "controller", "kafka:9093", {f"{INITIAL}_COMMAND": "x"}, False),
    ],
)
def test_bitnami_s_controllers_at_other_servers_need_the_first_controllers(
    image: str, roles: str, servers: str, env: dict[str, str], is_refused: bool
) -> None:
    values = {"process.roles": roles, "controller.quorum.bootstrap.servers": servers}
    settings = BrokerSettings(values, True, release_of(image))
    given = {"KAFKA_CFG_NODE_ID": "1", **env}
    found = [*refusals(Container("kafka", image, env=given), settings, plain=True)]
    assert [finding.observed for finding in found] == [
        f"does not set {INITIAL}, and {image} refuses to start"
    ] * is_refused


def test_a_refused_cluster_id_is_told_with_its_remedy() -> None:
    env = {"KAFKA_CFG_NODE_ID": "1", "KAFKA_KRAFT_CLUSTER_ID": UUID}
    settings = BrokerSettings({"process.roles": "controller"}, False, (3, 6))
    container = Container("kafka", BITNAMI6, env=env)
    (finding,) = refusals(container, settings, plain=True)
    assert finding.line == (
        f"cluster: sets KAFKA_KRAFT_CLUSTER_ID to '{UUID}', and {BITNAMI6} refuses to start - "
        "expected a UUID as 22 characters of URL-safe base64; from Kafka 3.7 on, any text - set "
        "KAFKA_KRAFT_CLUSTER_ID to what `kafka-storage random-uuid` prints, on all nodes the same "
        f"[KL014] {STORAGE_TOOL}"
    )
    assert [*refusals(container, settings, plain=False)] == []


@pytest.mark.parametrize(("image", "observed"), [
    ("apache/kafka:4.1.1",
     ["apache/kafka:4.1.1 is Kafka 4, which has no ZooKeeper, and zookeeper.connect is set"]),
    ("example/kafka:1", []),  # its script is not known; what its Kafka refuses is KL002's
])  # fmt: skip
def test_of_an_image_that_is_not_known_no_script_refuses(image: str, observed: list[str]) -> None:
    container = Container("kafka", image)
    settings = BrokerSettings({"zookeeper.connect": "z:2181"}, True, (4, 1))
    findings = refusals(container, settings, plain=False)
    assert [finding.observed for finding in findings] == observed


def test_wurstmeister_s_script_formats_no_storage() -> None:
    env = {"CLUSTER_ID": "mine", "KAFKA_LISTENERS": "A://:1"}
    settings = BrokerSettings({"process.roles": "broker"}, False, (2, 8))
    assert [*refusals(Container("kafka", IMAGE, env=env), settings, plain=True)] == []


@pytest.mark.parametrize(
    ("value", "is_changed"),
    [
        ("C:\\kafka", True),
        ("A://:1,\nB://:2", True),
        ("A://:1\n", False),  # as YAML ends a text over several lines
        ('user=\\"a\\"', False),
        ("first \\\n second", False),  # the properties reader joins them
        ("C:\\\\kafka", False),
    ],
)
def test_values_that_kafka_reads_otherwise_are_named(value: str, is_changed: bool) -> None:
    env = {"KAFKA_LOG_DIRS": value, "OTHER": "a\nb"}
    found = [*changed(Container("kafka", "apache/kafka:4.1.1", env=env))]
    assert [finding.inputs for finding in found] == [("KAFKA_LOG_DIRS",)] * is_changed
    assert [*changed(Container("kafka", "example/kafka:1", env=env))] == []

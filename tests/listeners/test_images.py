import pytest

from earshot.listeners.images import (
    Family,
    broker_property,
    broker_settings,
    derived_listeners,
    family_by_settings,
    family_of,
    is_broker,
    is_unnamed,
    patch_of,
    release_of,
    repository_of,
    tag_of,
    variable_of,
)


@pytest.mark.parametrize(
    ("image", "family"),
    [
        ("apache/kafka:4.1.1", Family.APACHE),
        ("docker.io/apache/kafka-native@sha256:0123", Family.APACHE),
        ("localhost:5000/apache/kafka", Family.APACHE),
        ("apache/kafka-raft", Family.UNKNOWN),
        ("apache/kafkas", Family.UNKNOWN),
        ("confluentinc/cp-enterprise-kafka:5.2.1", Family.CONFLUENT),
        ("confluentinc/cp-server", Family.CONFLUENT),
        ("confluentinc/confluent-local", Family.CONFLUENT),
        ("registry.example.com:5000/mirror/cp-kafka:8.0.0", Family.CONFLUENT),
        ("confluentinc/cp-kafkacat", Family.UNKNOWN),
        ("confluentinc/cp-kafka-connect", Family.UNKNOWN),
        ("bitnami/kafka", Family.BITNAMI),
        ("bitnamisecure/kafka", Family.BITNAMI),
        ("bitnamilegacy/kafka", Family.BITNAMI),
        ("wurstmeister/kafka:2.13", Family.WURSTMEISTER),
        ("ours/kafka:1", Family.UNKNOWN),
        ("", Family.UNKNOWN),
    ],
)
def test_the_repository_of_an_image_decides_its_family(image: str, family: Family) -> None:
    assert family_of(image) is family


@pytest.mark.parametrize(
    ("image", "repository", "tag"),
    [
        ("a/b:1.2", "a/b", "1.2"),
        ("h:5000/a/b", "h:5000/a/b", ""),
        ("a/b", "a/b", ""),
        ("a", "a", ""),
        ("a:1", "a", "1"),
        ("", "", ""),
        ("a@sha256:00", "a", ""),
        ("h:5000/a/b:t@sha256:00", "h:5000/a/b", "t"),
    ],
)
def test_references(image: str, repository: str, tag: str) -> None:
    assert (repository_of(image), tag_of(image)) == (repository, tag)


@pytest.mark.parametrize(
    ("image", "name", "key"),
    [
        (Family.APACHE, "KAFKA_LOG_DIRS", "log.dirs"),
        (Family.CONFLUENT, "KAFKA_A__B___C", "a_b-c"),
        (Family.WURSTMEISTER, "KAFKA_A__B", "a..b"),
        (Family.BITNAMI, "KAFKA_CFG_LISTENER_NAME_SASL_SSL_X", "listener.name.sasl_ssl.x"),
        (Family.BITNAMI, "KAFKA_LISTENERS", "listeners"),
        (Family.BITNAMI, "KAFKA_NODE_ID", "node.id"),
        (Family.BITNAMI, "KAFKA_CONTROLLER_LISTENER_NAMES", ""),
        (Family.APACHE, "KAFKA_LISTENER_NAME_KAFKA_SSL", "listener.name.kafka.ssl"),
        (Family.APACHE, "KAFKA_HEAP_OPTS", ""),
        (Family.APACHE, "CLUSTER_ID", ""),
        # apache/kafka as its KafkaDockerWrapper of 3.7.2, 3.9.2, 4.0.2 and 4.4.0 answered
        ("apache/kafka:3.7.2", "KAFKA_LISTENER_NAME_KAFKA_SSL", "listener.name.ssl"),
        ("apache/kafka:3.9.2", "KAFKA_LISTENER_NAME_MYKAFKA_SSL", "listener.name.myssl"),
        ("apache/kafka:3", "KAFKA_KAFKA_X", "x"),
        ("apache/kafka-native:3.8.0@sha256:0", "KAFKA_LISTENER_NAME_KAFKA__X", "listener.name_x"),
        ("apache/kafka:4.0.2", "KAFKA_KAFKA_X", "kafka.x"),
        ("apache/kafka:30", "KAFKA_KAFKA_X", "kafka.x"),
        ("apache/kafka", "KAFKA_KAFKA_X", "kafka.x"),
        ("confluentinc/cp-kafka:3.9.2", "KAFKA_KAFKA_X", "kafka.x"),
        ("bitnami/kafka:3.4.0-debian-11-r0", "KAFKA_NODE_ID", ""),
        ("bitnami/kafka:3.4.0", "KAFKA_PROCESS_ROLES", ""),
        ("bitnami/kafka:3.4.1", "KAFKA_PROCESS_ROLES", "process.roles"),
        ("bitnami/kafka:4.0", "KAFKA_CONTROLLER_QUORUM_VOTERS", "controller.quorum.voters"),
    ],
)
def test_each_image_and_release_maps_variables_in_its_own_way(
    image: Family | str, name: str, key: str
) -> None:
    arguments = (image, name) if isinstance(image, Family) else (family_of(image), name, image)
    assert broker_property(*arguments) == key


def test_notes_stand_in_variables_that_no_image_maps() -> None:
    settings = broker_settings(Family.APACHE, {"EARSHOT_SCOPES": "A:host", "KAFKA_NODE_ID": "1"})
    assert (dict(settings.values), dict(settings.notes)) == ({"node.id": "1"}, {"scopes": "A:host"})
    assert variable_of(Family.BITNAMI, "node.id") == "KAFKA_CFG_NODE_ID"


def test_the_image_keeps_names_and_ports_when_it_derives() -> None:
    assert derived_listeners("A://h:1,B://localhost:2") == "A://0.0.0.0:1,B://0.0.0.0:2"


@pytest.mark.parametrize(("image", "env", "command", "broker"), [
    ("apache/kafka", {}, (), True),
    ("apache/kafka:4.1.1", {}, (), True),
    ("apache/kafka:4.1.1", {}, ("kafka-topics.sh",), False),
    ("apache/kafka", {}, ("kafka-topics",), False),
    ("apache/kafka", {"KAFKA_NODE_ID": "1"}, ("kafka-topics",), True),
    ("ours/kafka", {}, (), False),
    ("ours/kafka", {"KAFKA_LISTENERS": "A://:1"}, ("start",), True),
    ("ours/kafka", {"KAFKA_CFG_NODE_ID": "1"}, (), True),
    ("ours/kafka", {"KAFKA_CFG_X": "1"}, ("x",), True),
    ("ours/kafka", {"KAFKA_X": "1"}, (), False),
    *(("ours/kafka", {name: "1"}, (), True) for name in (
        "KAFKA_LISTENERS", "KAFKA_ADVERTISED_LISTENERS", "KAFKA_PROCESS_ROLES", "KAFKA_BROKER_ID",
        "KAFKA_NODE_ID", "KAFKA_ZOOKEEPER_CONNECT", "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP",
        "KAFKA_ADVERTISED_HOST_NAME", "KAFKA_CONTROLLER_QUORUM_VOTERS",
    )),
    ("ours/ui", {"KAFKA_BOOTSTRAP_SERVERS": "a:1"}, (), False),
    ("postgres", {}, (), False),
])  # fmt: skip
def test_brokers_are_told_from_clients(
    image: str, env: dict[str, str], command: tuple[str, ...], broker: bool
) -> None:
    assert is_broker(image, env, command) is broker


ID = "sha256:" + "0123456789abcdef" * 4


@pytest.mark.parametrize(
    ("image", "env", "family"),
    [
        (ID, {"KAFKA_NODE_ID": "1"}, Family.UNKNOWN),
        (ID, {"KAFKA_CFG_NODE_ID": "1"}, Family.BITNAMI),
        ("ours/kafka:1", {"KAFKA_CFG_NODE_ID": "1"}, Family.BITNAMI),
        ("apache/kafka:4.1.1", {"KAFKA_CFG_NODE_ID": "1"}, Family.APACHE),
    ],
)
def test_a_family_is_told_by_its_name_before_its_variables(
    image: str, env: dict[str, str], family: Family
) -> None:
    assert family_by_settings(image, env) is family


@pytest.mark.parametrize(
    ("image", "unnamed"),
    [
        ("", True),
        (ID, True),
        (ID.removeprefix("sha256:"), True),
        ("0123456789ab", True),
        ("kafka", False),
        (f"apache/kafka@{ID}", False),
    ],
)
def test_an_id_is_no_name(image: str, unnamed: bool) -> None:
    assert is_unnamed(image) is unnamed


@pytest.mark.parametrize(
    ("image", "release", "patch"),
    [
        ("apache/kafka:3.7.0", (3, 7), 0),
        ("apache/kafka:3.9", (3, 9), None),
        ("apache/kafka-native:3.9.2", (3, 9), 2),
        ("apache/kafka:latest", None, None),
        ("bitnami/kafka:4.0", (4, 0), None),
        ("bitnami/kafka:3.9.1-debian-12-r0", (3, 9), 1),
        ("confluentinc/cp-kafka:8.1.0", (4, 1), 0),
        ("confluentinc/cp-kafka:8.1", (4, 1), None),
        ("confluentinc/cp-kafka:7.9.0", (3, 9), 0),
        ("confluentinc/cp-kafka:7.9.2", (3, 9), None),
        ("confluentinc/cp-kafka:7.9.2-1-ubi8", (3, 9), None),
        ("confluentinc/cp-kafka:7.0.1", (3, 0), None),
        ("confluentinc/cp-kafka:6.2.0", (2, 2), 0),
        ("confluentinc/cp-enterprise-kafka:5.2.1", (2, 2), None),
        ("wurstmeister/kafka:2.13-2.8.1", (2, 8), None),
        ("wurstmeister/kafka:2.13-2.7.0", (2, 8), None),
        ("wurstmeister/kafka", (2, 8), None),
        ("ours/kafka:4.1", None, None),
        ("ours/kafka:3.9.0", None, None),
        (ID, None, None),
    ],
)
def test_a_tag_may_tell_release_and_patch_of_kafka(
    image: str, release: tuple[int, int] | None, patch: int | None
) -> None:
    assert (release_of(image), patch_of(image)) == (release, patch)

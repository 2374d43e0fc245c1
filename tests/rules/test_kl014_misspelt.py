"""Variables that are nearly called like one for listeners."""

import pytest

from earshot.rules.kl014_image import RULE
from earshot.rules.kl014_misspelt import misspelt_variables
from earshot.topology.container import Container

CP = "confluentinc/cp-kafka:7.5.0"


def reported(image: str, *names: str) -> list[tuple[str, str]]:
    """Of each such variable its name, and the one that was meant."""
    found = misspelt_variables(Container("kafka", image, env=dict.fromkeys(names, "x")))
    return [(item.name, item.intended) for item in found]


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("KAFKA_ADVERTISED_LISTNERS", "KAFKA_ADVERTISED_LISTENERS"),
        ("KAFKA_ADVERTISED_LISTENER", "KAFKA_ADVERTISED_LISTENERS"),
        ("KAFKA_LISTNERS", "KAFKA_LISTENERS"),
        ("KAFKA_LISTENER_SECURITY_PROTOCOL", "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP"),
        ("KAFKA_SECURITY_INTER_BROKER_LISTENER_NAME", "KAFKA_INTER_BROKER_LISTENER_NAME"),
        ("KAFKA_CONTROLLER_LISTENER_NAME", "KAFKA_CONTROLLER_LISTENER_NAMES"),
        ("KAFKA_CONTROLLER_QUORUM_VOTER", "KAFKA_CONTROLLER_QUORUM_VOTERS"),
        ("KAFKA_PROCESS_ROLE", "KAFKA_PROCESS_ROLES"),
        ("KAFKA_BROKERID", "KAFKA_BROKER_ID"),
        ("KAFKA_ZOOKEPER_CONNECT", "KAFKA_ZOOKEEPER_CONNECT"),
    ],
)
def test_a_name_that_is_near_to_one_is_named_with_it(name: str, wanted: str) -> None:
    assert reported(CP, name) == reported("apache/kafka:3.9.1", name) == [(name, wanted)]
    assert reported("bitnami/kafka:3.6", name.replace("KAFKA_", "KAFKA_CFG_", 1)) == [
        (name.replace("KAFKA_", "KAFKA_CFG_", 1), wanted.replace("KAFKA_", "KAFKA_CFG_", 1))
    ]


@pytest.mark.parametrize(
    "name",
    [
        "KAFKA_LISTENERS",
        "KAFKA_CONTROL_PLANE_LISTENER_NAME",  # a property of its own until Kafka 4
        "KAFKA_REST_ZOOKEEPER_CONNECT",  # of Confluent's REST proxy
        "KAFKA_ADVERTISED_HOST_NAME",
        "KAFKA_INTER_BROKER_PROTOCOL_VERSION",
        "KAFKA_SASL_MECHANISM_INTER_BROKER_PROTOCOL",
        "KAFKA_LISTENER_NAME_INTERNAL_SSL_KEYSTORE_LOCATION",
        "KAFKA_BROKER_RACK",
        "KAFKA_HEAP_OPTS",
        "LISTNERS",
        "CLUSTER_ID",
    ],
)
def test_others_are_none_of_its_business(name: str) -> None:
    assert reported(CP, name) == []


def test_beside_the_right_one_it_is_left_over_from_something() -> None:
    assert reported(CP, "KAFKA_LISTNERS", "KAFKA_LISTENERS") == []


def test_an_image_that_is_not_known_may_have_variables_of_its_own() -> None:
    assert reported("example/kafka:1", "KAFKA_LISTNERS") == []


def test_the_prefix_of_bitnami_counts_in_its_image_alone() -> None:
    own, others = "KAFKA_CFG_LISTENERS", "KAFKA_CONTROLLER_LISTENER_NAMES"
    assert reported("apache/kafka:4.1.1", own) == [(own, "KAFKA_LISTENERS")]
    assert reported("bitnami/kafka:4.0", own) == []
    wanted = "KAFKA_CFG_CONTROLLER_LISTENER_NAMES"
    assert reported("bitnami/kafka:3.9", others) == [(others, wanted)]
    assert reported("bitnami/kafka:3.9", others, wanted) == []
    assert reported("apache/kafka:4.1.1", "KAFKA_CFG_NUM_PARTITIONS") == []


@pytest.mark.parametrize(
    ("observed", "input", "is_cause"),
    [
        ("no addresses", "advertised.listeners", True),
        ("KAFKA_ADVERTISED_LISTENERS is not set", "image", True),
        ("no addresses", "listeners", False),
    ],
)
def test_it_is_the_cause_of_what_the_right_one_lacks(
    observed: str, input: str, is_cause: bool
) -> None:
    env = {"KAFKA_ADVERTISED_LISTNERS": "x"}
    (misspelt,) = misspelt_variables(Container("kafka", CP, env=env))
    assert misspelt.is_cause_of(RULE.finding(observed, "", inputs=(input,))) is is_cause

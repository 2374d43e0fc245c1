"""Properties that others wrote, for a Kafka that nobody names."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from earshot.checks.lone_settings import is_of_broker, mistakes_in_properties
from earshot.rules.registry import Finding

ZOOKEEPER = "zookeeper.connect=zookeeper:2181\n"
KRAFT = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@localhost:9093
listeners=PLAINTEXT://:9092,CONTROLLER://:9093
controller.listener.names=CONTROLLER
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (KRAFT, True),
        (ZOOKEEPER, True),
        ("broker.id=1", True),
        ("node.id : 1", True),
        ("advertised.listeners=A://k:1", True),
        ("listeners=A://:1", False),  # other servers have listeners too
        ("", False),
        ("#process.roles=broker", False),
        ("node.id=1\nbootstrap.servers=kafka:9092", False),
        ("zookeeper.connect=z:2181\ngroup.id=g", False),
        ("listeners=http://:8081\nkafkastore.bootstrap.servers=kafka:9092", False),
        ("zookeeper.connect=z:2181\nproducer.bootstrap.servers=kafka:9092", False),
        ("zookeeper.connect=z:2181\nlisteners=http://0.0.0.0:8082", False),
        ("zookeeper.connect=z:2181\nlisteners=PLAINTEXT://0.0.0.0:9092", True),
    ],
)
def test_whose_properties_they_are(text: str, expected: bool) -> None:
    assert is_of_broker(text) is expected


@pytest.mark.parametrize(
    "text",
    [
        KRAFT,
        ZOOKEEPER,
        ZOOKEEPER + "listeners=PLAINTEXT://:9092\nadvertised.listeners=PLAINTEXT://kafka:9092\n",
        ZOOKEEPER + "listeners=A://${HOST}:9092,B://:9092\n",
        # a part of a file, or a template
        ZOOKEEPER + "advertised.listeners=A://kafka:9092\n",
        KRAFT + "advertised.listeners=PLAINTEXT://<your host>:9092\n",
        # an entry twice: every release before 4.3 refuses it, and that one does not
        KRAFT.replace("://:9092,", "://:9092,PLAINTEXT://:9092,"),
    ],
)
def test_what_kafka_takes(text: str) -> None:
    assert mistakes_in_properties(text) == ()


MAPPED = "listener.security.protocol.map=A:PLAINTEXT,B:PLAINTEXT\ninter.broker.listener.name=A\n"


@pytest.mark.parametrize(
    ("text", "observed", "expected", "remedy", "inputs"),
    [
        (
            ZOOKEEPER + "listeners=A://:9092\n",
            (
                "listeners: A has no protocol: listener.security.protocol.map is not set; "
                "Kafka does not start"
            ),
            "an entry in listener.security.protocol.map for every listener",
            "add A:PROTOCOL to listener.security.protocol.map",
            "listeners",
        ),
        (
            ZOOKEEPER + MAPPED + "listeners=A://:9092,B://:9092\n",
            "listeners: port 9092 is bound by A://:9092 and B://:9092; Kafka does not start",
            "a port of its own for each listener, or exactly one IPv4 and one IPv6 address on it",
            "move B to another port",
            "listeners",
        ),
        (
            ZOOKEEPER + "listeners=PLAINTEXT:9092\n",
            "listeners: listener entry 'PLAINTEXT:9092' cannot be read",
            "NAME://host:port entries with one comma between them",
            "change the setting as expected",
            "listeners",
        ),
        (
            KRAFT + "advertised.listeners=PLAINTEXT://0.0.0.0:9092\n",
            "advertised.listeners: PLAINTEXT advertises 0.0.0.0:9092; Kafka does not start",
            "an address that clients can connect to",
            "advertise the host that was provisioned for these clients",
            "advertised.listeners",
        ),
        (
            KRAFT.replace("voters=1@", "voters=2@"),
            "controller.quorum.voters: has 2 and not this controller, 1; Kafka does not start",
            "every controller of a static quorum",
            "change the setting as expected",
            "controller.quorum.voters",
        ),
        (
            KRAFT + "advertised.listeners=\n",
            "advertised.listeners: is empty; Kafka does not start",
            "at least one listener that is not in controller.listener.names",
            "change the setting as expected",
            "advertised.listeners",
        ),
        (
            KRAFT + "security.inter.broker.protocol=\n",
            "security.inter.broker.protocol: is ''; Kafka does not start",
            "one of PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL",
            "change the setting as expected",
            "security.inter.broker.protocol",
        ),
    ],
)
def test_what_kafka_refuses(
    text: str, observed: str, expected: str, remedy: str, inputs: str
) -> None:
    (found,) = mistakes_in_properties(text)
    assert (found.rule, found.observed, found.expected, found.remedy, found.inputs) == (
        "KL002",
        observed,
        expected,
        remedy,
        (inputs,),
    )


def test_kafka_stops_at_the_first() -> None:
    text = ZOOKEEPER + MAPPED + "listeners=A://:1,B://:1\nadvertised.listeners=A://0.0.0.0:1\n"
    assert len(mistakes_in_properties(text)) == 1


def test_port_0_stands_for_whichever_is_free() -> None:
    assert mistakes_in_properties(ZOOKEEPER + MAPPED + "listeners=A://:0,B://:0\n") == ()


@given(
    st.lists(
        st.sampled_from([*KRAFT.splitlines(), *MAPPED.splitlines(), ZOOKEEPER.strip()])
        | st.builds(
            "{}={}".format,
            st.sampled_from(["listeners", "advertised.listeners", "node.id", "process.roles",
                             "controller.quorum.voters", "listener.security.protocol.map"]),
            st.text(max_size=12) | st.text(alphabet="AB:/@,0129.", max_size=20),
        )
    ).map("\n".join)
    | st.text(max_size=60)
)  # fmt: skip
def test_any_text_is_checked(text: str) -> None:
    assert is_of_broker(text) in (True, False)
    assert all(isinstance(item, Finding) for item in mistakes_in_properties(text))


def test_a_file_that_java_does_not_load_is_one_mistake() -> None:
    found = mistakes_in_properties("log.dirs=C:\\users\\kafka\n" + KRAFT.replace("1@", ""))
    assert [(item.rule, item.observed, item.inputs) for item in found] == [
        (
            "KL002",
            "log.dirs: has a \\u without four hexadecimal digits; Java loads no such file",
            ("log.dirs",),
        )
    ]
    assert mistakes_in_properties("log.dirs=C:\\\\users\\u006bafka\n" + KRAFT) == ()

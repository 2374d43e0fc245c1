"""Whole files: what is understood, what is asked, what is seen; the texts are goldens on disk.

To write them anew after a change that is meant: EARSHOT_WRITE_GOLDENS=1 pytest tests/adopt
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
import yaml

from earshot.adopt.adoption import Adoption, adopt_compose, adopt_properties
from earshot.adopt.compose import read_compose
from earshot.adopt.report import as_json, as_text
from earshot.adopt.stack_file import stack_file
from earshot.errors import EarshotError
from earshot.listeners.model import Scope
from earshot.placement import plan_docker
from earshot.report.terminal import Terminal
from earshot.rules import Severity
from earshot.spec.docker import DockerSpec
from earshot.spec.document import read_spec

FILES = Path(__file__).parent / "files"
GOLDENS = Path(__file__).parent / "goldens"
SOURCES = (
    "two_listeners.yml",
    "three_listeners.yml",
    "kraft_remapped.yml",
    "three_brokers.yml",
    "separate_controllers.yml",
    "undecided.yml",
    "wurstmeister.yml",
    "aws.properties",
)
VARIABLES = {"OUTSIDE": "kafka.example.com"}


def adopt(name: str, *chosen: str, **scopes: tuple[Scope, ...]) -> Adoption:
    text = (FILES / name).read_text()
    if name.endswith(".properties"):
        return adopt_properties(text, name, scopes)
    return adopt_text(text, name, *chosen, **scopes)


def adopt_text(
    text: str, name: str = "c.yml", *chosen: str, **scopes: tuple[Scope, ...]
) -> Adoption:
    compose = read_compose(text, name, VARIABLES, lambda path: (FILES / path).read_text())
    return adopt_compose(compose, name, chosen, scopes)


def broker(listeners: str, advertised: str, ports: str = "[]", more: str = "") -> str:
    return f"""
services:
  kafka:
    image: apache/kafka:4.1.1
    ports: {ports}
    environment:
      CLUSTER_ID: MkU3OEVBNTcwNTJENDM2Qk
      KAFKA_NODE_ID: 1
      KAFKA_PROCESS_ROLES: broker,controller
      KAFKA_LISTENERS: {listeners},CONTROLLER://kafka:9093
      KAFKA_ADVERTISED_LISTENERS: {advertised}
      KAFKA_LISTENER_SECURITY_PROTOCOL_MAP: A:PLAINTEXT,B:PLAINTEXT,CONTROLLER:PLAINTEXT
      KAFKA_INTER_BROKER_LISTENER_NAME: A
      KAFKA_CONTROLLER_LISTENER_NAMES: CONTROLLER
      KAFKA_CONTROLLER_QUORUM_VOTERS: 1@kafka:9093
{more}"""


def golden(name: str, text: str) -> None:
    path = GOLDENS / name
    if os.environ.get("EARSHOT_WRITE_GOLDENS"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    assert text == path.read_text()


@pytest.mark.parametrize("name", SOURCES)
def test_the_report_is_as_on_disk(name: str) -> None:
    adoption = adopt(name)
    text = as_text(adoption, Terminal())
    if adoption.document is not None:
        text += f"\n{stack_file(adoption)}"
    golden(f"{name}.txt", text)


@pytest.mark.parametrize("name", SOURCES)
def test_the_stack_file_holds_the_document(name: str) -> None:
    adoption = adopt(name)
    if adoption.document is None:
        with pytest.raises(ValueError, match="undecided"):
            stack_file(adoption)
        return
    read_back = yaml.safe_load(stack_file(adoption))
    assert read_back == {"config": {"earshot:cluster": adoption.document}}
    assert json.loads(as_json(adoption))["cluster"]["listeners"]


class TestTheTwoListenerFile:
    def test_fred_is_seen_to_be_bound_to_localhost_inside_the_container(self) -> None:
        adoption = adopt("two_listeners.yml")
        (mistake,) = adoption.mistakes
        assert (mistake.rule, mistake.container, mistake.listener, mistake.node) == (
            "KL006",
            "kafka0",
            "LISTENER_FRED",
            0,
        )
        assert mistake.observed == (
            "listens on localhost:9092, which inside the container is the container alone, "
            "behind the published port 9092->9092"
        )
        assert adoption.exit_code == 1

    def test_the_mistake_stays_in_the_stack_to_be_stopped_there(self) -> None:
        document = adopt("two_listeners.yml").document
        assert document is not None
        assert [item.get("bind") for item in document["listeners"]] == ["kafka0", "localhost"]

    def test_it_keeps_broker_0_and_what_it_advertises(self) -> None:
        document = adopt("two_listeners.yml").document
        assert document is not None
        assert document["broker_ids"] == [0] and document["names"] == {0: "kafka0"}
        bob, fred = document["listeners"]
        assert (bob["advertised"], fred["advertised"]) == (
            {0: "kafka0:29092"},
            {0: "localhost:9092"},
        )
        assert document["controllers"]["port"] not in (29092, 9092)


def test_the_three_listener_file_has_three_scopes_and_no_mistake() -> None:
    adoption = adopt("three_listeners.yml")
    assert adoption.mistakes == () and adoption.exit_code == 0
    assert {item.listener.name: item.listener.audience.scopes for item in adoption.listeners} == {
        "LISTENER_BOB": (Scope.INTERNAL,),
        "LISTENER_FRED": (Scope.HOST,),
        "LISTENER_ALICE": (Scope.EXTERNAL,),
    }
    assert adoption.document is not None
    assert adoption.document["listeners"][2]["advertised"] == {0: "never-gonna-give-you-up:29094"}


def test_an_image_without_variables_is_judged_by_its_own_defaults() -> None:
    text = "services: {kafka: {image: 'apache/kafka:4.1.1', ports: ['9092:9092']}}"
    adoption = adopt_text(text)
    (item,) = adoption.listeners
    assert (item.id, str(item.listener.advertised)) == (1, "localhost:9092")
    assert [(it.rule, it.severity, it.listener) for it in adoption.mistakes] == [
        ("KL002", Severity.WARNING, "CONTROLLER")
    ]
    assert adoption.exit_code == 0


def test_what_an_image_adds_to_its_variables_is_judged_too() -> None:
    """apache/kafka binds what is advertised, where a broker is told nothing else."""
    text = """
services:
  kafka:
    image: apache/kafka:4.1.1
    environment:
      CLUSTER_ID: MkU3OEVBNTcwNTJENDM2Qk
      KAFKA_NODE_ID: 2
      KAFKA_PROCESS_ROLES: broker
      KAFKA_ADVERTISED_LISTENERS: A://kafka:9092
      KAFKA_LISTENER_SECURITY_PROTOCOL_MAP: A:PLAINTEXT,CONTROLLER:PLAINTEXT
      KAFKA_INTER_BROKER_LISTENER_NAME: A
      KAFKA_CONTROLLER_LISTENER_NAMES: CONTROLLER
      KAFKA_CONTROLLER_QUORUM_VOTERS: 1@elsewhere:9093
"""
    assert not [item for item in adopt_text(text).mistakes if item.rule == "KL002"]


def test_what_has_no_counterpart_in_kraft_is_named() -> None:
    named = [item.what for item in adopt("three_listeners.yml").leftovers]
    assert named == [
        "service zookeeper (confluentinc/cp-zookeeper:5.2.1)",
        "broker.id",
        "zookeeper.connect",
        "topics and their data",
    ]


def test_a_remapped_port_is_kept_apart_from_the_one_inside() -> None:
    document = adopt("kraft_remapped.yml").document
    assert document is not None
    host = document["listeners"][1]
    assert (host["port"], host["published"], host["advertised"]) == (
        9092,
        {1: 39092},
        {1: "localhost:39092"},
    )


class TestUndecided:
    def test_nothing_is_guessed(self) -> None:
        adoption = adopt("undecided.yml")
        (question,) = adoption.undecided
        assert question.listener == "PARTNER"
        assert question.remedy == "--scope PARTNER=internal|host|external"
        assert adoption.document is None and adoption.exit_code == 1

    def test_an_option_decides(self) -> None:
        adoption = adopt("undecided.yml", PARTNER=(Scope.EXTERNAL,))
        assert adoption.undecided == () and adoption.document is not None
        assert adoption.document["listeners"][2]["scopes"] == ["external"]
        assert [(item.rule, item.listener) for item in adoption.mistakes if item.rule == "KL006"]

    def test_an_option_for_nothing_is_refused(self) -> None:
        with pytest.raises(EarshotError, match="has no such listener"):
            adopt("undecided.yml", NOBODY=(Scope.HOST,))

    @pytest.mark.parametrize("advertised", ["_{COMMAND}:9092", ":9092", "$:9092", "a..b:9092"])
    def test_a_listener_that_cannot_be_read_is_a_question(self, advertised: str) -> None:
        text = broker("A://:1,B://:9092", f"A://kafka:1,B://{advertised}".replace("$", "$$"))
        adoption = adopt_text(text)
        assert [item.listener for item in adoption.undecided] == ["B"]
        assert adoption.document is None

    def test_localhost_on_a_port_that_is_not_published(self) -> None:
        adoption = adopt_text(broker("A://:1,B://:9092", "A://kafka:1,B://localhost:9092"))
        assert [item.listener for item in adoption.undecided] == ["B"]


class TestMistakes:
    @pytest.mark.parametrize(
        ("listeners", "advertised", "ports", "rule", "listener"),
        [
            ("A://:1,B://:2", "A://kafka:1,B://h.example.com:2", '["3:2"]', "KL006", "B"),
            ("A://:1,B://:2", "A://kafka:1,B://kafka:2", '["2:2"]', "KL006", "B"),
            ("A://:1,B://:2", "A://localhost:1,B://localhost:2", '["2:2"]', "KL003", "A"),
            ("A://:1,B://:2", "A://kafka:1,B://localhost:3", '["2:2"]', "KL006", "B"),
            ("B://:2", "B://localhost:2", '["2:2"]', "KL008", "A"),
        ],
    )
    def test_each_is_seen(
        self, listeners: str, advertised: str, ports: str, rule: str, listener: str
    ) -> None:
        found = adopt_text(broker(listeners, advertised, ports)).mistakes
        assert (rule, listener) in [(item.rule, item.listener) for item in found]

    def test_two_brokers_on_one_port_of_the_host(self) -> None:
        text = broker("A://:1,B://:2", "A://kafka:1,B://localhost:2", '["2:2"]')
        more = """
  kafka2:
    extends: kafka
    environment: {KAFKA_NODE_ID: 2}
"""
        found = adopt_text(text + more).mistakes
        assert ("KL004", "kafka2") in [(item.rule, item.container) for item in found]
        assert any("has taken port 2 of this host" in item.observed for item in found)


class TestServices:
    def test_one_of_several_may_be_chosen(self) -> None:
        document = adopt("three_brokers.yml", "kafka2").document
        assert document is not None and document["broker_ids"] == [2]

    @pytest.mark.parametrize(
        ("service", "message"),
        [("nope", "the file has no such service"), ("make-topics", "runs no Kafka broker")],
    )
    def test_others_are_refused(self, service: str, message: str) -> None:
        with pytest.raises(EarshotError, match=message):
            adopt("three_brokers.yml", service)

    def test_a_file_without_a_broker_is_refused(self) -> None:
        with pytest.raises(EarshotError, match="runs a Kafka broker"):
            adopt_text("services: {db: {image: postgres}}")

    def test_two_with_one_id_are_refused(self) -> None:
        text = broker("A://:1", "A://kafka:1") + "\n  other: {extends: kafka}\n"
        with pytest.raises(EarshotError, match="both have the node id 1"):
            adopt_text(text)

    def test_ids_that_nobody_gave_are_the_first_free_ones(self) -> None:
        image = (
            "image: confluentinc/cp-kafka:5.2.1, environment: {KAFKA_ZOOKEEPER_CONNECT: 'z:2181', "
        )
        rows = [
            f"{name}: {{{image}KAFKA_LISTENERS: 'PLAINTEXT://{name}:9092'{id}}}}}"
            for name, id in (("a", ""), ("b", ", KAFKA_BROKER_ID: 1"), ("c", ""))
        ]
        document = adopt_text("services: {" + ", ".join(rows) + "}").document
        assert document is not None
        assert document["names"] == {2: "a", 1: "b", 3: "c"}


@pytest.mark.parametrize("name", [name for name in SOURCES if name.endswith(".yml")][:5])
def test_what_is_adopted_can_be_read_and_planned(name: str) -> None:
    adoption = adopt(name)
    spec = read_spec(adoption.document, name)
    assert isinstance(spec, DockerSpec)
    plan = plan_docker(spec, "adopted").plan
    assert adoption.document is not None
    for item in adoption.document["listeners"]:
        for id, address in item["advertised"].items():
            held = plan.node(id).listener(item["name"])
            assert held is not None
            assert str(held.advertised) == address
            assert [str(scope) for scope in held.scopes] == item["scopes"]


class TestProperties:
    def test_the_cluster_is_one_that_earshot_reads(self) -> None:
        adoption = adopt("aws.properties")
        spec = read_spec(adoption.document, "aws.properties")
        assert [item.scopes for item in spec.listeners] == [(Scope.INTERNAL,), (Scope.EXTERNAL,)]
        assert "hunter2" not in stack_file(adoption) + as_json(adoption)

    @pytest.mark.parametrize(
        ("advertised", "scopes"),
        [
            ("localhost", (Scope.HOST,)),
            ("127.0.0.1", (Scope.HOST,)),
            ("kafka.example.com", (Scope.EXTERNAL,)),
            ("203.0.113.7", (Scope.EXTERNAL,)),
            ("ip-10-0-0-1.ec2.internal", (Scope.INTERNAL,)),
            ("kafka7", ()),
            ("10.0.0.7", ()),
        ],
    )
    def test_what_is_advertised_tells_or_does_not(
        self, advertised: str, scopes: tuple[Scope, ...]
    ) -> None:
        text = (
            "node.id=1\nlisteners=A://:1,B://:2\nlistener.security.protocol.map=A:PLAINTEXT,"
            f"B:PLAINTEXT\ninter.broker.listener.name=A\n"
            f"advertised.listeners=A://kafka7:1,B://{advertised}:2\n"
        )
        first, second = adopt_properties(text, "s.properties").listeners
        assert first.listener.audience.scopes == (Scope.INTERNAL,)
        assert second.listener.audience.scopes == scopes

    def test_a_file_of_something_else_is_refused(self) -> None:
        with pytest.raises(EarshotError, match="sets neither listeners nor"):
            adopt_properties("security.protocol=SSL\n", "client.properties")

    def test_a_controller_alone_is_refused(self) -> None:
        with pytest.raises(EarshotError, match="is a controller only"):
            adopt_properties("node.id=1\nprocess.roles=controller\n", "c.properties")


def test_free_properties_are_kept_and_secrets_are_not() -> None:
    more = """
      KAFKA_LOG_RETENTION_HOURS: 24
      KAFKA_SASL_JAAS_CONFIG: user=admin password=hunter2
      KAFKA_CONFLUENT_SUPPORT_METRICS_ENABLE: "true"
      KAFKA_INTER_BROKER_PROTOCOL_VERSION: "2.8"
      KAFKA_HEAP_OPTS: -Xmx1g
"""
    adoption = adopt_text(broker("A://:1", "A://kafka:1", more=more.rstrip()))
    assert adoption.document is not None
    assert adoption.document["extra"] == {"log.retention.hours": "24"}
    assert [item.what for item in adoption.leftovers] == [
        "variable KAFKA_HEAP_OPTS",
        "confluent.support.metrics.enable",
        "inter.broker.protocol.version",
        "sasl.jaas.config",
    ]
    assert "hunter2" not in stack_file(adoption) + as_json(adoption)


def test_a_variable_that_nobody_set_is_told() -> None:
    text = broker("A://:1", "A://kafka:1", more="      KAFKA_NUM_PARTITIONS: ${PARTS}\n")
    assert adopt_text(text).notes == (
        "the variable PARTS is not set, and an empty text stands for it",
    )


def test_a_listener_that_is_not_advertised_is_left_out_and_named() -> None:
    adoption = adopt_text(broker("A://:1,B://:2", "A://kafka:1"))
    assert adoption.document is not None
    assert [item["name"] for item in adoption.document["listeners"]] == ["A"]
    assert adoption.notes == (
        "broker 1: B is bound and not advertised, so that no client is sent to it; it is left out",
    )


def test_unlike_ports_of_one_listener_become_the_first_ones() -> None:
    text = (FILES / "unlike_ports.yml").read_text()
    adoption = adopt_text(text)
    assert adoption.document is not None
    internal, outside = adoption.document["listeners"]
    assert internal["advertised"] == {1: "k1:19092", 2: "k2:19092"}
    assert outside["published"] == {1: 9092, 2: 9093} and outside["port"] == 9092
    assert any("listens on 19092 now" in note for note in adoption.notes)
    assert any("published on 127.0.0.1 alone" in note for note in adoption.notes)

"""Adopted files: the document, the questions and the mistakes; the texts are goldens on disk."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from earshot.adopt.adoption import Adoption, adopt_compose, adopt_properties
from earshot.adopt.report import as_json, as_text, stack_file
from earshot.config.docker import DockerSpec
from earshot.config.document import read_spec
from earshot.errors import EarshotError
from earshot.listeners.terms import Scope
from earshot.placement.docker import plan_docker
from earshot.report.terminal import Terminal
from earshot.sources.compose import read_compose
from tests.goldens import is_golden
from tests.raised import raised

FILES = Path(__file__).parent / "files"
GOLDENS = Path(__file__).parent / "goldens"
SOURCES = (
    "two_listeners.yml", "three_listeners.yml", "kraft_remapped.yml", "three_brokers.yml",
    "separate_controllers.yml", "undecided.yml", "wurstmeister.yml", "aws.properties", "apart.yml",
    "moved.properties",
)  # fmt: skip
VARIABLES = {"OUTSIDE": "kafka.example.com"}


def adopt(name: str, *chosen: str, **scopes: tuple[Scope, ...]) -> Adoption:
    text = (FILES / name).read_text()
    if name.endswith(".properties"):
        return adopt_properties(text, name, scopes)
    return adopt_text(text, name, *chosen, **scopes)


def adopt_text(
    text: str, name: str = "c.yml", *chosen: str, **scopes: tuple[Scope, ...]
) -> Adoption:
    compose, as_checked = (
        read_compose(
            text, name, VARIABLES, lambda path: (FILES / path).read_text(), lenient=lenient
        )
        for lenient in (False, True)
    )
    return adopt_compose(compose, as_checked, name, chosen, scopes)


def broker(listeners: str, advertised: str, ports: str = "[]", extra_lines: str = "") -> str:
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
{extra_lines}"""


def golden(name: str, text: str) -> None:
    is_golden(text, GOLDENS / name)


@pytest.mark.parametrize("name", SOURCES)
def test_the_report_is_as_on_disk(name: str) -> None:
    adoption = adopt(name)
    text = as_text(adoption, Terminal())
    if adoption.document is not None:
        text += f"\n{stack_file(adoption)}"
    golden(f"{name}.txt", text)


@pytest.mark.parametrize("name", ["undecided.yml", "wurstmeister.yml", "moved.properties"])
def test_the_document_for_programs_is_as_on_disk(name: str) -> None:
    golden(f"{name}.json", as_json(adopt(name)))


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


def document_of(adoption: Adoption) -> Any:
    """The adopted cluster, which must be complete."""
    assert adoption.document is not None
    return adoption.document


def test_an_image_without_variables_is_checked_by_its_own_defaults() -> None:
    text = "services: {kafka: {image: 'apache/kafka:4.1.1', ports: ['9092:9092']}}"
    adoption = adopt_text(text)
    (row,) = adoption.listeners
    assert (row.id, str(row.listener.advertised)) == (1, "localhost:9092")
    # its controller is the only voter, so no other node needs its address
    assert adoption.mistakes == ()
    # clusters of earshot need a listener between brokers, which this broker lacks
    assert "none of PLAINTEXT has the scope internal" in adoption.refusal
    assert adoption.exit_code == 1
    assert "the stack file is not valid yet\n- earshot:cluster: listeners: none of" in as_text(
        adoption, Terminal()
    )


@pytest.mark.parametrize(
    ("setting", "value", "refusal"),
    [
        ("controller.listener.names", "'`id`'", "controllers.name: listener name"),
        ("controller.quorum.voters", "1@k1:9093", ""),
    ],
)
def test_a_stack_file_that_no_command_takes_is_no_success(
    setting: str, value: str, refusal: str
) -> None:
    settings = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "listeners": "INTERNAL://:9092,EXT://:9094,CONTROLLER://:9093",
        "advertised.listeners": "INTERNAL://k1:9092,EXT://ext.example.com:9094",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.voters": "1@k1:9093",
        "inter.broker.listener.name": "INTERNAL",
        "listener.security.protocol.map": "INTERNAL:PLAINTEXT,EXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "log.dirs": "/v",
        setting: value,
    }
    text = "".join(f"{key}={setting_value}\n" for key, setting_value in settings.items())
    adoption = adopt_properties(text, "server.properties", {"EXT": (Scope.EXTERNAL,)})
    assert adoption.mistakes == ()
    assert refusal in adoption.refusal and adoption.exit_code == int(bool(refusal))
    assert json.loads(as_json(adoption))["refusal"] == adoption.refusal


def test_no_text_of_the_source_begins_a_line_of_the_stack_file() -> None:
    """Otherwise a foreign file could set keys: `\\n` is a line break in properties."""
    text = """
process.roles=broker,controller
node.id=1
listeners=INTERNAL://:9092,CONTROLLER://:9093
advertised.listeners=INTERNAL://k1:9092
controller.listener.names=x\\nsecretsprovider: other #
controller.quorum.voters=1@k1:9093
inter.broker.listener.name=INTERNAL
listener.security.protocol.map=INTERNAL:PLAINTEXT,CONTROLLER:PLAINTEXT
"""
    adoption = adopt_properties(text, "a\nname: other.properties", {})
    assert adoption.mistakes
    stack_text = stack_file(adoption)
    assert yaml.safe_load(stack_text) == {"config": {"earshot:cluster": adoption.document}}
    assert "secretsprovider: other" in stack_text and "# Adopted from a name: other" in stack_text


def test_what_an_image_adds_to_its_variables_is_checked_too() -> None:
    """Without `listeners`, apache/kafka binds the advertised ports."""
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
    assert not [mistake for mistake in adopt_text(text).mistakes if mistake.rule == "KL002"]


class TestUndecided:
    def test_an_option_decides(self) -> None:
        adoption = adopt("undecided.yml", PARTNER=(Scope.EXTERNAL,))
        assert adoption.undecided == () and adoption.document is not None
        assert adoption.document["listeners"][2]["scopes"] == ["external"]
        # its port is not published, but a router in front of the machine may forward it
        assert adoption.mistakes == ()

    def test_an_option_for_nothing_is_refused(self) -> None:
        assert str(raised(EarshotError, adopt, "undecided.yml", NOBODY=(Scope.HOST,))) == (
            "--scope NOBODY: undecided.yml has no such listener\n"
            "  allowed: CONTROLLER, HOST, INTERNAL, PARTNER"
        )

    @pytest.mark.parametrize("advertised", ["_{COMMAND}:9092", ":9092", "$:9092", "a..b:9092"])
    def test_a_listener_that_cannot_be_read_is_a_question(self, advertised: str) -> None:
        text = broker("A://:1,B://:9092", f"A://kafka:1,B://{advertised}".replace("$", "$$"))
        adoption = adopt_text(text)
        assert [question.listener for question in adoption.undecided] == ["B"]
        assert adoption.document is None

    def test_localhost_on_a_port_that_is_not_published(self) -> None:
        adoption = adopt_text(broker("A://:1,B://:9092", "A://kafka:1,B://localhost:9092"))
        assert [question.listener for question in adoption.undecided] == ["B"]


class TestMistakes:
    @pytest.mark.parametrize(("listeners", "advertised", "ports", "rule", "severity", "listener"), [
        # a warning: a proxy before the machine may translate the port
        ("A://:1,B://:2", "A://kafka:1,B://h.example.com:2", '["3:2"]', "KL017", "warning", "B"),
        ("A://:1,B://:2", "A://kafka:1,B://kafka:2", '["2:2"]', "KL017", "error", "B"),
        ("A://:1,B://:2", "A://kafka:1,B://localhost:3", '["2:2"]', "KL017", "error", "B"),
        ("B://:2", "B://localhost:2", '["2:2"]', "KL002", "error", "A"),
    ])  # fmt: skip
    def test_each_is_seen(
        self, listeners: str, advertised: str, ports: str, rule: str, severity: str, listener: str
    ) -> None:
        (mistake,) = adopt_text(broker(listeners, advertised, ports)).mistakes
        assert (mistake.rule, str(mistake.severity), mistake.listener) == (rule, severity, listener)

    def test_a_lone_broker_finds_itself_at_localhost(self) -> None:
        text = broker("A://:1,B://:2", "A://localhost:1,B://localhost:2", '["2:2"]')
        assert adopt_text(text).mistakes == ()  # no other broker and no client is sent there

    def test_two_brokers_on_one_port_of_the_host(self) -> None:
        text = broker("A://:1,B://:2", "A://kafka:1,B://localhost:2", '["2:2"]')
        second_service = """
  kafka2:
    extends: kafka
    environment: {KAFKA_NODE_ID: 2}
"""
        mistakes = adopt_text(text + second_service).mistakes
        assert ("KL017", "kafka2") in [(mistake.rule, mistake.container) for mistake in mistakes]
        assert any("Docker starts only one of them" in mistake.observed for mistake in mistakes)

    def test_of_those_that_were_not_chosen_nothing_is_said(self) -> None:
        assert [mistake.container for mistake in adopt("apart.yml", "b11").mistakes] == ["b11"]


class TestServices:
    def test_one_of_several_may_be_chosen(self) -> None:
        document = adopt("three_brokers.yml", "kafka2").document
        assert document is not None and document["broker_ids"] == [2]

    @pytest.mark.parametrize(("file", "service", "message"), [
        ("three_brokers.yml", "nope",
         "the file has no such service\n  allowed: kafka1, kafka2, kafka3, make-topics"),
        ("three_brokers.yml", "make-topics",
         "runs no Kafka broker or controller\n  allowed: kafka1, kafka2, kafka3"),
        ("", "db", "runs no Kafka broker or controller\n  allowed: none in this file"),
    ])  # fmt: skip
    def test_a_service_without_a_broker_is_refused(
        self, file: str, service: str, message: str
    ) -> None:
        text = (FILES / file).read_text() if file else "services: {db: {image: postgres}}"
        error = raised(EarshotError, adopt_text, text, "c.yml", service)
        assert str(error) == f"--service {service}: {message}"

    @pytest.mark.parametrize(("text", "message"), [
        ("services: {db: {image: postgres}}",
         ("services: none of db runs a Kafka broker\n  allowed: a service with an image "
          "of Kafka, or with KAFKA_ variables for a broker")),
        (broker("A://:1", "A://kafka:1") + "\n  other: {extends: kafka}\n",
         ("services kafka and other: both have the node id 1\n  allowed: a node id of "
          "its own for each\n  fix: fix one of them, or choose with --service")),
        (broker("A://:1", "A://kafka:1").replace("broker,controller", "controller"),
         "c.yml: runs controllers only\n  allowed: at least one broker"),
    ], ids=["no broker", "an id twice", "no broker but controllers"])  # fmt: skip
    def test_a_file_that_is_not_a_cluster_is_refused(self, text: str, message: str) -> None:
        assert str(raised(EarshotError, adopt_text, text)) == message

    def test_missing_ids_are_the_first_free_ones(self) -> None:
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
    for row in adoption.document["listeners"]:
        for id, address in row["advertised"].items():
            planned = plan.node(id).listener(row["name"])
            assert planned is not None
            assert str(planned.advertised) == address
            assert [str(scope) for scope in planned.scopes] == row["scopes"]


class TestProperties:
    def test_the_cluster_is_one_that_earshot_reads(self) -> None:
        adoption = adopt("aws.properties")
        spec = read_spec(adoption.document, "aws.properties")
        assert [listener.scopes for listener in spec.listeners] == [
            (Scope.INTERNAL,),
            (Scope.EXTERNAL,),
        ]
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
            "node.id=1\nlisteners=A://:1,B://:2\n"
            "listener.security.protocol.map=A:PLAINTEXT,B:PLAINTEXT\ninter.broker.listener.name=A\n"
            f"advertised.listeners=A://kafka7:1,B://{advertised}:2\n"
        )
        internal_listener, advertised_listener = adopt_properties(text, "s.properties").listeners
        assert internal_listener.listener.audience.scopes == (Scope.INTERNAL,)
        assert advertised_listener.listener.audience.scopes == scopes

    @pytest.mark.parametrize(("text", "message"), [
        ("security.protocol=SSL\n",
         ("sets neither listeners nor a node's id\n  allowed: the properties file of a broker")),
        ("node.id=1\nprocess.roles=controller\n", "is a controller only\n  allowed: a broker"),
    ])  # fmt: skip
    def test_a_file_that_is_not_a_broker_is_refused(self, text: str, message: str) -> None:
        error = raised(EarshotError, adopt_properties, text, "c.properties")
        assert str(error) == f"c.properties: {message}"


def test_extra_properties_are_kept_and_secrets_are_not() -> None:
    extra_variables = """
      KAFKA_LOG_RETENTION_HOURS: 24
      KAFKA_SASL_JAAS_CONFIG: user=admin password=hunter2
      KAFKA_LISTENER_NAME_A_SSL_KEY_PASSWORD: hunter2
      KAFKA_SSL_KEYSTORE_PASSWORD: $${file:/run/tls:password}
      KAFKA_METRICS_URL: https://me:hunter2@metrics.example.com
      KAFKA_CONFLUENT_SUPPORT_METRICS_ENABLE: "true"
      KAFKA_INTER_BROKER_PROTOCOL_VERSION: "2.8"
      KAFKA_HEAP_OPTS: -Xmx1g
"""
    adoption = adopt_text(broker("A://:1", "A://kafka:1", extra_lines=extra_variables.rstrip()))
    assert adoption.document is not None
    assert adoption.document["extra"] == {
        "log.retention.hours": "24",
        "ssl.keystore.password": "${file:/run/tls:password}",
    }
    assert [leftover.what for leftover in adoption.leftovers] == [
        "variable KAFKA_HEAP_OPTS",
        "confluent.support.metrics.enable",
        "inter.broker.protocol.version",
        "listener.name.a.ssl.key.password",
        "metrics.url",
        "sasl.jaas.config",
        "topics and their data",
    ]
    assert "hunter2" not in stack_file(adoption) + as_json(adoption)
    assert "hunter2" not in as_text(adoption, Terminal())


def test_an_unset_variable_is_reported() -> None:
    text = broker("A://:1", "A://kafka:1", extra_lines="      KAFKA_NUM_PARTITIONS: ${PARTS}\n")
    text += "      KAFKA_SSL_KEY_PASSWORD: ab$Hunter2\n"
    place = "services.kafka.environment.KAFKA_SSL_KEY_PASSWORD"
    assert adopt_text(text).notes == tuple(
        f"{name} is not set, so it is read as empty text"
        for name in ("PARTS", f"a variable in {place}")
    )


def test_a_listener_that_is_not_advertised_is_left_out_and_named() -> None:
    adoption = adopt_text(broker("A://:1,B://:2", "A://kafka:1"))
    assert adoption.document is not None
    assert [listener["name"] for listener in adoption.document["listeners"]] == ["A"]
    assert adoption.notes == (
        "broker 1: B is bound and not advertised, so no client uses it; it is left out",
    )


def test_unlike_ports_of_one_listener_become_the_first_ones() -> None:
    text = (FILES / "unlike_ports.yml").read_text()
    adoption = adopt_text(text)
    assert adoption.document is not None
    internal, outside = adoption.document["listeners"]
    assert internal["advertised"] == {1: "k1:19092", 2: "k2:19092"}
    assert outside["published"] == {1: 9092, 2: 9093} and outside["port"] == 9092
    assert outside["advertised"] == {1: "localhost:9092", 2: "localhost:9093"}
    assert (
        "listener INSIDE: broker 2 on 19092 now, as the first, and not on 19093; clients in "
        "its network must follow"
    ) in adoption.notes
    assert (
        "listener OUTSIDE: was published only on 127.0.0.1; see that the stack's host keeps it so"
    ) in adoption.notes


def test_of_several_published_ports_the_advertised_one_is_taken() -> None:
    ports = '["19093:9092", "127.0.0.1:39092:9092", "39093:9092"]'
    text = broker("A://:19092,B://:9092", "A://kafka:19092,B://localhost:39092", ports)
    document = adopt_text(text).document
    assert document is not None and document["listeners"][1]["published"] == {1: 39092}


def hundred_brokers(advertised: str, extra_lines: str = "") -> str:
    """A hundred brokers in which `{i}` is each one's number."""
    service = (
        "  kafka{i}:\n    image: apache/kafka:4.1.1\n    environment:\n"
        "      KAFKA_NODE_ID: {i}\n      KAFKA_PROCESS_ROLES: broker\n"
        "      KAFKA_LISTENERS: A://:9092,B://:9093,C://:9094\n"
        "      KAFKA_LISTENER_SECURITY_PROTOCOL_MAP: A:PLAINTEXT,B:PLAINTEXT,C:PLAINTEXT\n"
        f"      KAFKA_ADVERTISED_LISTENERS: {advertised}\n"
        "      KAFKA_INTER_BROKER_LISTENER_NAME: A\n" + extra_lines
    )
    return "services:\n" + "".join(service.replace("{i}", str(i)) for i in range(1, 101))


def told_after_the_table(adoption: Adoption) -> list[str]:
    lines = as_text(adoption, Terminal()).splitlines()
    return lines[lines.index("", 2) + 1 :]


@pytest.mark.parametrize(
    "text",
    [
        hundred_brokers("A://kafka{i}:9092,B://kafka{i}:9093", "      KAFKA_BROKER_RACK_X: r{i}\n"),
        hundred_brokers("A://kafka{i}:9092,B://what.example:9093"),
        hundred_brokers("A://kafka{i}:9092,B://kafka_{i}:9093"),
    ],
)
def test_what_is_said_of_a_hundred_brokers_fits_a_screen(text: str) -> None:
    assert len(told_after_the_table(adopt_text(text))) <= 40


@pytest.mark.parametrize(("replicas", "noted"), [("1", 0), ("2", 1), ("", 0)])
def test_a_service_that_runs_several_times_is_noted(replicas: str, noted: int) -> None:
    extra_lines = f"    deploy: {{replicas: {replicas}}}\n  web: {{image: nginx, scale: 9}}\n"
    notes = adopt_text(broker("A://:1", "A://kafka:1", extra_lines=extra_lines)).notes
    note = (
        "service kafka: runs 2 times in the source, with one id and one advertised address; "
        "it becomes one broker"
    )
    assert notes == (note,) * noted


def test_a_broker_without_a_listener_for_clients_is_no_stack() -> None:
    text = broker("A://:1", "A://kafka:1").replace("A://:1,", "").replace("A://kafka:1", "''")
    adoption = adopt_text(text.replace("      KAFKA_ADVERTISED_LISTENERS: ''\n", ""))
    assert [row.listener.name for row in adoption.listeners] == ["CONTROLLER"]
    assert adoption.undecided == () and adoption.document is None


def test_entries_that_cannot_be_read_are_asked_about_by_name_or_without() -> None:
    adoption = adopt_text(broker("A://:1,B://b_1:2,://:3,C://:4", "A://kafka:1"))
    assert [
        (question.listener, question.why, question.remedy) for question in adoption.undecided
    ] == [
        ("B", "listeners: host 'b_1' has the label 'b_1'", "fix it in the source, and adopt that"),
        (
            "?",
            "listeners: listener name '' is not one that every Kafka and every tool reads alike",
            "fix it in the source, and adopt that",
        ),
    ]
    assert adoption.notes == (
        "broker 1: C is bound and not advertised, so no client uses it; it is left out",
    )


def adopt_two_brokers(first_bind: str, second_bind: str, extra_lines: str = "") -> Adoption:
    """Two brokers that use ZooKeeper, with the hosts that they bind."""
    rows = "".join(
        f"""
  k{id}:
    image: confluentinc/cp-kafka:7.5.0
    environment:
      KAFKA_BROKER_ID: {id}
      KAFKA_ZOOKEEPER_CONNECT: zk:2181
      KAFKA_LISTENERS: PLAINTEXT://{bind}:9093
      KAFKA_ADVERTISED_LISTENERS: PLAINTEXT://k{id}:9093
{extra_lines if id == 2 else ""}"""
        for id, bind in ((1, first_bind), (2, second_bind))
    )
    return adopt_text(f"services:{rows}")


@pytest.mark.parametrize(
    ("first_bind", "second_bind", "bind"),
    [
        ("k1", "k2", None),
        ("k1", "localhost", "localhost"),
        ("127.0.0.1", "k2", "127.0.0.1"),
        ("", "0.0.0.0", None),
        ("0.0.0.0", "[::]", None),
        ("localhost", "localhost", "localhost"),
        ("k1", "0.0.0.0", "k1"),
    ],
)
def test_what_brokers_bind_is_kept_where_it_is_one_or_wrong(
    first_bind: str, second_bind: str, bind: str | None
) -> None:
    adoption = adopt_two_brokers(first_bind, second_bind)
    assert adoption.document is not None
    (listener,) = adoption.document["listeners"]
    assert listener.get("bind") == bind
    note = "listener PLAINTEXT: binds all interfaces now, and not k1, k2"
    assert (note in adoption.notes) is ((first_bind, second_bind) == ("k1", "k2"))


def test_the_quorum_is_given_the_first_port_that_no_broker_has() -> None:
    document = document_of(adopt_two_brokers("", ""))
    assert document["controllers"] == {"mode": "combined", "port": 9094}


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", ""])
def test_a_controller_that_asks_only_itself_keeps_its_port(host: str) -> None:
    text = broker("A://:1", "A://kafka:1").replace("//kafka:9093", "//:9193")
    document = document_of(adopt_text(text.replace("1@kafka:9093", f"1@{host}:9193")))
    assert document["controllers"]["port"] == 9193


def test_where_one_broker_is_of_zookeepers_time_its_data_are_left_over() -> None:
    kraft = "      KAFKA_PROCESS_ROLES: broker\n"
    adoption = adopt_two_brokers("", "", kraft)
    assert "topics and their data" in [leftover.what for leftover in adoption.leftovers]


@pytest.mark.parametrize(
    ("original", "replacement", "rules"),
    [
        # a voter that the file does not show, and one that is looked for where the quorum has it
        ("1@kafka:9093", "1@kafka:9093,2@other:9093", []),
        ("1@kafka:9093", "1@kafka:9999", ["KL016"]),
        # of a name that stops Kafka the first consequence is reported alone
        ("INTER_BROKER_LISTENER_NAME: A", "INTER_BROKER_LISTENER_NAME: lower", ["KL002"]),
        ("LISTENER_NAMES: CONTROLLER", "LISTENER_NAMES: lower", ["KL002"]),
    ],
)
def test_one_mistake_is_reported_by_one_rule(
    original: str, replacement: str, rules: list[str]
) -> None:
    adoption = adopt_text(broker("A://:1", "A://kafka:1").replace(original, replacement))
    assert [mistake.rule for mistake in adoption.mistakes] == rules


def test_a_container_on_the_hosts_network_publishes_nothing() -> None:
    text = broker("A://:1", "A://localhost:1", extra_lines="    network_mode: host\n")
    document = document_of(adopt_text(text, "c.yml", A=(Scope.HOST,)))
    assert "published" not in document["listeners"][0]


def test_keys_that_no_variable_can_stand_for_are_kept_from_a_file_alone() -> None:
    text = "node.id=1\nlisteners=PLAINTEXT://localhost:1\nMy.Own.Key=1\na._b=2\n"
    document = document_of(adopt_properties(text, "s.properties"))
    assert document["extra"] == {"My.Own.Key": "1", "a._b": "2"}
    extra_variables = "      KAFKA_LOG_DIRS_X: 'a\\b'\n      KAFKA_UMLAUT: \u00e4\n"
    adoption = adopt_text(broker("A://:1", "A://kafka:1", extra_lines=extra_variables))
    leftovers = adoption.leftovers[:-1]  # the last one is the data
    assert [leftover.what for leftover in leftovers] == ["log.dirs.x", "umlaut"]
    assert all(
        "would arrive changed through the variable" in leftover.why for leftover in leftovers
    )


def test_an_unset_variable_makes_no_mistake() -> None:
    """An empty text would, and the environment of those who start it need not be this one."""
    adoption = adopt_text(broker("A://:1", "$ADDRESS"))
    assert adoption.mistakes == ()
    assert "ADDRESS is not set, so it is read as empty text" in adoption.notes


def test_what_does_not_look_like_a_broker_is_not_checked_as_one() -> None:
    text = "listeners=PLAINTEXT://h.example.com:1\nbootstrap.servers=h.example.com:1\n"
    assert adopt_properties(text, "s.properties").mistakes == ()


def test_who_is_asked_several_things_alike_is_asked_once() -> None:
    text = hundred_brokers("A://kafka{i}:9092,B://what.example:9093")
    lines = told_after_the_table(adopt_text(text))
    start = lines.index("undecided: no stack file is written")
    assert lines[start + 1 : start + 3] == [
        (
            "- brokers 1 to 100 (kafka1, kafka2, kafka3 and 97 more), listener B: what.example is "
            "no name of the container, and its port is not published"
        ),
        "    to decide it: --scope B=internal|host|external",
    ]
    lines = told_after_the_table(
        adopt_text(hundred_brokers("A://kafka{i}:9092,B://kafka_{i}:9093"))
    )
    assert (
        "- brokers 1 to 100 (kafka1, kafka2, kafka3 and 97 more), listener B: "
        "advertised.listeners: host 'kafka_1' has the label 'kafka_1' (kafka1; others alike)"
    ) in lines


def test_a_quorum_that_brokers_open_as_well_is_no_listener_for_clients() -> None:
    text = (FILES / "moved.properties").read_text().replace("4@localhost:9093", "4@b4:9093")
    document = document_of(adopt_properties(text, "s.properties"))
    assert [listener["name"] for listener in document["listeners"]] == ["NEAR", "FAR", "OLD"]


def test_only_properties_that_differ_are_named() -> None:
    common_variable = "      KAFKA_NUM_PARTITIONS: 3\n"
    first_service = zookeeper_service(1, common_variable)
    text = f"services:{first_service}{zookeeper_service(2, common_variable)}"
    assert not [note for note in adopt_text(text).notes if "other values" in note]
    other_variables = f"{common_variable}      KAFKA_NUM_IO_THREADS: 9"
    text = f"services:{first_service}{zookeeper_service(2, other_variables)}"
    assert [note for note in adopt_text(text).notes if "other values" in note] == [
        "broker 2: other values than broker 1 for num.io.threads; `extra` has those of broker 1"
    ]


def zookeeper_service(id: int, extra_variables: str) -> str:
    return f"""
  k{id}:
    image: ""
    environment:
      KAFKA_BROKER_ID: {id}
      KAFKA_ZOOKEEPER_CONNECT: zk:2181
      KAFKA_LISTENERS: PLAINTEXT://k{id}:9093
{extra_variables}"""


def test_an_image_that_is_not_named_is_said_to_become_ours() -> None:
    assert adopt_text(f"services:{zookeeper_service(1, '')}").notes == (
        "an image that is not named becomes apache/kafka:4.1.1, which runs KRaft (3.9 and later)",
    )

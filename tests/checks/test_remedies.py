"""The lines to write: exactly which, and that every one of them cures its finding and no more."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from earshot.checks import remedies
from earshot.checks.deployment import mistakes
from earshot.checks.remedies import with_lines, with_lines_written
from earshot.listeners.address import Address, why_unusable
from earshot.rules.rule import Finding, LineToWrite
from earshot.sources.deployment import deployment
from earshot.sources.service import Service
from earshot.topology.broker import ReachedListener
from earshot.topology.container import Container, PublishedPort
from earshot.topology.model import Deployment
from tests.goldens import is_golden
from tests.rules.deployment_examples import services
from tests.rules.plan_examples import files

ADVERTISED = "KAFKA_ADVERTISED_LISTENERS"
MAP = "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP"
CONFLUENT = "confluentinc/cp-kafka:7.6.1"
OWN_VOTER = "1@localhost:9093"
PAIR = "PLAINTEXT://:9092,CONTROLLER://:9093"
BOTH_PLAINTEXT = "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT"
ONE_PORT = '"9092:9092"'
EXAMPLES = [path for id in ("KL015", "KL016", "KL017") for path in files(id)]


def broker(name: str, image: str, ports: str, variables: Mapping[str, object]) -> str:
    """A service with a broker; ``ports`` are the entries of its list, in quotes."""
    env = "".join(f"      KAFKA_{key}: {value}\n" for key, value in variables.items() if value)
    published = f"    ports: [{ports}]\n" if ports else ""
    return f"  {name}:\n    image: {image}\n{published}    environment:\n{env}"


def kraft(
    listeners: str,
    advertised: str,
    protocols: str = "",
    *,
    name: str = "kafka",
    ports: str = "",
    id: int = 1,
    roles: str = "broker,controller",
    voters: str = OWN_VOTER,
    **variables: str,
) -> str:
    return broker(
        name,
        "apache/kafka:4.1.1",
        ports,
        {
            "NODE_ID": id,
            "PROCESS_ROLES": roles,
            "CONTROLLER_LISTENER_NAMES": "CONTROLLER",
            "CONTROLLER_QUORUM_VOTERS": voters,
            "LISTENERS": listeners,
            "ADVERTISED_LISTENERS": advertised,
            "LISTENER_SECURITY_PROTOCOL_MAP": protocols,
            **variables,
        },
    )


def with_zookeeper(
    advertised: str,
    listeners: str = "PLAINTEXT://:9092",
    *,
    name: str = "kafka",
    image: str = CONFLUENT,
    ports: str = "",
    zookeeper: str = "zookeeper",
    **variables: object,
) -> str:
    env = {"ZOOKEEPER_CONNECT": f"{zookeeper}:2181", "LISTENERS": listeners}
    return broker(name, image, ports, {**env, "ADVERTISED_LISTENERS": advertised, **variables})


def client(servers: str, name: str = "ui", setting: str = "KAFKA_BROKERS") -> str:
    return f'  {name}: {{image: {name}, environment: {{{setting}: "{servers}"}}}}\n'


def reported(*brokers_and_clients: str) -> list[tuple[str, list[str], bool]]:
    """Each finding's remedy and lines, and whether it is the only way."""
    return [
        (finding.remedy, [str(line) for line in finding.lines], finding.is_only_way)
        for finding in mistakes(services(compose(*brokers_and_clients)))
    ]


def compose(*texts: str) -> str:
    """The text of a Compose file, from that of its services or of the whole file."""
    text = "".join(texts)
    return text if "services:" in text else f"services:\n{text}"


def test_a_listener_for_the_machine_has_another_name_where_one_is_taken() -> None:
    kafka = kraft(
        "EXTERNAL://0.0.0.0:9092,CONTROLLER://:9093",
        "EXTERNAL://kafka:9092",
        "EXTERNAL:PLAINTEXT,CONTROLLER:PLAINTEXT",
        ports=ONE_PORT,
        INTER_BROKER_LISTENER_NAME="EXTERNAL",
    )
    ((_, lines, is_only_way),) = reported(kafka, client("kafka:9092"))
    assert not is_only_way
    assert lines == [
        "kafka: KAFKA_ADVERTISED_LISTENERS: EXTERNAL://kafka:9092,HOST://localhost:9092",
        "kafka: KAFKA_LISTENERS: EXTERNAL://0.0.0.0:9092,CONTROLLER://:9093,HOST://0.0.0.0:19092",
        f"kafka: {MAP}: EXTERNAL:PLAINTEXT,CONTROLLER:PLAINTEXT,HOST:PLAINTEXT",
        "kafka: ports: 9092:19092 in place of 9092:9092",
    ]


def test_where_a_listener_works_already_the_client_alone_changes() -> None:
    text = f"""
services:
  kafka:
    image: bitnamilegacy/kafka:3.9.0
    ports: ["9092:9092"]
    environment:
      KAFKA_CFG_NODE_ID: 1
      KAFKA_CFG_PROCESS_ROLES: broker,controller
      KAFKA_CFG_CONTROLLER_LISTENER_NAMES: CONTROLLER
      KAFKA_CFG_CONTROLLER_QUORUM_VOTERS: 1@localhost:9093
      KAFKA_CFG_LISTENERS: OUT://:9092,INSIDE://:19092,CONTROLLER://:9093
      KAFKA_CFG_ADVERTISED_LISTENERS: OUT://localhost:9092,INSIDE://kafka:19092
      KAFKA_CFG_INTER_BROKER_LISTENER_NAME: INSIDE
      KAFKA_CFG_{MAP.removeprefix("KAFKA_")}: OUT:PLAINTEXT,INSIDE:PLAINTEXT,CONTROLLER:PLAINTEXT
  ui: {{image: ui, command: [run, --bootstrap-server, "kafka:9092"]}}
"""
    line = "ui: command: kafka:19092 in place of kafka:9092"
    assert reported(text) == [("bootstrap ui to INSIDE", [line], True)]
    other = "  app: {image: app, environment: {KAFKA_BROKERS: 'kafka:19092,kafka:19092'}}\n"
    assert reported(text + other) == reported(text), "one that begins there already stays as it is"


CONTROLLER = kraft(
    "CONTROLLER://:9093", "", name="controller", roles="controller", voters="1@controller:9093"
)
SEPARATE = CONTROLLER + kraft(
    "PLAINTEXT://:9092", "PLAINTEXT://kafka:9092", id=2, roles="broker", voters="1@controller:9093"
)


TO_WORKING_LISTENER = "bootstrap to a listener whose advertised address works in this container"


def test_a_client_that_knows_one_broker_by_name_begins_with_that_one() -> None:
    brokers = "".join(
        kraft(
            "PLAINTEXT://0.0.0.0:9092,CONTROLLER://:9093",
            f"PLAINTEXT://kafka{id}:9092",
            BOTH_PLAINTEXT,
            name=f"kafka{id}",
            id=id,
            voters="1@kafka1:9093,2@kafka2:9093",
        )
        for id in (1, 2)
    )
    assert reported(brokers, client("kafka2:9999")) == [
        ("bootstrap ui to PLAINTEXT", ["ui: KAFKA_BROKERS: kafka2:9092"], True)
    ]


def test_a_client_begins_with_each_broker_at_that_brokers_port() -> None:
    one, two = (
        with_zookeeper(f"PLAINTEXT://{name}:{port}", "", name=name)
        for name, port in (("one", 9094), ("two", 9095))
    )
    ((_, lines, _),) = reported(one, two, client("one:9092,two:9092"))
    assert lines == ["ui: KAFKA_BROKERS: one:9094,two:9095"]


def test_a_client_begins_with_a_broker_and_not_with_a_controller() -> None:
    lines = ["ui: KAFKA_BROKERS: kafka:9092"]
    assert reported(SEPARATE, client("no-such-host:9092")) == [
        ("bootstrap ui to PLAINTEXT", lines, True)
    ]


def test_a_broker_with_unknown_listeners_gets_no_lines() -> None:
    kafka = (
        "  kafka: {image: apache/kafka:4.1.1, env_file: a.env, environment: {KAFKA_NODE_ID: 1}}\n"
    )
    assert reported(kafka, client("no-such-host:9092")) == [(TO_WORKING_LISTENER, [], False)]


def test_of_two_clusters_the_one_a_client_means_is_unknown() -> None:
    other = SEPARATE
    for name in ("controller", "kafka"):
        other = other.replace(f"  {name}:", f"  {name}2:").replace(f"@{name}:", f"@{name}2:")
    other = other.replace("//kafka:", "//kafka2:")
    remedies_shown = reported(SEPARATE, other, client("no-such-host:9092"))
    assert remedies_shown == [(TO_WORKING_LISTENER, [], False)]


def test_an_address_alone_does_not_lead_to_a_listener_with_another_protocol() -> None:
    listeners = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
    others = ",".join(f"{name}://kafka:{port}" for port, name in enumerate(listeners[1:], 9093))
    settings = {
        "BROKER_ID": "1",
        "OPTS": "-Djava.security.auth.login.config=/etc/kafka/jaas.conf",
        "SSL_KEYSTORE_FILENAME": "broker.jks",
        "SSL_KEYSTORE_CREDENTIALS": "password",
        "SSL_KEY_CREDENTIALS": "password",
        "SSL_KEYSTORE_LOCATION": "/etc/kafka/broker.jks",
    }
    text = client("kafka:9092") + with_zookeeper(
        f"PLAINTEXT://localhost:9092,{others}",
        "PLAINTEXT://:9092,SSL://:9093,SASL_PLAINTEXT://:9094,SASL_SSL://:9095",
        image="apache/kafka:3.9.1",
        ports=ONE_PORT,
        **settings,
    )
    ((_, lines, _),) = reported(text)
    protocols = ",".join(f"{name}:{name}" for name in listeners)
    assert lines[2:] == [
        f"kafka: {MAP}: {protocols},INTERNAL:PLAINTEXT",
        "ui: KAFKA_BROKERS: kafka:29092",
    ]
    mapped = text.replace("KAFKA_BROKER_ID", f"{MAP}: {protocols}\n      KAFKA_BROKER_ID")
    assert [lines for _, lines, _ in reported(mapped)] == [lines]


def test_a_listener_with_tls_or_passwords_would_need_more_than_lines() -> None:
    kafka = kraft(
        "SECURE://0.0.0.0:9092,CONTROLLER://:9093",
        "SECURE://localhost:9092",
        "SECURE:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
        ports=ONE_PORT,
        INTER_BROKER_LISTENER_NAME="SECURE",
    )
    assert [lines for _, lines, _ in reported(kafka, client("kafka:9092"))] == [[]]


def test_two_right_answers_are_no_only_way() -> None:
    kafka = kraft(PAIR, "PLAINTEXT://localhost:9092", ports='"9094:9092"')
    line = "kafka: KAFKA_ADVERTISED_LISTENERS: PLAINTEXT://localhost:9094"
    either = "publish 9092:9092, or advertise PLAINTEXT://localhost:9094"
    assert reported(kafka) == [(either, [line], False)]


def test_of_a_configuration_in_one_variable_the_address_alone_is_shown() -> None:
    ui = """
  ui:
    image: akhq
    environment:
      CONFIGURATION: |
        bootstrap.servers: "localhost:9092"
        sasl.jaas.config: hunter2
"""
    line = "ui: CONFIGURATION: kafka:9092 in place of localhost:9092"
    assert reported(kraft(PAIR, "PLAINTEXT://kafka:9092"), ui) == [
        ("bootstrap ui to PLAINTEXT", [line], True)
    ]


def test_a_list_over_several_lines_is_told_on_one() -> None:
    kafka = kraft(
        "|\n        PLAINTEXT://0.0.0.0:9092,\n        CONTROLLER://:9093",
        "PLAINTEXT://localhost:9092",
        '"PLAINTEXT:PLAINTEXT, CONTROLLER:PLAINTEXT"',
        ports=ONE_PORT,
    )
    (remedy, none, _), (_, lines, _) = reported(kafka, client("kafka:9092"))
    assert (remedy, none) == ("fix KAFKA_LISTENERS", [])  # the image writes two lines
    assert lines[1:3] == [
        "kafka: KAFKA_LISTENERS: PLAINTEXT://0.0.0.0:9092,CONTROLLER://:9093,INTERNAL://0.0.0.0:29092",
        f"kafka: {MAP}: PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,INTERNAL:PLAINTEXT",
    ]


def test_a_mounted_file_is_told_by_its_properties() -> None:
    text = """
services:
  kafka:
    image: apache/kafka:4.1.1
    volumes: ["./server.properties:/mnt/shared/config/server.properties"]
  ui: {image: ui, environment: {KAFKA_BROKERS: "kafka:9092"}}
"""
    properties = """
node.id=1
process.roles=broker,controller
listeners=PLAINTEXT://:9092,CONTROLLER://:9093
advertised.listeners=PLAINTEXT://localhost:9092
controller.listener.names=CONTROLLER
controller.quorum.voters=1@localhost:9093
"""
    (finding,) = mistakes(services(text, {"./server.properties": properties}))
    assert [str(item) for item in finding.lines] == [
        "kafka: advertised.listeners: PLAINTEXT://kafka:9092"
    ]


FIRST, SECOND = (
    kraft(
        "PLAINTEXT://:9092,CONTROLLER://:19093",
        "PLAINTEXT://localhost:9092",
        name=f"kafka{id}",
        ports='"9092:9092", "9093"',
        voters="1@localhost:19093",
    )
    for id in (1, 2)
)
TWO = FIRST + SECOND


def test_of_two_that_publish_one_port_the_second_gets_the_next_that_is_free() -> None:
    lines = [
        "kafka2: ports: 9093:9092 in place of 9092:9092",
        "kafka2: KAFKA_ADVERTISED_LISTENERS: PLAINTEXT://localhost:9093",
    ]
    remedy = "publish another port of the machine, and advertise that one"
    assert reported(TWO) == [(remedy, lines, False)], "which of the two moves is a choice"
    web = "  web: {image: web, ports: ['9093:80']}\n"
    ((_, (line, _), _),) = reported(TWO + web)
    assert line == "kafka2: ports: 9094:9092 in place of 9092:9092"


def test_above_the_last_port_is_none_that_is_free() -> None:
    last = TWO.replace("9092:9092", "65534:9092").replace("localhost:9092", "localhost:65534")
    ((_, (line, _), _),) = reported(last)
    assert line == "kafka2: ports: 65535:9092 in place of 65534:9092"
    assert [lines for _, lines, _ in reported(last.replace("65534", "65535"))] == [[]]


def test_each_of_several_findings_has_its_own_lines() -> None:
    kafka = kraft(PAIR, "PLAINTEXT://kafka:9092")
    ui, app = client("kafka:1111"), client("kafka:2222", "app")
    assert reported(kafka, ui, app) == [
        ("bootstrap ui to PLAINTEXT", ["ui: KAFKA_BROKERS: kafka:9092"], True),
        ("bootstrap app to PLAINTEXT", ["app: KAFKA_BROKERS: kafka:9092"], True),
    ]
    both = kafka + client('kafka:1111", KAFKA_SERVERS: "kafka:2222')
    assert [lines for _, lines, _ in reported(both)] == [
        ["ui: KAFKA_BROKERS: kafka:9092"],
        ["ui: KAFKA_SERVERS: kafka:9092"],
    ]
    assert [lines for _, lines, _ in reported(kafka, ui, client("kafka:1111", "app"))] == [
        ["ui: KAFKA_BROKERS: kafka:9092"],
        ["app: KAFKA_BROKERS: kafka:9092"],
    ]


def test_a_voter_without_a_controller_listener_is_left_where_it_is() -> None:
    voters = "1@kafka1:9999,2@kafka2:9093"
    kafka1 = kraft(PAIR, "PLAINTEXT://kafka1:9092", name="kafka1", voters=voters)
    kafka2 = kraft(
        "PLAINTEXT://:9092",
        "PLAINTEXT://kafka2:9092",
        name="kafka2",
        id=2,
        roles="broker",
        voters=voters,
    )
    remedy = "give node 2 the role controller, or take it off the voters"
    corrected = "KAFKA_CONTROLLER_QUORUM_VOTERS: 1@kafka1:9093,2@kafka2:9093"
    assert reported(kafka1, kafka2) == [
        (remedy, [], False),
        (
            "list each voter where its controller listener is",
            [f"{name}: {corrected}" for name in ("kafka1", "kafka2")],
            True,
        ),
    ]


@pytest.mark.parametrize(("nodes", "expected"), [
    ([("a", 1, "1@a:9999,5@elsewhere.example.com:9093")],
     ["a: KAFKA_CONTROLLER_QUORUM_VOTERS: 1@a:9093,5@elsewhere.example.com:9093"]),
    ([("a", 1, "1@a:9999,2@b:9093"), ("b", 2, "1@a:9999,2@b:9093"), ("c", 1, "1@c:9093,2@d:9093"),
      ("d", 2, "1@c:9093,2@d:9093")],
     [f"{name}: KAFKA_CONTROLLER_QUORUM_VOTERS: 1@a:9093,2@b:9093" for name in "ab"]),
], ids=["one of another file", "two clusters with the same ids"])  # fmt: skip
def test_voters_are_listed_anew_on_the_nodes_of_their_cluster(
    nodes: list[tuple[str, int, str]], expected: list[str]
) -> None:
    text = "".join(
        kraft(PAIR, f"PLAINTEXT://{name}:9092", name=name, id=id, voters=voters)
        for name, id, voters in nodes
    )
    assert reported(text) == [("list each voter where its controller listener is", expected, True)]


def test_brokers_that_advertise_the_machine_to_each_other_get_a_listener_between_them() -> None:
    text, lines = "", []
    for id, port in ((1, 9092), (2, 9094)):
        text += with_zookeeper(
            f"PLAINTEXT://localhost:{port}",
            name=f"kafka{id}",
            image="apache/kafka:3.9.1",
            ports=f'"{port}:9092"',
            BROKER_ID=id,
        )
        advertised = f"PLAINTEXT://localhost:{port},INTERNAL://kafka{id}:29092"
        lines += [
            f"kafka{id}: KAFKA_ADVERTISED_LISTENERS: {advertised}",
            f"kafka{id}: KAFKA_LISTENERS: PLAINTEXT://:9092,INTERNAL://0.0.0.0:29092",
            f"kafka{id}: {MAP}: PLAINTEXT:PLAINTEXT,INTERNAL:PLAINTEXT",
            f"kafka{id}: KAFKA_INTER_BROKER_LISTENER_NAME: INTERNAL",
        ]
    assert reported(text) == [("give other brokers a listener of their own", lines, True)] * 2


def test_brokers_that_publish_a_containers_name_get_a_listener_each() -> None:
    text, lines = "", []
    for id, port in ((1, 9092), (2, 9094)):
        text += with_zookeeper(
            f"PLAINTEXT://kafka{id}:9092",
            name=f"kafka{id}",
            ports=f'"{port}:9092"',
            BROKER_ID=id,
        )
        advertised = f"PLAINTEXT://kafka{id}:9092,EXTERNAL://localhost:{port}"
        lines += [
            f"kafka{id}: KAFKA_ADVERTISED_LISTENERS: {advertised}",
            f"kafka{id}: KAFKA_LISTENERS: PLAINTEXT://:9092,EXTERNAL://0.0.0.0:19092",
            f"kafka{id}: {MAP}: PLAINTEXT:PLAINTEXT,EXTERNAL:PLAINTEXT",
            f"kafka{id}: ports: {port}:19092 in place of {port}:9092",
        ]
    assert [(shown, is_only) for _, shown, is_only in reported(text)] == [(lines, False)] * 2
    without_port = text.replace('    ports: ["9094:9092"]\n', "")
    assert [shown for _, shown, _ in reported(without_port)] == [[]]


class Trials:
    """A check that finds the same every time, and the number of services of each of its calls."""

    def __init__(self, *findings: Finding) -> None:
        self.sizes: list[int] = []
        self._findings = findings

    def __call__(self, changed: Sequence[Service], _: Deployment) -> tuple[Finding, ...]:
        self.sizes.append(len(changed))
        return self._findings


@pytest.mark.parametrize("most", [0, 3, 4, 7, 8, 11, 12, 40])
def test_of_a_large_file_so_many_lines_are_tried(
    most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    third, fourth = (SECOND.replace("r2", f"r{id}").replace("a2", f"a{id}") for id in (3, 4))
    all_services = services(compose(TWO, third, fourth))
    findings = tuple(replace(item, lines=()) for item in mistakes(all_services))
    monkeypatch.setattr(remedies, "MAX_SERVICES", most)
    found = with_lines(all_services, findings, trials := Trials())
    assert trials.sizes == [4] * min(most // 4, 3)
    assert [bool(item.lines) for item in found] == [i < most // 4 for i in range(3)]
    assert with_lines((), (), trials) == ()


def test_where_all_ports_are_published_none_is_left_for_another_listener() -> None:
    """Found by `make fuzz`."""
    ((_, _, is_only_way),) = reported(
        kraft(PAIR, "PLAINTEXT://localhost:29092", ports='"1-65535:1-65535"')
    )
    assert not is_only_way


@pytest.mark.parametrize("last", [65_000, 65_535])
def test_where_thousands_of_ports_are_taken_twice_each_is_looked_up_once(last: int) -> None:
    """Found by `make fuzz`: it took minutes."""
    other = "  other: {image: other, ports: ['9092:9092']}\n"
    kafka = kraft(PAIR, "PLAINTEXT://localhost:9092", ports=f'"1-{last}:1-{last}"')
    ((_, lines, is_only_way),) = reported(other, kafka)
    moved = [
        "kafka: ports: 65001:9092 in place of 9092:9092",
        f"kafka: {ADVERTISED}: PLAINTEXT://localhost:65001",
    ]
    assert (lines, is_only_way) == (moved if last == 65_000 else [], False)


# cp-kafka listens where it advertises, if nothing says where it listens
@pytest.mark.parametrize(("host", "lines"), [
    ("kafka", [f"kafka: {ADVERTISED}: PLAINTEXT://kafka:9092,EXTERNAL://localhost:29092",
               "kafka: KAFKA_LISTENERS: PLAINTEXT://0.0.0.0:9092,EXTERNAL://0.0.0.0:19092",
               f"kafka: {MAP}: PLAINTEXT:PLAINTEXT,EXTERNAL:PLAINTEXT",
               "kafka: ports: 29092:19092 in place of 29092:9092"]),
    ("192.168.0.5", ["kafka: ports: 9092:9092 in place of 29092:9092"]),
])  # fmt: skip
def test_no_line_leaves_a_published_port_without_a_listener(host: str, lines: list[str]) -> None:
    kafka = with_zookeeper(f"PLAINTEXT://{host}:9092", "", ports='"29092:9092"')
    ((_, told_lines, is_only_way),) = reported(kafka)
    assert (told_lines, is_only_way) == (lines, False)


def test_lines_may_change_in_what_words_another_mistake_is_told() -> None:
    kafka = kraft(PAIR, "PLAINTEXT://localhost:9092", ports='"9292:9092"')
    ui = client("kafka:9092", setting="KAFKA_BOOTSTRAP_SERVERS")
    lines = [lines for _, lines, _ in reported(kafka, ui)]
    assert lines[1] == [f"kafka: {ADVERTISED}: PLAINTEXT://localhost:9292"]


def test_lines_that_cure_several_findings_are_tried_once() -> None:
    all_services = services(compose(TWO))
    (finding,) = (replace(item, lines=()) for item in mistakes(all_services))
    found = with_lines(all_services, (finding,) * 3, trials := Trials())
    assert trials.sizes == [2]
    assert all(item.lines for item in found)


@pytest.mark.parametrize("most", range(5))
def test_of_one_finding_no_more_lines_are_tried_than_are_left(
    most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    all_services = services(compose(FIRST.replace("9092:9092", "9094:9092")))
    (finding,) = (replace(item, lines=()) for item in mistakes(all_services))
    trials = Trials(finding)
    monkeypatch.setattr(remedies, "MAX_SERVICES", most)
    assert with_lines(all_services, (finding, finding), trials) == (finding, finding)
    assert len(trials.sizes) == min(most, 3), "three for each, and the same"


@pytest.mark.parametrize(("line", "changed"), [
    (LineToWrite("app", "command", "b:2", "a:1"), {"command": ("run", "--to", "b:2,c:1")}),
    (LineToWrite("app", "A", "x"), {"env": {"A": "x", "B": "b"}}),
    (LineToWrite("app", "A", "x", "a"), {"env": {"A": "x:1", "B": "b"}}),
    (LineToWrite("app", "C", "c"), {"env": {"A": "a:1", "B": "b", "C": "c"}}),
    (LineToWrite("app", "node.id", "2"), {"properties": "node.id=1\n\nnode.id=2\n"}),
    (LineToWrite("app", "ports", "3:1", "1:1"),
     {"published": (PublishedPort(1, 3), PublishedPort(2, 2))}),
    (LineToWrite("app", "ports", "3:1", "4:4"), {}),
    (LineToWrite("app", "ports", "3:1", "nothing that is a port"), {}),
])  # fmt: skip
def test_what_a_line_makes_of_a_service(line: LineToWrite, changed: dict[str, Any]) -> None:
    container = Container(
        "app", env={"A": "a:1", "B": "b"}, published=(PublishedPort(1, 1), PublishedPort(2, 2))
    )
    other = Service("other", Container("other"))
    app = Service("app", container, command=("run", "--to", "a:1,c:1"), properties="node.id=1\n")
    inner = {key: value for key, value in changed.items() if key in ("env", "published")}
    outer = {key: value for key, value in changed.items() if key not in inner}
    wanted = replace(app, container=replace(container, **inner), **outer)
    assert with_lines_written((app, other), [line]) == (wanted, other)


def kind(finding: Finding) -> tuple[str, str, str | None, str]:
    return finding.rule, finding.container, finding.listener, finding.observed


def unusable_in(finding: Finding) -> Iterator[str]:
    """Addresses in the remedy and its lines that nothing can use."""
    for text in (finding.remedy, *(line.value for line in finding.lines)):
        for entry in re.findall(r"[A-Z]+://[^,;\s]+", text):
            host, _, port = entry.partition("://")[2].rpartition(":")
            address = Address(host.removeprefix("[").removesuffix("]"), int(port))
            if why_unusable(address, lowest=0) or (":" in address.host) != host.startswith("["):
                yield entry


def cures(all_services: tuple[Service, ...]) -> None:
    """Every remedy with lines cures its finding, makes no other, and brings its clients through."""
    findings = mistakes(all_services)
    for finding in findings:
        assert not [*unusable_in(finding)], finding
        if not finding.lines:
            continue
        changed_services = with_lines_written(all_services, finding.lines)
        remaining = {kind(other) for other in findings if kind(other) != kind(finding)}
        added = {kind(other) for other in mistakes(changed_services)} - remaining
        elsewhere = {kind(other)[:3] for other in findings} - {kind(finding)[:3]}
        assert {cause[:3] for cause in added} <= elsewhere, "only other words for a known mistake"
        if finding.rule == "KL015":
            whole = deployment(changed_services)
            moved = {(line.service, line.setting) for line in finding.lines}
            for client in whole.bootstraps:
                if (client.service, client.setting) in moved:
                    way = whole.way(client.service, client.addresses[0])
                    assert isinstance(way, ReachedListener)


def test_the_remedies_of_examples_are_as_on_disk() -> None:
    """Of every finding what to do, `only` where nothing else helps, and the lines to write."""
    shown = []
    for path in EXAMPLES:
        if found := reported(path.read_text()):
            shown.append("/".join(path.parts[-3:]))
        for remedy, lines, is_only_way in found:
            shown.append(f"  {'only: ' if is_only_way else ''}{remedy}")
            shown += [f"    {line}" for line in lines]
    is_golden("\n".join([*shown, ""]), Path(__file__).parent / "remedies.txt")


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: "/".join(p.parts[-3:]))
def test_the_remedies_of_examples_cure(path: Path) -> None:
    cures(services(path.read_text()))


PORTS = st.sampled_from([9092, 9093, 29092, 19092])
HOSTS = st.sampled_from(
    ["localhost", "kafka", "kafka1", "kafka2", "machine", "host.docker.internal"]
)


@st.composite
def deployments(draw: st.DrawFn) -> str:
    """One or two brokers that disagree in ports and names, and a client."""
    brokers = []
    for name in ("kafka1", "kafka2")[: draw(st.integers(1, 2))]:
        listened = draw(st.lists(PORTS, min_size=1, max_size=2, unique=True))
        names = ["PLAINTEXT", "OUTER"][: len(listened)]
        binds = [f"{n}://{draw(st.sampled_from(['', '0.0.0.0', 'localhost']))}:{p}"
                 for n, p in zip(names, listened, strict=True)]  # fmt: skip
        advertised = [f"{n}://{draw(HOSTS)}:{draw(PORTS)}" for n in names]
        ports = draw(st.lists(st.tuples(PORTS, PORTS), max_size=2, unique=True))
        quoted = ", ".join(f"'{outer}:{inner}'" for outer, inner in ports)
        image = draw(st.sampled_from(["apache/kafka:3.9.1", "confluentinc/cp-kafka:7.5.0"]))
        brokers.append(
            with_zookeeper(
                ",".join(advertised),
                ",".join(binds),
                name=name,
                image=image,
                ports=quoted,
                BROKER_ID=draw(st.integers(1, 2)),
                LISTENER_SECURITY_PROTOCOL_MAP="PLAINTEXT:PLAINTEXT,OUTER:PLAINTEXT",
            )
        )
    app = client(f"{draw(HOSTS)}:{draw(PORTS)}", "app")
    return compose("  zookeeper: {image: zookeeper}\n", app, *brokers)


@settings(max_examples=30)
@given(text=deployments())
def test_every_remedy_with_lines_cures(text: str) -> None:
    cures(services(text))


@settings(max_examples=60)
@given(
    text=deployments(),
    host=st.sampled_from(["my_domain:9094", "a..b", "my_host", "[2001:db8::1]", "256.1.1.1", ""]),
    port=st.sampled_from(["99999", "0", "30000"]),
    where=st.sampled_from(["KAFKA_LISTENERS: PLAINTEXT", "KAFKA_ADVERTISED_LISTENERS: PLAINTEXT"]),
)
def test_no_remedy_is_nonsense(text: str, host: str, port: str, where: str) -> None:
    """Also beside addresses that nothing can use: every remedy parses, and is accepted."""
    cures(services(re.sub(f"{where}://[^:]*:[0-9]+", f"{where}://{host}:{port}", text)))


def test_an_address_that_no_client_can_use_is_one_mistake_without_lines() -> None:
    kafka = kraft(
        "HOST://0.0.0.0:9092,CONTROLLER://:9093",
        "HOST://my_domain:9094:30000",
        "HOST:PLAINTEXT,CONTROLLER:PLAINTEXT",
        ports='"30000:9092"',
        INTER_BROKER_LISTENER_NAME="HOST",
    )
    (finding,) = mistakes(services(compose(kafka)))
    assert (finding.rule, finding.listener, finding.lines) == ("KL002", "HOST", ())
    assert finding.observed == (
        "advertised.listeners: HOST has the host my_domain:9094, which holds a colon and is not an "
        "IPv6 address; Kafka hands it out, and no client can connect to it"
    )


def secured(protocol: str, **variables: str) -> str:
    return with_zookeeper(
        "CLIENTS://kafka:9092",
        "",
        ports=ONE_PORT,
        LISTENER_SECURITY_PROTOCOL_MAP=f"CLIENTS:{protocol}",
        INTER_BROKER_LISTENER_NAME="CLIENTS",
        SASL_ENABLED_MECHANISMS="SCRAM-SHA-256",
        SASL_MECHANISM_INTER_BROKER_PROTOCOL="SCRAM-SHA-256",
        **variables,
    )


LOGIN = "LISTENER_NAME_CLIENTS_SCRAM___SHA___256_SASL_JAAS_CONFIG"
SCRAM = "ScramLoginModule required"


def test_a_new_listener_gets_the_logins_of_the_one_beside_it() -> None:
    ((remedy, lines, _),) = reported(secured("SASL_PLAINTEXT", **{LOGIN: f"{SCRAM};"}))
    assert "no lines" not in remedy
    assert lines[2:4] == [
        f"kafka: {MAP}: CLIENTS:SASL_PLAINTEXT,EXTERNAL:SASL_PLAINTEXT",
        f"kafka: KAFKA_{LOGIN.replace('CLIENTS', 'EXTERNAL')}: ScramLoginModule required;",
    ]


@pytest.mark.parametrize(("text", "reason"), [
    (secured("SASL_PLAINTEXT", **{LOGIN: SCRAM + ' username="a" password="planted";'}),
     "the settings of CLIENTS hold a secret"),
    (secured("SASL_PLAINTEXT", OPTS="-Djava.security.auth.login.config=/jaas"),
     "the logins of CLIENTS are elsewhere, as in a JAAS file"),
    (secured("SSL"), "the certificate of CLIENTS has to be good for the new address, too"),
    (secured("SASL_SSL", **{LOGIN: f"{SCRAM};"}),
     "the certificate of CLIENTS has to be good for the new address, too"),
])  # fmt: skip
def test_why_a_secured_listener_gets_no_lines(text: str, reason: str) -> None:
    ((remedy, lines, _),) = reported(text)
    assert remedy == (
        "give these clients a listener of their own that advertises localhost and its published "
        f"port, or publish the port no more (no lines are shown: {reason})"
    )
    assert lines == []


MACHINE = "PLAINTEXT://host.docker.internal"


def test_brokers_that_reach_each_other_by_way_of_the_machine_keep_doing_so() -> None:
    brokers = "".join(
        with_zookeeper(
            f"{MACHINE}:{advertised}",
            name=f"kafka{id}",
            image="confluentinc/cp-kafka:7.5.0",
            ports=f'"{port}:9092"',
            BROKER_ID=id,
        )
        for id, port, advertised in ((1, 29092, 29093), (2, 29093, 29093))
    )
    line = f"kafka1: KAFKA_ADVERTISED_LISTENERS: {MACHINE}:29092"
    assert reported(brokers) == [(f"advertise {MACHINE}:29092", [line], True)]

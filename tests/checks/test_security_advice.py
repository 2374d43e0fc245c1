"""How secure the brokers of a file are: one piece of advice at most, and none of what is inside."""

from pathlib import Path

import pytest

from earshot.checks.deployment import advice_on_services, advice_on_settings
from earshot.facts.settings import BrokerSettings
from earshot.lint.check import check
from earshot.listeners.terms import Protocol
from earshot.rules.kl019_clear_text import leaves_machine
from tests.rules.deployment_examples import services

KRAFT = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": "C",
    "controller.quorum.voters": "1@localhost:9093",
    "listeners": "A://:9092,C://:9093",
    "advertised.listeners": "A://203.0.113.1:9092",
    "inter.broker.listener.name": "A",
    "listener.security.protocol.map": "A:SASL_PLAINTEXT,C:PLAINTEXT",
}
COMPOSE = """\
services:
  kafka:
    image: confluentinc/cp-kafka:7.6.0
    hostname: kafka.example.com
    ports: ["9092:9092"]
    environment:
      KAFKA_ZOOKEEPER_CONNECT: zookeeper:2181
      KAFKA_ADVERTISED_LISTENERS: SASL_PLAINTEXT://HOST:9092
      KAFKA_INTER_BROKER_LISTENER_NAME: SASL_PLAINTEXT
      KAFKA_SASL_ENABLED_MECHANISMS: PLAIN
      KAFKA_SASL_MECHANISM_INTER_BROKER_PROTOCOL: PLAIN
      KAFKA_OPTS: -Djava.security.auth.login.config=/jaas.conf
"""


def said(folder: Path, text: str, name: str) -> list[tuple[str, str, int]]:
    (folder / name).write_text(text)
    found = check(folder / name, {}).mistakes
    return [(item.finding.rule, item.level, item.place.line) for item in found]


@pytest.mark.parametrize(
    ("host", "clear", "with_passwords"),
    [
        ("203.0.113.1", True, True),
        ("8.8.8.8", True, True),
        ("ec2-203-0-113-1.compute-1.amazonaws.com", True, True),
        ("10.0.0.1", False, True),
        ("ip-10-0-0-1.ec2.internal", False, True),
        ("kafka.example.com", False, True),
        ("localhost", False, False),
        ("kafka", False, False),
    ],
)
def test_who_is_far_away_sends_in_clear_text(host: str, clear: bool, with_passwords: bool) -> None:
    assert leaves_machine(Protocol.PLAINTEXT, host) is clear
    assert leaves_machine(Protocol.SASL_PLAINTEXT, host) is with_passwords
    assert not leaves_machine(Protocol.SASL_SSL, host)


@pytest.mark.parametrize(
    ("changes", "reported"),
    [
        ({}, ["KL019"]),
        ({"sasl.enabled.mechanisms": "PLAIN"}, ["KL020"]),
        ({"advertised.listeners": "A://localhost:9092"}, []),
        ({"advertised.listeners": "A://${HOST}:9092"}, []),
        ({"listener.security.protocol.map": "A:${PROTOCOL}"}, []),
    ],
)
def test_what_is_certain_is_told(changes: dict[str, str], reported: list[str]) -> None:
    found = advice_on_settings(BrokerSettings({**KRAFT, **changes}, True, None))
    assert [finding.rule for finding in found] == reported
    assert not any(finding.is_certain_error for finding in found)


def test_of_several_the_weightiest_is_told_and_the_others_are_named() -> None:
    more = {
        "listener.security.protocol.map": "A:SASL_PLAINTEXT,C:SSL",
        "ssl.enabled.protocols": "TLSv1",
        "ssl.endpoint.identification.algorithm": " ",
        "listener.name.b.plain.sasl.jaas.config": "x",
    }
    (found,) = advice_on_settings(BrokerSettings({**KRAFT, **more}, True, None))
    assert found.rule == "KL019"
    assert found.observed == (
        "is SASL_PLAINTEXT, and advertises 203.0.113.1:9092: anyone on the network path can read "
        "and change what is sent (there is more about security: KL023, KL022, KL021)"
    )


def test_what_image_or_script_may_set_is_not_known() -> None:
    bare = {key: KRAFT[key] for key in ("advertised.listeners", "inter.broker.listener.name")}
    assert advice_on_settings(BrokerSettings(bare, False, None)) == ()


@pytest.mark.parametrize(
    ("host", "reported"),
    [
        ("localhost", []),
        ("kafka", []),
        ("kafka.example.com", []),
        ("b1.example.com", [("KL020", "warning", 10)]),
    ],
)
def test_a_compose_file(tmp_path: Path, host: str, reported: list[tuple[str, str, int]]) -> None:
    found = said(tmp_path, COMPOSE.replace("HOST", host), "compose.yml")
    assert [item for item in found if item[0] > "KL018"] == reported


def test_of_a_broker_with_a_mistake_nothing_more_is_said(tmp_path: Path) -> None:
    text = COMPOSE.replace("HOST", "b1.example.com").replace("PROTOCOL: PLAIN", "PROTOCOL: GSSAPI")
    assert [item[0] for item in said(tmp_path, text, "compose.yml")] == ["KL002"]


def test_other_forms_of_files(tmp_path: Path) -> None:
    properties = "".join(f"{key}={value}\n" for key, value in KRAFT.items())
    assert said(tmp_path, properties, "server.properties") == [("KL019", "warning", 8)]
    variables = "".join(
        f"KAFKA_{key.replace('.', '_').upper()}={value}\n" for key, value in KRAFT.items()
    )
    assert said(tmp_path, variables, "kafka.env") == [("KL019", "warning", 8)]
    cloud = "#cloud-config\nwrite_files:\n- path: /etc/kafka/server.properties\n  content: |\n"
    block = "".join(f"    {line}\n" for line in properties.splitlines())
    assert said(tmp_path, cloud + block, "user-data.yaml") == [("KL019", "warning", 12)]
    pod = (
        "apiVersion: v1\nkind: Pod\nmetadata: {name: k}\nspec:\n  containers:\n  - name: k\n"
        "    image: apache/kafka:4.1.1\n    env:\n"
        "    - {name: KAFKA_SSL_KEYSTORE_LOCATION, value: /k.jks}\n"
        "    - {name: KAFKA_OPTS, value: -Djava.security.auth.login.config=/jaas.conf}\n"
    )
    env = "".join(
        f"    - {{name: KAFKA_{key.replace('.', '_').upper()}, value: '{value}'}}\n"
        for key, value in KRAFT.items()
    )
    assert said(tmp_path, pod + env, "pod.yaml") == [("KL019", "warning", 18)]


def test_of_two_brokers_the_second_is_looked_at_where_something_is_said_of_the_first() -> None:
    both = COMPOSE + COMPOSE.partition("services:\n")[2].replace("  kafka:", "  second:").replace(
        "9092:9092", "9094:9092"
    ).replace("hostname: kafka.", "hostname: second.")
    found = services(both.replace("HOST", "203.0.113.1"))
    (first,) = advice_on_services(found)
    assert (first.rule, first.container) == ("KL020", "kafka")
    (second,) = advice_on_services(found, [first])
    assert (second.rule, second.container) == ("KL020", "second")

from pathlib import Path

import pytest
from hypothesis import given, settings

from earshot.facts.cluster import ClusterFacts
from earshot.facts.settings import BrokerSettings, KafkaSettings
from earshot.listeners.model import ClusterPlan
from earshot.listeners.properties import NodeSettings
from earshot.rules.evaluate import evaluate
from earshot.rules.kl002_kafka import RULE, objections, refusals
from earshot.rules.rule import Severity
from tests.goldens import is_golden
from tests.listeners.clusters import plans
from tests.rules.vectors import BASES, BROKER, COMBINED, CONTROLLER, MAP, VECTORS

ERAS = ("3.9.0", "3.9.2", "4.0.0", "4.1.1", "4.2.1")
"""Versions between which a verdict changes."""
NO_MECHANISM = {  # as `make kafka-judge` found: an empty name is not in an empty list
    "listener.security.protocol.map": MAP.replace("INTERNAL:PLAINTEXT", "INTERNAL:SASL_PLAINTEXT"),
    "sasl.enabled.mechanisms": "",
    "sasl.mechanism.inter.broker.protocol": "",
}


def checks(values: dict[str, str], version: str = "4.1.1") -> list[str]:
    return [item.check for item in objections(values, version)]


@pytest.mark.parametrize("version", ["3.9.0", "3.9.2", "4.0.0", "4.1.1", "4.2.1", "4.3.1"])
@pytest.mark.parametrize("base", BASES)
def test_has_nothing_against_a_sound_node(base: str, version: str) -> None:
    assert checks(BASES[base], version) == []


@pytest.mark.parametrize(
    ("base", "change", "version", "check", "refused"),
    [
        (BROKER, {"process.roles": "broker,broker"}, "4.2.0", "R1a", False),
        (BROKER, {"broker.id.generation.enable": "maybe"}, "3.9.2", "Z5", True),
        (BROKER, {"zookeeper.metadata.migration.enable": "maybe"}, "3.9.2", "Z5", True),
        (BROKER, {"process.roles": ""}, "4.2.0", "R1c", True),
        (BROKER, {"process.roles": ""}, "4.0", "R1c", False),
        (BROKER, {"process.roles": ""}, "4.2", "R1c", True),
        (BROKER, {"process.roles": "broker,broker"}, "4.2", "R1a", False),
        (BROKER, {"controller.quorum.auto.join.enable": "true"}, "4.2", "C11", True),
        (BROKER, {"sasl.enabled.mechanisms": "PLAIN,"}, "4.2", "I5a", True),
        (BROKER, NO_MECHANISM, "3.3.2", "I5", True),
        (BROKER, NO_MECHANISM, "4.4.0", "I5", True),
        (CONTROLLER, {"inter.broker.listener.name": "CONTROLLER"}, "4.0", "C7", True),
        (BROKER, {"control.plane.listener.name": "X"}, "4.0", "C12", False),
        (BROKER, {"controller.quorum.auto.join.enable": "TRUE"}, "4.1.1", "C11", False),
        (BROKER, {"controller.quorum.auto.join.enable": "TRUE"}, "4.2.0", "C11", True),
        (BROKER, {"control.plane.listener.name": "X"}, "3.9.2", "C12", True),
        (BROKER, {"control.plane.listener.name": "X"}, "4.0.0", "C12", False),
        (CONTROLLER, {"listeners": "CONTROLLER://0.0.0.0:9093"}, "3.9.1", "C10", False),
    ],
)
def test_versions_differ(
    base: dict[str, str], change: dict[str, str], version: str, check: str, refused: bool
) -> None:
    (found,) = [item for item in objections(base | change, version) if item.check == check]
    assert found.refused is refused


@pytest.mark.parametrize(("base", "change", "version", "grave"), [
    # the quorum forms where its voters are named, whatever the leader calls itself
    (COMBINED, {"listeners": "CONTROLLER://:9093"}, "4.1.1", False),
    (CONTROLLER, {"listeners": "CONTROLLER://:9093"}, "3.9.2", False),
    (CONTROLLER, {"listeners": "CONTROLLER://0.0.0.0:9093"}, "3.9.0", True),
    # and nothing else tells where a voter of a dynamic quorum is
    (CONTROLLER,
     {"listeners": "CONTROLLER://:9093", "controller.quorum.bootstrap.servers": "127.0.0.1:9093"},
     "4.1.1", True),
])  # fmt: skip
def test_a_controller_without_an_address_is_an_error_without_voters(
    base: dict[str, str], change: dict[str, str], version: str, grave: bool
) -> None:
    values = base | change
    if "controller.quorum.bootstrap.servers" in change:
        del values["controller.quorum.voters"]
    if base is COMBINED:
        values["listeners"] = f"{BROKER['listeners']},{change['listeners']}"
        values["advertised.listeners"] = BROKER["advertised.listeners"]
    (found,) = objections(values, version)
    assert (found.check, found.is_error) == ("C10", grave)


def test_says_which_kafka_is_assumed_where_none_is_known() -> None:
    (finding,) = evaluate(
        ClusterFacts(None, {1: NodeSettings(BROKER | {"broker.id": "2"})}), [RULE]
    )
    assert finding.observed.endswith("Kafka (taken for 4.1.1) does not start")


@pytest.mark.parametrize(("version", "refused"), [("3.9.2", False), ("4.1.1", True)])
def test_zookeeper_excuses_a_broker_without_a_role_before_kafka_4_only(
    version: str, refused: bool
) -> None:
    values = {"zookeeper.connect": "z:2181", "listeners": "PLAINTEXT://b1:9092", "broker.id": "1"}
    (found,) = objections(values, version)
    assert (found.check, found.observed, found.refused) == ("R1b", "is not set", refused)


OLD = {
    "zookeeper.connect": "z:2181",
    "broker.id": "1",
    "listeners": "PLAINTEXT://b1:9092,OTHER://:9093",
    "advertised.listeners": "PLAINTEXT://b1:9092,OTHER://b1:9193",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,OTHER:SASL_SSL",
}


@pytest.mark.parametrize(("change", "version", "found"), [
    ({}, (3, 9), []),
    ({"broker.id.generation.enable": " False "}, (3, 9), []),
    ({"broker.id.generation.enable": "fals"}, (2, 8), ["Z5"]),
    ({"broker.id.generation.enable": "fals"}, (3, 9), ["Z5"]),
    ({"zookeeper.metadata.migration.enable": "1"}, (3, 3), []),
    ({"zookeeper.metadata.migration.enable": "1"}, (3, 4), ["Z5"]),
    ({"controller.listener.names": "PLAINTEXT"}, (2, 7), []),
    ({"controller.listener.names": "PLAINTEXT"}, (2, 8), ["A5a", "I4"]),
    ({"controller.listener.names": "OTHER"}, (3, 1), []),
    ({"controller.listener.names": ","}, (3, 9), []),
    ({"controller.listener.names": "OTHER"}, (3, 2), ["A5a", "Z1"]),
    ({"inter.broker.listener.name": "OTHER", "sasl.enabled.mechanisms": "",
      "sasl.mechanism.inter.broker.protocol": ""}, (3, 9), ["I5"]),
])  # fmt: skip
def test_a_broker_of_zookeeper_s_times_is_refused_for(
    change: dict[str, str], version: tuple[int, int], found: list[str]
) -> None:
    view = KafkaSettings({**OLD, **change}, version, complete=True)
    assert sorted(item.check for item in refusals(view)) == found


@pytest.mark.parametrize(("name", "found"), [("plaintext", []), ("controller", ["C3"])])
def test_a_controllers_listener_that_is_called_like_a_protocol_needs_no_entry_as_written(
    name: str, found: list[str]
) -> None:
    protocols = f"{BROKER['listener.security.protocol.map']},PLAINTEXT:SSL"
    changed = {"listener.security.protocol.map": protocols, "controller.listener.names": name}
    view = KafkaSettings(BROKER | changed, (4, 1), complete=True)
    assert [item.check for item in refusals(view)] == found


def test_a_hint_is_a_warning_and_the_rest_are_errors() -> None:
    names = {
        "controller.listener.names": "CONTROLLER,OLD",
        "listener.security.protocol.map": BROKER["listener.security.protocol.map"] + ",OLD:SSL",
    }
    (finding,) = evaluate(ClusterFacts(None, {1: NodeSettings(BROKER | names)}), [RULE])
    assert finding.severity is Severity.WARNING
    (finding,) = evaluate(
        ClusterFacts(None, {1: NodeSettings(BROKER | {"broker.id": "2"})}), [RULE]
    )
    assert finding.severity is Severity.ERROR


def test_checks_for_the_version_that_the_settings_note() -> None:
    change = {"controller.quorum.auto.join.enable": "true"}
    for version, words in (("4.1.1", "does not know it"), ("4.3.1", "does not start")):
        noted = NodeSettings(BROKER | change, {"kafka_version": version})
        (finding,) = evaluate(ClusterFacts(None, {1: noted}), [RULE])
        assert finding.observed.endswith(f"Kafka {version} {words}")


@settings(max_examples=40)
@given(plans())
def test_has_nothing_against_a_plan_but_an_any_address(cluster: ClusterPlan) -> None:
    for found in evaluate(ClusterFacts.of(cluster), [RULE]):
        assert "0.0.0.0:" in found.observed


@pytest.mark.parametrize(
    ("first", "second", "found"),
    [
        ("10.0.0.1", "[2001:db8::1]", []),
        ("0.0.0.0", "[2001:db8::1]", []),
        ("0.0.0.0", "[::]", ["P3"]),
        ("10.0.0.1", "10.0.0.2", ["P2"]),
        ("", "", ["P2"]),
    ],
)
def test_two_listeners_on_one_port(first: str, second: str, found: list[str]) -> None:
    listeners = f"INTERNAL://{first}:9092,EXTERNAL://{second}:9092"
    assert checks(BROKER | {"listeners": listeners}) == found


def test_what_is_said_of_every_vector_is_as_on_disk() -> None:
    """Every text, the listener that it is about, and for which versions it holds."""
    lines = []
    for vector in VECTORS:
        change = ", ".join(f"{key}={text}" for key, text in vector.change.items())
        versions: dict[str, list[str]] = {}
        for version in ERAS:
            for item in objections(vector.values, version):
                severity = "error" if item.is_error else "warning"
                reported = (
                    f"{item.check} {item.listener or '-'} {severity}: "
                    f"{item.key}: {item.observed}; {item.instead or 'does not start'} "
                    f"- {item.expected} - {item.remedy or '(as the rule)'}"
                )
                versions.setdefault(reported, []).append(version)
        if versions:
            lines.append(f"{vector.name} {vector.base} {change}")
        for reported, listed in versions.items():
            since = "" if len(listed) == len(ERAS) else f" [{' '.join(listed)}]"
            lines.append(f"  {reported}{since}")
    is_golden("\n".join(lines) + "\n", Path(__file__).parent / "objections.txt")


@pytest.mark.parametrize(
    ("base", "change", "found"),
    [
        # only what is advertised in so many words is held against the map
        (BROKER, {"advertised.listeners": BROKER["advertised.listeners"] + ",X://b1:1"},
         ["M5", "A1"]),
        (COMBINED, {"controller.listener.names": None}, ["C1"]),
        (BROKER, {"node.id": "-1"}, ["R2"]),
        (BROKER, {"node.id": "-1", "controller.quorum.voters": "1@127.0.0.1:9093"}, ["R2"]),
        (BROKER, {"node.id": "0", "controller.quorum.voters": "0@127.0.0.1:9093"}, ["R5"]),
        (BROKER, {"node.id": "+1"}, []),
        (BROKER, {"node.id": "2147483647"}, []),
        (BROKER, {"node.id": "-2147483649"}, ["R2"]),
        (CONTROLLER, {"node.id": "-1"}, ["R2"]),
        (CONTROLLER, {"node.id": None, "broker.id": "9"}, []),
        # what is not advertised in so many words is held against the map once, as a listener
        (CONTROLLER, {"listeners": "CONTROLLER://127.0.0.1:9093,X://:1"}, ["M4", "C5"]),
        # a map of the controllers' listener alone: that one is not said to lack an entry
        (BROKER, {"listener.security.protocol.map": "CONTROLLER:PLAINTEXT"}, ["M5"] * 4 + ["I2"]),
        # what the grammar refuses is left to it
        (BROKER, {"listeners": "INTERNAL://b_1:9092,INTERNAL://b_1:9092"}, []),
        (BROKER, {"listener.security.protocol.map": "INTERNAL:TLS"}, []),
        # a broker alone is no voter
        (BROKER, {"controller.quorum.voters": "8@127.0.0.1:9093"}, []),
        # A1 is about brokers: what a controller advertises is not for clients, A5c reports it
        (CONTROLLER, {"advertised.listeners": "CLIENTS://c:9092"}, ["M4", "A5c", "C10"]),
        # one that is alone on its port, then two that are not
        (BROKER, {"listeners": "A://:1,INTERNAL://:2,EXTERNAL://:2"}, ["P2", "M5"]),
        (CONTROLLER, {"node.id": None, "broker.id": "8"}, ["R6"]),
    ],
)  # fmt: skip
def test_settings_that_no_vector_has(
    base: dict[str, str], change: dict[str, str | None], found: list[str]
) -> None:
    values = {key: text for key, text in {**base, **change}.items() if text is not None}
    assert checks(values) == found


def test_a_controller_listener_that_is_not_advertised_beside_others_is_a_hint() -> None:
    names = {
        "controller.listener.names": "CONTROLLER,SECOND",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,SECOND:PLAINTEXT",
        "listeners": "CONTROLLER://127.0.0.1:9093,SECOND://127.0.0.1:9095",
        "advertised.listeners": "CONTROLLER://127.0.0.1:9093",
    }
    (found,) = objections(CONTROLLER | names, "4.1.1")
    assert (found.check, found.listener, found.is_error, found.refused) == (
        "C10",
        "SECOND",
        False,
        False,
    )


@pytest.mark.parametrize(
    ("release", "has_map", "found"),
    [((4, 0), False, []), ((4, 1), False, ["C5a"]), ((4, 1), True, []), ((4, 2), False, [])],
)
def test_a_controller_that_is_named_twice_is_refused_by_4_1_without_a_map(
    release: tuple[int, int], has_map: bool, found: list[str]
) -> None:
    values = COMBINED | {
        "controller.listener.names": "CONTROLLER,CONTROLLER",
        "inter.broker.listener.name": "PLAINTEXT",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "listeners": "PLAINTEXT://:9092,CONTROLLER://127.0.0.1:9093",
        "advertised.listeners": "PLAINTEXT://b1:9092",
    }
    if not has_map:
        del values["listener.security.protocol.map"]
    view = BrokerSettings(values, True, release).read()
    assert [item.check for item in refusals(view)] == found

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings

from earshot.listeners.model import ClusterPlan
from earshot.listeners.properties import Settings
from earshot.rules import Facts, Severity, judge
from earshot.rules.kl002_kafka import RULE, objections
from tests.listeners.clusters import plans
from tests.rules.examples import described
from tests.rules.settings_examples import files, load
from tests.rules.vectors import BASES, BROKER, COMBINED, CONTROLLER


def checks(values: dict[str, str], version: str = "4.1.1") -> list[str]:
    return [item.check for item in objections(values, version)]


@pytest.mark.parametrize("path", files("KL002"), ids=lambda path: "/".join(path.parts[-2:]))
def test_an_example_gives_the_findings_it_states(path: Path) -> None:
    facts, expected = load(path)
    assert [described(item, RULE) for item in judge(facts, [RULE])] == expected
    assert bool(expected) == (path.parts[-2] == "fail")


@pytest.mark.parametrize("version", ["3.9.0", "3.9.2", "4.0.0", "4.1.1", "4.2.1", "4.3.1"])
@pytest.mark.parametrize("base", BASES)
def test_has_nothing_against_a_sound_node(base: str, version: str) -> None:
    assert checks(BASES[base], version) == []


@pytest.mark.parametrize(
    ("base", "change", "version", "check", "refused"),
    [
        (BROKER, {"process.roles": "broker,broker"}, "4.1.1", "R1a", True),
        (BROKER, {"process.roles": "broker,broker"}, "4.2.0", "R1a", False),
        (BROKER, {"process.roles": ""}, "3.9.2", "R1c", True),
        (BROKER, {"process.roles": ""}, "4.1.1", "R1c", False),
        (BROKER, {"process.roles": ""}, "4.2.0", "R1c", True),
        (BROKER, {"controller.quorum.auto.join.enable": "TRUE"}, "4.1.1", "C11", False),
        (BROKER, {"controller.quorum.auto.join.enable": "TRUE"}, "4.2.0", "C11", True),
        (BROKER, {"control.plane.listener.name": "X"}, "3.9.2", "C12", True),
        (BROKER, {"control.plane.listener.name": "X"}, "4.0.0", "C12", False),
        (CONTROLLER, {"inter.broker.listener.name": "CONTROLLER"}, "3.9.2", "C7", False),
        (CONTROLLER, {"inter.broker.listener.name": "CONTROLLER"}, "4.0.0", "C7", True),
        (CONTROLLER, {"listeners": "CONTROLLER://0.0.0.0:9093"}, "3.9.0", "C10", True),
        (CONTROLLER, {"listeners": "CONTROLLER://0.0.0.0:9093"}, "3.9.1", "C10", False),
        (CONTROLLER, {"listeners": "CONTROLLER://:9093"}, "3.9.0", "C10", False),
    ],
)
def test_versions_differ(
    base: dict[str, str], change: dict[str, str], version: str, check: str, refused: bool
) -> None:
    (found,) = [item for item in objections(base | change, version) if item.check == check]
    assert found.refused is refused


@pytest.mark.parametrize(
    ("base", "change", "version", "grave"),
    [
        # the quorum forms where its voters are named, whatever the leader calls itself
        (COMBINED, {"listeners": "CONTROLLER://:9093"}, "4.1.1", False),
        (CONTROLLER, {"listeners": "CONTROLLER://:9093"}, "3.9.2", False),
        (CONTROLLER, {"listeners": "CONTROLLER://0.0.0.0:9093"}, "3.9.0", True),
        # and nothing else tells where a voter of a dynamic quorum is
        (
            CONTROLLER,
            {
                "listeners": "CONTROLLER://:9093",
                "controller.quorum.bootstrap.servers": "127.0.0.1:9093",
            },
            "4.1.1",
            True,
        ),
    ],
)
def test_a_controller_that_nobody_places_is_grave_where_the_voters_do_not(
    base: dict[str, str], change: dict[str, str], version: str, grave: bool
) -> None:
    values = base | change
    if "controller.quorum.bootstrap.servers" in change:
        del values["controller.quorum.voters"]
    if base is COMBINED:
        values["listeners"] = f"{BROKER['listeners']},{change['listeners']}"
        values["advertised.listeners"] = BROKER["advertised.listeners"]
    (found,) = objections(values, version)
    assert (found.check, found.grave) == ("C10", grave)


def test_says_which_kafka_is_assumed_where_none_is_known() -> None:
    (found,) = judge(Facts(None, {1: Settings(BROKER | {"broker.id": "2"})}), [RULE])
    assert found.observed.endswith("Kafka (taken for 4.1.1) does not start")


def test_a_broker_of_zookeeper_s_times_is_not_judged_as_one_of_kraft() -> None:
    values = {"zookeeper.connect": "z:2181", "listeners": "PLAINTEXT://b1:9092", "broker.id": "1"}
    (found,) = objections(values, "3.9.2")
    assert (found.check, found.refused) == ("R1b", False)


def test_leaves_to_the_grammar_what_the_grammar_refuses() -> None:
    assert checks(BROKER | {"listeners": "INTERNAL://b_1:9092,INTERNAL://b_1:9092"}) == []
    assert checks(BROKER | {"listener.security.protocol.map": "INTERNAL:TLS"}) == []


def test_a_hint_is_a_warning_and_the_rest_are_errors() -> None:
    names = {
        "controller.listener.names": "CONTROLLER,OLD",
        "listener.security.protocol.map": BROKER["listener.security.protocol.map"] + ",OLD:SSL",
    }
    (found,) = judge(Facts(None, {1: Settings(BROKER | names)}), [RULE])
    assert found.severity is Severity.WARNING
    (found,) = judge(Facts(None, {1: Settings(BROKER | {"broker.id": "2"})}), [RULE])
    assert found.severity is Severity.ERROR


def test_judges_for_the_version_that_the_settings_note() -> None:
    change = {"controller.quorum.auto.join.enable": "true"}
    for version, words in (("4.1.1", "does not know it"), ("4.3.1", "does not start")):
        noted = Settings(BROKER | change, {"kafka_version": version})
        (found,) = judge(Facts(None, {1: noted}), [RULE])
        assert found.observed.endswith(f"Kafka {version} {words}")


def test_asks_only_for_what_a_role_needs() -> None:
    assert checks(COMBINED | {"controller.quorum.voters": "8@127.0.0.1:9093"}) == ["R6"]
    assert checks(BROKER | {"controller.quorum.voters": "8@127.0.0.1:9093"}) == []


@settings(max_examples=40)
@given(plans())
def test_has_nothing_against_a_plan_but_an_any_address(cluster: ClusterPlan) -> None:
    for found in judge(Facts.of(cluster), [RULE]):
        assert "0.0.0.0:" in found.observed

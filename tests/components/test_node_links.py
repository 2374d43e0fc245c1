"""Which changes of listeners nodes can take one after the other."""

import pytest
from earshot_pulumi.node_links import Links, unrollable

from earshot.listeners.properties import read_properties
from earshot.listeners.render import server_properties
from tests.components.local.test_cluster_memory import planned

TWO = {"INTERNAL": "PLAINTEXT", "EXTERNAL": "PLAINTEXT", "CONTROLLER": "PLAINTEXT"}
OLD = Links("INTERNAL", "CONTROLLER", TWO)
RENAMED = Links("BROKERS", "CONTROLLER", {"BROKERS": "PLAINTEXT", "CONTROLLER": "PLAINTEXT"})


def problems(running: list[Links], wanted: Links) -> list[str]:
    return unrollable(dict(enumerate(running, 1)), wanted, "Stop them first")


def test_a_renamed_inter_broker_listener_is_refused() -> None:
    (problem,) = problems([OLD, OLD, OLD], RENAMED)
    assert problem == (
        "the listener through which nodes reach the brokers would change from INTERNAL (PLAINTEXT) "
        "to BROKERS (PLAINTEXT) while they run: the first restarted node could not "
        "connect to the others, and would never get in sync. Stop them first"
    )


def test_another_protocol_of_the_inter_broker_listener_is_refused() -> None:
    wanted = Links("INTERNAL", "CONTROLLER", TWO | {"INTERNAL": "SASL_PLAINTEXT"})
    (problem,) = problems([OLD, OLD], wanted)
    assert "brokers would change from INTERNAL (PLAINTEXT) to INTERNAL (SASL_PLAINTEXT)" in problem


def test_another_protocol_of_the_controllers_is_refused_for_every_node() -> None:
    wanted = Links("INTERNAL", "CONTROLLER", TWO | {"CONTROLLER": "SSL"})
    alone = Links("", "CONTROLLER", {"CONTROLLER": "PLAINTEXT"})
    (problem,) = problems([OLD, alone], wanted)
    assert "controllers would change from CONTROLLER (PLAINTEXT) to CONTROLLER (SSL)" in problem


@pytest.mark.parametrize(
    "wanted",
    [
        OLD,
        # both names are listeners of the old and the new brokers alike
        Links("EXTERNAL", "CONTROLLER", TWO),
        Links("INTERNAL", "CONTROLLER", TWO | {"EXTERNAL": "SSL"}),
        Links("INTERNAL", "CONTROLLER", {"INTERNAL": "PLAINTEXT", "CONTROLLER": "PLAINTEXT"}),
    ],
)
def test_what_every_node_understands_meanwhile_can_roll(wanted: Links) -> None:
    assert problems([OLD, OLD, OLD], wanted) == []


def test_the_inter_broker_listener_moves_to_one_of_the_same_name_only_with_its_protocol() -> None:
    assert problems([OLD, OLD], Links("EXTERNAL", "CONTROLLER", TWO | {"EXTERNAL": "SSL"}))


@pytest.mark.parametrize(
    ("running", "wanted", "refused"),
    [
        ([], RENAMED, False),
        ([OLD], RENAMED, False),
        ([RENAMED, OLD, OLD], OLD, False),
        ([RENAMED, OLD, OLD], RENAMED, True),
        ([RENAMED, RENAMED, OLD], RENAMED, False),
        ([RENAMED, RENAMED, OLD], OLD, True),
    ],
)
def test_what_is_left_half_done_goes_the_way_of_one_restart(
    running: list[Links], wanted: Links, refused: bool
) -> None:
    assert bool(problems(running, wanted)) is refused


def test_a_lone_broker_with_separate_controllers_may_change_its_own_listener() -> None:
    alone = Links("", "CONTROLLER", {"CONTROLLER": "PLAINTEXT"})
    assert problems([OLD, alone, alone, alone], RENAMED) == []


@pytest.mark.parametrize("mode", ["combined", "separate"])
def test_a_node_is_read_back_as_its_plan_says(mode: str) -> None:
    plan = planned(controllers={"mode": mode})
    for node in plan.brokers:
        settings = read_properties(server_properties(plan, node))
        assert Links.of_settings(settings.values) == Links.of_plan(plan)
    for node in plan.controllers:
        settings = read_properties(server_properties(plan, node))
        links = Links.of_settings(settings.values)
        assert links.through(links.controller) == "CONTROLLER (PLAINTEXT)"

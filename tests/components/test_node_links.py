"""Which changes of listeners nodes can take one after the other."""

import pytest
from earshot_pulumi.node_links import Links, unrollable

from earshot.listeners.properties import read_properties
from earshot.listeners.render import server_properties
from tests.components.local.test_cluster_memory import planned

TWO = {"INTERNAL": "PLAINTEXT", "EXTERNAL": "PLAINTEXT", "CONTROLLER": "PLAINTEXT"}
TWO_OF_NODES = {"INTERNAL": "PLAINTEXT", "CONTROLLER": "PLAINTEXT"}
OLD = Links("INTERNAL", "CONTROLLER", TWO)
RENAMED = Links("BROKERS", "CONTROLLER", {"BROKERS": "PLAINTEXT", "CONTROLLER": "PLAINTEXT"})
CONTROLLER = Links("", "CONTROLLER", {"CONTROLLER": "PLAINTEXT"})


def problems(running: list[Links], wanted: Links) -> list[str]:
    return unrollable(dict(enumerate(running, 1)), wanted, "Stop them first")


@pytest.mark.parametrize(("running", "wanted", "change"), [
    ([OLD, OLD, OLD], RENAMED,
     "brokers would change from INTERNAL (PLAINTEXT) to BROKERS (PLAINTEXT)"),
    ([OLD, OLD], Links("INTERNAL", "CONTROLLER", TWO | {"INTERNAL": "SASL_PLAINTEXT"}),
     "brokers would change from INTERNAL (PLAINTEXT) to INTERNAL (SASL_PLAINTEXT)"),
    ([OLD, OLD], Links("EXTERNAL", "CONTROLLER", TWO | {"EXTERNAL": "SSL"}),
     "brokers would change from INTERNAL (PLAINTEXT) to EXTERNAL (SSL)"),
    ([OLD, CONTROLLER], Links("INTERNAL", "CONTROLLER", TWO | {"CONTROLLER": "SSL"}),
     "controllers would change from CONTROLLER (PLAINTEXT) to CONTROLLER (SSL)"),
])  # fmt: skip
def test_another_link_between_running_nodes_is_refused(
    running: list[Links], wanted: Links, change: str
) -> None:
    (problem,) = problems(running, wanted)
    assert problem == (
        f"the listener through which nodes reach the {change} while they run: the first restarted "
        "node could not connect to the others, and would never get in sync. Stop them first"
    )


@pytest.mark.parametrize(
    ("running", "wanted", "refused"),
    [
        ([OLD, OLD, OLD], OLD, False),
        # both names are listeners of the old and the new brokers alike
        ([OLD, OLD, OLD], Links("EXTERNAL", "CONTROLLER", TWO), False),
        ([OLD, OLD, OLD], Links("INTERNAL", "CONTROLLER", TWO | {"EXTERNAL": "SSL"}), False),
        ([OLD, OLD, OLD], Links("INTERNAL", "CONTROLLER", TWO_OF_NODES), False),
        # a lone broker changes its own listener
        ([OLD, CONTROLLER, CONTROLLER, CONTROLLER], RENAMED, False),
        # what is left half done
        ([], RENAMED, False),
        ([OLD], RENAMED, False),
        ([RENAMED, OLD, OLD], OLD, False),
        ([RENAMED, OLD, OLD], RENAMED, True),
        ([RENAMED, RENAMED, OLD], RENAMED, False),
        ([RENAMED, RENAMED, OLD], OLD, True),
    ],
)
def test_what_every_node_understands_meanwhile_can_roll_the_way_of_one_restart(
    running: list[Links], wanted: Links, refused: bool
) -> None:
    assert bool(problems(running, wanted)) is refused


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

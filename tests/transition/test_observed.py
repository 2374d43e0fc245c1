"""The memory of a change, compared with the settings of running nodes."""

from collections.abc import Collection

import pytest

from earshot.listeners.model import ClusterPlan
from earshot.listeners.properties import NodeSettings, read_environment
from earshot.listeners.render import annotated, environment
from earshot.transition.memory import ChangeMemory
from earshot.transition.observed import corrected
from tests.transition.test_steps import BEFORE, EXTERNAL, INTERNAL, RENAMED, plan

MOVED = plan(INTERNAL, {**EXTERNAL, "port": 9192})
SECURED = plan(INTERNAL, {**EXTERNAL, "protocol": "SSL"})


def runs(running: ClusterPlan, ids: Collection[int] = (1, 2, 3)) -> dict[int, NodeSettings]:
    return {id: annotated(running, running.node(id)) for id in ids}


@pytest.mark.parametrize(
    ("memory", "observed"),
    [
        (ChangeMemory(), runs(BEFORE)),
        (ChangeMemory(complete=BEFORE), {}),
        (ChangeMemory(complete=BEFORE), runs(BEFORE)),
        (ChangeMemory(complete=BEFORE), runs(BEFORE, [2])),
        (ChangeMemory(complete=BEFORE, begun=(RENAMED,), done=1), runs(RENAMED)),
        (ChangeMemory(complete=BEFORE, begun=(RENAMED,)), {**runs(BEFORE), **runs(RENAMED, [1])}),
        (ChangeMemory(complete=BEFORE), {1: NodeSettings({})}),
        (ChangeMemory(complete=BEFORE), {9: annotated(RENAMED, RENAMED.node(1))}),
        (ChangeMemory(complete=BEFORE), {1: NodeSettings({"advertised.listeners": "?"})}),
    ],
)
def test_what_is_remembered_stays_where_no_node_runs_something_else(
    memory: ChangeMemory, observed: dict[int, NodeSettings]
) -> None:
    assert corrected(memory, MOVED, observed) == (memory, "")


def test_a_memory_that_no_broker_runs_is_followed_no_longer() -> None:
    """The state was put back from a copy, and the change with it: the memory beside it was not."""
    memory_after, note = corrected(ChangeMemory(complete=MOVED, done=1), BEFORE, runs(BEFORE))
    assert memory_after == ChangeMemory(complete=BEFORE)
    listeners = ", ".join(map(str, BEFORE.node(1).listeners))
    assert note == (
        "nodes 1 to 3 run other listeners than those that are remembered of the last change: "
        f"{listeners}; this update begins with what runs"
    )


@pytest.mark.parametrize("actual", [MOVED, SECURED, RENAMED, BEFORE])
@pytest.mark.parametrize("remembered", [MOVED, SECURED, RENAMED, BEFORE])
def test_what_runs_is_read_from_the_nodes_own_settings(
    actual: ClusterPlan, remembered: ClusterPlan
) -> None:
    other = plan(EXTERNAL | {"scopes": ["internal"]})
    memory_after, note = corrected(ChangeMemory(complete=remembered), other, runs(actual))
    assert memory_after == ChangeMemory(complete=actual)
    assert bool(note) is (actual != remembered)


@pytest.mark.parametrize("actual", [MOVED, SECURED, RENAMED])
def test_a_lost_record_of_a_cluster_that_served_is_read_from_its_nodes(actual: ClusterPlan) -> None:
    """Without a plan to begin with, a change that needs steps would be made at once."""
    memory_after, note = corrected(ChangeMemory(), BEFORE, runs(actual), has_served=True)
    assert memory_after == ChangeMemory(complete=actual)
    assert note == (
        "the record of the last change is lost or cannot be read; this update begins with the "
        "listeners that run"
    )


@pytest.mark.parametrize("observed", [runs(BEFORE), {}, {1: NodeSettings({})}])
def test_a_lost_record_stays_unknown_where_no_node_runs_something_else(
    observed: dict[int, NodeSettings],
) -> None:
    assert corrected(ChangeMemory(), BEFORE, observed, has_served=True) == (ChangeMemory(), "")


def test_a_part_of_the_nodes_is_followed_beside_the_rest() -> None:
    observed = {**runs(BEFORE, [1, 3]), **runs(RENAMED, [2])}
    memory_after, note = corrected(ChangeMemory(complete=BEFORE, begun=(MOVED,)), RENAMED, observed)
    assert memory_after == ChangeMemory(complete=BEFORE, begun=(RENAMED,))
    assert note.startswith("node 2 runs other listeners than those")


def test_variables_of_containers_are_read_as_properties_are() -> None:
    settings = {id: read_environment(environment(RENAMED, RENAMED.node(id))) for id in (1, 2, 3)}
    assert corrected(ChangeMemory(complete=RENAMED), BEFORE, settings) == (
        ChangeMemory(complete=RENAMED),
        "",
    )
    memory_after, _ = corrected(ChangeMemory(complete=BEFORE), MOVED, settings)
    assert memory_after.complete is not None
    assert memory_after.complete.listener_names == RENAMED.listener_names
    assert memory_after.complete.inter_broker == "REPL"

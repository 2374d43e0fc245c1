"""Which nodes are unsettled, by the objects on the engines; see also `test_put_back.py`."""

from typing import Any

import pytest
from docker.errors import APIError, NotFound
from earshot_pulumi.docker import engine_objects, labels, rolling_restart

from earshot.errors import EarshotError
from earshot.placement.docker import DockerPlan, plan_docker
from tests.components.docker.container_engine import STARTED, ContainerEngine, listed_volume
from tests.components.docker.stacks import spec_of

PLANNED: DockerPlan = plan_docker(spec_of(), "s")
LATELY = "2026-01-01T00:59:59Z"
"""A second before the time of the engine's clock."""


@pytest.fixture
def engine(engine: ContainerEngine) -> ContainerEngine:
    """The engine of three brokers with data, and volumes of others."""
    engine.volumes = [listed_volume(id) for id in (1, 2, 3)]
    engine.volumes += [
        listed_volume(4),
        listed_volume(1, "another"),
        listed_volume(3, "earshot-s-kafka-3", stack="t"),
    ]
    return engine


def unsettled(resources: dict[str, Any] | None = None) -> set[int]:
    return set(rolling_restart.unsettled("s", PLANNED, resources or {}))


def test_nodes_with_data_that_do_not_run_are_unsettled(engine: ContainerEngine) -> None:
    assert unsettled() == set()
    engine.kill("id-2")
    assert unsettled() == {2}
    engine.add("again-2", 2)
    assert unsettled() == set(), "one of its two containers runs"
    engine.containers["id-3"]["Config"]["Labels"][labels.STACK] = "t"
    assert unsettled() == {3}
    engine.containers.clear()
    assert unsettled() == {1, 2, 3}
    engine.volumes = [listed_volume(1)]
    assert unsettled() == {1}


@pytest.mark.parametrize(
    ("restarts", "state", "is_unsettled"),
    [
        (0, {"Paused": True}, True),
        (0, {"Restarting": True}, True),
        (0, {"Running": False}, True),
        (1, {"StartedAt": LATELY}, True),
        (0, {"StartedAt": LATELY}, False),
        # as an engine writes it; that broker was started again, and has worked since
        (7, {"StartedAt": "2026-01-01T00:00:00.123456789Z"}, False),
    ],
)
def test_a_container_that_is_paused_or_was_restarted_a_moment_ago_does_not_stay_up(
    engine: ContainerEngine, restarts: int, state: dict[str, Any], is_unsettled: bool
) -> None:
    engine.containers["id-2"]["RestartCount"] = restarts
    listing = engine.api.containers(all=True)
    engine.api.containers = lambda **_: listing  # it was listed as running a moment ago
    engine.containers["id-2"]["State"] |= state
    assert unsettled() == ({2} if is_unsettled else set())


@pytest.mark.parametrize(("error", "nodes"), [(NotFound("gone"), {2}), (APIError("500"), set())])
def test_a_container_that_is_gone_is_unsettled_and_an_engine_that_fails_tells_nothing(
    engine: ContainerEngine, error: Exception, nodes: set[int]
) -> None:
    def inspect(id: str) -> dict[str, Any]:
        if id == "id-2":
            raise error
        return engine.inspect(id)

    engine.api.inspect_container = inspect
    assert unsettled() == nodes


def test_nothing_is_known_if_an_engine_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    def look(*_: object) -> None:
        raise EarshotError("Docker engine", observed="does not answer", remedy="start it")

    monkeypatch.setattr(engine_objects, "look", look)
    assert unsettled() == set()


@pytest.mark.parametrize(("since", "nodes"), [(STARTED, set()), ("2026-01-02T00:00:00Z", {2})])
def test_a_node_that_was_restarted_since_it_was_in_sync_is_unsettled(
    engine: ContainerEngine, monkeypatch: pytest.MonkeyPatch, since: str, nodes: set[int]
) -> None:
    """`make up` starts a broker that was killed, which is then up and not in sync."""
    monkeypatch.setattr("pulumi.get_stack", lambda: "s")
    engine.containers["id-2"]["State"]["StartedAt"] = since

    def readiness(places: list[dict[str, Any]], incarnation: str) -> dict[str, Any]:
        outputs = {"whole": not places, "nodes": places, "incarnation": incarnation}
        return {"type": "earshot:index:DockerReadiness", "outputs": outputs}

    resources = {
        f"broker-{id}": readiness([{"place": {"node_id": id}}], f"id-{id}@{STARTED}")
        for id in (1, 2, 3)
    }
    assert unsettled(resources | {"cluster": readiness([], "")}) == nodes


def test_a_node_that_is_down_comes_before_one_that_was_restarted(engine: ContainerEngine) -> None:
    """Node 1, which was put back, is not stopped before node 3 runs."""
    engine.containers["id-1"] |= {"RestartCount": 1}
    engine.containers["id-1"]["State"]["StartedAt"] = LATELY
    engine.kill("id-3")
    assert rolling_restart.unsettled("s", PLANNED, {}) == [3, 1]
    engine.containers["id-3"]["State"] |= {"Running": True, "Paused": True}
    assert rolling_restart.unsettled("s", PLANNED, {}) == [3, 1]

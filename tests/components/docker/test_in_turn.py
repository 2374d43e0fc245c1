"""Which nodes are unsettled, by what is on the engines; see also `test_put_back.py`."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest
from docker.errors import APIError, NotFound
from earshot_pulumi.docker import in_turn, labels, on_engines
from earshot_pulumi.docker.on_engines import EngineContainer, EngineObjects, EngineVolume

from earshot.config.docker import DockerSpec
from earshot.config.document import read_spec
from earshot.errors import EarshotError
from earshot.placement.docker import DockerPlan, plan_docker


@pytest.fixture
def planned() -> DockerPlan:
    spec = read_spec({"placement": "docker"}, "test")
    assert isinstance(spec, DockerSpec)
    return plan_docker(spec, "s")


def container(id: int, running: bool, stack: str = "s") -> EngineContainer:
    own = {labels.STACK: stack, labels.NODE: str(id)}
    return EngineContainer("local", f"id-{id}", f"kafka-{id}", "kafka", running, own)


def volume(id: int, name: str = "", stack: str = "s") -> EngineVolume:
    own = {labels.STACK: stack, labels.NODE: str(id)}
    return EngineVolume("local", name or f"earshot-s-kafka-{id}", own)


BEGAN = "2026-01-01T00:00:00Z"
CLOCK = "2026-03-01T00:00:00.987654321Z"
"""The engine's time, which is not that of this machine."""
LATELY = "2026-02-28T23:59:59Z"
NOW = {"Running": True, "Restarting": False, "Paused": False}
SINCE = {"RestartCount": 0, "State": NOW}
"""Of a container that started a moment ago, as all do that say nothing else."""


@pytest.fixture
def inspected(monkeypatch: pytest.MonkeyPatch) -> dict[str, dict[str, Any]]:
    """By id, what the engine says of a container, where that is not the usual."""
    found: dict[str, dict[str, Any]] = {}

    @contextmanager
    def connected(_where: object) -> Iterator[SimpleNamespace]:
        def inspect(id: str) -> dict[str, Any]:
            answer = found.get(id, SINCE)
            if "error" in answer:
                raise answer["error"]
            return {"Id": id} | answer | {"State": {"StartedAt": LATELY} | answer["State"]}

        clock = {"SystemTime": CLOCK}
        yield SimpleNamespace(api=SimpleNamespace(inspect_container=inspect, info=lambda: clock))

    monkeypatch.setattr("earshot_pulumi.docker.container_address.connect", connected)
    return found


@pytest.mark.parametrize(
    ("containers", "volumes", "unsettled"),
    [
        ([container(id, True) for id in (1, 2, 3)], [1, 2, 3], set()),
        ([container(1, True), container(2, False), container(3, True)], [1, 2, 3], {2}),
        ([container(2, False), container(2, True)], [2], set()),
        ([container(1, True), container(3, True, stack="t")], [1, 2, 3], {2, 3}),
        ([], [1], {1}),
    ],
)
@pytest.mark.usefixtures("inspected")
def test_what_has_data_and_does_not_run(
    planned: DockerPlan,
    monkeypatch: pytest.MonkeyPatch,
    containers: Iterable[EngineContainer],
    volumes: Iterable[int],
    unsettled: set[int],
) -> None:
    held = [volume(id) for id in volumes]
    held += [volume(4), volume(1, "another"), volume(3, "earshot-s-kafka-3", stack="t")]
    seen = EngineObjects(tuple(containers), tuple(held))
    monkeypatch.setattr(on_engines, "look", lambda *_: seen)
    assert in_turn.unsettled("s", planned, {}) == unsettled


@pytest.mark.parametrize(
    ("found", "unsettled"),
    [
        ({"State": NOW | {"Paused": True}}, {2}),
        ({"State": NOW | {"Restarting": True}}, {2}),
        ({"State": NOW | {"Running": False}}, {2}),
        ({"error": NotFound("gone since")}, {2}),
        ({"RestartCount": 1}, {2}),
        # as an engine writes it; that broker was started again, and has worked since
        (
            {"RestartCount": 7, "State": NOW | {"StartedAt": "2026-01-01T00:00:00.123456789Z"}},
            set(),
        ),
        ({"error": APIError("500")}, set()),
    ],
)
def test_what_is_paused_or_started_again_and_again_does_not_stay_up(
    planned: DockerPlan,
    monkeypatch: pytest.MonkeyPatch,
    inspected: dict[str, dict[str, Any]],
    found: dict[str, Any],
    unsettled: set[int],
) -> None:
    inspected["id-2"] = SINCE | found
    ids = (1, 2, 3)
    seen = EngineObjects(tuple(container(id, True) for id in ids), tuple(map(volume, ids)))
    monkeypatch.setattr(on_engines, "look", lambda *_: seen)
    assert in_turn.unsettled("s", planned, {}) == unsettled


def test_nothing_is_known_where_an_engine_does_not_answer(
    planned: DockerPlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    def look(*_: object) -> EngineObjects:
        raise EarshotError("Docker engine", observed="does not answer", remedy="start it")

    monkeypatch.setattr(on_engines, "look", look)
    assert in_turn.unsettled("s", planned, {}) == frozenset()


@pytest.mark.parametrize(("since", "unsettled"), [(BEGAN, set()), ("2026-01-02T00:00:00Z", {2})])
def test_a_node_that_was_restarted_since_it_was_in_sync_is_unsettled(
    planned: DockerPlan,
    monkeypatch: pytest.MonkeyPatch,
    inspected: dict[str, dict[str, Any]],
    since: str,
    unsettled: set[int],
) -> None:
    """`make up` starts a broker that was killed, which is then up and not in sync."""
    monkeypatch.setattr("pulumi.get_stack", lambda: "s")
    ids = (1, 2, 3)
    inspected |= {f"id-{id}": SINCE | {"State": NOW | {"StartedAt": BEGAN}} for id in ids}
    inspected["id-2"]["State"] = NOW | {"StartedAt": since}
    seen = EngineObjects(tuple(container(id, True) for id in ids), tuple(map(volume, ids)))
    monkeypatch.setattr(on_engines, "look", lambda *_: seen)
    nodes = {f"broker-{id}": [{"place": {"node_id": id}}] for id in ids}
    known = {
        name: {
            "type": "earshot:index:DockerReadiness",
            "outputs": {
                "whole": False,
                "nodes": listed,
                "incarnation": f"id-{listed[0]['place']['node_id']}@{BEGAN}",
            },
        }
        for name, listed in nodes.items()
    }
    known["cluster"] = {
        "type": "earshot:index:DockerReadiness",
        "outputs": {"whole": True, "nodes": [], "incarnation": ""},
    }
    assert in_turn.unsettled("s", planned, known) == unsettled

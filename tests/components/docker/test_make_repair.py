"""What is repaired before a refresh, what is reported, and what is left alone."""

import time
from pathlib import Path
from typing import Any

import pytest
from earshot_pulumi.docker import labels, make
from earshot_pulumi.docker.identity import remember

from earshot.config.docker import DockerSpec
from earshot.config.document import read_spec
from tests.components.docker import test_readiness
from tests.components.docker.test_readiness import NETWORK, OWN_ID, FakeEngine

engine, engines = test_readiness.engine, test_readiness.engines
pytestmark = pytest.mark.usefixtures("engines")


@pytest.fixture
def state(engine: FakeEngine, tmp_path: Path) -> Path:
    """The folder of stack `s`, whose containers are the engine's."""
    for id in (1, 2, 3):
        engine.containers[f"id-{id}"]["Config"] = {
            "Labels": {labels.STACK: "s", labels.NODE: str(id)},
            "Env": [f"CLUSTER_ID={OWN_ID}"],
        }
    remember(tmp_path, OWN_ID)
    return tmp_path


def repaired(state: Path, **settings: Any) -> list[str]:
    spec = read_spec({"placement": "docker", **settings}, "test")
    assert isinstance(spec, DockerSpec)
    reported: list[str] = []
    make.repair(spec, "s", state, reported.append)
    return reported


def container(engine: FakeEngine, id: int) -> dict[str, Any]:
    found: dict[str, Any] = engine.containers[f"id-{id}"]
    return found


def test_what_runs_is_left_alone(engine: FakeEngine, state: Path) -> None:
    assert repaired(state) == []
    assert engine.done == []


def test_how_a_container_ended_is_reported_and_it_is_started(
    engine: FakeEngine,
    state: Path,
) -> None:
    engine.kill("id-2")
    container(engine, 2)["State"]["OOMKilled"] = True
    container(engine, 3)["State"] |= {"Status": "created", "Running": False}
    engine.log = b"[2026-01-01 00:00:00,000] ERROR Shutting down because of x (kafka.Kafka$)\n"
    assert repaired(state) == [
        (
            "container kafka-2 on Docker host local ended with status 137 (out of memory): "
            "Shutting down because of x (`docker logs kafka-2` has its log); starting it ..."
        ),
        "container kafka-3 on Docker host local was never started; starting it ...",
    ]
    assert engine.done == ["start id-2", "start id-3"]


def test_a_container_is_unpaused_and_connected(engine: FakeEngine, state: Path) -> None:
    container(engine, 1)["State"]["Paused"] = True
    container(engine, 2)["NetworkSettings"]["Networks"].clear()
    assert repaired(state) == [
        "container kafka-1 on Docker host local is paused; unpausing it ...",
        f"container kafka-2 on Docker host local is off its network {NETWORK}; connecting it ...",
    ]
    assert engine.done == ["unpause id-1", f"connect id-2 {NETWORK} ['kafka-2']"]


def test_a_loop_is_stopped_until_the_update_starts_it(
    engine: FakeEngine,
    state: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also one that seems to run while it is looked at."""
    found = container(engine, 1)
    found |= {"RestartCount": 7}
    found["State"] |= {"ExitCode": 1}
    engine.clock = "2026-01-01T00:00:03.5Z"  # by which it started a moment ago
    naps: list[float] = []

    def sleep(seconds: float) -> None:
        naps.append(seconds)
        if len(naps) == 3:
            found["State"]["Restarting"] = True

    monkeypatch.setattr(time, "sleep", sleep)
    (line,) = repaired(state)
    assert line == (
        "container kafka-1 on Docker host local is started again and again by its engine, and "
        "ended with status 1: two (`docker logs kafka-1` has its log); stopping it until its turn "
        "..."
    )
    assert engine.done == ["stop id-1 0"] and len(naps) == 3


def test_one_that_was_started_again_and_stays_up_is_no_loop(
    engine: FakeEngine,
    state: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    container(engine, 1)["RestartCount"] = 7
    monkeypatch.setattr(time, "sleep", lambda _: pytest.fail("it waited"))
    assert repaired(state) == [] == engine.done


def test_a_repair_that_fails_is_reported_and_the_others_go_on(
    engine: FakeEngine,
    state: Path,
) -> None:
    engine.kill("id-1")
    engine.kill("id-2", 143)
    engine.refuses_to_start = True
    container(engine, 3)["State"]["Paused"] = True
    reported = repaired(state)
    assert [line.partition(" on ")[0] for line in reported] == [
        "container kafka-1", "container kafka-1", "container kafka-2", "container kafka-2",
        "container kafka-3",
    ]  # fmt: skip
    assert "cannot be started: port is already allocated; fix: " in reported[1]
    assert engine.done == ["unpause id-3"]


@pytest.mark.parametrize(
    "strange",
    [
        {"Labels": {labels.STACK: "s", labels.NODE: "1"}, "Env": ["CLUSTER_ID=another"]},
        {"Labels": {labels.STACK: "t", labels.NODE: "1"}, "Env": [f"CLUSTER_ID={OWN_ID}"]},
        {"Labels": {labels.STACK: "s", labels.NODE: "2"}, "Env": [f"CLUSTER_ID={OWN_ID}"]},
        {"Labels": None, "Env": None},
    ],
)
def test_containers_of_others_are_left_alone(
    engine: FakeEngine,
    state: Path,
    strange: dict[str, Any],
) -> None:
    container(engine, 1)["Config"] = strange
    engine.kill("id-1")
    assert repaired(state) == [] == engine.done


def test_the_id_may_be_known_by_the_stack_file_alone(engine: FakeEngine, state: Path) -> None:
    (state / "cluster-id").unlink()
    engine.kill("id-1")
    assert repaired(state) == [] == engine.done
    assert len(repaired(state, cluster_id=OWN_ID)) == 1
    assert engine.done == ["start id-1"]


def test_a_container_that_is_gone_is_made_by_the_update(engine: FakeEngine, state: Path) -> None:
    engine.containers.pop("id-1")
    assert repaired(state) == [] == engine.done

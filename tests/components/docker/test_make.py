"""Steps of `make` around Pulumi: engines that answer, repairs before a refresh, removal of data."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from earshot_pulumi.docker import labels, make
from earshot_pulumi.docker.volume_data import remember_id

from earshot.config.docker import DockerSpec
from earshot.config.docker_host import DockerHost
from earshot.errors import EarshotError
from earshot.listeners.terms import Scope
from earshot.placement import standpoint
from earshot.placement.standpoint import CandidateEngine, Standpoint, to_json
from earshot.project import Project
from earshot.transition import memory
from tests.components.docker.container_engine import NETWORK, ContainerEngine
from tests.components.docker.stacks import OTHER_ID, OWN_ID, spec_of
from tests.doubles.engine_server import document, engine_server
from tests.raised import raised
from tests.transition.test_steps import BEFORE
from toolchain import stack as stack_module
from toolchain.stack import Stack, main

NO_ENGINE = "tcp://127.0.0.1:1"
"""An engine that does not exist."""


def spec(engine: str) -> DockerSpec:
    return DockerSpec(placement="docker", hosts=(DockerHost(engine=engine),))


def test_a_stack_without_an_engine_is_refused_with_the_package_to_install() -> None:
    text = str(raised(EarshotError, make.check, spec(NO_ENGINE)))
    assert "does not answer" in text and "apt-get install docker.io" in text


def test_an_engine_of_a_host_that_the_stack_made_is_asked_for_before_a_refresh(
    tmp_path: Path,
) -> None:
    zones = {"a": "eu-central-1a", "b": "eu-central-1b"}
    on_aws = {"aws": {"host_zones": zones, "deployers": {"here": "10.1.0.0/24"}}}
    hosts = DockerSpec.model_validate({"placement": "docker", "hosts": on_aws})
    engines = (CandidateEngine(engine=NO_ENGINE),)
    vantage = Standpoint(name="internal", scope=Scope.INTERNAL, engines=engines)
    (tmp_path / standpoint.FILE).write_text(to_json((vantage,)))
    make.repair(hosts, "mine", tmp_path, print)  # as after `make down`
    memory.complete(tmp_path, BEFORE, 0)
    with pytest.raises(EarshotError, match="it is on a host of this stack") as caught:
        make.repair(hosts, "mine", tmp_path, print)
    assert f"Docker engine at {NO_ENGINE}: does not answer" in str(caught.value)
    assert "systemctl status docker-prepare docker" in str(caught.value)


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout whose docker template names an engine that does not exist."""
    (tmp_path / "Pulumi.yaml").write_text(
        "name: earshot\nruntime: python\nstackConfigDir: stacks\n"
    )
    (tmp_path / "stacks").mkdir()
    (tmp_path / "stacks" / "Pulumi.docker.yaml").write_text(
        "config:\n  earshot:cluster:\n    placement: docker\n"
        f"    hosts: [{{name: local, engine: '{NO_ENGINE}'}}]\n"
    )
    (tmp_path / "stacks" / "Pulumi.local.yaml").write_text(
        "config:\n  earshot:cluster:\n    placement: local\n"
    )
    monkeypatch.setattr(stack_module, "ROOT", tmp_path)
    monkeypatch.setattr(stack_module, "variables", lambda _stack: {})
    return tmp_path


def test_make_up_says_how_to_get_an_engine_before_anything_else(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Stack, "_pulumi", lambda *_: pytest.fail("Pulumi was run"))
    monkeypatch.setattr(Stack, "_earshot", lambda *_: pytest.fail("something else came first"))
    assert main(["up", "--stack", "docker-mine"]) == 2
    reported = capsys.readouterr().err
    assert f"Docker engine at {NO_ENGINE}: does not answer" in reported
    assert "apt-get install docker.io" in reported
    assert Project(checkout).stack_file("docker-mine").exists(), "made from the template"


def test_a_local_stack_needs_no_engine(checkout: Path) -> None:
    Stack("local")._check_needs()
    Stack("nobody")._check_needs()
    with pytest.raises(EarshotError, match="does not answer"):
        Stack("docker")._check_needs()


@pytest.mark.parametrize(
    ("record", "removed"),
    [
        ("cluster-id", ["ours"]),
        ("report.json", ["of-an-earlier-release"]),  # what `make down` of one leaves
        (None, []),
    ],
)
def test_make_clean_leaves_the_data_of_another_checkouts_stack_of_that_name(
    engine: ContainerEngine, tmp_path: Path, record: str | None, removed: list[str]
) -> None:
    for name, stack, mark in (
        ("of-an-earlier-release", "mine", {}),
        ("ours", "mine", {labels.CLUSTER: OWN_ID}),
        ("theirs", "mine", {labels.CLUSTER: OTHER_ID}),
        ("strange", "other", {labels.CLUSTER: OWN_ID}),
    ):
        engine.volumes.append({"Name": name, "Labels": {labels.STACK: stack, **mark}})
    if record is not None:
        (tmp_path / record).write_text(f"{OWN_ID}\n")
    lines: list[str] = []
    make.remove_data(spec(NO_ENGINE), "mine", tmp_path, lines.append)
    assert engine.calls == [f"remove {name}" for name in removed]
    assert any(f"theirs: its data is of cluster {OTHER_ID}" in line for line in lines)


@pytest.mark.parametrize(
    "answer",
    [
        document({"message": "boom"}, "500 Internal Server Error"),
        document(["not an object"]),
        document({"Volumes": [None]}),
        document({"Volumes": [{"Name": 5, "Labels": None}]}),
    ],
)
def test_make_clean_names_the_host_whose_engine_lists_no_volumes(
    tmp_path: Path, answer: bytes
) -> None:
    with engine_server({"GET /v1.41/volumes": answer}) as address:
        error = raised(EarshotError, make.remove_data, spec(address), "mine", tmp_path, print)
    assert error.object == "Docker host local" and f"its engine at {address} " in error.observed


@pytest.fixture
def state(engine: ContainerEngine, tmp_path: Path) -> Path:
    """The folder of stack `s`, whose containers are the engine's."""
    remember_id(tmp_path, OWN_ID)
    return tmp_path


def repaired(state: Path, **settings: Any) -> list[str]:
    lines: list[str] = []
    make.repair(spec_of(**settings), "s", state, lines.append)
    return lines


@pytest.mark.parametrize("change", [
    lambda containers: None,
    lambda containers: containers["id-1"].update(RestartCount=7),
    lambda containers: containers.pop("id-1"),
], ids=["intact", "started again, and up since then", "gone: the update makes it"])  # fmt: skip
def test_a_container_that_needs_no_repair_is_left_alone(
    engine: ContainerEngine,
    state: Path,
    monkeypatch: pytest.MonkeyPatch,
    change: Callable[[dict[str, Any]], object],
) -> None:
    monkeypatch.setattr(time, "sleep", lambda _: pytest.fail("it waited"))
    change(engine.containers)
    assert repaired(state) == [] == engine.calls


def test_how_a_container_ended_is_reported_and_it_is_started(
    engine: ContainerEngine, state: Path
) -> None:
    engine.kill("id-2")
    engine.containers["id-2"]["State"]["OOMKilled"] = True
    engine.containers["id-3"]["State"] |= {"Status": "created", "Running": False}
    engine.log = b"[2026-01-01 00:00:00,000] ERROR Shutting down because of x (kafka.Kafka$)\n"
    assert repaired(state) == [
        (
            "container kafka-2 on Docker host local ended with status 137 (out of memory): "
            "Shutting down because of x (`docker logs kafka-2` has its log); starting it ..."
        ),
        "container kafka-3 on Docker host local was never started; starting it ...",
    ]
    assert engine.calls == ["start id-2", "start id-3"]


def test_a_container_is_unpaused_and_connected(engine: ContainerEngine, state: Path) -> None:
    engine.containers["id-1"]["State"]["Paused"] = True
    engine.containers["id-2"]["NetworkSettings"]["Networks"].clear()
    assert repaired(state) == [
        "container kafka-1 on Docker host local is paused; unpausing it ...",
        (
            f"container kafka-2 on Docker host local is not connected to its network {NETWORK}; "
            "connecting it ..."
        ),
    ]
    assert engine.calls == ["unpause id-1", f"connect id-2 {NETWORK} ['kafka-2']"]


def test_a_loop_is_stopped_until_the_update_starts_it(
    engine: ContainerEngine, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also one that seems to run while it is looked at."""
    container = engine.containers["id-1"]
    container |= {"RestartCount": 7}
    container["State"] |= {"ExitCode": 1}
    engine.clock = "2026-01-01T00:00:03.5Z"  # by which it started a moment ago
    engine.log_since_start = b"the first line of the next run\n"
    naps: list[float] = []

    def sleep(seconds: float) -> None:
        naps.append(seconds)
        if len(naps) == 3:
            container["State"]["Restarting"] = True

    monkeypatch.setattr(time, "sleep", sleep)
    (line,) = repaired(state)
    assert line == (
        "container kafka-1 on Docker host local is restarted in a loop by its engine, and ended "
        "with status 1: two (`docker logs kafka-1` has its log); stopping it until its turn ..."
    )
    assert engine.calls == ["stop id-1 0"] and len(naps) == 3


def test_a_repair_that_fails_is_reported_and_the_others_go_on(
    engine: ContainerEngine, state: Path
) -> None:
    engine.kill("id-1")
    engine.kill("id-2", 143)
    engine.refuses_to_start = True
    engine.containers["id-3"]["State"]["Paused"] = True
    lines = repaired(state)
    assert [line.partition(" on ")[0] for line in lines] == [
        "container kafka-1", "container kafka-1", "container kafka-2", "container kafka-2",
        "container kafka-3",
    ]  # fmt: skip
    assert "cannot be started: port is already allocated; fix: " in lines[1]
    assert engine.calls == ["unpause id-3"]


@pytest.mark.parametrize(
    "config",
    [
        {"Labels": {labels.STACK: "s", labels.NODE: "1"}, "Env": ["CLUSTER_ID=another"]},
        {"Labels": {labels.STACK: "t", labels.NODE: "1"}, "Env": [f"CLUSTER_ID={OWN_ID}"]},
        {"Labels": {labels.STACK: "s", labels.NODE: "2"}, "Env": [f"CLUSTER_ID={OWN_ID}"]},
        {"Labels": None, "Env": None},
    ],
)
def test_containers_of_others_are_left_alone(
    engine: ContainerEngine, state: Path, config: dict[str, Any]
) -> None:
    engine.containers["id-1"]["Config"] = config
    engine.kill("id-1")
    assert repaired(state) == [] == engine.calls


def test_the_id_may_be_known_by_the_stack_file_alone(engine: ContainerEngine, state: Path) -> None:
    (state / "cluster-id").unlink()
    engine.kill("id-1")
    assert repaired(state) == [] == engine.calls
    assert len(repaired(state, cluster_id=OWN_ID)) == 1
    assert engine.calls == ["start id-1"]

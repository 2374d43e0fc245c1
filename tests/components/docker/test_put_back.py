"""A container is made again with its former definition, and the one that did not come up stays."""

import json
from pathlib import Path
from typing import Any

import pytest
from earshot_pulumi.docker import host_resources, labels, put_back, rolling_restart
from earshot_pulumi.docker.container_address import Engines
from earshot_pulumi.docker.kinds import DockerReadinessKind, DockerStopPreflightKind
from earshot_pulumi.docker.readiness import RunningCluster
from earshot_pulumi.driver import DisturbedNode
from earshot_pulumi.properties import write

from earshot.config.docker_host import DockerHost
from earshot.errors import EarshotError
from tests.components.called import Called
from tests.components.docker.container_engine import NETWORK, ContainerEngine
from tests.components.docker.stacks import MINE, OWN_ID
from tests.components.docker.test_readiness import ALL
from tests.raised import raised

STATE = Path(".earshot/stacks/s")
DEFINITION = STATE / "containers" / "kafka-1.json"
HOST = {"name": "local", "external": "kafka.example"}
READINESS = Called(DockerReadinessKind())
STOP = Called(DockerStopPreflightKind())
pytestmark = pytest.mark.usefixtures("root")


def replace_first(engine: ContainerEngine) -> None:
    """As Pulumi does it with the container of node 1."""
    del engine.containers["id-1"]
    engine.add("new-1", 1)


def stop_props(**changes: Any) -> dict[str, Any]:
    return {
        "place": write(ALL[0]),
        "hosts": [HOST],
        "state_dir": str(STATE.absolute()),
        "settings": "a",
        **changes,
    }


def ready_props(id: str) -> dict[str, Any]:
    places = [write(place) for place in ALL]
    return {
        "nodes": [{"place": places[0], "container": id}],
        "voters": places,
        "tellers": places,
        "incarnations": {},
        "cluster_id": OWN_ID,
        "whole": False,
        "incarnation": None,
        "state_dir": str(STATE.absolute()),
    }


def waits(monkeypatch: pytest.MonkeyPatch, *fail: str, kind: type[EarshotError]) -> None:
    """A wait that fails for the containers whose id is one of ``fail``."""

    def wait_for(_cluster: object, nodes: Any) -> None:
        ((_, id),) = nodes
        if id in fail:
            raise kind(f"container {id}", observed="restarts in a loop", remedy="take it back")

    monkeypatch.setattr(RunningCluster, "wait_for", wait_for)


def test_a_container_that_does_not_come_up_is_made_again_as_it_was(
    engine: ContainerEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    STOP.update({}, stop_props())
    assert DEFINITION.stat().st_mode & 0o077 == 0, "it has the secrets of the environment"
    replace_first(engine)
    waits(monkeypatch, "new-1", kind=EarshotError)
    olds, news = ready_props("id-1"), ready_props("new-1")
    assert str(raised(EarshotError, READINESS.update, olds, news)) == (
        "container new-1: restarts in a loop\n"
        "  it was made again with its former settings and serves; the nodes after it did not "
        "change. The one that did not come up is container kafka-1-failed\n"
        "  fix: take it back"
    )
    assert engine.calls == [
        "stop new-1 3",
        "off bridge",
        f"connect again-kafka-1 {NETWORK} ['kafka-1']",
        "start again-kafka-1",
    ]
    again = engine.inspect("kafka-1")
    assert again["Config"]["Env"] == [f"CLUSTER_ID={OWN_ID}"]
    assert again["Config"]["Labels"][labels.PUT_BACK] == "id-1"
    assert again["HostConfig"]["Binds"] == ["data-1:/data"]
    assert engine.inspect("kafka-1-failed")["Id"] == "new-1"

    # the same again, after the cause elsewhere was fixed
    engine.calls.clear()
    waits(monkeypatch, kind=EarshotError)
    READINESS.update(ready_props("id-1"), ready_props("new-1"))
    assert engine.calls == ["stop again-kafka-1 60", "remove again-kafka-1", "start new-1"]
    assert engine.inspect("kafka-1")["Id"] == "new-1" and not DEFINITION.exists()


@pytest.mark.parametrize("name", ["/../../elsewhere", "/other"])
def test_the_name_that_an_engine_returns_decides_about_no_file(
    engine: ContainerEngine, name: str
) -> None:
    engine.api.inspect_container = lambda _: {**engine.containers["id-1"], "Name": name}
    STOP.update({}, stop_props())
    assert list(Path().rglob("*.json")) == [DEFINITION]


def test_aliases_of_another_form_are_one_error_about_the_container(
    engine: ContainerEngine,
) -> None:
    engine.containers["id-1"]["NetworkSettings"]["Networks"][NETWORK] = {"Aliases": 5}
    error = raised(EarshotError, STOP.update, {}, stop_props())
    assert error.object == "container kafka-1 on Docker host local"
    assert "gives an answer of another form than Docker's" in error.observed


def test_the_error_says_how_the_node_is_left_if_its_container_cannot_be_made_again(
    engine: ContainerEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    STOP.create(stop_props())
    replace_first(engine)
    waits(monkeypatch, "new-1", "again-kafka-1", kind=EarshotError)

    def outcome() -> str:
        olds, news = ready_props("id-1"), ready_props("new-1")
        return str(raised(EarshotError, READINESS.update, olds, news)).splitlines()[1].strip()

    serving = (
        "it was made again with its former settings, and container again-kafka-1: restarts in a "
        "loop"
    )
    assert outcome().startswith(serving)
    del engine.containers["again-kafka-1"]
    engine.rename("new-1", "kafka-1")
    engine.containers["new-1"]["State"]["Running"] = True
    engine.refuses_to_start = True
    assert outcome() == (
        "it could not be made again with its former settings: container kafka-1: port is already "
        "allocated"
    )


@pytest.mark.parametrize("kind", [DisturbedNode, EarshotError])
def test_only_an_undisturbed_replaced_container_is_put_back(
    engine: ContainerEngine, monkeypatch: pytest.MonkeyPatch, kind: type[EarshotError]
) -> None:
    STOP.update({}, stop_props())
    waits(monkeypatch, "id-1", "new-1", kind=kind)
    id = "id-1"
    if kind is DisturbedNode:
        replace_first(engine)
        id = "new-1"
    with pytest.raises(EarshotError, match="loop"):
        READINESS.update(ready_props("id-1"), ready_props(id))
    assert engine.calls == []


def test_a_first_start_forgets_the_definition_of_another_stack(engine: ContainerEngine) -> None:
    put_back.keep(STATE, "kafka-1", engine.inspect("id-1"))
    READINESS.create(ready_props("id-1"))
    assert put_back.saved_definition(STATE, "kafka-1", except_id="new-1") is None


def test_a_restarted_container_does_not_replace_the_definition_of_one_that_served(
    engine: ContainerEngine,
) -> None:
    put_back.keep(STATE, "kafka-1", engine.inspect("id-1"))
    replace_first(engine)
    for restarts, id in ((2, "id-1"), (0, "new-1")):
        engine.containers["new-1"]["RestartCount"] = restarts
        put_back.keep(STATE, "kafka-1", engine.inspect("new-1"))
        assert json.loads(DEFINITION.read_text())["Id"] == id


def test_no_container_is_stopped_while_another_node_is_down(engine: ContainerEngine) -> None:
    engine.kill("id-3")
    assert str(raised(EarshotError, STOP.update, {}, stop_props())) == (
        "container kafka-1 was not stopped: down already: container kafka-3; with one more node "
        "down, brokers could refuse writes\n"
        "  fix: run the same command again: it starts kafka-3 first"
    )
    for key in ("Restarting", "Paused"):
        state = engine.containers["id-3"]["State"]
        state |= {"Running": True, "Restarting": False, "Paused": False, key: True}
        with pytest.raises(EarshotError, match="down already: container kafka-3"):
            STOP.update({}, stop_props())
    engine.add("aside", 3, name="kafka-3-failed")
    STOP.update({}, stop_props())  # node 3 runs, be it by another name
    engine.kill("id-1")
    engine.kill("id-2")
    STOP.update({}, stop_props())  # this one does not run: there is nothing to stop
    del engine.containers["id-1"]
    STOP.create(stop_props())


def test_only_other_settings_are_a_reason_to_look() -> None:
    assert not STOP.differs(stop_props(), stop_props(hosts=[]))
    assert STOP.differs(stop_props(), stop_props(settings="b"))


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"Id": "id-1"}'])
def test_no_container_is_made_by_a_definition_that_was_cut_short(text: str) -> None:
    DEFINITION.parent.mkdir(parents=True)
    DEFINITION.write_text(text)
    assert put_back.saved_definition(STATE, "kafka-1", except_id="new-1") is None


def test_a_container_that_was_put_back_is_removed_with_its_node(engine: ContainerEngine) -> None:
    put_back.keep(STATE, "kafka-1", engine.inspect("id-1"))
    READINESS.delete(ready_props("id-1"))
    assert not list((STATE / "containers").iterdir()), "it has secrets"
    assert engine.calls == ["stop id-1 60"], "Pulumi's own is Pulumi's to remove"
    engine.inspect("id-1")["Config"]["Labels"][labels.PUT_BACK] = "new-1"
    engine.calls.clear()
    engine.inspect("id-1")["State"]["Running"] = True
    READINESS.delete(ready_props("gone"))
    assert "stop id-1 60" in engine.calls and "id-1" not in engine.containers


def test_other_nodes_are_looked_for_on_every_host(engine: ContainerEngine) -> None:
    own = {labels.NODE: "1", labels.DEPLOYMENT: MINE}
    hosts = [DockerHost.model_validate(HOST | {"name": name}) for name in "ab"]
    engine.ignores_filters = True
    engine.add("ended", 4, name="theirs", deployment="another")
    engine.kill("ended")
    with Engines() as engines:
        rolling_restart.check_others(engines, hosts, "kafka-1", own)


def test_before_a_container_is_made_one_of_its_name_goes_if_it_is_this_deployment_s(
    engine: ContainerEngine,
) -> None:
    host = DockerHost.model_validate(HOST)

    def removed(deployment: str = MINE) -> bool:
        return host_resources._remove_container(host, [host], "kafka-1", deployment)

    assert not removed("another's")
    engine.kill("id-3")
    with pytest.raises(EarshotError, match="container kafka-1 was not stopped: down already"):
        removed()
    engine.containers["id-3"]["State"]["Running"] = True
    assert removed()
    assert engine.calls == ["stop id-1 10", "remove id-1"]
    engine.add("again", 1)["Config"]["Labels"][labels.PUT_BACK] = "id-1"
    assert removed() and not removed()
    assert engine.calls[2:] == ["stop again 60", "remove again"], "it serves, and takes its leave"

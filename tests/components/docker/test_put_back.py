"""A container is made again as it was, and what did not come up stays aside; the engine here is
made of dictionaries."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from docker.errors import APIError, NotFound
from earshot_pulumi.docker import host_resources, in_turn, kinds, labels, put_back
from earshot_pulumi.docker.container_address import Engines
from earshot_pulumi.docker.kinds import DockerReadinessKind, DockerStopPreflightKind
from earshot_pulumi.driver import Disturbed

from earshot.config.docker_host import DockerHost
from earshot.errors import EarshotError
from tests.components.called import Called
from tests.components.docker.test_readiness import NETWORK, OWN_ID, place
from tests.raised import raised

STATE = Path(".earshot/stacks/s")
HOST = {"name": "local", "external": "kafka.example"}
UP = {"Running": True, "Restarting": False, "Paused": False, "StartedAt": "2026-01-01T00:00:00Z"}
DOWN = UP | {"Running": False}


class EngineDouble:
    """Knows containers by id, and can be told to refuse to start one."""

    def __init__(self) -> None:
        self.held = {f"old-{id}": self.container(f"old-{id}", id) for id in (1, 2, 3)}
        self.done: list[str] = []
        self.refuses = False
        self.api = SimpleNamespace(
            inspect_container=self.inspect,
            containers=self.listed,
            stop=self.stop,
            start=self.start,
            rename=self.rename,
            remove_container=self.remove,
            create_container_from_config=self.create,
            disconnect_container_from_network=lambda id, name: self.done.append(f"off {name}"),
            connect_container_to_network=self.connect,
        )

    def container(self, id: str, node: int, name: str = "") -> dict[str, Any]:
        return {
            "Id": id,
            "Name": f"/{name or f'kafka-{node}'}",
            "State": dict(UP),
            "RestartCount": 0,
            "Config": {
                "Env": [f"KAFKA_NODE_ID={node}"],
                "Labels": {labels.NODE: str(node), labels.DEPLOYMENT: "mine"},
            },
            "HostConfig": {"NetworkMode": "bridge", "Binds": [f"data-{node}:/data"]},
            "NetworkSettings": {"Networks": {NETWORK: {"Aliases": [f"kafka-{node}", id[:12]]}}},
        }

    def inspect(self, id: str) -> dict[str, Any]:
        for found in self.held.values():
            if id in (found["Id"], found["Name"].lstrip("/")):
                return found
        raise NotFound(f"no {id}")

    def listed(self, *, all: bool, filters: dict[str, str]) -> list[dict[str, Any]]:
        assert all and filters == {"label": f"{labels.DEPLOYMENT}=mine"}
        return [
            {
                "Id": it["Id"],
                "Names": [it["Name"]],
                "Labels": it["Config"]["Labels"],
                "State": self.state(it["State"]),
            }
            for it in self.held.values()
        ]

    @staticmethod
    def state(found: dict[str, Any]) -> str:
        """In one word, as an engine lists it."""
        for key in ("Paused", "Restarting", "Running"):
            if found[key]:
                return key.lower()
        return "exited"

    def stop(self, id: str, timeout: int) -> None:
        self.done.append(f"stop {id} {timeout}")
        self.inspect(id)["State"] = dict(DOWN)

    def start(self, id: str) -> None:
        if self.refuses:
            raise APIError("500", explanation="port is already allocated")
        self.done.append(f"start {id}")
        self.inspect(id)["State"] = dict(UP)

    def rename(self, id: str, name: str) -> None:
        self.inspect(id)["Name"] = f"/{name}"

    def remove(self, id: str, force: bool, v: bool) -> None:
        assert force and v
        self.done.append(f"remove {id}")
        del self.held[self.inspect(id)["Id"]]

    def create(self, config: dict[str, Any], name: str) -> dict[str, str]:
        id = f"again-{name}"
        self.held[id] = self.container(id, 1, name) | {
            "Config": {key: config[key] for key in ("Env", "Labels")},
            "HostConfig": config["HostConfig"],
            "State": dict(DOWN),
        }
        return {"Id": id}

    def connect(self, _id: str, name: str, aliases: list[str]) -> None:
        self.done.append(f"on {name} as {aliases}")

    def replaced(self) -> None:
        """As Pulumi does it with the container of node 1."""
        del self.held["old-1"]
        self.held["new-1"] = self.container("new-1", 1)


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> EngineDouble:
    double = EngineDouble()

    @contextmanager
    def connected(_where: object) -> Iterator[EngineDouble]:
        yield double

    monkeypatch.setattr("earshot_pulumi.docker.container_address.connect", connected)
    (tmp_path / "Pulumi.yaml").write_text("name: earshot\n")
    monkeypatch.chdir(tmp_path)
    return double


def stop_props(**more: Any) -> dict[str, Any]:
    return {
        "place": place(1).to_props(),
        "hosts": [HOST],
        "state_dir": str(STATE.absolute()),
        "settings": "a",
        **more,
    }


def ready_props(id: str) -> dict[str, Any]:
    everybody = [place(id).to_props() for id in (1, 2, 3)]
    return {
        "nodes": [{"place": everybody[0], "container": id}],
        "voters": everybody,
        "tellers": everybody,
        "incarnations": {},
        "cluster_id": OWN_ID,
        "whole": False,
        "incarnation": None,
        "state_dir": str(STATE.absolute()),
    }


def waits(monkeypatch: pytest.MonkeyPatch, *fail: str, kind: type[EarshotError]) -> None:
    """A wait that fails for the containers whose id is one of ``fail``."""

    def wait_for(_engines: object, nodes: Any, *_: Any, **__: Any) -> None:
        ((_, id),) = nodes
        if id in fail:
            raise kind(f"container {id}", observed="restarts in a loop", remedy="take it back")

    monkeypatch.setattr(kinds, "wait_for", wait_for)


def test_a_container_that_does_not_come_up_is_made_again_as_it_was(
    engine: EngineDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    Called(DockerStopPreflightKind()).update({}, stop_props())
    kept = STATE / "containers" / "kafka-1.json"
    assert kept.stat().st_mode & 0o077 == 0, "it has the secrets of the environment"
    engine.replaced()
    waits(monkeypatch, "new-1", kind=EarshotError)
    with pytest.raises(EarshotError) as caught:
        Called(DockerReadinessKind()).update(ready_props("old-1"), ready_props("new-1"))
    assert str(caught.value) == (
        "container new-1: restarts in a loop\n"
        "  it was made again as it was and serves; the nodes after it did not change. What did "
        "not come up is container kafka-1-failed\n"
        "  fix: take it back"
    )
    assert engine.done == [
        "stop new-1 3", "off bridge", f"on {NETWORK} as ['kafka-1']", "start again-kafka-1",
    ]  # fmt: skip
    again = engine.inspect("kafka-1")
    assert again["Config"]["Env"] == ["KAFKA_NODE_ID=1"]
    assert again["Config"]["Labels"][labels.PUT_BACK] == "old-1"
    assert again["HostConfig"]["Binds"] == ["data-1:/data"]
    assert engine.inspect("kafka-1-failed")["Id"] == "new-1"

    # the same again, after what was wrong elsewhere was mended
    engine.done.clear()
    waits(monkeypatch, kind=EarshotError)
    Called(DockerReadinessKind()).update(ready_props("old-1"), ready_props("new-1"))
    assert engine.done == ["stop again-kafka-1 60", "remove again-kafka-1", "start new-1"]
    assert engine.inspect("kafka-1")["Id"] == "new-1" and not kept.exists()


def test_how_it_is_left_where_it_cannot_be_made_again(
    engine: EngineDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    Called(DockerStopPreflightKind()).create(stop_props())
    engine.replaced()
    waits(monkeypatch, "new-1", "again-kafka-1", kind=EarshotError)

    def left() -> str:
        with pytest.raises(EarshotError) as caught:
            Called(DockerReadinessKind()).update(ready_props("old-1"), ready_props("new-1"))
        return str(caught.value).splitlines()[1].strip()

    serving = "it was made again as it was, and container again-kafka-1: restarts in a loop"
    assert left().startswith(serving)
    del engine.held["again-kafka-1"]
    engine.rename("new-1", "kafka-1")
    engine.start("new-1")
    engine.refuses = True
    assert (
        left()
        == "it could not be made again as it was: container kafka-1: port is already allocated"
    )


@pytest.mark.parametrize("kind", [Disturbed, EarshotError])
def test_only_an_undisturbed_replaced_container_is_put_back(
    engine: EngineDouble, monkeypatch: pytest.MonkeyPatch, kind: type[EarshotError]
) -> None:
    Called(DockerStopPreflightKind()).update({}, stop_props())
    waits(monkeypatch, "old-1", "new-1", kind=kind)
    id = "old-1"
    if kind is Disturbed:
        engine.replaced()
        id = "new-1"
    with pytest.raises(EarshotError, match="loop"):
        Called(DockerReadinessKind()).update(ready_props("old-1"), ready_props(id))
    assert engine.done == []


def test_a_first_start_forgets_what_another_stack_had(engine: EngineDouble) -> None:
    put_back.keep(STATE, engine.inspect("old-1"))
    Called(DockerReadinessKind()).create(ready_props("old-1"))
    assert put_back.kept(STATE, "kafka-1", but="new-1") is None


def test_what_the_engine_had_to_start_again_does_not_take_the_place_of_what_served(
    engine: EngineDouble,
) -> None:
    put_back.keep(STATE, engine.inspect("old-1"))
    engine.replaced()
    for restarts, id in ((2, "old-1"), (0, "new-1")):
        engine.held["new-1"]["RestartCount"] = restarts
        put_back.keep(STATE, engine.inspect("new-1"))
        assert json.loads((STATE / "containers" / "kafka-1.json").read_text())["Id"] == id


def test_no_container_is_stopped_while_another_node_is_down(engine: EngineDouble) -> None:
    provider = Called(DockerStopPreflightKind())
    engine.stop("old-3", 0)
    assert str(raised(EarshotError, provider.update, {}, stop_props())) == (
        "container kafka-1 was not stopped: down already: container kafka-3; with one more node "
        "down, brokers could refuse writes\n"
        "  fix: run the same command again: it starts kafka-3 first"
    )
    for key in ("Restarting", "Paused"):
        engine.held["old-3"]["State"] = UP | {key: True}
        with pytest.raises(EarshotError, match="down already: container kafka-3"):
            provider.update({}, stop_props())
    engine.held["aside"] = engine.container("aside", 3, "kafka-3-failed")
    provider.update({}, stop_props())  # node 3 runs, be it by another name
    engine.stop("old-1", 0)
    engine.stop("old-2", 0)
    provider.update({}, stop_props())  # this one does not run: there is nothing to stop
    del engine.held["old-1"]
    provider.create(stop_props())


def test_only_other_settings_are_a_reason_to_look() -> None:
    differs = Called(DockerStopPreflightKind()).differs
    assert not differs(stop_props(), stop_props(hosts=[]))
    assert differs(stop_props(), stop_props(settings="b"))


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"Id": "old-1"}'])
def test_nothing_is_made_by_what_was_cut_short(engine: EngineDouble, text: str) -> None:
    file = STATE / "containers" / "kafka-1.json"
    file.parent.mkdir(parents=True)
    file.write_text(text)
    assert put_back.kept(STATE, "kafka-1", but="new-1") is None


def test_what_stands_in_for_a_container_goes_with_it(engine: EngineDouble) -> None:
    put_back.keep(STATE, engine.inspect("old-1"))
    Called(DockerReadinessKind()).delete(ready_props("old-1"))
    assert not list((STATE / "containers").iterdir()), "it has secrets"
    assert engine.done == ["stop old-1 60"], "Pulumi's own is Pulumi's to remove"
    engine.inspect("old-1")["Config"]["Labels"][labels.PUT_BACK] = "new-1"
    engine.done.clear()
    engine.inspect("old-1")["State"] = dict(UP)
    Called(DockerReadinessKind()).delete(ready_props("gone"))
    assert "stop old-1 60" in engine.done and "old-1" not in engine.held


def test_other_nodes_are_looked_for_on_every_host(engine: EngineDouble) -> None:
    own = {labels.NODE: "1", labels.DEPLOYMENT: "mine"}
    hosts = [DockerHost.model_validate(HOST | {"name": name}) for name in "ab"]
    with Engines() as engines:
        in_turn.check_others(engines, hosts, "kafka-1", own)


def test_before_a_container_is_made_one_of_its_name_goes_if_it_is_this_deployment_s(
    engine: EngineDouble,
) -> None:
    host = DockerHost.model_validate(HOST)

    def removed(deployment: str = "mine") -> bool:
        return host_resources._remove_container(host, [host], "kafka-1", deployment)

    assert not removed("another's")
    engine.stop("old-3", 0)
    with pytest.raises(EarshotError, match="container kafka-1 was not stopped: down already"):
        removed()
    engine.start("old-3")
    engine.done.clear()
    assert removed()
    assert engine.done == ["stop old-1 10", "remove old-1"]
    engine.held["again"] = engine.container("again", 1)
    engine.held["again"]["Config"]["Labels"][labels.PUT_BACK] = "old-1"
    assert removed() and not removed()
    assert engine.done[2:] == ["stop again 60", "remove again"], "it serves, and takes its leave"

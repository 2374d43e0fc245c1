"""The preflight checks of a container, and what follows from their results."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from earshot_pulumi.docker import host_ports, images, on_engines, preflight, running
from earshot_pulumi.docker.container_address import Engines
from earshot_pulumi.docker.on_engines import EngineObjects, TargetStack
from earshot_pulumi.docker.preflight import EnginePreflightKind
from earshot_pulumi.docker.throwaway import CommandFailed

from earshot.errors import EarshotError
from earshot.topology.container import PublishedPort
from tests.components.called import Called
from tests.components.docker.stacks import MINE, container, target_stack
from tests.raised import raised

HOSTS = [
    {"name": "a", "engine": "tcp://a:2376", "external": "a.example"},
    {"name": "b", "engine": "tcp://b:2376", "external": "b.example"},
]
IMAGE = "apache/kafka:4.1.1"
PUBLISHED_ONCE = [
    {"name": "INTERNAL", "port": 19092, "scopes": "internal"},
    {"name": "HOST", "port": 9092, "scopes": "host"},
]


class Asked:
    """Stands for the engines and for what is asked in their containers."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.settings: list[tuple[str, str, list[int]]] = []
        self.ports: dict[str, list[int | None]] = {}
        self.seen = EngineObjects()
        self.refusals: dict[int, str] = {}
        self.holders: dict[int, str] = {}
        self.silent = False
        self.absent: list[str] = []
        """Hosts without the image."""
        monkeypatch.setattr(Engines, "of", lambda _, host: _engine(host.name))
        monkeypatch.setattr(on_engines, "look", lambda _engines, _hosts: self.seen)
        monkeypatch.setattr(on_engines, "problems", lambda *_: ())
        monkeypatch.setattr(running, "running", lambda *_: ())
        monkeypatch.setattr(images, "absent", lambda *_: self.absent)
        monkeypatch.setattr(images, "pull", lambda *_: None)
        monkeypatch.setattr(preflight, "refusals", self._refusals)
        monkeypatch.setattr(host_ports, "holders", self._holders)

    def _refusals(self, client: Any, image: str, given: Mapping[int, str]) -> dict[int, str]:
        if self.silent:
            raise CommandFailed("a container of the image i", observed="it has no Java")
        self.settings.append((client.name, image, sorted(given)))
        return {id: it for id, it in self.refusals.items() if id in given}

    def _holders(
        self, client: Any, _host: Any, image: str | None, wanted: Sequence[PublishedPort], _: Any
    ) -> dict[PublishedPort, str]:
        if image is None or self.silent:
            raise CommandFailed("its ports", observed="it has no image yet to ask them in")
        self.ports[client.name] = [it.host_port for it in wanted]
        return {
            it: self.holders[it.host_port or 0] for it in wanted if it.host_port in self.holders
        }


def _engine(name: str) -> Any:
    """An engine without containers of this deployment."""
    return SimpleNamespace(name=name, containers=SimpleNamespace(list=lambda **_: []))


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Asked:
    return Asked(monkeypatch)


def props(of: TargetStack) -> dict[str, Any]:
    own = {"deployment": MINE, "remove": "anyway", "state_dir": "/s"}
    return {**of.to_props(), **own}


def said(olds: dict[str, Any], news: dict[str, Any]) -> str:
    failures = Called(EnginePreflightKind()).check(olds, news).failures
    return "".join(failures)


def test_what_kafka_refuses_is_said_once_with_the_nodes(asked: Asked) -> None:
    asked.refusals = dict.fromkeys((1, 2, 3), "Invalid value abc for configuration num.io.threads")
    assert said({}, props(target_stack())) == (
        "\n- Kafka 4.1.1 refuses the settings of node 1, 2, 3: "
        "Invalid value abc for configuration num.io.threads. Correct them in the stack file"
    )


def test_every_host_is_asked_about_its_own_nodes(asked: Asked) -> None:
    two = target_stack(hosts=HOSTS)
    assert said({}, props(two)) == ""
    assert sorted(asked.settings) == [("a", IMAGE, [1, 3]), ("b", IMAGE, [2])]


def test_only_what_has_changed_is_asked(asked: Asked) -> None:
    now = props(target_stack())
    said(now, now)
    assert asked.settings == []
    said(now, props(target_stack(extra={"num.io.threads": "9"})))
    said(now, props(target_stack(image="mirror.lan/kafka:4.1.1")))
    said(now, props(target_stack(heap="1g")))
    assert [(image, ids) for _, image, ids in asked.settings] == [
        (IMAGE, [1, 2, 3]),
        ("mirror.lan/kafka:4.1.1", [1, 2, 3]),
    ]


def test_an_image_that_is_not_there_yet_is_asked_once_the_update_has_pulled_it(
    asked: Asked, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    asked.refusals, asked.absent = {2: "no"}, ["b"]
    news = props(target_stack(hosts=HOSTS)) | {"state_dir": str(tmp_path)}
    checked = Called(EnginePreflightKind()).check({}, news)
    assert checked.failures == []
    assert asked.settings == [("a", IMAGE, [1, 3])]
    assert capsys.readouterr().out == ""
    assert str(raised(EarshotError, Called(EnginePreflightKind()).create, checked.inputs)) == (
        "nothing was changed:\n- Kafka 4.1.1 refuses the settings of node 2: no. Correct them in "
        "the stack file"
    )
    asked.refusals.clear()
    assert Called(EnginePreflightKind()).create(checked.inputs).outs["absent"] == []
    assert asked.settings[1:] == [("b", IMAGE, [2])] * 2


def test_a_port_that_a_process_holds_is_told(asked: Asked) -> None:
    now = target_stack(brokers=1, listeners=PUBLISHED_ONCE)
    (port,) = now.containers[1].ports
    assert port.host_port is not None
    asked.holders = {port.host_port: "pid 7 (nginx)"}
    assert said({}, props(now)) == (
        f"\n- port {port.host_port} of Docker host local, for node 1, is taken by pid 7 (nginx), "
        "which is no container. Free the port, or choose another `port` (or `published`) for the "
        "listener"
    )


def test_ports_that_its_own_container_publishes_are_not_asked(asked: Asked) -> None:
    now = target_stack(brokers=2, listeners=PUBLISHED_ONCE)
    (port,) = now.containers[2].ports
    asked.seen = EngineObjects((container(now, 1), replace(container(now, 2), ports=())))
    said({}, props(now))
    assert asked.ports == {"local": [port.host_port]}
    asked.seen, asked.ports = EngineObjects((container(now, 1), container(now, 2))), {}
    said({}, props(now))
    assert asked.ports == {}


def test_what_cannot_be_asked_is_said_and_stops_nothing(
    asked: Asked, capsys: pytest.CaptureFixture[str]
) -> None:
    asked.silent = True
    assert said({}, props(target_stack())) == ""
    assert capsys.readouterr().out == (
        "Docker host local: ports not looked at: it has no image yet to ask them in\n"
        "Docker host local: Kafka has not read the settings beforehand: it has no Java\n"
    )


def test_kafka_reads_the_settings_of_the_last_step_before_the_first(asked: Asked) -> None:
    step, last = target_stack(brokers=2), target_stack(brokers=3, extra={"num.io.threads": "abc"})
    news = props(step) | {"last": last.plan.model_dump(mode="json")}
    assert said(news, news) == ""
    assert [ids for _, _, ids in asked.settings] == [[1, 2]], "the third has no container yet"
    asked.refusals = {1: "Invalid value abc for configuration num.io.threads"}
    assert "refuses the settings of node 1: Invalid value abc" in said(news, news)

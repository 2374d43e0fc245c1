"""Which nodes have ended, by what is on the engines; see also `test_put_back.py`."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from components.docker import in_turn, labels, on_engines
from components.docker.on_engines import Seen, SeenContainer, SeenVolume
from earshot.config.docker import DockerSpec
from earshot.config.document import read_spec
from earshot.errors import EarshotError
from earshot.placement import DockerPlan, plan_docker


@pytest.fixture
def planned() -> DockerPlan:
    spec = read_spec({"placement": "docker"}, "test")
    assert isinstance(spec, DockerSpec)
    return plan_docker(spec, "s")


def container(id: int, running: bool, stack: str = "s") -> SeenContainer:
    own = {labels.STACK: stack, labels.NODE: str(id)}
    return SeenContainer("local", f"id-{id}", f"kafka-{id}", "kafka", running, own)


def volume(id: int, name: str = "", stack: str = "s") -> SeenVolume:
    own = {labels.STACK: stack, labels.NODE: str(id)}
    return SeenVolume("local", name or f"earshot-s-kafka-{id}", own)


@pytest.mark.parametrize(
    ("containers", "volumes", "ended"),
    [
        ([container(id, True) for id in (1, 2, 3)], [1, 2, 3], set()),
        ([container(1, True), container(2, False), container(3, True)], [1, 2, 3], {2}),
        ([container(2, False), container(2, True)], [2], set()),
        ([container(1, True), container(3, True, stack="t")], [1, 2, 3], {2, 3}),
        ([], [1], {1}),
    ],
)
def test_what_has_data_and_does_not_run(
    planned: DockerPlan,
    monkeypatch: pytest.MonkeyPatch,
    containers: Iterable[SeenContainer],
    volumes: Iterable[int],
    ended: set[int],
) -> None:
    held = [volume(id) for id in volumes]
    held += [volume(4), volume(1, "another"), volume(3, "earshot-s-kafka-3", stack="t")]
    seen = Seen(tuple(containers), tuple(held))
    monkeypatch.setattr(on_engines, "look", lambda *_: seen)
    assert in_turn.ended("s", planned) == ended


def test_nothing_is_known_where_an_engine_does_not_answer(
    planned: DockerPlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    def look(*_: object) -> Seen:
        raise EarshotError("Docker engine", observed="does not answer", remedy="start it")

    monkeypatch.setattr(on_engines, "look", look)
    assert in_turn.ended("s", planned) == frozenset()

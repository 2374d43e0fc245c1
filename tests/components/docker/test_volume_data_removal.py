"""Which brokers hold replicas that would be lost, where none that runs can be asked."""

from collections.abc import Iterable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from earshot_pulumi.docker import inner_listener, labels, throwaway, volume_data
from earshot_pulumi.docker.on_engines import EngineObjects
from earshot_pulumi.docker.throwaway import CommandFailed

from earshot.validation.cluster_state import ClusterState, Partition
from earshot.validation.wire import ExchangeError
from tests.components.docker.stacks import container, everything, target_stack, volume

ENGINES: Any = SimpleNamespace(of=lambda host: host.name)
ENGINES_OF_PLACES: Any = SimpleNamespace(of=lambda _: None)


def said(monkeypatch: pytest.MonkeyPatch, listing: str | None) -> tuple[list[str], list[str]]:
    """What speaks against the removal of broker 2, and the images that were tried."""
    tried: list[str] = []

    def ask_any(_client: object, images: Iterable[str], *_: object, **__: object) -> str:
        tried.extend(images)
        if listing is None:
            raise CommandFailed("the volumes", observed="no image is there")
        return listing

    monkeypatch.setattr(throwaway, "ask_any", ask_any)
    monkeypatch.setattr(volume_data, "_state", lambda *_: None)
    seen = everything(target_stack(brokers=2, kafka_version="4.0.1"))
    now = target_stack(brokers=1, kafka_version="4.1.1")
    return list(volume_data.removal_problems(ENGINES, now, seen, now.hosts)), tried


def test_replicas_in_the_volume_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    (problem,), tried = said(monkeypatch, "a-0\na-1\n__cluster_metadata-0\nmeta.properties\n")
    assert problem == (
        "broker 2 would be removed and still holds 2 replica(s): a-0, a-1. Move them to the "
        "brokers that stay (kafka-reassign-partitions), or keep the broker"
    )
    assert tried == [
        "apache/kafka:4.1.1",
        container(target_stack(brokers=2, kafka_version="4.0.1"), 2).image,
    ]


def test_an_empty_broker_may_go(monkeypatch: pytest.MonkeyPatch) -> None:
    assert said(monkeypatch, "__cluster_metadata-0\nmeta.properties\n")[0] == []


def test_what_cannot_be_looked_into_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    (problem,), _ = said(monkeypatch, None)
    assert "whether it is empty is not known" in problem
    assert "cannot be looked into: no image is there" in problem


def test_whoever_runs_stays_and_can_be_asked_knows_what_is_held(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before, now = target_stack(brokers=5), target_stack(brokers=3)
    seen = everything(before)
    first, second, *rest = seen.containers
    running = replace(seen, containers=(replace(first, running=False), second, *rest))
    asked: list[str] = []

    def state(_client: object, container: str, _endpoint: object) -> ClusterState:
        asked.append(container)
        if len(asked) == 1:
            raise ExchangeError("timeout", "not yet")
        return ClusterState((3, 4), (Partition("t", 0, 3, (3, 5), (3, 5)),))

    monkeypatch.setattr(inner_listener, "state", state)
    found = list(volume_data.removal_problems(ENGINES_OF_PLACES, now, running, now.hosts))
    assert asked == ["id-2", "id-3"], "broker 1 does not run, and 2 does not answer"
    assert found == [
        (
            "broker 5 would be removed and still holds 1 replica(s): t-0. Move them to the brokers "
            "that stay (kafka-reassign-partitions), or keep the broker"
        )
    ]


def test_if_no_node_is_removed_none_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    now = target_stack(brokers=1)
    assert list(volume_data.removal_problems(None, now, everything(now), now.hosts)) == []  # type: ignore[arg-type]


def test_each_volume_is_told_that_cannot_be_looked_into(monkeypatch: pytest.MonkeyPatch) -> None:
    def ask_any(*_: object, **__: object) -> str:
        raise CommandFailed("the volumes", observed="no image is there")

    monkeypatch.setattr(throwaway, "ask_any", ask_any)
    monkeypatch.setattr(volume_data, "_state", lambda *_: None)
    now = target_stack(brokers=1)
    found = list(
        volume_data.removal_problems(ENGINES, now, everything(target_stack(brokers=3)), now.hosts)
    )
    assert found == [
        f"broker {id} would be removed, and whether it is empty is not known: volume "
        f"earshot-s-kafka-{id} on Docker host local: cannot be looked into: no image is there\n"
        "  fix: see that the engine has the image apache/kafka:4.1.1, or remove the volume "
        "if it is no longer needed"
        for id in (2, 3)
    ]


def test_what_others_have_left_is_no_broker_of_ours() -> None:
    before, now = target_stack(brokers=2), target_stack(brokers=1)
    theirs = container(before, 2, labels={**container(before, 2).labels, labels.DEPLOYMENT: "x"})
    foreign = volume(before, 2, labels={**volume(before, 2).labels, labels.STACK: "other"})
    assert volume_data.removed(now, EngineObjects((theirs,), (foreign,))) == {}
    assert volume_data.removed(now, EngineObjects((), (volume(before, 2),))) == {
        2: [volume(before, 2)]
    }

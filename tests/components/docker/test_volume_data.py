"""Data in volumes: what an older Kafka cannot read, and replicas of removed brokers."""

import base64
import io
import tarfile
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from earshot_pulumi.docker import inner_listener, labels, throwaway, volume_data
from earshot_pulumi.docker.container_address import Engines
from earshot_pulumi.docker.engine_objects import EngineObjects, TargetStack
from earshot_pulumi.docker.throwaway import CommandFailed
from hypothesis import given
from hypothesis import strategies as st

from earshot.validation.cluster_state import ClusterState, Partition
from earshot.validation.wire import ExchangeError
from tests.components.docker.stacks import (
    OTHER_ID,
    OWN_ID,
    container,
    everything,
    target_stack,
    volume,
)

ENGINES: Any = SimpleNamespace(of=lambda host: host.name)
ENGINES_OF_ADDRESSES: Any = SimpleNamespace(of=lambda _: None)
RECORD = b"\x01\x0c\x00\x11metadata.version%b\x00"


def packed(*members: tuple[str, bytes, dict[str, Any]]) -> str:
    """The output of a container for files with a name, content and attributes."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, content, attributes in members:
            member = tarfile.TarInfo(name)
            member.size = len(content)
            for attribute, value in attributes.items():
                setattr(member, attribute, value)
            archive.addfile(member, io.BytesIO(content))
    return base64.b64encode(buffer.getvalue()).decode()


FORMATTED: tuple[str, bytes, dict[str, Any]] = ("meta.properties", b"version=1\n", {})


def data(level: int) -> str:
    """The output for a volume that Kafka has formatted with a feature level."""
    return packed(FORMATTED, ("bootstrap.checkpoint", RECORD % level.to_bytes(2, "big"), {}))


def version_problems(
    monkeypatch: pytest.MonkeyPatch,
    version: str,
    output: str | None,
    made_for: str,
    before: TargetStack | None = None,
) -> list[str]:
    """The problems with one broker's volume that was created for Kafka ``made_for``.

    ``output`` is that of the container that reads it; None if no container can.
    """

    def ask_any(_client: object, images: Iterable[str], *_: object, **__: object) -> str:
        assert f"apache/kafka:{version}" in list(images)
        if output is None:
            raise CommandFailed("the volumes")
        return output

    monkeypatch.setattr(throwaway, "ask_any", ask_any)
    objects = EngineObjects(
        volumes=everything(target_stack(brokers=1, kafka_version=made_for)).volumes
    )
    target = target_stack(brokers=1, kafka_version=version)
    return list(volume_data.version_problems(ENGINES, target, objects, before))


VOLUME = "volume earshot-s-kafka-1 on Docker host local was "
OLDER = f"{VOLUME}written by Kafka 4.1.1, and 4.0.2 is older"
LEVELS = "ts `metadata.version` is 27, and 4.0.2 reads up to 25"
ONWARD = (
    "; a KRaft cluster cannot go back to an older release. Keep the version, or remove the data "
    "with `data: delete` and `pulumi destroy`"
)
WITHOUT_LEVEL = (None, packed(FORMATTED))


@pytest.mark.parametrize(("version", "output", "made_for", "before", "problem"), [
    ("4.0.2", data(27), "4.1.1", None, f"{OLDER} (i{LEVELS})"),
    # it has written nothing, or another release has formatted the volume
    ("4.0.2", "", "4.1.1", None, ""),
    ("4.0.2", data(25), "4.1.1", None, ""),
    # without a level, the version decides that it was created for
    *(("4.0.2", output, "4.1.1", None, OLDER) for output in WITHOUT_LEVEL),
    *(("4.0.2", output, "4.0.1", "4.1.1", "") for output in WITHOUT_LEVEL),
    # an upgrade can be reverted until the level is raised
    ("4.0.2", data(25), "4.0.1", "4.1.1", ""),
    ("4.0.2", data(27), "4.0.1", "4.1.1", f"{VOLUME}upgraded: i{LEVELS}"),
    # a release whose levels are not known is checked by its number
    ("4.8.0", data(27), "4.9.0", None, f"{VOLUME}written by Kafka 4.9.0, and 4.8.0 is older"),
    ("4.8.0", data(27), "4.7.0", "4.9.0", ""),
    # for an older release only a volume is looked into
    *((version, None, "4.1.1", None, "") for version in ("4.1.1", "4.1.0", "4.2.0")),
])  # fmt: skip
def test_data_that_an_older_kafka_cannot_read(
    monkeypatch: pytest.MonkeyPatch,
    version: str,
    output: str | None,
    made_for: str,
    before: str | None,
    problem: str,
) -> None:
    former = target_stack(kafka_version=before) if before else None
    expected = [problem + ONWARD] if problem else []
    assert version_problems(monkeypatch, version, output, made_for, former) == expected


def test_volumes_of_other_stacks_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    def ask_any(*_: object, **__: object) -> str:
        raise AssertionError

    monkeypatch.setattr(throwaway, "ask_any", ask_any)
    others = EngineObjects(volumes=everything(target_stack("other", kafka_version="4.1.1")).volumes)
    target = target_stack(kafka_version="4.0.2")
    assert list(volume_data.version_problems(ENGINES, target, others, None)) == []


def test_an_archive_that_ends_early_is_read_as_far_as_it_goes() -> None:
    whole = base64.b64decode(data(27))
    assert volume_data.read(base64.b64encode(whole[:-12]).decode()) == (True, 27)


def test_an_archive_does_not_fill_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(volume_data, "MAX_EXTRACTED", 2**20)
    output = packed(*((name, bytes(2**20), {}) for name in ("meta.properties", "large")))
    extracted: list[int] = []

    def level(folders: list[Path]) -> int | None:
        extracted.extend(file.stat().st_size for file in folders[0].iterdir())
        return None

    monkeypatch.setattr(volume_data, "feature_level", level)
    assert volume_data.read(output) == (True, None)
    assert extracted == [2**20]


@given(cut=st.integers(0, 200), suffix=st.binary(max_size=20))
def test_any_output_of_a_container_is_read_without_an_error(cut: int, suffix: bytes) -> None:
    whole = base64.b64decode(data(27))
    written, level = volume_data.read(base64.b64encode(whole[:cut] + suffix).decode()[:-1])
    assert written or level is None


def test_how_a_volume_is_looked_into(monkeypatch: pytest.MonkeyPatch) -> None:
    requests: list[Any] = []

    def ask_any(
        client: object, images: Iterable[str], command: list[str], *, volumes: dict[str, str]
    ) -> str:
        requests.append((client, list(images), [*command[:2], *command[3:]], volumes))
        return data(27)

    monkeypatch.setattr(throwaway, "ask_any", ask_any)
    old = target_stack(brokers=2, kafka_version="4.1.1")
    objects = everything(old)
    stranger = replace(objects.containers[0], image="not ours", labels={})
    elsewhere = replace(objects.containers[0], image="not here", host="elsewhere")
    objects = EngineObjects((*objects.containers, stranger, elsewhere), objects.volumes[:1])
    target = target_stack(brokers=2, kafka_version="4.0.2")
    assert len(list(volume_data.version_problems(ENGINES, target, objects, old))) == 1
    images = ["apache/kafka:4.0.2", "sha256:1", "sha256:1", "apache/kafka:4.1.1"]
    place = {"earshot-s-kafka-1": "/var/lib/kafka/data"}
    assert requests == [("local", images, ["bash", "-c", "look", "/var/lib/kafka/data"], place)]


def test_the_volumes_of_a_stack_are_each_checked_whatever_else_is_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(throwaway, "ask_any", lambda *_, **__: data(27))
    volumes = everything(target_stack(brokers=3, kafka_version="4.1.1")).volumes
    alien = replace(volumes[0], name="somebody's")
    other_stack = replace(volumes[1], labels={**volumes[1].labels, labels.STACK: "other"})
    other_node = replace(volumes[0], labels={**volumes[0].labels, labels.NODE: "3"})
    target = target_stack(brokers=3, kafka_version="4.0.2")
    objects = EngineObjects(volumes=(alien, other_stack, other_node, volumes[2]))
    (message,) = volume_data.version_problems(ENGINES, target, objects, None)
    assert message.startswith("volume earshot-s-kafka-3 on Docker host local was written by")


def test_for_a_volume_without_a_version_that_of_the_stack_decides(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(throwaway, "ask_any", lambda *_, **__: data(27))
    (created,) = everything(target_stack(brokers=1)).volumes
    bare = replace(created, labels={k: v for k, v in created.labels.items() if k != labels.KAFKA})
    target, objects = target_stack(brokers=1, kafka_version="4.0.2"), EngineObjects(volumes=(bare,))
    assert list(volume_data.version_problems(ENGINES, target, objects, None)) == []
    assert (
        len(list(volume_data.version_problems(ENGINES, target, objects, target_stack(brokers=1))))
        == 1
    )


@pytest.mark.parametrize(
    ("version", "level"), [("3.9.2", 21), ("4.0.2", 25), ("4.1.1", 27), ("4.2.0", 29)]
)
def test_the_newest_level_that_each_release_reads(
    monkeypatch: pytest.MonkeyPatch, version: str, level: int
) -> None:
    assert version_problems(monkeypatch, version, data(level), "4.3.0") == []
    (message,) = version_problems(monkeypatch, version, data(level + 1), "4.3.0")
    assert f"`metadata.version` is {level + 1}, and {version} reads up to {level})" in message


def test_an_output_that_is_no_archive_has_no_level() -> None:
    assert volume_data.read("") == (False, None)
    for output in ("AAAA", "!", base64.b64encode(b"\x1f\x8b\x08").decode()):
        assert volume_data.read(output) == (False, None)
    assert volume_data.read(packed(FORMATTED)) == (True, None)


@pytest.mark.parametrize("members", [
    [("x" * 300, {})],
    [("a", {}), ("a/b", {})],
    [("a", {"type": tarfile.DIRTYPE}), ("a", {})],
    [("a", {"mtime": 2**70})],
    [("a", {"type": tarfile.LNKTYPE, "linkname": "none"})],
], ids=["a long name", "below a file", "a file for a folder", "a time", "a link"])  # fmt: skip
def test_an_archive_with_impossible_files_has_no_level(
    members: list[tuple[str, dict[str, Any]]],
) -> None:
    output = packed(*((name, b"", attributes) for name, attributes in members))
    assert volume_data.read(output) == (False, None)


def removal_problems(monkeypatch: pytest.MonkeyPatch, listing: str) -> tuple[list[str], list[str]]:
    """The problems with the removal of broker 2, and the images that were tried."""
    tried: list[str] = []

    def ask_any(_client: object, images: Iterable[str], *_: object, **__: object) -> str:
        tried.extend(images)
        return listing

    monkeypatch.setattr(throwaway, "ask_any", ask_any)
    monkeypatch.setattr(volume_data, "_state", lambda *_: None)
    objects = everything(target_stack(brokers=2, kafka_version="4.0.1"))
    target = target_stack(brokers=1, kafka_version="4.1.1")
    return list(volume_data.data_problems(ENGINES, target, objects, target.hosts, OWN_ID)), tried


def test_replicas_in_the_volume_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    (problem,), tried = removal_problems(
        monkeypatch, "a-0\na-1\n__cluster_metadata-0\nmeta.properties\n"
    )
    assert problem == (
        "broker 2 would be removed and still holds 2 replica(s): a-0, a-1. Move them to the "
        "brokers that stay (kafka-reassign-partitions), or keep the broker"
    )
    assert tried == [
        "apache/kafka:4.1.1",
        container(target_stack(brokers=2, kafka_version="4.0.1"), 2).image,
    ]


def test_an_empty_broker_may_be_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert removal_problems(monkeypatch, "__cluster_metadata-0\nmeta.properties\n")[0] == []


def test_a_running_broker_that_stays_reports_the_replicas(monkeypatch: pytest.MonkeyPatch) -> None:
    before, target = target_stack(brokers=5), target_stack(brokers=3)
    objects = everything(before)
    first, second, *rest = objects.containers
    running = replace(objects, containers=(replace(first, running=False), second, *rest))
    asked: list[str] = []

    def state(_client: object, container: str, _endpoint: object) -> ClusterState:
        asked.append(container)
        if len(asked) == 1:
            raise ExchangeError("timeout", "not yet")
        return ClusterState((3, 4), (Partition("t", 0, 3, (3, 5), (3, 5)),))

    monkeypatch.setattr(inner_listener, "state", state)
    messages = list(
        volume_data.data_problems(ENGINES_OF_ADDRESSES, target, running, target.hosts, OWN_ID)
    )
    assert asked == ["id-2", "id-3"], "broker 1 does not run, and 2 does not answer"
    assert messages == [
        (
            "broker 5 would be removed and still holds 1 replica(s): t-0. Move them to the brokers "
            "that stay (kafka-reassign-partitions), or keep the broker"
        )
    ]


def test_without_a_removed_broker_no_engine_is_asked() -> None:
    target, nothing = target_stack(brokers=1), cast(Engines, None)
    objects = everything(target)
    assert list(volume_data.data_problems(nothing, target, objects, target.hosts, OWN_ID)) == []


def test_each_volume_that_cannot_be_read_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def ask_any(*_: object, **__: object) -> str:
        raise CommandFailed("the volumes", observed="no image is there")

    monkeypatch.setattr(throwaway, "ask_any", ask_any)
    monkeypatch.setattr(volume_data, "_state", lambda *_: None)
    target = target_stack(brokers=1)
    messages = list(
        volume_data.data_problems(
            ENGINES, target, everything(target_stack(brokers=3)), target.hosts, OWN_ID
        )
    )
    assert messages == [
        f"broker {id} would be removed, and whether it is empty is not known: volume "
        f"earshot-s-kafka-{id} on Docker host local: cannot be read: no image is there\n"
        "  fix: check that the engine has the image apache/kafka:4.1.1, or remove the volume "
        "if it is no longer needed"
        for id in (2, 3)
    ]


def test_what_is_left_of_removed_brokers() -> None:
    before, target = target_stack(brokers=2), target_stack(brokers=1)
    own = {2: [container(before, 2), volume(before, 2)]}
    assert volume_data.removed(target, everything(before)) == own
    assert volume_data.removed(before, everything(before)) == {}
    theirs = container(before, 2, labels={**container(before, 2).labels, labels.DEPLOYMENT: "x"})
    foreign = volume(before, 2, labels={**volume(before, 2).labels, labels.STACK: "other"})
    assert volume_data.removed(target, EngineObjects((theirs,), (foreign,))) == {}
    controllers = target_stack(brokers=1, controllers={"mode": "separate", "count": 3})
    assert volume_data.removed(target, everything(controllers)) == {}, "they hold no replicas"


def moved_problems(
    monkeypatch: pytest.MonkeyPatch,
    before: TargetStack,
    target: TargetStack,
    objects: EngineObjects | None = None,
    cluster_id: str | None = OWN_ID,
    listing: str = "a-0",
) -> list[str]:
    """The problems of an update from ``before`` (or ``objects``) to ``target``, whose volumes
    contain ``listing``."""
    monkeypatch.setattr(throwaway, "ask_any", lambda *_, **__: listing)
    monkeypatch.setattr(volume_data, "_state", lambda *_: None)
    objects = objects or everything(before)
    return list(volume_data.data_problems(ENGINES, target, objects, before.hosts, cluster_id))


SEPARATE: dict[str, Any] = {"brokers": 2, "controllers": {"mode": "separate", "count": 1}}


def stopped(target: TargetStack) -> EngineObjects:
    """The volumes that are left once the stack ``target`` is destroyed."""
    return EngineObjects(volumes=everything(target).volumes)


def test_a_broker_does_not_leave_its_replicas_in_another_volume(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A container of another name has another volume, which is empty."""
    before, target = target_stack(**SEPARATE), target_stack(**SEPARATE, names={2: "other"})
    message = (
        "node 2 would start with an empty volume and leave its data in volume earshot-s-kafka-2 on "
        "Docker host local: 1 replica(s): a-0. Keep the node's name and Docker host (`names`, "
        "`hosts`), or move the replicas to other brokers first (kafka-reassign-partitions)"
    )
    for objects in (everything(before), stopped(before)):
        assert moved_problems(monkeypatch, before, target, objects) == [message]
    assert moved_problems(monkeypatch, before, target, listing="meta.properties") == []
    assert moved_problems(monkeypatch, before, before) == []


def test_a_voter_does_not_leave_the_metadata_in_another_volume(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before, target = target_stack(**SEPARATE), target_stack(**SEPARATE, names={10001: "other"})
    (message,) = moved_problems(monkeypatch, before, target, stopped(before), listing="")
    assert message == (
        "node 10001 would start with an empty volume and leave its data in volume "
        "earshot-s-controller-10001 on Docker host local: the quorum's metadata. Keep the node's "
        "name and Docker host (`names`, `hosts`), or remove the volume if its data is no longer "
        "needed"
    )
    # `engine_objects.problems` refuses other addresses of controllers while they run
    assert moved_problems(monkeypatch, before, target, listing="") == []


def test_a_node_on_another_docker_host_would_leave_its_data(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def on_hosts(*brokers: int) -> TargetStack:
        hosts = [
            {"name": "a", "external": "a.example", "brokers": [1, 2, *brokers]},
            {"name": "b", "external": "b.example", "brokers": [3, *({4} - {*brokers})]},
        ]
        listeners = [{"name": "INTERNAL", "port": 19092, "scopes": ["internal"]}]
        return target_stack(brokers=4, hosts=hosts, listeners=listeners)

    (message,) = moved_problems(monkeypatch, on_hosts(4), on_hosts())
    assert "leave its data in volume earshot-s-kafka-4 on Docker host a:" in message


def test_where_the_data_of_a_node_is(monkeypatch: pytest.MonkeyPatch) -> None:
    before, target = target_stack(**SEPARATE), target_stack(**SEPARATE, names={2: "other"})
    now, both = everything(before), (*everything(before).volumes, volume(target, 2))

    def is_refused(objects: EngineObjects, cluster_id: str | None = OWN_ID) -> bool:
        return bool(moved_problems(monkeypatch, before, target, objects, cluster_id))

    assert is_refused(replace(now, volumes=both)), "the container uses the former one"
    assert not is_refused(replace(everything(target), volumes=both)), "it uses the new one already"
    assert not is_refused(EngineObjects(volumes=both))
    assert not is_refused(now, OTHER_ID) and not is_refused(now, None), "data of another cluster"
    failed = replace(container(target, 2), name="other-failed")
    assert not is_refused(EngineObjects((failed,), (volume(target, 2),)))

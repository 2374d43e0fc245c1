"""Which data an older Kafka cannot read, told by the data themselves."""

import base64
import io
import tarfile
from collections.abc import Iterable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from earshot_pulumi.docker import labels, throwaway, volume_data
from earshot_pulumi.docker.on_engines import EngineObjects, TargetStack
from earshot_pulumi.docker.throwaway import CommandFailed
from hypothesis import given
from hypothesis import strategies as st

from tests.components.docker.stacks import everything, target_stack

ENGINES: Any = SimpleNamespace(of=lambda host: host.name)
RECORD = b"\x01\x0c\x00\x11metadata.version%b\x00"


def data(level: int | None) -> str:
    """What is in a volume that Kafka has formatted, as it comes out of a container."""
    buffer = io.BytesIO()
    files = {"meta.properties": b"version=1\n"}
    if level is not None:
        files["bootstrap.checkpoint"] = RECORD % level.to_bytes(2, "big")
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return base64.b64encode(buffer.getvalue()).decode()


def said(
    monkeypatch: pytest.MonkeyPatch,
    version: str,
    reported: str | None,
    made_for: str = "4.1.1",
    before: TargetStack | None = None,
) -> list[str]:
    """Of one broker's volume that was made for a version and ``told`` this; None: nobody can."""

    def ask_any(_client: object, images: Iterable[str], *_: object, **__: object) -> str:
        assert f"apache/kafka:{version}" in list(images)
        if reported is None:
            raise CommandFailed("the volumes")
        return reported

    monkeypatch.setattr(throwaway, "ask_any", ask_any)
    seen = EngineObjects(
        volumes=everything(target_stack(brokers=1, kafka_version=made_for)).volumes
    )
    now = target_stack(brokers=1, kafka_version=version)
    return list(volume_data.version_problems(ENGINES, now, seen, before))


OLDER = (
    "volume earshot-s-kafka-1 on Docker host local was written by Kafka 4.1.1, and 4.0.2 is older"
)
ONWARD = (
    "; a KRaft cluster goes forward only. Keep the version, or remove the data with "
    "`data: delete` and `pulumi destroy`"
)


def test_data_that_an_older_kafka_cannot_read(monkeypatch: pytest.MonkeyPatch) -> None:
    levels = " (its `metadata.version` is 27, and 4.0.2 reads up to 25)"
    assert said(monkeypatch, "4.0.2", data(27)) == [OLDER + levels + ONWARD]


def test_a_version_that_has_written_nothing_is_no_obstacle(monkeypatch: pytest.MonkeyPatch) -> None:
    assert said(monkeypatch, "4.0.2", "") == []
    assert said(monkeypatch, "4.0.2", data(25)) == [], "another has formatted it"


@pytest.mark.parametrize("reported", [None, data(None)])
def test_where_the_data_do_not_say_what_they_were_made_for_decides(
    monkeypatch: pytest.MonkeyPatch, reported: str | None
) -> None:
    assert said(monkeypatch, "4.0.2", reported) == [OLDER + ONWARD]
    assert said(monkeypatch, "4.0.2", reported, "4.0.1", target_stack(kafka_version="4.1.1")) == []


def test_an_upgrade_can_be_reverted_until_the_level_is_raised(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = target_stack(kafka_version="4.1.1")
    assert said(monkeypatch, "4.0.2", data(25), "4.0.1", before) == []
    assert said(monkeypatch, "4.0.2", data(27), "4.0.1", before) == [
        "volume earshot-s-kafka-1 on Docker host local was upgraded: its `metadata.version` is 27, "
        "and 4.0.2 reads up to 25" + ONWARD
    ]


@pytest.mark.parametrize("version", ["4.1.1", "4.1.0", "4.2.0"])
def test_a_volume_is_looked_into_for_an_older_release_only(
    monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    assert said(monkeypatch, version, None) == []


def test_volumes_of_others_are_not_looked_into(monkeypatch: pytest.MonkeyPatch) -> None:
    def ask_any(*_: object, **__: object) -> str:
        raise AssertionError

    monkeypatch.setattr(throwaway, "ask_any", ask_any)
    others = EngineObjects(volumes=everything(target_stack("other", kafka_version="4.1.1")).volumes)
    now = target_stack(kafka_version="4.0.2")
    assert list(volume_data.version_problems(ENGINES, now, others, None)) == []


def test_an_archive_that_ends_early_tells_what_it_has() -> None:
    packed = base64.b64decode(data(27))
    assert volume_data.read(base64.b64encode(packed[: len(packed) - 12]).decode()) == (True, 27)


@given(cut=st.integers(0, 200), more=st.binary(max_size=20))
def test_whatever_comes_out_of_a_container_is_read_without_an_error(cut: int, more: bytes) -> None:
    packed = base64.b64decode(data(27))
    written, level = volume_data.read(base64.b64encode(packed[:cut] + more).decode()[:-1])
    assert written or level is None


def test_how_a_volume_is_looked_into(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def ask_any(
        client: object, images: Iterable[str], command: list[str], *, volumes: dict[str, str]
    ) -> str:
        asked.append((client, list(images), [*command[:2], *command[3:]], volumes))
        return data(27)

    monkeypatch.setattr(throwaway, "ask_any", ask_any)
    old = target_stack(brokers=2, kafka_version="4.1.1")
    seen = everything(old)
    stranger = replace(seen.containers[0], image="not ours", labels={})
    elsewhere = replace(seen.containers[0], image="not here", host="elsewhere")
    seen = EngineObjects((*seen.containers, stranger, elsewhere), seen.volumes[:1])
    now = target_stack(brokers=2, kafka_version="4.0.2")
    assert len(list(volume_data.version_problems(ENGINES, now, seen, old))) == 1
    images = ["apache/kafka:4.0.2", "sha256:1", "sha256:1", "apache/kafka:4.1.1"]
    place = {"earshot-s-kafka-1": "/var/lib/kafka/data"}
    assert asked == [("local", images, ["bash", "-c", "look", "/var/lib/kafka/data"], place)]


def test_the_volumes_of_a_stack_are_each_checked_whatever_else_is_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(throwaway, "ask_any", lambda *_, **__: data(27))
    there = everything(target_stack(brokers=3, kafka_version="4.1.1")).volumes
    alien = replace(there[0], name="somebody's")
    other_stack = replace(there[1], labels={**there[1].labels, labels.STACK: "other"})
    other_node = replace(there[0], labels={**there[0].labels, labels.NODE: "3"})
    now = target_stack(brokers=3, kafka_version="4.0.2")
    seen = EngineObjects(volumes=(alien, other_stack, other_node, there[2]))
    (reported,) = volume_data.version_problems(ENGINES, now, seen, None)
    assert reported.startswith("volume earshot-s-kafka-3 on Docker host local was written by")


def test_of_a_volume_without_a_version_the_stack_s_own_decides(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(throwaway, "ask_any", lambda *_, **__: data(27))
    (made,) = everything(target_stack(brokers=1)).volumes
    bare = replace(made, labels={k: v for k, v in made.labels.items() if k != labels.KAFKA})
    now, seen = target_stack(brokers=1, kafka_version="4.0.2"), EngineObjects(volumes=(bare,))
    assert list(volume_data.version_problems(ENGINES, now, seen, None)) == []
    assert len(list(volume_data.version_problems(ENGINES, now, seen, target_stack(brokers=1)))) == 1


def test_a_release_whose_levels_are_not_known_is_checked_by_its_number(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert said(monkeypatch, "4.8.0", data(27), "4.9.0") == [
        "volume earshot-s-kafka-1 on Docker host local was written by Kafka 4.9.0, and 4.8.0 is "
        "older" + ONWARD
    ]
    assert said(monkeypatch, "4.8.0", data(27), "4.7.0", target_stack(kafka_version="4.9.0")) == []


@pytest.mark.parametrize(
    ("version", "level"), [("3.9.2", 21), ("4.0.2", 25), ("4.1.1", 27), ("4.2.0", 29)]
)
def test_the_newest_level_that_each_release_reads(
    monkeypatch: pytest.MonkeyPatch, version: str, level: int
) -> None:
    assert said(monkeypatch, version, data(level), "4.3.0") == []
    (reported,) = said(monkeypatch, version, data(level + 1), "4.3.0")
    assert f"`metadata.version` is {level + 1}, and {version} reads up to {level})" in reported


def test_what_is_no_archive_tells_nothing() -> None:
    assert volume_data.read("") == (False, None)
    for reported in ("AAAA", "!", base64.b64encode(b"\x1f\x8b\x08").decode()):
        assert volume_data.read(reported) == (False, None)
    assert volume_data.read(data(None)) == (True, None)

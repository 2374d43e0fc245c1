"""Which cluster a stack is: its id is recorded, taken over from data that is its own, or new."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from earshot_pulumi.docker import engine_objects, images, labels, preflight, volume_data
from earshot_pulumi.docker.container_address import Engines
from earshot_pulumi.docker.engine_objects import EngineContainer, EngineObjects
from earshot_pulumi.docker.preflight import EnginePreflightKind
from earshot_pulumi.docker.volume_data import ID_FILE, own_id, remember_id, remembered_id

from earshot.listeners.cluster_id import check_cluster_id, of_stack_name
from tests.components.called import Called
from tests.components.docker.stacks import OTHER_ID as B
from tests.components.docker.stacks import OWN_ID as A
from tests.components.docker.stacks import everything, target_stack

STACK = target_stack(brokers=2)


class Ground:
    """The folder of a checkout, and the objects on its engines, without engines."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.objects = EngineObjects()

    def has_data_of(self, id: str) -> None:
        """Both nodes have data of the cluster ``id``."""
        self.objects = EngineObjects(volumes=everything(replace(STACK, cluster_id=id)).volumes)

    def props(self, **changes: Any) -> dict[str, Any]:
        own = {"state_dir": str(self.folder), "remove": "anyway", "deployment": "d", **changes}
        return {**replace(STACK, cluster_id="").to_props(), **own}

    def checked(self, olds: Mapping[str, Any], configured: str | None = None) -> tuple[str, str]:
        """The id, and the reason why it must not be, if there is one."""
        before = self.props(**olds) if olds else {}
        news = self.props(configured=configured)
        checked = Called(EnginePreflightKind()).check(before, news)
        return checked.inputs["cluster_id"], "".join(checked.failures)


@pytest.fixture
def ground(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ground:
    ground = Ground(tmp_path)
    nothing = SimpleNamespace(list=lambda **_: [])
    engine = SimpleNamespace(containers=nothing, networks=nothing)
    monkeypatch.setattr(Engines, "of", lambda *_: engine)
    monkeypatch.setattr(engine_objects, "look", lambda *_: ground.objects)
    monkeypatch.setattr(engine_objects, "problems", lambda *_: ())
    monkeypatch.setattr(images, "absent", lambda *_: [])
    monkeypatch.setattr(preflight, "_image_problems", lambda *_: [])
    monkeypatch.setattr(volume_data, "version_problems", lambda *_: ())
    return ground


def test_a_new_stack_gets_an_id_of_its_own(ground: Ground) -> None:
    first, second = ground.checked({}), ground.checked({})
    assert check_cluster_id(first[0]) != check_cluster_id(second[0])
    assert first[1] == second[1] == ""


def test_the_recorded_id_is_kept_whatever_the_engines_have(ground: Ground) -> None:
    ground.has_data_of(B)
    assert ground.checked({"cluster_id": A}) == (A, "")
    assert ground.checked({"cluster_id": A}, configured=A) == (A, "")


def test_the_stacks_file_decides_unless_data_is_of_another_cluster(ground: Ground) -> None:
    assert ground.checked({}, configured=B) == (B, "")
    ground.has_data_of(B)
    assert ground.checked({}, configured=B) == (B, "")
    # an update that was refused has left an id, and no data
    assert ground.checked({"cluster_id": A}, configured=B) == (B, "")
    assert f"data of cluster {B}" in ground.checked({}, configured=A)[1]


def test_an_id_that_is_in_the_data_cannot_change(ground: Ground) -> None:
    ground.has_data_of(A)
    id, reason = ground.checked({"cluster_id": A}, configured=B)
    assert id == A
    assert reason == (
        f"\n- `cluster_id: {B}` is not the id of this stack's cluster, which is {A} and is in the "
        f"data of every node. Remove the key, or write `cluster_id: {A}`"
    )


def test_a_checkout_continues_with_the_data_that_it_has_kept(ground: Ground) -> None:
    Called(EnginePreflightKind()).create(ground.props(cluster_id=A))
    assert (ground.folder / ID_FILE).read_text() == f"{A}\n"
    assert ground.checked({})[0] != A, "there is no data to go on with"
    ground.has_data_of(A)
    assert ground.checked({}) == (A, "")
    (ground.folder / ID_FILE).write_bytes(b"\xff")
    assert "`cluster_id: " in ground.checked({})[1]


def test_another_checkout_is_told_how_to_take_data_over(ground: Ground) -> None:
    ground.has_data_of(A)
    running = EngineContainer("local", "x", "kafka-1", "i", True, {labels.STACK: "s"})
    ground.objects = replace(ground.objects, containers=(running,))
    assert ground.checked({})[1] == (
        "\n- earshot-s-kafka-1 on Docker host local, earshot-s-kafka-2 on Docker host local: data "
        f"of cluster {A}, of a stack s in this checkout or another one; the cluster of this stack "
        "is a new one. Containers of such a stack exist: kafka-1. To use this data, write "
        f"`cluster_id: {A}` into the stack's file; if it is no longer needed, remove the volumes "
        "(`docker volume rm`); otherwise give the stack another name"
    )


@pytest.mark.parametrize("file", ["contract.json", "report.json"])
def test_a_stack_that_an_earlier_release_deployed_from_here_keeps_its_id(
    ground: Ground, file: str
) -> None:
    """Its `make down` leaves the data and the report, and no contract."""
    unmarked = [
        replace(volume, labels={key: volume.labels[key] for key in (labels.STACK, labels.NODE)})
        for volume in everything(STACK).volumes
    ]
    ground.objects = EngineObjects(volumes=tuple(unmarked))
    assert f"`cluster_id: {of_stack_name('s')}`" in ground.checked({})[1], (
        "no evidence whose data it is"
    )
    (ground.folder / file).write_text("{}")
    assert ground.checked({}) == (of_stack_name("s"), "")


def test_an_id_that_no_data_holds_may_still_be_another(ground: Ground) -> None:
    ground.has_data_of(B)
    id, reason = ground.checked({})
    assert id not in (A, B) and f"data of cluster {B}" in reason and "a new one" in reason
    assert ground.checked({"cluster_id": A}, configured=B) == (B, "")


@pytest.mark.parametrize("content", [b"", b" \n", b"\xff\xfe"])
def test_an_id_is_remembered_in_a_new_folder_and_a_file_without_one_ignored(
    tmp_path: Path, content: bytes
) -> None:
    state = tmp_path / "stacks" / "s"
    assert own_id("s", state) is None
    for id in ("first", "second"):
        remember_id(state, id)
        (state / "report.json").touch()
        assert own_id("s", state) == id, "although there is a file of an earlier release"
    (state / ID_FILE).write_bytes(content)
    assert remembered_id(state) is None

"""Which cluster a stack is: kept once there, taken over where it is surely its own, else new."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from earshot_pulumi.docker import images, labels, on_engines, preflight, volume_data
from earshot_pulumi.docker.container_address import Engines
from earshot_pulumi.docker.identity import FILE
from earshot_pulumi.docker.on_engines import EngineContainer, EngineObjects, EngineVolume
from earshot_pulumi.docker.preflight import EnginePreflightKind

from earshot.cluster_id import check_cluster_id, of_stack_name
from tests.components.called import Called
from tests.components.docker.test_on_engines import wanted

A, B = "5L6g3nShT-eMCtK-X86swQ", "7QhzWcGeQ9mTn0UP4nS3Rg"


def volume(node: int = 1, **changed: str) -> EngineVolume:
    own = {labels.STACK: "s", labels.NODE: str(node), **changed}
    return EngineVolume("local", f"earshot-s-kafka-{node}", own)


def of(id: str) -> EngineObjects:
    """Data of the cluster ``id`` at both spots."""
    return EngineObjects(
        volumes=(volume(1, **{labels.CLUSTER: id}), volume(2, **{labels.CLUSTER: id}))
    )


@pytest.fixture
def there(monkeypatch: pytest.MonkeyPatch) -> dict[str, EngineObjects]:
    """What the engines have, in place of engines."""
    held = {"seen": EngineObjects()}
    no_containers = SimpleNamespace(list=lambda **_: [])
    monkeypatch.setattr(Engines, "of", lambda *_: SimpleNamespace(containers=no_containers))
    monkeypatch.setattr(on_engines, "look", lambda *_: held["seen"])
    monkeypatch.setattr(on_engines, "problems", lambda *_: ())
    monkeypatch.setattr(images, "absent", lambda *_: [])
    monkeypatch.setattr(preflight, "_image_problems", lambda *_: [])
    monkeypatch.setattr(volume_data, "version_problems", lambda *_: ())
    return held


def props_of(folder: Path, **changes: Any) -> dict[str, Any]:
    own = {"state_dir": str(folder), "remove": "anyway", "deployment": "d", **changes}
    return {**replace(wanted(brokers=2), cluster_id="").to_props(), **own}


def checked(folder: Path, olds: Mapping[str, Any], said: str | None = None) -> tuple[str, str]:
    """The id and the reason why it must not be, if there is one."""
    before = props_of(folder, **olds) if olds else {}
    result = Called(EnginePreflightKind()).check(before, props_of(folder, configured=said))
    return result.inputs["cluster_id"], "".join(result.failures)


def test_a_new_stack_gets_an_id_of_its_own(there: dict[str, EngineObjects], tmp_path: Path) -> None:
    first, second = checked(tmp_path, {}), checked(tmp_path, {})
    assert check_cluster_id(first[0]) != check_cluster_id(second[0])
    assert first[1] == second[1] == ""


def test_it_is_kept_whatever_is_there(there: dict[str, EngineObjects], tmp_path: Path) -> None:
    there["seen"] = of(B)
    assert checked(tmp_path, {"cluster_id": A}) == (A, "")
    assert checked(tmp_path, {"cluster_id": A}, said=A) == (A, "")


def test_the_stacks_file_decides_where_there_is_no_data_of_another(
    there: dict[str, EngineObjects], tmp_path: Path
) -> None:
    assert checked(tmp_path, {}, said=B) == (B, "")
    there["seen"] = of(B)
    assert checked(tmp_path, {}, said=B) == (B, "")
    # an update that was refused has left an id, and no data
    assert checked(tmp_path, {"cluster_id": A}, said=B) == (B, "")
    assert f"data of cluster {B}" in checked(tmp_path, {}, said=A)[1]


def test_an_id_that_is_in_the_data_cannot_change(
    there: dict[str, EngineObjects], tmp_path: Path
) -> None:
    there["seen"] = of(A)
    id, reason = checked(tmp_path, {"cluster_id": A}, said=B)
    assert id == A
    assert reason == (
        f"\n- `cluster_id: {B}` is not the id of this stack's cluster, which is {A} and is in the "
        f"data of every node. Take the key away, or write `cluster_id: {A}`"
    )


def test_a_checkout_goes_on_with_the_data_that_it_has_kept(
    there: dict[str, EngineObjects], tmp_path: Path
) -> None:
    mine = tmp_path / "mine"
    Called(EnginePreflightKind()).create(props_of(mine, cluster_id=A))
    assert (mine / FILE).read_text() == f"{A}\n"
    assert checked(mine, {})[0] != A, "there is no data to go on with"
    there["seen"] = of(A)
    assert checked(mine, {}) == (A, "")
    (mine / FILE).write_bytes(b"\xff")
    assert "`cluster_id: " in checked(mine, {})[1]


def test_another_checkout_is_told_how_to_take_data_over(
    there: dict[str, EngineObjects], tmp_path: Path
) -> None:
    running = EngineContainer("local", "x", "kafka-1", "i", True, {labels.STACK: "s"})
    there["seen"] = replace(of(A), containers=(running,))
    assert checked(tmp_path, {})[1] == (
        "\n- earshot-s-kafka-1 on Docker host local, earshot-s-kafka-2 on Docker host local: data "
        f"of cluster {A}, which a stack called s has made, of this checkout or another; this one "
        f"is a new one. Containers of such a stack are there: kafka-1. To take it over, write "
        f"`cluster_id: {A}` into the stack's file; if it is no longer needed, remove "
        f"the volumes (`docker "
        "volume rm`); else name the stack otherwise"
    )


@pytest.mark.parametrize("left", ["contract.json", "report.json"])
def test_what_an_earlier_release_deployed_from_here_keeps_its_id(
    there: dict[str, EngineObjects], tmp_path: Path, left: str
) -> None:
    """Its `make down` leaves the data and the report, and no contract."""
    there["seen"] = EngineObjects(volumes=(volume(1), volume(2)))
    assert f"`cluster_id: {of_stack_name('s')}`" in checked(tmp_path, {})[1], "of whom is it?"
    (tmp_path / left).write_text("{}")
    assert checked(tmp_path, {}) == (of_stack_name("s"), "")


def test_an_id_that_no_data_holds_may_still_be_another(
    there: dict[str, EngineObjects], tmp_path: Path
) -> None:
    there["seen"] = of(B)
    id, reason = checked(tmp_path, {})
    assert id not in (A, B) and f"data of cluster {B}" in reason and "a new one" in reason
    assert checked(tmp_path, {"cluster_id": A}, said=B) == (B, "")

"""What stands in the way of the data is told before anything is touched."""

import errno
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from earshot_pulumi import file_access
from earshot_pulumi.local import data_root

from earshot.errors import EarshotError
from tests.components.local.nodes import as_root
from tests.raised import raised


def test_a_place_that_is_not_there_yet_is_no_obstacle(tmp_path: Path) -> None:
    root = tmp_path / "state" / "kafka"
    assert list(data_root.obstacles(root, [root / "node-1"])) == []


@pytest.mark.parametrize("place", ["kafka", "kafka/node-1", "kafka/node-1/log"])
def test_a_file_where_a_directory_belongs_is_named_once(tmp_path: Path, place: str) -> None:
    file = tmp_path / place
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("")
    root = tmp_path / "kafka"
    assert list(data_root.obstacles(root, [root / "node-1"])) == [
        f"{file} is a file, and its path is needed for a directory. Move it away"
    ]


@as_root
def test_a_directory_of_another_user_is_named_once(open_folder: Path) -> None:
    root = open_folder / "kafka"
    (root / "node-1" / "log").mkdir(parents=True)
    asked = f"""
import pathlib
from earshot_pulumi.local import data_root
from tests.components.local.nodes import become_nobody
become_nobody()
root = pathlib.Path({str(root)!r})
print(*data_root.obstacles(root / "new" / "kafka", [root / "new" / "kafka" / "node-1"]), sep="|")
"""
    done = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True)
    assert done.stderr == ""
    assert done.stdout == (
        f"{root} belongs to root, and this user (nobody) may not write there. "
        "Run the command as root, or give this user the right to write\n"
    )


@as_root
@pytest.mark.parametrize("mounted", ["-t tmpfs none", "--bind {}"])
@pytest.mark.parametrize("folders", ["kafka", "kafka/node-1/log"])
def test_a_read_only_file_system_is_named_once_to_root_too(
    tmp_path: Path, folders: str, mounted: str
) -> None:
    """On a file system of its own, or a folder of another one, in a mount namespace of its own."""
    asked = f"""
import pathlib
from earshot_pulumi.local import data_root
root = pathlib.Path({str(tmp_path)!r}, "kafka")
print(*data_root.obstacles(root, [root / "node-1"]), sep="|")
"""
    mount = f"mount {mounted.format(tmp_path)} {tmp_path} && mkdir -p {tmp_path}/{folders} && "
    mount += f"mount -o remount,bind,ro {tmp_path} && exec {sys.executable} -c '{asked}'"
    done = subprocess.run(
        [
            "unshare",
            "--mount",
            "sh",
            "-c",
            mount.replace("'" + str(tmp_path) + "'", f'"{tmp_path}"'),
        ],
        capture_output=True,
        text=True,
    )
    assert done.stderr == ""
    assert done.stdout == (
        f"{tmp_path} is on a file system that is mounted read-only. Mount that file system for "
        "writing, as no user can write to it now, or use a folder elsewhere\n"
    )


def test_all_data_is_removed(tmp_path: Path) -> None:
    (tmp_path / "kafka" / "node-1").mkdir(parents=True)
    for _ in range(2):
        data_root.remove(tmp_path / "kafka")
        assert not (tmp_path / "kafka").exists()


def belonging_to_bob(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every file, and this user is not root."""
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    for module in (data_root, file_access):
        monkeypatch.setattr(module, "owner", lambda _: "bob")


def test_data_that_cannot_be_removed_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(path: Path) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path / "node-1"))

    monkeypatch.setattr(shutil, "rmtree", refused)
    belonging_to_bob(monkeypatch)
    assert str(raised(EarshotError, data_root.remove, tmp_path)) == (
        f"data in {tmp_path}: {tmp_path / 'node-1'}: cannot be removed (Permission denied)\n"
        "  fix: run the command as bob, or give this user the right to write"
    )


def test_data_behind_a_link_are_not_removed_and_the_user_is_told(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "kafka").symlink_to(tmp_path / "disk")
    assert str(raised(EarshotError, data_root.remove, tmp_path / "kafka")) == (
        f"data in {tmp_path / 'kafka'}: is a symbolic link to {tmp_path / 'disk'}, and is not "
        "followed\n  fix: remove the folder to which it points, then the link"
    )


def test_places_that_are_in_the_way_are_each_named_once(tmp_path: Path) -> None:
    root = tmp_path / "kafka"
    root.mkdir()
    for name in ("node-1", "node-2"):
        (root / name).write_text("")
    (root / "node-3").mkdir()
    (root / "node-3" / "log").symlink_to(tmp_path / "nowhere")
    folders = [root / f"node-{id}" for id in (1, 2, 3, 4)]
    assert list(data_root.obstacles(root, folders)) == [
        f"{place} is a file, and its path is needed for a directory. Move it away"
        for place in (root / "node-1", root / "node-2", root / "node-3" / "log")
    ]


@pytest.mark.parametrize("allowed", [0, os.W_OK, os.X_OK, os.W_OK | os.X_OK])
def test_a_place_is_to_be_entered_and_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, allowed: int
) -> None:
    monkeypatch.setattr(os, "access", lambda _, mode: mode & allowed == mode)
    monkeypatch.setattr(data_root, "user", lambda: "ann")
    belonging_to_bob(monkeypatch)
    found = list(data_root.obstacles(tmp_path / "kafka", [tmp_path / "kafka" / "node-1"]))
    reported = (
        f"{tmp_path} belongs to bob, and this user (ann) may not write there. Run the command as "
        "bob, or give this user the right to write"
    )
    assert found == ([] if allowed == os.W_OK | os.X_OK else [reported])


def test_data_that_changes_while_it_is_removed_is_removed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    remove, root = shutil.rmtree, tmp_path / "kafka"
    root.mkdir()
    tried: list[Path] = []

    def changing(path: Path) -> None:
        tried.append(path)
        if len(tried) == 1:
            raise FileNotFoundError(errno.ENOENT, "gone", str(path / "node-1"))
        remove(path)

    monkeypatch.setattr(shutil, "rmtree", changing)
    data_root.remove(root)
    assert not root.exists() and tried == [root, root]
    data_root.remove(root)
    assert len(tried) == 3


def test_the_owner_of_the_folder_that_holds_it_may_remove_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Path] = []

    def refused(path: Path) -> None:
        raise PermissionError(errno.EACCES, "no", str(path / "gone" / "file"))

    monkeypatch.setattr(shutil, "rmtree", refused)

    def owner(path: Path) -> str:
        asked.append(path)
        return "bob"

    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(file_access, "owner", owner)
    with pytest.raises(EarshotError):
        data_root.remove(tmp_path)
    assert asked == [tmp_path]

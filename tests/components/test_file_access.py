"""Why this user cannot write a file, and the owners of files."""

import errno
import os
import pwd
from pathlib import Path

import pytest
from earshot_pulumi import file_access as module
from earshot_pulumi.file_access import owner, user, writing

from earshot.errors import EarshotError


def test_whoever_has_no_name_is_told_by_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert owner(tmp_path) == user() == pwd.getpwuid(os.geteuid()).pw_name
    assert owner(tmp_path / "none") == "unknown"

    def unnamed(uid: int) -> None:
        raise KeyError(uid)

    monkeypatch.setattr(pwd, "getpwuid", unnamed)
    assert owner(tmp_path) == user() == f"uid {os.geteuid()}"


@pytest.mark.parametrize(("number", "remedy"), [
    (errno.ENOSPC, "free space on that disk, then run the same command again"),
    (errno.ENOTDIR, "move this file away: its path is needed for a directory"),
    (errno.EROFS, ("mount that file system for writing, as no user can write to it now, or use a "
                   "folder elsewhere")),
    (errno.EBUSY, ("unmount it if it is a mount point, or end the program that uses it, then run "
                   "the same command again")),
    (errno.EDQUOT,
     "free space within this user's quota on that disk, then run the same command again"),
    (errno.EEXIST, "move this file away: its path is needed for a directory"),
    (errno.EISDIR, "move this file away: its path is needed for a directory"),
    (errno.EACCES, "run the command as bob, or give this user the right to write"),
])  # fmt: skip
def test_the_file_that_could_not_be_written_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, remedy: str
) -> None:
    asked: list[Path] = []

    def owner(path: Path) -> str:
        asked.append(path)
        return "bob"

    monkeypatch.setattr(module, "owner", owner)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    place = tmp_path / "gone" / "file"
    with pytest.raises(EarshotError) as caught, writing("node 1", tmp_path):
        raise OSError(number, os.strerror(number), str(place))
    assert str(caught.value) == (
        f"node 1: {place}: cannot be written ({os.strerror(number)})\n  fix: {remedy}"
    )
    assert asked == ([tmp_path] if number == errno.EACCES else [])
    with pytest.raises(EarshotError) as caught, writing("node 1", tmp_path):
        raise OSError(number, os.strerror(number))
    assert str(caught.value).startswith(f"node 1: {tmp_path}: cannot be written (")


def test_root_is_not_told_to_run_as_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    with pytest.raises(EarshotError) as caught, writing("node 1", tmp_path):
        raise PermissionError(errno.EPERM, "Operation not permitted")
    assert "find out what keeps root from writing: an immutable file (`lsattr -d`)" in str(
        caught.value
    )
    assert "run the command as" not in str(caught.value)

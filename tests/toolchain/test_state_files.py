"""Leftovers of a killed Pulumi in a file backend, fixed before the next command."""

import json
import os
import shutil
import socket
import subprocess
from pathlib import Path

import psutil
import pytest

from toolchain import state_files
from toolchain.state_files import recover

GONE = 2**22 + 1
"""Above any pid that Linux gives."""


def lock(state: Path, pid: int, hostname: str = "", stack: str = "local") -> Path:
    folder = state / ".pulumi" / "locks" / "organization" / "earshot" / stack
    folder.mkdir(parents=True)
    path = folder / "1.json"
    path.write_text(json.dumps({"pid": pid, "hostname": hostname or socket.gethostname()}))
    return path


def attributes(state: Path, text: str, stack: str = "local") -> Path:
    folder = state / ".pulumi" / "stacks" / "earshot"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{stack}.json").write_text("{}")
    path = folder / f"{stack}.json.attrs"
    path.write_text(text)
    return path


def repair(state: Path) -> None:
    recover({"PULUMI_BACKEND_URL": f"{state.as_uri()}?no_tmp_dir=true"}, "local")


@pytest.mark.parametrize(("pid", "hostname", "stack", "is_cleared"), [
    (GONE, "", "local", True),
    (os.getpid(), "", "local", True),  # another program has the pid now
    (GONE, "elsewhere.example", "local", False),
    (GONE, "", "another", False),
], ids=["gone", "another program", "another machine", "another stack"])  # fmt: skip
def test_only_the_lock_of_an_ended_pulumi_of_this_machine_and_stack_is_cleared(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    pid: int,
    hostname: str,
    stack: str,
    is_cleared: bool,
) -> None:
    path = lock(tmp_path, pid, hostname, stack)
    repair(tmp_path)
    assert path.exists() is not is_cleared
    assert ("Removing the lock of pulumi process" in capsys.readouterr().out) is is_cleared


def test_the_lock_of_a_killed_pulumi_that_nothing_collects_is_cleared(tmp_path: Path) -> None:
    shutil.copy("/bin/true", cli := tmp_path / "pulumi")
    with subprocess.Popen([cli]) as child:
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        path = lock(tmp_path, child.pid)
        repair(tmp_path)
        assert psutil.Process(child.pid).name() == "pulumi" and not path.exists()


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"pid": "x", "hostname": "y"}'])
def test_a_lock_that_says_nothing_is_left_to_pulumi(tmp_path: Path, text: str) -> None:
    path = lock(tmp_path, GONE)
    path.write_text(text)
    cut = attributes(tmp_path, "")
    repair(tmp_path)
    assert path.exists() and cut.exists()


@pytest.mark.parametrize("text", ["", '{"user.cache_control":"'])
@pytest.mark.parametrize("stack", ["local", "another"])
def test_attributes_that_were_cut_short_go_and_the_state_stays(
    tmp_path: Path, text: str, stack: str
) -> None:
    path = attributes(tmp_path, text, stack)
    repair(tmp_path)
    assert not path.exists()
    assert path.with_suffix("").read_text() == "{}"


@pytest.mark.parametrize(
    ("text", "hostname", "stays"),
    [
        ("", "", False),  # the process of the lock has ended
        ("", "elsewhere.example", True),
        ('{"md5": "x"}', None, True),
    ],
)
def test_whole_attributes_and_those_of_a_locked_stack_stay(
    tmp_path: Path, text: str, hostname: str | None, stays: bool
) -> None:
    path = attributes(tmp_path, text, stack="another")
    if hostname is not None:
        lock(tmp_path, GONE, hostname, stack="another")
    repair(tmp_path)
    assert path.exists() is stays


@pytest.mark.parametrize("url", ["file://~/state", "file://./state", "file://state"])
def test_a_backend_is_found_where_pulumi_finds_it(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(state_files, "ROOT", tmp_path)
    path = attributes(tmp_path / "state", "")
    recover({"PULUMI_BACKEND_URL": url}, "local")
    assert not path.exists()


def test_other_backends_are_left_alone(tmp_path: Path) -> None:
    path = attributes(tmp_path, "")
    recover({"PULUMI_BACKEND_URL": "s3://bucket"}, "local")
    recover({}, "local")
    assert path.exists()

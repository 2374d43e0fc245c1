"""What a killed Pulumi leaves in a file backend, found and fixed before the next command."""

import json
import os
import socket
from pathlib import Path

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


def test_the_lock_of_a_process_that_is_gone_is_cleared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = lock(tmp_path, GONE)
    repair(tmp_path)
    assert not path.exists()
    assert "Clearing the lock of pulumi process" in capsys.readouterr().out


def test_a_pid_that_is_no_pulumi_holds_no_lock(tmp_path: Path) -> None:
    path = lock(tmp_path, os.getpid())
    repair(tmp_path)
    assert not path.exists()


def test_another_machines_lock_is_left_alone(tmp_path: Path) -> None:
    path = lock(tmp_path, GONE, "elsewhere.example")
    repair(tmp_path)
    assert path.exists()


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


def test_a_lock_of_the_dead_protects_nothing(tmp_path: Path) -> None:
    path = attributes(tmp_path, "", stack="another")
    lock(tmp_path, GONE, stack="another")
    repair(tmp_path)
    assert not path.exists()


def test_attributes_that_are_whole_stay(tmp_path: Path) -> None:
    path = attributes(tmp_path, '{"md5": "x"}')
    repair(tmp_path)
    assert path.exists()


def test_no_attributes_are_changed_while_a_process_has_the_stack(tmp_path: Path) -> None:
    lock(tmp_path, GONE, "elsewhere.example", stack="another")
    path = attributes(tmp_path, "", stack="another")
    repair(tmp_path)
    assert path.exists()


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


def test_the_locks_of_other_stacks_are_left_to_their_own_commands(tmp_path: Path) -> None:
    path = lock(tmp_path, GONE, stack="another")
    repair(tmp_path)
    assert path.exists()

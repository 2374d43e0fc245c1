"""Which process a record means: after a reuse of its pid, a set clock, a copy, a move."""

import contextlib
import json
import os
import shutil
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from earshot_pulumi.local import process_record
from earshot_pulumi.local.process import stop
from earshot_pulumi.local.process_record import (
    Record,
    boot_id,
    process_of,
    read_record,
    running,
    runs_from,
    start_ticks,
    unrecorded,
)

from earshot.errors import EarshotError
from tests.components.local.nodes import (
    NOBODY,
    SLEEP,
    as_root,
    node,
    process,
    recorded,
    recorded_node,
)
from tests.raised import raised


def old_form(node_record: Record) -> Record:
    """As earshot wrote it before it knew of ticks, and as it does where there are none."""
    return replace(node_record, ticks=None, boot=None)


def test_a_living_process_is_recognised_also_after_the_clock_was_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with node(tmp_path) as child:
        node_record = recorded(tmp_path, Record.of(child.pid, "d"))
        assert running(tmp_path) == node_record
        assert node_record.ticks is not None and node_record.boot
        monkeypatch.setattr(psutil.Process, "create_time", lambda _: node_record.started + 3600)
        assert running(tmp_path) == node_record
        recorded(tmp_path, old_form(node_record))
        assert running(tmp_path) == old_form(node_record)


def test_a_record_of_an_earlier_earshot_counts(tmp_path: Path) -> None:
    with node(tmp_path) as child:
        started = psutil.Process(child.pid).create_time()
        text = json.dumps({"pid": child.pid, "started": started, "digest": "d"})
        (tmp_path / "process.json").write_text(text)
        found = running(tmp_path)
        assert found == Record(child.pid, started, "d")
        assert found.incarnation == f"{child.pid}@{started:.2f}"


@pytest.mark.parametrize("change", [{"ticks": 1}, {"boot": "another"}])
def test_a_record_of_another_process_with_that_pid_does_not_count(
    tmp_path: Path, change: dict[str, object]
) -> None:
    with node(tmp_path) as child:
        recorded(tmp_path, replace(Record.of(child.pid, "d"), **change))  # type: ignore[arg-type]
        assert running(tmp_path) == Record.of(child.pid, "")


def test_a_pid_that_now_runs_something_else_is_not_ours(tmp_path: Path) -> None:
    with process([sys.executable, "-c", SLEEP], tmp_path) as child:
        node_record = recorded(tmp_path, Record.of(child.pid, "d"))
        assert running(tmp_path) is None
        recorded(tmp_path, old_form(node_record))
        assert running(tmp_path) is None


def test_a_dead_process_does_not_run(tmp_path: Path) -> None:
    with recorded_node(tmp_path) as child:
        child.kill()
        child.wait()
        assert running(tmp_path) is None


def test_a_zombie_does_not_run(tmp_path: Path) -> None:
    with recorded_node(tmp_path) as child:
        child.kill()
        with contextlib.suppress(psutil.TimeoutExpired):
            os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert running(tmp_path) is None


def test_a_copied_record_does_not_count(tmp_path: Path) -> None:
    original, copy = tmp_path / "node-1", tmp_path / "copy" / "node-1"
    with node(original) as child:
        node_record = recorded(original, Record.of(child.pid, "d"))
        shutil.copytree(original, copy)
        assert process_of(copy) is None
        recorded(copy, old_form(node_record))
        assert process_of(copy) is None
        assert running(original) == node_record


def test_a_moved_directory_takes_its_process_along(tmp_path: Path) -> None:
    before, after = tmp_path / "node-1", tmp_path / "moved"
    with node(before) as child:
        node_record = recorded(before, Record.of(child.pid, "d"))
        before.rename(after)
        assert running(after) == node_record
        recorded(after, old_form(node_record))
        assert running(after) == old_form(node_record)
        recorded(before, node_record)
        assert process_of(before) is None, "what stands there now is another directory"


def test_a_directory_that_was_removed_and_made_again_has_its_process_still(tmp_path: Path) -> None:
    directory = tmp_path / "node-1"
    with node(directory) as child:
        directory.rmdir()
        directory.mkdir()
        found = unrecorded(directory)
        assert found is not None and found.pid == child.pid


def test_a_jvm_that_clears_away_what_dead_ones_left_still_runs(tmp_path: Path) -> None:
    # at its start OpenJDK works in this directory for some milliseconds
    directory, elsewhere = tmp_path / "node", tmp_path / "hsperfdata_root"
    elsewhere.mkdir()
    code = f"import os, time; os.chdir({str(elsewhere)!r}); time.sleep(60)"
    with node(directory, code) as child:
        while Path(f"/proc/{child.pid}/cwd").resolve() != elsewhere:
            time.sleep(0.01)
        node_record = recorded(directory, Record.of(child.pid, "d"))
        assert running(directory) == node_record
        recorded(directory, old_form(node_record))
        assert running(directory) == old_form(node_record)
        found = unrecorded(directory)
        assert found is not None and found.pid == child.pid
        copy = tmp_path / "copy"
        shutil.copytree(directory, copy)
        (copy / "process.json").unlink()
        assert process_of(copy) is None


def test_an_unrecorded_node_is_found_where_it_runs(tmp_path: Path) -> None:
    with node(tmp_path / "node-1") as child:
        (tmp_path / "node-2").mkdir()
        found = unrecorded(tmp_path / "node-1")
        assert found is not None and found.pid == child.pid
        assert running(tmp_path / "node-1") == Record.of(child.pid, "")
        recorded(tmp_path / "node-1", Record(2**22 + 1, 1.0, "d"))  # restored from a copy
        assert running(tmp_path / "node-1") == Record.of(child.pid, "")
        assert unrecorded(tmp_path / "node-2") is None and running(tmp_path / "node-2") is None
        assert unrecorded(tmp_path / "none") is None


@as_root
def test_a_process_that_another_user_calls_a_node_is_not_one(open_folder: Path) -> None:
    """Any user may run a program in a folder that is readable, with any command line."""
    directory = open_folder / "node-1"
    code = f"import os; os.setgroups([]); os.setgid({NOBODY}); os.setuid({NOBODY}); {SLEEP}"
    with node(directory, code) as child:
        while psutil.Process(child.pid).uids().real != NOBODY:
            time.sleep(0.01)
        assert unrecorded(directory) is None and process_of(directory) is None
        assert not stop(directory)
        os.chown(directory, NOBODY, NOBODY)
        found = unrecorded(directory)
        assert found is not None and found.pid == child.pid


@as_root
def test_a_process_of_another_user_is_checked_by_its_command_line(open_folder: Path) -> None:
    """Where it works is not for others to see."""
    original, copy = open_folder / "node-1", open_folder / "copy"
    with node(original) as child:
        node_record = recorded(original, Record.of(child.pid, "d"))
        shutil.copytree(original, copy)
        asked = f"""
import pathlib
from earshot_pulumi.local.process_record import running
from tests.components.local.nodes import become_nobody
become_nobody()
print([running(pathlib.Path(path)) is not None for path in ({str(original)!r}, {str(copy)!r})])
"""
        done = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True)
        assert (done.stdout, done.stderr) == ("[True, False]\n", "")
        assert node_record.pid == child.pid


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        '{"pid": 1}',
        '{"pid": 1, "more": 2}',
        '{"pid": "1", "started": 1, "digest": "d"}',
        '{"pid": -1, "started": 1, "digest": "d"}',
        '{"pid": 0, "started": 1, "digest": "d"}',
        '{"pid": 1, "started": "1", "digest": "d"}',
        "[" * 100_000,
    ],
)
def test_an_unreadable_record_is_no_record(tmp_path: Path, text: str) -> None:
    (tmp_path / "process.json").write_text(text)
    assert read_record(tmp_path) is None


def test_a_record_that_this_user_may_not_read_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object, **__: object) -> str:
        raise PermissionError

    monkeypatch.setattr(Path, "read_text", refused)
    monkeypatch.setattr(process_record, "user", lambda: "ann")
    monkeypatch.setattr(process_record, "owner", lambda _: "bob")
    assert str(raised(EarshotError, read_record, tmp_path)) == (
        f"{tmp_path / 'process.json'}: this user (ann) may not read it, so it is unknown whether "
        "the node runs\n  fix: run the command as its owner (bob)"
    )


def test_a_record_of_the_first_process_with_a_whole_second_is_one(tmp_path: Path) -> None:
    (tmp_path / "process.json").write_text('{"pid": 1, "started": 2, "digest": "d"}')
    assert read_record(tmp_path) == Record(1, 2, "d")


def test_without_a_record_nothing_is_known(tmp_path: Path) -> None:
    assert read_record(tmp_path) is None
    assert running(tmp_path) is None
    assert process_of(tmp_path) is None


@pytest.fixture
def hidden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Record:
    """The record of a process whose command line and place are not for this user to see."""

    def refused(one: psutil.Process) -> list[str]:
        raise psutil.AccessDenied(one.pid)

    node_record = Record.of(os.getpid(), "d")
    monkeypatch.setattr(psutil.Process, "cmdline", refused)
    monkeypatch.setattr(process_record, "_working_directory", lambda _: None)
    return recorded(tmp_path, node_record)


def test_a_process_that_hides_itself_is_known_by_its_ticks(tmp_path: Path, hidden: Record) -> None:
    assert runs_from(psutil.Process(hidden.pid), tmp_path) is None
    assert runs_from(psutil.Process(hidden.pid), tmp_path / "none") is False
    assert running(tmp_path) == hidden
    recorded(tmp_path, replace(hidden, ticks=1))
    assert running(tmp_path) is None


@pytest.mark.parametrize("seconds", [0.0, 0.02, -0.02])
@pytest.mark.parametrize("without", [{"ticks": None}, {"ticks": None, "boot": None}])
def test_where_no_ticks_are_known_the_clock_tells(
    tmp_path: Path, hidden: Record, seconds: float, without: dict[str, None]
) -> None:
    old = replace(hidden, started=hidden.started + seconds, **without)  # type: ignore[arg-type]
    recorded(tmp_path, old)
    assert running(tmp_path) == old


@pytest.mark.parametrize("seconds", [1.0, -1.0])
def test_another_start_by_the_clock_is_another_process(
    tmp_path: Path, hidden: Record, seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded(tmp_path, replace(hidden, started=hidden.started + seconds))
    assert running(tmp_path) is not None, "ticks count before a clock"
    monkeypatch.setattr(process_record, "start_ticks", lambda _: None)
    assert running(tmp_path) is None


def test_a_process_that_shows_only_where_it_works_is_no_other_s(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with node(tmp_path / "node-1") as child:
        monkeypatch.setattr(psutil.Process, "cmdline", lambda _: [])
        found = psutil.Process(child.pid)
        assert runs_from(found, tmp_path / "node-1") is None
        assert runs_from(found, tmp_path) is False


def test_one_whose_directory_is_gone_is_known_by_its_command_line(tmp_path: Path) -> None:
    with node(tmp_path / "node-1") as child:
        (tmp_path / "node-1").rmdir()
        found = psutil.Process(child.pid)
        assert runs_from(found, tmp_path) is None
        (tmp_path / "node-1").mkdir()
        assert runs_from(found, tmp_path / "node-1") is True
        assert runs_from(found, tmp_path) is False


def test_without_a_proc_the_directory_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(one: psutil.Process) -> str:
        raise psutil.AccessDenied(one.pid)

    with node(tmp_path / "node-1") as child:
        monkeypatch.setattr(os.path, "lexists", lambda _: False)
        found = psutil.Process(child.pid)
        (tmp_path / "node-1").rename(tmp_path / "moved")
        assert runs_from(found, tmp_path / "moved") is True
        monkeypatch.setattr(psutil.Process, "cwd", refused)
        assert runs_from(found, tmp_path / "moved") is None


def test_ticks_and_the_start_of_the_kernel_are_its_own_words(tmp_path: Path) -> None:
    text = Path("/proc/self/stat").read_text()
    assert start_ticks(os.getpid()) == int(text.rpartition(")")[2].split()[19])
    assert boot_id() == Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    with node(tmp_path) as child:
        pass
    assert start_ticks(child.pid) is None


def test_the_incarnation_is_the_pid_and_the_start() -> None:
    assert Record(7, 1.256, "d").incarnation == "7@1.26"

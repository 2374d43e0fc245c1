"""Cache entries are complete or absent, made once, and locked while they are made."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from earshot import cache


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("/somewhere", "/somewhere/earshot"),
        ("relative", "~/.cache/earshot"),
        ("", "~/.cache/earshot"),
    ],
)
def test_root(monkeypatch: pytest.MonkeyPatch, value: str, expected: str) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", value)
    assert cache.root() == Path(expected).expanduser()


def test_entry_is_made_once(tmp_path: Path) -> None:
    calls = []

    def make(folder: Path) -> None:
        calls.append(folder)
        (folder / "file").write_text("content")

    for _ in range(2):
        assert (cache.ensure(tmp_path / "entry", make) / "file").read_text() == "content"
    assert len(calls) == 1


def test_failure_leaves_nothing_and_passes_through(tmp_path: Path) -> None:
    def make(folder: Path) -> None:
        (folder / "half").touch()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cache.ensure(tmp_path / "entry", make)
    assert [path.name for path in tmp_path.iterdir()] == ["entry.lock"]


def test_invalid_entry_is_made_anew(tmp_path: Path) -> None:
    (tmp_path / "entry").mkdir()
    (tmp_path / "entry" / "old").touch()

    cache.ensure(tmp_path / "entry", lambda f: (f / "new").touch(), lambda f: (f / "new").exists())

    assert [path.name for path in (tmp_path / "entry").iterdir()] == ["new"]


def test_leftovers_of_a_killed_process_are_removed(tmp_path: Path) -> None:
    (tmp_path / ".entry.dead").mkdir()

    cache.ensure(tmp_path / "entry", lambda folder: None)

    assert not (tmp_path / ".entry.dead").exists()


def start(code: str, *arguments: Path) -> subprocess.Popen[str]:
    """Another process that works with the cache."""
    lines = f"import sys, time, pathlib\nfrom earshot import cache\n{code}"
    command = [sys.executable, "-c", lines, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def test_processes_that_want_the_same_entry_share_it(tmp_path: Path) -> None:
    code = """
def make(folder):
    time.sleep(0.2)
    print("made")
cache.ensure(pathlib.Path(sys.argv[1]), make)
"""
    processes = [start(code, tmp_path / "entry") for _ in range(3)]
    outputs = [process.communicate()[0] for process in processes]
    assert [process.returncode for process in processes] == [0, 0, 0]
    assert sorted(outputs) == ["", "", "made\n"]


def test_waiting_is_announced(tmp_path: Path) -> None:
    code = """
with cache.exclusive(pathlib.Path(sys.argv[1]), lambda: print("waiting", flush=True)):
    print("got it")
"""
    lock = tmp_path / "lock"
    with cache.exclusive(lock, lambda: pytest.fail("nobody else has it")):
        process = start(code, lock)
        assert process.stdout is not None
        assert process.stdout.readline() == "waiting\n"
    assert process.communicate()[0] == "got it\n"


def test_write_replaces_as_a_whole(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "file"
    cache.write(path, "one")
    cache.write(path, "two")
    assert path.read_text() == "two"
    assert [entry.name for entry in path.parent.iterdir()] == ["file"]

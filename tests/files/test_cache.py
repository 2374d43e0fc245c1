"""Cache entries are complete or absent, made once, and locked while they are made."""

import errno
import os
import pwd
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from earshot.errors import EarshotError
from earshot.files import cache


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


@pytest.mark.parametrize(
    ("home", "message"),
    [
        (None, "XDG_CACHE_HOME"),
        # the cache would be in another place for each working directory
        ("home", "HOME is 'home', which is not an absolute path"),
    ],
)
def test_a_user_without_an_absolute_home_is_refused(
    monkeypatch: pytest.MonkeyPatch, home: str | None, message: str
) -> None:
    def unknown(_: int) -> None:
        raise KeyError

    monkeypatch.setattr(pwd, "getpwuid", unknown)
    for name in ("HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    if home:
        monkeypatch.setenv("HOME", home)
    with pytest.raises(EarshotError, match=message):
        cache.root()


def _stranger(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Gives ``path`` to another user."""
    if os.geteuid() == 0:
        os.chown(path, 65534, 65534)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: path.stat().st_uid + 1)


@pytest.mark.parametrize("planted", ["earshot", ""])
def test_a_cache_that_another_user_has_made_is_refused(
    planted: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """earshot runs cached files: jars, archives of classes, the policy pack."""
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    base = shared if planted else shared / "cache"
    entry = base / "earshot" / "jars" / "x"
    entry.mkdir(parents=True)
    _stranger(base / planted, monkeypatch)
    monkeypatch.setenv("XDG_CACHE_HOME", str(base))
    with pytest.raises(EarshotError, match="belongs to another user") as caught:
        cache.root()
    assert "XDG_CACHE_HOME" in str(caught.value)
    with pytest.raises(EarshotError, match="belongs to another user"):
        cache.ensure(entry, lambda fresh: None)
    with pytest.raises(EarshotError, match="belongs to another user"), cache.exclusive(entry / "l"):
        pass


def test_a_link_to_a_cache_that_another_user_has_made_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For example ~/.cache links to /tmp, which is empty after a restart."""
    shared = tmp_path / "shared"
    (shared / "mine").mkdir(parents=True)
    shared.chmod(0o1777)
    (tmp_path / "cache").symlink_to(shared / "mine")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert cache.root() == tmp_path / "cache" / "earshot"
    _stranger(shared / "mine", monkeypatch)
    with pytest.raises(EarshotError, match="shared/mine belongs to another user"):
        cache.root()


def test_a_cache_in_another_users_own_folder_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For example root in a container, whose HOME is mounted from the host."""
    home = tmp_path / "home"
    (home / "earshot").mkdir(parents=True)
    home.chmod(0o755)
    _stranger(home / "earshot", monkeypatch)
    monkeypatch.setenv("XDG_CACHE_HOME", str(home))
    assert cache.root() == home / "earshot"


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


def test_an_invalid_entry_is_replaced_and_leftovers_of_a_killed_process_are_removed(
    tmp_path: Path,
) -> None:
    (tmp_path / "entry").mkdir()
    (tmp_path / "entry" / "old").touch()
    (tmp_path / ".entry.dead").mkdir()
    cache.ensure(tmp_path / "entry", lambda f: (f / "new").touch(), lambda f: (f / "new").exists())
    assert [path.name for path in (tmp_path / "entry").iterdir()] == ["new"]
    assert not (tmp_path / ".entry.dead").exists()


def start(code: str, *arguments: Path) -> subprocess.Popen[str]:
    """Another process that works with the cache."""
    lines = f"import sys, time, pathlib\nfrom earshot.files import cache\n{code}"
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
    lock = tmp_path / "folder" / "in it" / "lock"
    with cache.exclusive(lock, lambda: pytest.fail("no other process has it")):
        process = start(code, lock)
        assert process.stdout is not None
        assert process.stdout.readline() == "waiting\n"
    assert process.communicate()[0] == "got it\n"


@pytest.mark.parametrize(
    ("before", "umask", "after"),
    [(None, 0o022, 0o600), (None, 0o002, 0o620), (0o644, 0o022, 0o600), (0o664, 0o022, 0o620)],
)
def test_only_those_who_may_write_a_lock_may_read_it(
    tmp_path: Path, before: int | None, umask: int, after: int
) -> None:
    """A reader's flock would keep every later command of its owner waiting."""
    lock = tmp_path / "l"
    if before is not None:
        lock.touch()
        lock.chmod(before)
    previous = os.umask(umask)
    try:
        with cache.exclusive(lock):
            assert stat.S_IMODE(lock.stat().st_mode) == after
    finally:
        os.umask(previous)


def test_what_is_written_is_on_the_disk_before_it_has_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    steps: list[str] = []

    def fsync(descriptor: int) -> None:
        about = os.fstat(descriptor)
        kind = "names" if stat.S_ISDIR(about.st_mode) else f"{about.st_size} bytes"
        steps.append(f"{kind}, renamed: {path.exists()}")

    monkeypatch.setattr(os, "fsync", fsync)
    cache.write(path, "text")
    assert steps == ["4 bytes, renamed: False", "names, renamed: True"]


def test_a_write_that_fails_keeps_the_old_content(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    cache.write(path, "old")

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left") as caught:
        cache.write(path, "new")
    assert caught.value.filename == str(path)
    assert path.read_text() == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


def test_a_write_replaces_content_and_mode_as_a_whole(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "in it" / "file"
    for text, mode in (("for all", 0o644), ("for me", 0o600)):
        cache.write(path, text, mode=mode)
        assert path.read_text() == text and path.stat().st_mode & 0o777 == mode
    assert [entry.name for entry in path.parent.iterdir()] == ["file"]


def test_an_edit_by_another_program_is_not_lost(tmp_path: Path) -> None:
    target, link = tmp_path / "kept", tmp_path / "link"
    target.write_bytes(b"salt\n")
    target.chmod(0o600)
    link.symlink_to(target)
    edits = [b"salt\nedited\n"]

    def change(content: bytes) -> bytes | None:
        if edits:
            target.write_bytes(edits.pop())
        return content.replace(b"salt\n", b"")

    cache.rewrite(link, change)
    assert link.is_symlink() and target.read_bytes() == b"edited\n"
    assert target.stat().st_mode & 0o777 == 0o600
    cache.rewrite(target, lambda _: None)
    assert target.read_bytes() == b"edited\n"
    assert sorted(tmp_path.iterdir()) == [target, link]

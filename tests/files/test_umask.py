"""Files that an entry point creates: not writable by every user, whatever the umask was."""

import contextlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from earshot.files import umask
from toolchain import command, environment, stack


@pytest.fixture(autouse=True)
def _own_umask() -> Iterator[None]:
    mask = os.umask(0)
    yield
    os.umask(mask)


def current() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


@pytest.mark.parametrize(
    ("before", "after"),
    [(0, 0o022), (0o020, 0o022), (0o002, 0o002), (0o022, 0o022), (0o077, 0o077)],
)
def test_others_may_write_nothing(before: int, after: int) -> None:
    os.umask(before)
    umask.restrict()
    assert current() == after


def stopped(*_: object) -> int:
    raise KeyboardInterrupt


@pytest.mark.parametrize(("module", "starts", "run"), [
    (environment, "exports", lambda: command.run(["env"])),
    (stack.Stack, "__init__", lambda: stack.main(["up"])),
], ids=["toolchain", "make up"])  # fmt: skip
def test_each_entry_point_restricts_it(
    module: object, starts: str, run: Callable[[], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, starts, stopped)
    monkeypatch.setattr(command, "end_on_sigterm", lambda: None)
    with contextlib.suppress(KeyboardInterrupt):
        run()
    assert current() == 0o022


def test_the_plugin_restricts_it() -> None:
    # in a process of its own, as its import lets SIGINT end the process
    program = (
        "import os\n"
        "from earshot_pulumi.provider import __main__ as plugin\n"
        "plugin.needed_for = lambda name: print(oct(os.umask(0))) or exit()\n"
        "plugin.run()\n"
    )
    process = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert process.stdout == "0o22\n", process.stderr


def test_the_command_creates_folders_that_others_cannot_write(tmp_path: Path) -> None:
    (tmp_path / "server.properties").write_text("advertised.listeners=A://:1\n")
    words = [sys.executable, "-m", "earshot", "lint", "server.properties", "-o", "new/report.txt"]
    subprocess.run(words, cwd=tmp_path, capture_output=True, check=False)
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o755

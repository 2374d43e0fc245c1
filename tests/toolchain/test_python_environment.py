"""When ``.venv`` is made, and from what. The commands themselves are recorded, not run."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from earshot.errors import EarshotError
from tests.raised import raised
from toolchain import python_environment

PROJECT = (
    '[project]\nname = "x"\ndependencies = ["y"]\n[tool.setuptools]\n[tool.ruff]\nline-length = 1\n'
)
LOCK = """\
setuptools==80.0 \\
    --hash=sha256:aa \\
    --hash=sha256:bb
zlib==1.0 \\
    --hash=sha256:cc
"""


class Machine:
    """A checkout in a scratch directory and the commands that a set-up would have run there."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.commands: list[list[str]] = []
        self.fail_at = ""
        (root / "host").mkdir()
        for folder in (root, root / "host"):
            (folder / "pyproject.toml").write_text(PROJECT)
        (root / "requirements.lock").write_text(LOCK)

    def run(self, command: Sequence[str | Path], **_: object) -> None:
        words = [str(word) for word in command]
        self.commands.append(words)
        if self.fail_at and self.fail_at in words:
            raise KeyboardInterrupt
        if "venv" in words:
            (self.root / ".venv" / "bin").mkdir(parents=True, exist_ok=True)
            (self.root / ".venv" / "bin" / "python").touch()


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    machine = Machine(tmp_path)
    venv = tmp_path / ".venv"
    for name, value in {
        "ROOT": tmp_path,
        "OURS": (tmp_path, tmp_path / "host"),
        "LOCK_FILE": tmp_path / "requirements.lock",
        "VENV": venv,
        "PYTHON": venv / "bin" / "python",
        "STAMP": venv / "earshot-stamp",
        "LOGS": tmp_path / "logs",
    }.items():
        monkeypatch.setattr(python_environment, name, value)
    monkeypatch.setattr("toolchain.progress.run", machine.run)
    return machine


def ensure() -> None:
    python_environment.ensure_interpreter()
    python_environment.ensure_packages()


def test_everything_is_locked_and_nothing_built_in_isolation(machine: Machine) -> None:
    ensure()
    venv, *installs = machine.commands
    assert venv[1:3] == ["-m", "venv"]
    builders, packages, project = installs
    assert "--require-hashes" in builders
    assert {"--require-hashes", "--no-build-isolation"} <= set(packages)
    assert {"--no-deps", "--no-index", "--no-build-isolation", "-e"} <= set(project)
    for install in installs:  # whatever a user has told pip
        assert {"--no-user", "--target="} <= set(install)


def test_second_time_runs_nothing(machine: Machine) -> None:
    ensure()
    machine.commands.clear()
    ensure()
    assert machine.commands == []


@pytest.mark.parametrize("step", ["venv", "--require-hashes", "-e"])
def test_interrupted_set_up_starts_over(machine: Machine, step: str) -> None:
    machine.fail_at = step
    with pytest.raises(KeyboardInterrupt):
        ensure()
    machine.fail_at = ""
    machine.commands.clear()
    ensure()
    assert len(machine.commands) == 4


@pytest.mark.parametrize(
    ("file", "old", "new", "again"),
    [
        ("requirements.lock", "zlib==1.0", "zlib==1.1", True),
        ("pyproject.toml", '"y"', '"z"', True),
        ("host/pyproject.toml", '"y"', '"z"', True),
        ("pyproject.toml", "line-length = 1", "line-length = 2", False),
    ],
)
def test_made_again_when_what_is_installed_changes(
    machine: Machine, file: str, old: str, new: str, again: bool
) -> None:
    ensure()
    machine.commands.clear()
    path = machine.root / file
    path.write_text(path.read_text().replace(old, new))
    ensure()
    assert bool(machine.commands) is again


def test_link_to_somewhere_is_not_cleared_but_replaced(machine: Machine, tmp_path: Path) -> None:
    other = tmp_path / "precious"
    other.mkdir()
    (tmp_path / ".venv").symlink_to(other)
    ensure()
    assert other.is_dir()
    assert not (tmp_path / ".venv").is_symlink()


def test_locked_entry_comes_with_its_hashes(machine: Machine) -> None:
    entry = python_environment.locked("setuptools", machine.root / "requirements.lock")
    assert entry.split() == ["setuptools==80.0", "\\", "--hash=sha256:aa", "\\", "--hash=sha256:bb"]
    with pytest.raises(EarshotError, match="no entry for tools"):
        python_environment.locked("tools", machine.root / "requirements.lock")


def test_python_without_ensurepip(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(EarshotError, match="-venv"):
        ensure()


def test_a_path_that_cannot_stand_in_path_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(python_environment, "VENV", Path("/a:b/.venv"))
    assert str(raised(EarshotError, ensure)) == (
        "project folder /a:b: has a : in its path, which separates the folders of PATH\n"
        "  fix: move the project to another path"
    )


@pytest.mark.parametrize("letter", ['"', "$", "`", "\\", "{", "}", "\n"])
def test_a_path_with_which_no_command_starts_is_refused(
    letter: str, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(python_environment, "VENV", Path(f"/a{letter}b/.venv"))
    with pytest.raises(
        EarshotError, match="pip and setuptools make commands that do not start"
    ) as caught:
        ensure()
    assert str(caught.value).count("\n") == 1  # that of the fix
    assert not machine.commands

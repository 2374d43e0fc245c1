"""`earshot policy-pack`: the folder that Pulumi takes, made from an installed package."""

import importlib.util
import stat
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest
import yaml

from earshot import __version__
from earshot.cli import run
from earshot.cli.policy_pack import folder
from earshot.errors import EarshotError
from tests.raised import raised


@pytest.fixture(autouse=True)
def cache_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


def environment(path: Path) -> Path:
    (path / "bin").mkdir(parents=True)
    (path / "bin" / "python").touch()
    return path


def test_the_printed_folder_runs_with_the_python_of_the_command(
    cache_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["policy-pack"]) == 0
    pack = Path(capsys.readouterr().out.removesuffix("\n"))
    assert pack.is_relative_to(cache_home / "earshot")
    assert stat.S_IMODE(pack.stat().st_mode) == 0o700
    about = yaml.safe_load((pack / "PulumiPolicy.yaml").read_text())
    assert about["version"] == __version__
    options = {"toolchain": "pip", "virtualenv": sys.prefix}
    assert about["runtime"] == {"name": "python", "options": options}
    compile((pack / "__main__.py").read_text(), "__main__.py", "exec")


def test_each_environment_has_a_folder_of_its_own(tmp_path: Path) -> None:
    first, second = environment(tmp_path / "a: b"), environment(tmp_path / 'c "d"')
    assert folder(first) != folder(second)
    for item in (first, second):
        about = yaml.safe_load((folder(item) / "PulumiPolicy.yaml").read_text())
        assert about["runtime"]["options"]["virtualenv"] == str(item)


def test_a_second_call_leaves_the_folder_alone(tmp_path: Path) -> None:
    made = folder(environment(tmp_path / "venv"))
    before = made.stat().st_ino
    assert folder(tmp_path / "venv").stat().st_ino == before


@pytest.mark.parametrize("damage", ["content", "missing", "mode"])
def test_a_damaged_folder_is_made_again(tmp_path: Path, damage: str) -> None:
    made = folder(environment(tmp_path / "venv"))
    program = made / "__main__.py"
    whole = program.read_text()
    if damage == "content":
        program.write_text("import os\n")
    elif damage == "missing":
        program.unlink()
    else:
        made.chmod(0o777)
    assert folder(tmp_path / "venv") == made
    assert program.read_text() == whole
    assert stat.S_IMODE(made.stat().st_mode) == 0o700


def test_what_is_no_virtual_environment_is_refused(tmp_path: Path) -> None:
    assert raised(EarshotError, folder, tmp_path).line == (
        f"environment {tmp_path}: has no bin/python, which Pulumi starts a policy pack with; "
        "allowed: a virtual environment; "
        "fix: install earshot with its extra deploy into one (docs/installation-configuration.md)"
    )


def test_without_pulumi_s_packages_the_extra_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    find = importlib.util.find_spec

    def bare(name: str, package: str | None = None) -> ModuleSpec | None:
        return None if name == "pulumi_policy" else find(name, package)

    monkeypatch.setattr(importlib.util, "find_spec", bare)
    assert run(["policy-pack"]) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err == (
        f"error: the policy pack: needs pulumi-policy, which {sys.prefix} does not have\n"
        "  fix: pip install 'earshot[deploy]'\n"
    )


def test_a_cache_that_cannot_be_written_is_named(
    cache_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cache_home.write_text("a file where a folder belongs")
    assert run(["policy-pack"]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"error: {cache_home}/earshot/policy-pack/{__version__}-")
    assert "XDG_CACHE_HOME" in error and len(error.splitlines()) == 2

"""`earshot policy-pack`: the folder that Pulumi takes, made from an installed package."""

import importlib.util
import stat
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest
import yaml

from earshot import __version__
from earshot.cli.policy_pack import folder
from earshot.errors import EarshotError
from tests.cli.command import Earshot
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
    cache_home: Path, earshot: Earshot
) -> None:
    pack = Path(earshot.output("policy-pack").removesuffix("\n"))
    assert pack.is_relative_to(cache_home / "earshot")
    assert stat.S_IMODE(pack.stat().st_mode) == 0o700
    document = yaml.safe_load((pack / "PulumiPolicy.yaml").read_text())
    assert document["version"] == __version__
    options = {"toolchain": "pip", "virtualenv": sys.prefix}
    assert document["runtime"] == {"name": "python", "options": options}
    compile((pack / "__main__.py").read_text(), "__main__.py", "exec")


def test_each_environment_has_one_folder_which_a_second_call_keeps(tmp_path: Path) -> None:
    first, second = environment(tmp_path / "a: b"), environment(tmp_path / 'c "d"')
    assert folder(first) != folder(second)
    for path in (first, second):
        inode = folder(path).stat().st_ino
        document = yaml.safe_load((folder(path) / "PulumiPolicy.yaml").read_text())
        assert document["runtime"]["options"]["virtualenv"] == str(path)
        assert folder(path).stat().st_ino == inode


@pytest.mark.parametrize("damage", ["content", "missing", "mode"])
def test_a_damaged_folder_is_repaired(tmp_path: Path, damage: str) -> None:
    pack = folder(environment(tmp_path / "venv"))
    program = pack / "__main__.py"
    content = program.read_text()
    if damage == "content":
        program.write_text("import os\n")
    elif damage == "missing":
        program.unlink()
    else:
        pack.chmod(0o777)
    assert folder(tmp_path / "venv") == pack
    assert program.read_text() == content
    assert stat.S_IMODE(pack.stat().st_mode) == 0o700


def test_a_folder_that_is_no_virtual_environment_is_refused(tmp_path: Path) -> None:
    assert raised(EarshotError, folder, tmp_path).line == (
        f"environment {tmp_path}: has no bin/python, which Pulumi starts a policy pack with; "
        "allowed: a virtual environment; "
        "fix: install earshot with its extra deploy into one (docs/installation-configuration.md)"
    )


def test_without_pulumi_s_packages_the_extra_is_named(
    monkeypatch: pytest.MonkeyPatch, earshot: Earshot
) -> None:
    find = importlib.util.find_spec

    def bare(name: str, package: str | None = None) -> ModuleSpec | None:
        return None if name == "pulumi_policy" else find(name, package)

    monkeypatch.setattr(importlib.util, "find_spec", bare)
    assert earshot.refusal("policy-pack") == (
        f"error: the policy pack: needs pulumi-policy, which {sys.prefix} does not have\n"
        "  fix: pip install 'earshot[deploy]'\n"
    )


def test_a_cache_that_cannot_be_written_is_named(cache_home: Path, earshot: Earshot) -> None:
    cache_home.write_text("a file where a folder belongs")
    error = earshot.refusal("policy-pack")
    assert error.startswith(f"error: {cache_home}/earshot/policy-pack/{__version__}-")
    assert "XDG_CACHE_HOME" in error and len(error.splitlines()) == 2

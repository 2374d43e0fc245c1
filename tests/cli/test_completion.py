"""Completion in a shell, as the scripts of `earshot --show-completion` ask for it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from earshot.cli.commands import app

EARSHOT = Path(sys.executable).with_name("earshot")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "Pulumi.yaml").write_text("name: any\nruntime: python\nstackConfigDir: stacks\n")
    (tmp_path / "stacks").mkdir()
    for stack in ("local", "local-ci", "docker"):
        (tmp_path / "stacks" / f"Pulumi.{stack}.yaml").touch()
    return tmp_path


def completed(folder: Path, line: str) -> list[str]:
    """What bash offers for the last word of ``line``."""
    words = line.split(" ")
    asked = {"COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)}
    done = subprocess.run(
        [EARSHOT],
        cwd=folder,
        env={**os.environ, **asked, "_EARSHOT_COMPLETE": "complete_bash"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    return done.stdout.split()


def test_every_command_is_offered(project: Path) -> None:
    offered = completed(project, "earshot ")
    assert len(offered) == len(app.registered_commands)
    assert {"plan", "lint", "policy-pack", "schema"} <= set(offered)


@pytest.mark.parametrize("option", ["plan --stack", "doctor -s", "plan --against"])
def test_stacks_of_the_project_are_offered(project: Path, option: str) -> None:
    assert completed(project, f"earshot {option} lo") == ["local", "local-ci"]


def test_outside_of_a_project_no_stack_is_offered(tmp_path: Path) -> None:
    assert completed(tmp_path, "earshot plan --stack ") == []


def test_options_are_offered(project: Path) -> None:
    assert "--against" in completed(project, "earshot plan --")


def test_the_script_for_a_shell_is_shown(project: Path) -> None:
    done = subprocess.run(
        ["bash", "-c", f"{EARSHOT} --show-completion; true"],
        cwd=project,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "complete -o default -F _earshot_completion earshot" in done.stdout, done.stderr

"""Completion in a shell, as the scripts of `earshot --show-completion` ask for it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from earshot.cli.commands import app
from earshot.project import Project

EARSHOT = Path(sys.executable).with_name("earshot")


def completions(line: str) -> list[str]:
    """What bash offers for the last word of ``line``."""
    variables = {"COMP_WORDS": line, "COMP_CWORD": str(line.count(" "))}
    completed = subprocess.run(
        [EARSHOT],
        env={**os.environ, **variables, "_EARSHOT_COMPLETE": "complete_bash"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert completed.stderr == ""
    return completed.stdout.split()


def test_commands_and_options_are_offered(project: Project) -> None:
    commands = completions("earshot ")
    assert len(commands) == len(app.registered_commands)
    assert {"plan", "lint", "policy-pack", "schema"} <= set(commands)
    assert "--against" in completions("earshot plan --")


@pytest.mark.parametrize("option", ["plan --stack", "doctor -s", "plan --against"])
def test_stacks_of_the_project_are_offered(project: Project, option: str) -> None:
    for stack in ("local-ci", "docker"):
        project.stack_file(stack).touch()
    assert completions(f"earshot {option} lo") == ["local", "local-ci"]


def test_outside_of_a_project_no_stack_is_offered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert completions("earshot plan --stack ") == []


def test_the_script_for_a_shell_is_shown() -> None:
    command = ["bash", "-c", f"{EARSHOT} --show-completion; true"]
    completed = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "complete -o default -F _earshot_completion earshot" in completed.stdout

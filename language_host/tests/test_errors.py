"""Errors of programs and packs: shown once, without frames of the host."""

import pytest

from language_host.tests.workspace import Workspace

pytestmark = pytest.mark.e2e


@pytest.mark.parametrize(
    ("name", "message", "frame", "unwanted"),
    [
        ("user_error", "ZeroDivisionError: division by zero", "in divide", "exit code"),
        ("run_error", "the cellar is flooded", "", "Traceback"),
    ],
)
def test_an_error_is_shown_once_and_a_trace_only_of_other_exceptions(
    workspace: Workspace, name: str, message: str, frame: str, unwanted: str
) -> None:
    project = workspace.stack(name)

    result = workspace.run(project, "preview", "--suppress-progress")

    assert result.returncode != 0
    _, diagnostics = result.stdout.split("Diagnostics:")
    assert diagnostics.count(message) == 1
    assert frame in diagnostics
    assert "language_host" not in result.stdout and unwanted not in result.stdout


def test_a_missing_virtual_environment_names_the_fix(workspace: Workspace) -> None:
    project = workspace.stack("plain")
    (project / "venv").unlink()

    result = workspace.run(project, "preview")

    assert result.returncode != 0
    assert f"the virtual environment {project / 'venv'} has no bin/python" in result.stdout
    assert "make setup" in result.stdout
    assert "Traceback" not in result.stdout


@pytest.mark.parametrize(
    ("name", "output"),
    [("noisy_pack", "good morning"), ("broken_pack", "No module named 'no_such_module'")],
)
def test_a_pack_without_a_port_on_its_first_line(
    workspace: Workspace, name: str, output: str
) -> None:
    project = workspace.stack("plain")
    pack = workspace.add(name)

    result = workspace.run(project, "preview", "--policy-pack", str(pack))

    assert result.returncode != 0
    assert "could not read policy pack port" in result.stdout
    assert output in result.stdout and "language_host" not in result.stdout

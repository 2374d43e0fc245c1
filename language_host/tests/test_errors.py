"""What users see of their own mistakes: their error once, and nothing of the host."""

import pytest

from language_host.tests.workspace import Workspace

pytestmark = pytest.mark.e2e


def test_unhandled_exception_is_shown_once_with_the_users_frames(workspace: Workspace) -> None:
    project = workspace.stack("user_error")

    result = workspace.run(project, "preview", "--suppress-progress")

    assert result.returncode != 0
    _, diagnostics = result.stdout.split("Diagnostics:")
    assert diagnostics.count("ZeroDivisionError: division by zero") == 1
    assert "in divide" in diagnostics
    assert "language_host" not in result.stdout
    assert "exit code" not in result.stdout


def test_run_error_is_shown_without_a_trace(workspace: Workspace) -> None:
    project = workspace.stack("run_error")

    result = workspace.run(project, "preview", "--suppress-progress")

    assert result.returncode != 0
    _, diagnostics = result.stdout.split("Diagnostics:")
    assert diagnostics.count("the cellar is flooded") == 1
    assert "Traceback" not in result.stdout


def test_missing_virtual_environment_says_what_to_do(workspace: Workspace) -> None:
    project = workspace.stack("plain")
    (project / "venv").unlink()

    result = workspace.run(project, "preview")

    assert result.returncode != 0
    assert f"the virtual environment {project / 'venv'} has no bin/python" in result.stdout
    assert "make setup" in result.stdout
    assert "Traceback" not in result.stdout


def test_pack_that_prints_before_its_port(workspace: Workspace) -> None:
    project = workspace.stack("plain")
    pack = workspace.add("noisy_pack")

    result = workspace.run(project, "preview", "--policy-pack", str(pack))

    assert result.returncode != 0
    assert "could not read policy pack port" in result.stdout
    assert "good morning" in result.stdout


def test_pack_that_does_not_start(workspace: Workspace) -> None:
    project = workspace.stack("plain")
    pack = workspace.add("broken_pack")

    result = workspace.run(project, "preview", "--policy-pack", str(pack))

    assert result.returncode != 0
    assert "could not read policy pack port" in result.stdout
    assert "No module named 'no_such_module'" in result.stdout
    assert "language_host" not in result.stdout

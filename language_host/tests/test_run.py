"""The real CLI runs programs, packs and providers through the language host."""

import json
import re

import pytest

from language_host.tests.workspace import Workspace

pytestmark = pytest.mark.e2e


def test_program_sees_its_stack_and_its_output_is_shown(workspace: Workspace) -> None:
    project = workspace.stack("plain", colour="blue", password="hush")

    result = workspace.run(project, "up", "--yes")

    assert result.returncode == 0, result.stdout
    assert "printed by the program" in result.stdout
    assert "hush" not in result.stdout
    assert workspace.outputs(project) == {
        "project": "plain",
        "stack": "dev",
        "organization": "organization",
        "colour": "blue",
        "password": "hush",
    }


def test_a_provider_in_python_runs_without_a_line_from_the_host(workspace: Workspace) -> None:
    workspace.add_plugin()
    project = workspace.stack("resources")

    result = workspace.run(project, "up", "--yes", "--suppress-progress")

    assert result.returncode == 0, result.stdout
    assert "Diagnostics" not in result.stdout and "warning" not in result.stdout
    assert workspace.outputs(project) == {"echo": "hello hello"}
    assert workspace.run(project, "destroy", "--yes").returncode == 0


def test_a_policy_pack_gets_its_stack_but_not_that_of_a_recorded_state(
    workspace: Workspace,
) -> None:
    project = workspace.stack("plain", colour="blue")
    pack = workspace.add("pack")

    result = workspace.run(project, "up", "--yes", "--policy-pack", str(pack))

    assert result.returncode == 0, result.stdout
    preview, update = (json.loads(text) for text in re.findall(r"told: ({.*})", result.stdout))
    assert preview == {
        "project": "plain",
        "stack": "dev",
        "organization": "organization",
        "dry_run": True,
        "colour": "blue",
    }
    assert update == preview | {"dry_run": False}
    result = workspace.run(project, "policy", "analyze", "--policy-pack", str(pack))
    assert result.returncode == 0, result.stdout
    assert '"stack": "stack"' in result.stdout


def test_about_names_the_programs_python(workspace: Workspace) -> None:
    project = workspace.stack("plain")

    result = workspace.run(project, "about", "--json")

    about = json.loads(result.stdout)
    assert about["runtime"]["language"] == "python"
    assert about["runtime"]["executable"] == str(project / "venv" / "bin" / "python")
    assert "pytest-timeout" in {dependency["name"] for dependency in about["dependencies"]}


def test_install_makes_the_virtual_environment(workspace: Workspace) -> None:
    project = workspace.add("plain")
    (project / "venv").unlink()
    (project / "requirements.txt").write_text("")

    result = workspace.run(project, "install", "--no-plugins")

    assert result.returncode == 0, result.stdout
    assert (project / "venv" / "bin" / "python").exists()

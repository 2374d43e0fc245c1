"""`pulumi new` from the folder `template/`: a project of any name, with the wheel in its own
environment."""

from pathlib import Path

import pytest
import yaml

from earshot import __version__
from tests.e2e.installed import wheel_environment
from tests.e2e.project import STACK, Project, prepare_home
from toolchain.paths import ROOT

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]
TEMPLATE = ROOT / "template"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    environment = prepare_home(tmp_path / "homes", {"XDG_CACHE_HOME": str(tmp_path / "cache")})
    folder = tmp_path / "made"
    folder.mkdir()
    new_project = Project(folder, "", environment)
    new_project.run("new", str(TEMPLATE), "--generate-only", "--name", "other", "--yes")
    wheel_environment(folder / ".venv")
    return new_project


def test_a_project_of_any_name_is_previewed(project: Project) -> None:
    folder = project.folder
    project_document = yaml.safe_load((folder / "Pulumi.yaml").read_text())
    assert project_document["name"] == "other"
    assert (folder / "README.md").read_text().startswith("# other\n")
    stacks = {path.name for path in (TEMPLATE / "stacks").iterdir()}
    assert {path.name for path in (folder / "stacks").iterdir()} == stacks
    # a stack that has only what differs
    stack_settings = {"extends": "local", "brokers": 1, "controllers": {"count": 1}}
    file = folder / "stacks" / f"Pulumi.{STACK}.yaml"
    file.write_text(yaml.safe_dump({"config": {"earshot:cluster": stack_settings}}))
    project.run("stack", "init", STACK)

    command = [folder / ".venv" / "bin" / "earshot", "policy-pack"]
    pack = project.output_of_command(*map(str, command)).strip()
    preview = project.run("preview", "--policy-pack", pack)
    assert "broker-1" in preview and "broker-2" not in preview
    assert f"earshot@v{__version__}" in preview

    stack_settings["external_host"] = "kafka.missing.invalid"
    file.write_text(yaml.safe_dump({"config": {"earshot:cluster": stack_settings}}))
    refusal = project.failed_output("--policy-pack", pack, command="preview")
    assert "kafka.missing.invalid does not resolve" in refusal


def test_a_stack_without_a_cluster_is_one_message(project: Project) -> None:
    project.run("stack", "init", "dev")
    output = project.failed_output(command="preview")
    assert "stacks/Pulumi.dev.yaml, earshot:cluster: found " in output
    assert "a map of settings with at least `placement`" in output


def test_the_plugin_names_the_command_that_installs_it(tmp_path: Path) -> None:
    project = Project(tmp_path, "", prepare_home(tmp_path / "homes", {}))
    (tmp_path / "plugin").mkdir()
    launcher = tmp_path / "plugin" / "pulumi-resource-earshot"
    launcher.write_bytes((TEMPLATE / "plugin" / launcher.name).read_bytes())
    launcher.chmod(0o755)
    assert "fix: pulumi install" in project.output_of_command(str(launcher), status=1)

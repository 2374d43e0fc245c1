"""`examples/policy-ci`: the pack of a wheel over a program that never heard of earshot.

Engine, containers and broker are real; the Docker provider is the double.
"""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.e2e.docker_engine import Engine
from tests.e2e.docker_project import Project, docker_project
from tests.e2e.installed import bare_environment, wheel_environment
from tests.e2e.ports import free_ports
from tests.e2e.project import STACK
from toolchain.paths import ROOT

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]
EXAMPLE = ROOT / "examples" / "policy-ci"


@pytest.fixture
def project(docker_engine: Engine, kafka_image: str, tmp_path: Path) -> Iterator[Project]:
    """The example as a checkout on a runner, where the installing steps are done."""
    new_project = docker_project(tmp_path / "p", docker_engine)
    shutil.copytree(EXAMPLE, new_project.folder, dirs_exist_ok=True)
    project_document = yaml.safe_load((new_project.folder / "Pulumi.yaml").read_text())
    project_document["name"] = "project"
    (new_project.folder / "Pulumi.yaml").write_text(yaml.safe_dump(project_document))
    bare_environment(new_project.folder / "venv")
    wheel_environment(tmp_path / "runner" / "earshot")
    new_project.environment.update(STACK=STACK, RUNNER_TEMP=str(tmp_path / "runner"))
    (port,) = free_ports(1)
    for key, value in {"image": kafka_image, "port": port}.items():
        new_project.run("config", "set", key, str(value))
    yield new_project
    new_project.pulumi("destroy", "--yes", "--skip-preview")


def step(project: Project, name: str) -> subprocess.CompletedProcess[str]:
    """Runs a step of the workflow as it is written, with its own variables."""
    workflow = yaml.safe_load((EXAMPLE / ".github" / "workflows" / "kafka.yaml").read_text())
    steps: list[dict[str, Any]] = workflow["jobs"]["listeners"]["steps"]
    (workflow_step,) = [job_step for job_step in steps if job_step.get("name") == name]
    temporary = project.environment["RUNNER_TEMP"]
    step_variables = {
        key: value.replace("${{ runner.temp }}", temporary)
        for key, value in workflow_step.get("env", {}).items()
    }
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", workflow_step["run"]],
        cwd=project.folder,
        env=project.environment | step_variables,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
    )


def test_a_foreign_program_is_deployed_through_the_pack(project: Project) -> None:
    assert "earshot" not in (project.folder / "__main__.py").read_text().partition("import")[2]
    project.run("config", "set", "host", "kafka.missing.invalid")
    refused_step = step(project, "Preview")
    assert (
        refused_step.returncode != 0
        and "kafka.missing.invalid does not resolve" in refused_step.stdout
    )
    annotations = step(project, "Annotate")
    assert annotations.returncode == 0 and annotations.stdout.startswith("::error")
    assert "kafka.missing.invalid" in annotations.stdout
    refused_step = step(project, "Deploy")
    assert (
        refused_step.returncode != 0
        and "kafka.missing.invalid does not resolve" in refused_step.stdout
    )
    assert project.engine.run("ps", "--all", "--quiet", "--filter", "name=broker-") == ""

    project.run("config", "rm", "host")
    completed = step(project, "Deploy")
    assert completed.returncode == 0 and "Policies:" in completed.stdout, completed.stdout
    assert "Traceback" not in completed.stdout
    broker = project.outputs()["broker"]
    project.run("config", "set", "host", "kafka.missing.invalid")
    assert step(project, "Deploy").returncode != 0
    assert broker in project.engine.run("ps", "--no-trunc", "--format", "{{.ID}}").split()

"""Earshot's provider in programs of other people: real engine, real Docker, the Docker double."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.e2e.docker_engine import Engine
from tests.e2e.docker_project import Project, docker_project
from tests.e2e.ports import free_ports
from tests.e2e.yaml_host import ensure_yaml_host
from tests.rest import with_combinations
from toolchain.paths import POLICIES, ROOT

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]
EXAMPLES = ROOT / "examples"
PLUGIN = ROOT / ".venv" / "bin"


@pytest.fixture
def project(
    request: pytest.FixtureRequest, docker_engine: Engine, kafka_image: str, tmp_path: Path
) -> Iterator[Project]:
    """The example as a user's project; whatever becomes of the test, its resources go."""
    new_project = docker_project(tmp_path / "p", docker_engine)
    project_file = new_project.folder / "Pulumi.yaml"
    project_document = yaml.safe_load(project_file.read_text())
    if request.param == "own-brokers-yaml":
        project_document = yaml.safe_load((EXAMPLES / request.param / "Pulumi.yaml").read_text())
        project_document["name"] = "project"
        new_project.environment["PATH"] = f"{ensure_yaml_host()}:{new_project.environment['PATH']}"
    else:
        shutil.copy(EXAMPLES / request.param / "__main__.py", new_project.folder)
    project_document["plugins"] = {"providers": [{"name": "earshot", "path": str(PLUGIN)}]}
    project_file.write_text(yaml.safe_dump(project_document))
    (port,) = free_ports(1)
    image = "kafkaImage" if request.param == "own-brokers-yaml" else "image"
    for key, value in {image: kafka_image, "port": port}.items():
        new_project.run("config", "set", key, str(value))
    yield new_project
    new_project.pulumi("destroy", "--yes", "--skip-preview")


@pytest.mark.parametrize(
    "project", with_combinations("own-brokers", ["own-brokers", "own-brokers-yaml"]), indirect=True
)
def test_own_brokers_are_checked_and_proved_without_a_pack(project: Project) -> None:
    assert "not-known-yet" not in project.run("preview", "--diff")
    project.up()
    first_outputs = project.outputs()
    assert first_outputs["verdict"] == "pass" and first_outputs["unproved"] == ["INTERNAL"]
    # client properties may hold a password: they are encrypted in the state
    assert "proof-of-kafka" not in project.run("stack", "export")
    assert "validation: PASS, 1 of 1 cell passed" in first_outputs["report"]
    assert "unchanged" in project.up("--expect-no-changes")

    # the pack beside it evaluates the same gate, and knows that the broker is behind it
    project.environment["PULUMI_OPTION_POLICY_PACK"] = str(POLICIES)
    preview_with_pack = project.run("preview")
    assert (
        "earshot@" in preview_with_pack
        and "no-gate" not in preview_with_pack
        and "[mandatory]" not in preview_with_pack
    )
    del project.environment["PULUMI_OPTION_POLICY_PACK"]

    project.run("config", "set", "host", "kafka.missing.invalid")
    refusal = "kafka.missing.invalid does not resolve"
    assert refusal in project.failed_output(command="preview")
    assert refusal in project.failed_output()
    (broker,) = (
        resource["urn"]
        for resource in project.resources()
        if "container:Container" in resource["urn"]
    )
    assert refusal in project.failed_output("--target", broker)
    running_ids = project.engine.run("ps", "--no-trunc", "--format", "{{.ID}}")
    assert first_outputs["broker"] in running_ids.split()

    project.run("config", "rm", "host")
    project.up()
    assert project.outputs()["broker"] == first_outputs["broker"]


@pytest.mark.combination
@pytest.mark.parametrize("project", ["own-brokers"], indirect=True)
def test_the_automation_api_deploys_and_says_why_not(project: Project) -> None:
    refused_run = run_automation(project, "host=kafka.missing.invalid")
    assert refused_run.returncode == 1
    assert "kafka.missing.invalid does not resolve" in refused_run.stderr
    assert "Traceback" not in refused_run.stderr
    completed = run_automation(project, "host=localhost")
    assert completed.returncode == 0, completed.stderr
    assert "validation: PASS, 1 of 1 cell passed" in completed.stdout
    assert run_automation(project, "--destroy").returncode == 0
    assert "broker-1" not in project.run("stack", "export")


def run_automation(project: Project, *words: str) -> subprocess.CompletedProcess[str]:
    script = EXAMPLES / "automation" / "deploy.py"
    return subprocess.run(
        [sys.executable, str(script), str(project.folder), *words],
        env=project.environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
    )

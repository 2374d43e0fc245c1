"""Earshot's provider in programs of other people: real engine, real Docker, the Docker double."""

import json
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
    made = docker_project(tmp_path / "p", docker_engine)
    about = made.folder / "Pulumi.yaml"
    described = yaml.safe_load(about.read_text())
    if request.param == "own-brokers-yaml":
        described = yaml.safe_load((EXAMPLES / request.param / "Pulumi.yaml").read_text())
        described["name"] = "project"
        made.environment["PATH"] = f"{ensure_yaml_host()}:{made.environment['PATH']}"
    else:
        shutil.copy(EXAMPLES / request.param / "__main__.py", made.folder)
    described["plugins"] = {"providers": [{"name": "earshot", "path": str(PLUGIN)}]}
    about.write_text(yaml.safe_dump(described))
    (port,) = free_ports(1)
    image = "kafkaImage" if request.param == "own-brokers-yaml" else "image"
    for key, value in {image: kafka_image, "port": port}.items():
        made.runs("config", "set", key, str(value))
    yield made
    made.pulumi("destroy", "--yes", "--skip-preview")


@pytest.mark.parametrize(
    "project", with_combinations("own-brokers", ["own-brokers", "own-brokers-yaml"]), indirect=True
)
def test_own_brokers_are_checked_and_proved_without_a_pack(project: Project) -> None:
    assert "not-known-yet" not in project.runs("preview", "--diff")
    project.up()
    first = project.outputs()
    assert first["verdict"] == "pass" and first["unproved"] == ["INTERNAL"]
    # client properties may hold a password: they are encrypted in the state
    assert "proof-of-kafka" not in project.runs("stack", "export")
    assert "validation: PASS, 1 of 1 cell passed" in first["report"]
    assert "unchanged" in project.up("--expect-no-changes")

    # the pack beside it evaluates the same gate, and knows that the broker is behind it
    project.environment["PULUMI_OPTION_POLICY_PACK"] = str(POLICIES)
    judged = project.runs("preview")
    assert "earshot@" in judged and "no-gate" not in judged and "[mandatory]" not in judged
    del project.environment["PULUMI_OPTION_POLICY_PACK"]

    project.runs("config", "set", "host", "kafka.nobody.invalid")
    refused = "kafka.nobody.invalid does not resolve"
    assert refused in project.fails(command="preview")
    assert refused in project.fails()
    (broker,) = (
        resource["urn"]
        for resource in resources(project)
        if "container:Container" in resource["urn"]
    )
    assert refused in project.fails("--target", broker)
    running = project.engine.run("ps", "--no-trunc", "--format", "{{.ID}}")
    assert first["broker"] in running.split()

    project.runs("config", "rm", "host")
    project.up()
    assert project.outputs()["broker"] == first["broker"]


@pytest.mark.combination
@pytest.mark.parametrize("project", ["own-brokers"], indirect=True)
def test_the_automation_api_deploys_and_says_why_not(project: Project) -> None:
    refused = automated(project, "host=kafka.nobody.invalid")
    assert refused.returncode == 1
    assert "kafka.nobody.invalid does not resolve" in refused.stderr
    assert "Traceback" not in refused.stderr
    done = automated(project, "host=localhost")
    assert done.returncode == 0, done.stderr
    assert "validation: PASS, 1 of 1 cell passed" in done.stdout
    assert automated(project, "--destroy").returncode == 0
    assert "broker-1" not in project.runs("stack", "export")


def automated(project: Project, *words: str) -> subprocess.CompletedProcess[str]:
    script = EXAMPLES / "automation" / "deploy.py"
    return subprocess.run(
        [sys.executable, str(script), str(project.folder), *words],
        env=project.environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
    )


def resources(project: Project) -> list[dict[str, str]]:
    exported = json.loads(project.runs("stack", "export"))
    return list(exported["deployment"]["resources"])

"""`pulumi package add`, and programs in TypeScript, Go and Python with the SDKs that it makes.

The language hosts for TypeScript and Go are doubles (`tests/doubles/language_hosts`); engine,
generators, SDKs, compilers and brokers are real.
"""

import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.doubles.aws.install import install_aws_double
from tests.doubles.docker.install import VERSION, install_docker_plugin
from tests.doubles.language_hosts.install import install_language_hosts
from tests.e2e import git_server, project
from tests.e2e.docker_engine import Engine
from tests.e2e.docker_project import docker_project
from tests.e2e.installed import bare_environment
from tests.e2e.ports import free_ports
from tests.skips import lacking
from toolchain.paths import ROOT

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(1200),
]
PLUGIN = ROOT / ".venv" / "bin"
PACKAGE = "components/earshot_pulumi/package"
PROGRAM = """
    kafka = earshot.Listeners(
        "kafka",
        vantage="network",
        listeners=[
            {"name": "INTERNAL", "port": 19092, "scopes": ["internal"]},
            {"name": "HOST", "port": 9092, "scopes": ["host"]},
        ],
        nodes={"101": {"internal": "kafka-1", "host": pulumi.Config().require("host")}},
        declared={"internal": "alias", "controller": "alias"},
    )
    pulumi.export("bootstrap", kafka.bootstrap)
"""
SDKS = {
    "typescript": ("5.2.0", "npm", ["node_modules/.bin/tsc", "--noEmit"]),
    "go": ("4.10.0", "go", ["go", "vet", "./..."]),
}
"""By example: its Docker SDK's version, what installs packages, what checks program and SDKs."""


@pytest.mark.combination
@pytest.mark.parametrize("language", SDKS)
def test_own_brokers_in_another_language(
    language: str, docker_engine: Engine, kafka_image: str, tmp_path: Path
) -> None:
    version, tool, check = SDKS[language]
    if shutil.which(tool) is None:
        lacking(f"no {tool} on PATH: install it")
    project = docker_project(tmp_path / "p", docker_engine)
    shutil.copytree(
        ROOT / "examples" / f"own-brokers-{language}", project.folder, dirs_exist_ok=True
    )
    project_document = yaml.safe_load((project.folder / "Pulumi.yaml").read_text())
    project_document["name"] = "project"
    project_document["plugins"] = {"providers": [{"name": "earshot", "path": str(PLUGIN)}]}
    (project.folder / "Pulumi.yaml").write_text(yaml.safe_dump(project_document))
    hosts = install_language_hosts(tmp_path / "hosts")
    project.environment["PATH"] = f"{hosts}:{project.environment['PATH']}"
    plugins = project.folder / "home" / "plugins"
    shutil.copytree(
        plugins / f"resource-docker-v{VERSION}", plugins / f"resource-docker-v{version}"
    )
    (port,) = free_ports(1)
    for key, value in {"image": kafka_image, "port": port}.items():
        project.run("config", "set", key, str(value))

    # nothing but the executable of the installed package is needed
    added_package = project.pulumi(
        "package", "add", str(PLUGIN / "pulumi-resource-earshot"), timeout=600
    )
    assert added_package.returncode == 0, added_package.stdout
    check_result = subprocess.run(
        check,
        cwd=project.folder,
        env=project.environment,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert check_result.returncode == 0, check_result.stdout + check_result.stderr
    try:
        project.up()
        outputs = project.outputs()
        assert outputs["verdict"] == "pass" and outputs["unproved"] == ["INTERNAL"]
        assert outputs["bootstrap"]["HOST"] == f"localhost:{port}"
        assert "proof-of-kafka" not in project.run("stack", "export")
        assert "unchanged" in project.up("--expect-no-changes")
        project.run("config", "set", "host", "kafka.missing.invalid")
        assert "kafka.missing.invalid does not resolve" in project.failed_output(command="preview")
    finally:
        project.destroy()


@pytest.fixture
def program(tmp_path: Path) -> project.Project:
    """A Python program with its own environment, in which earshot is not installed."""
    folder = tmp_path / "p"
    environment = project.prepare_home(folder, {"PIP_NO_INDEX": "1", "PIP_NO_BUILD_ISOLATION": "0"})
    bare_environment(folder / "venv")
    runtime = {"name": "python", "options": {"toolchain": "pip", "virtualenv": "venv"}}
    project_document = {"name": "project", "runtime": runtime}
    (folder / "Pulumi.yaml").write_text(yaml.safe_dump(project_document))
    new_program = project.Project(
        folder, "import pulumi\nimport pulumi_earshot as earshot", environment
    )
    new_program.write(PROGRAM)
    new_program.run("stack", "init", project.STACK)
    return new_program


def test_a_python_program_adds_the_package_from_a_folder(
    program: project.Project, tmp_path: Path
) -> None:
    # not from this checkout: the CLI installs into the environment beside the folder
    repository, checkout = tmp_path / "earshot.git", tmp_path / "checkout"
    git_server.publish(repository, "v0.1.0")
    subprocess.run(["git", "clone", "--quiet", repository, checkout], check=True)
    bare_environment(checkout / ".venv")
    # that environment has the SDKs of both clouds, whose plugins the CLI wants, too
    for install in (install_docker_plugin, install_aws_double):
        install(program.folder / "home")
    program.run("package", "add", str(checkout / PACKAGE))
    check_sdk(program, "earshot")


@pytest.mark.combination
def test_a_python_program_adds_the_package_from_a_git_tag(
    program: project.Project, tmp_path: Path
) -> None:
    # the clone's own environment is filled from the registry
    del program.environment["PIP_NO_INDEX"], program.environment["PIP_NO_BUILD_ISOLATION"]
    repository = tmp_path / "git" / "org" / "earshot.git"
    repository.parent.mkdir(parents=True)
    git_server.publish(repository, "v0.1.0")
    with git_server.serving(tmp_path / "git") as authority:
        program.environment["SSL_CERT_FILE"] = str(authority)
        source = f"https://localhost/org/earshot.git/{PACKAGE}@0.1.0"
        added_package = program.pulumi("package", "add", source, timeout=600)
        assert added_package.returncode == 0, added_package.stdout
    project_document = yaml.safe_load((program.folder / "Pulumi.yaml").read_text())
    assert project_document["packages"]["earshot"] == f"localhost/org/earshot.git/{PACKAGE}@0.1.0"
    check_sdk(program, "org-earshot")


def check_sdk(program: project.Project, sdk: str) -> None:
    assert (program.folder / "requirements.txt").read_text().splitlines() == [f"./sdks/{sdk}"]
    program.run("config", "set", "host", "kafka.missing.invalid")
    # Pulumi's SDK adds a stack trace where a remote component's resource is refused
    preview = program.pulumi("preview")
    assert preview.returncode != 0 and "kafka.missing.invalid does not resolve" in preview.stdout
    program.run("config", "set", "host", "localhost")
    program.up()
    assert program.outputs()["bootstrap"] == {
        "HOST": "localhost:9092", "INTERNAL": "kafka-1:19092"
    }  # fmt: skip
    program.destroy()

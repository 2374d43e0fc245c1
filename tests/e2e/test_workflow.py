"""The job `pack` of the workflow in docs/lint-ci.md, on a stack of one container that others wrote.

The pack comes from a wheel, and the program's own environment has no earshot.

A preview needs no more of a Docker engine than that it answers; what is analyzed is imported as a
state.
"""

import json
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.doubles.docker.install import VERSION, install_docker_plugin
from tests.e2e.installed import bare_environment, wheel_environment
from tests.e2e.project import STACK, Project, prepare_home
from tests.lint.test_recipes import workflow

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]
PROVIDER, CONTAINER = "pulumi:providers:docker", "docker:index/container:Container"
WELL, ILL = "PLAINTEXT://kafka:9092", "PLAINTEXT://kafka:9092,PLAINTEXT://kafka:9093"


class AnsweringEngine(BaseHTTPRequestHandler):
    """An engine that answers the requests of a provider's start."""

    def do_GET(self) -> None:
        body = json.dumps({"ApiVersion": "1.41"}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: Any) -> None:
        pass


@pytest.fixture(scope="module")
def engine() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), AnsweringEngine) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"tcp://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def variables(advertised: str) -> list[str]:
    """A broker in a container, sound unless Kafka refuses its advertised listeners."""
    return [
        "KAFKA_NODE_ID=1",
        "KAFKA_PROCESS_ROLES=broker,controller",
        "KAFKA_CONTROLLER_LISTENER_NAMES=CONTROLLER",
        "KAFKA_CONTROLLER_QUORUM_VOTERS=1@localhost:9093",
        "KAFKA_LISTENERS=PLAINTEXT://:9092,CONTROLLER://:9093",
        f"KAFKA_ADVERTISED_LISTENERS={advertised}",
    ]


@pytest.fixture(scope="module")
def project(engine: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    folder = tmp_path_factory.mktemp("workflow")
    wheel_environment(folder / "earshot")
    variables = {
        "STACK": STACK,
        "RUNNER_TEMP": str(folder),
        "XDG_CACHE_HOME": str(folder / "cache"),
    }
    environment = prepare_home(folder / "p", {**variables, "DOCKER_HOST": engine})
    project_file = folder / "p" / "Pulumi.yaml"
    document = yaml.safe_load(project_file.read_text())
    document["runtime"]["options"]["virtualenv"] = str(bare_environment(folder / "of-program"))
    project_file.write_text(yaml.safe_dump(document))
    install_docker_plugin(folder / "p" / "home")
    new_project = Project(folder / "p", "import pulumi_docker as docker\n", environment)
    new_project.run("stack", "init", STACK)
    yield new_project


def step(project: Project, name: str) -> subprocess.CompletedProcess[str]:
    """A step of the job, as it is written on the page."""
    (command,) = [job_step["run"] for job_step in workflow()["pack"] if job_step["name"] == name]
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", command],
        cwd=project.folder,
        env=project.environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("advertised", "code"), [pytest.param(WELL, 0, marks=pytest.mark.combination), (ILL, 1)]
)
def test_the_preview(project: Project, advertised: str, code: int) -> None:
    project.write(
        f"""
        docker.Container(
            "kafka", name="kafka", image="apache/kafka:4.1.1", envs={variables(advertised)!r}
        )
        """
    )
    completed = step(project, "Preview")
    assert bool(completed.returncode) == bool(code), completed.stdout + completed.stderr
    assert ("kl002" in completed.stdout) == bool(code)


@pytest.mark.combination
@pytest.mark.parametrize(("advertised", "code"), [(WELL, 0), (ILL, 1)])
def test_the_analysis(project: Project, tmp_path: Path, advertised: str, code: int) -> None:
    state = json.loads(project.run("stack", "export"))
    state["deployment"]["resources"] = resources(advertised)
    file = tmp_path / "state.json"
    file.write_text(json.dumps(state))
    project.run("stack", "import", "--file", str(file))
    completed = step(project, "Analyze")
    assert bool(completed.returncode) == bool(code), completed.stdout + completed.stderr
    assert ("kl002" in completed.stdout) == bool(code)


def resources(advertised: str) -> list[dict[str, object]]:
    """The program's resources in a state."""
    head = f"urn:pulumi:{STACK}::project::"
    root, provider = f"{head}pulumi:pulumi:Stack::project-{STACK}", f"{head}{PROVIDER}::default"
    inputs = {"name": "kafka", "image": "apache/kafka:4.1.1", "envs": variables(advertised)}
    return [
        {"urn": root, "custom": False, "type": "pulumi:pulumi:Stack"},
        {"urn": provider, "custom": True, "id": "0d3c", "type": PROVIDER,
         "inputs": {"version": VERSION}, "outputs": {"version": VERSION}},
        {"urn": f"{head}{CONTAINER}::kafka", "custom": True, "id": "c0ffee", "type": CONTAINER,
         "parent": root, "provider": f"{provider}::0d3c", "inputs": inputs, "outputs": inputs},
    ]  # fmt: skip

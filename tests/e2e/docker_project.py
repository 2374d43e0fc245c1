"""Pulumi projects for tests on a Docker engine: real CLI, own home and backend, the double."""

from dataclasses import dataclass
from pathlib import Path

from tests.doubles.docker.install import install_docker_plugin
from tests.e2e import project
from tests.e2e.docker_engine import Engine

HEADER = "import pulumi\nimport pulumi_docker as docker\n"


@dataclass
class Project(project.Project):
    engine: Engine


def docker_project(folder: Path, engine: Engine) -> Project:
    """A project with an empty stack and no policy pack, whose provider talks to ``engine``."""
    environment = project.prepare_home(folder, engine.environment)
    install_docker_plugin(folder / "home")
    new_project = Project(folder, HEADER, environment, engine)
    new_project.run("stack", "init", project.STACK)
    return new_project

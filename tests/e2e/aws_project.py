"""Pulumi projects for tests on a moto server: real CLI, own home and backend, the double."""

import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tests.doubles.aws.install import install_aws_double
from tests.doubles.aws.server import REGION, MotoServer
from tests.e2e import project

HEADER = "import json\nimport pulumi\nimport pulumi_aws as aws\n"


@dataclass
class Project(project.Project):
    server: MotoServer
    seconds: float = 180
    """Maximum seconds of a command."""
    wrap: Callable[..., Sequence[str]] = field(default=lambda *words: words)
    """Makes of a command one that runs in another place."""

    def command(self, *words: str) -> Sequence[str]:
        return self.wrap(*words)

    def pulumi(self, *arguments: str, timeout: float = 0) -> subprocess.CompletedProcess[str]:
        return super().pulumi(*arguments, timeout=timeout or self.seconds)

    def configure(self, **settings: Any) -> None:
        """Sets inputs of the provider `aws` in the stack's file, in addition to those for moto."""
        path = self.folder / f"Pulumi.{project.STACK}.yaml"
        document = yaml.safe_load(path.read_text())
        provider_settings = aws_settings(self.server) | settings
        document["config"] = {f"aws:{name}": value for name, value in provider_settings.items()}
        path.write_text(yaml.safe_dump(document))

    def state(self) -> list[dict[str, Any]]:
        """The AWS resources in the stack's state."""
        return [resource for resource in self.resources() if resource["type"].startswith("aws:")]

    def types(self) -> list[str]:
        """The sorted types of the resources in the stack's state, with repetitions."""
        return sorted(resource["type"] for resource in self.state())


def aws_settings(server: MotoServer) -> dict[str, Any]:
    """The provider settings with which a program uses ``server``."""
    return {
        "region": REGION,
        "endpoints": server.endpoints(),
        "accessKey": "test",
        "secretKey": "test",
        "s3UsePathStyle": True,
        "skipCredentialsValidation": True,
        "skipMetadataApiCheck": True,
    }


def aws_project(
    folder: Path,
    server: MotoServer,
    environment: Mapping[str, str] | None = None,
    name: str = "project",
) -> Project:
    """A project with an empty stack and no policy pack, whose provider talks to ``server``."""
    environment_without_aws = project.prepare_home(folder, {}, name)
    environment_without_aws = {
        name: value
        for name, value in environment_without_aws.items()
        if not name.startswith("AWS_")
    }
    install_aws_double(folder / "home")
    new_project = Project(folder, HEADER, environment_without_aws | dict(environment or {}), server)
    new_project.run("stack", "init", project.STACK)
    new_project.configure()
    return new_project

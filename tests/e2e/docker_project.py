"""Pulumi projects for tests on a Docker engine: real CLI, own home and backend, the double."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import dedent
from typing import Any

import yaml

from tests.doubles.docker.install import install_docker_double
from tests.e2e.docker_engine import Engine
from toolchain.environment import variables

STACK = "test"


@dataclass
class Project:
    """One stack of a program that a test writes and rewrites."""

    folder: Path
    engine: Engine
    environment: dict[str, str] = field(repr=False)

    def write(self, program: str) -> None:
        """The program's text; `pulumi` and `docker` (pulumi_docker) are imported."""
        header = "import pulumi\nimport pulumi_docker as docker\n\n"
        (self.folder / "__main__.py").write_text(header + dedent(program))

    def pulumi(self, *arguments: str, timeout: float = 180) -> subprocess.CompletedProcess[str]:
        """Runs the CLI; output and errors come together, as a user sees them."""
        return subprocess.run(
            ["pulumi", *arguments, "--non-interactive", "--color", "never"],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=timeout,
        )

    def up(self, *flags: str) -> str:
        """`pulumi up`, which must succeed."""
        done = self.pulumi("up", "--yes", "--skip-preview", *flags)
        assert done.returncode == 0, self._told(done.stdout)
        return done.stdout

    def fails(self, *flags: str, command: str = "up") -> str:
        """A command that must fail, with a message and no stack trace; its output."""
        yes = ("--yes", "--skip-preview") if command == "up" else ()
        done = self.pulumi(command, *yes, *flags)
        assert done.returncode != 0, done.stdout
        assert "Traceback" not in done.stdout, self._told(done.stdout)
        return done.stdout

    def destroy(self) -> None:
        done = self.pulumi("destroy", "--yes", "--skip-preview")
        assert done.returncode == 0, self._told(done.stdout)

    def outputs(self) -> dict[str, Any]:
        done = self.pulumi("stack", "output", "--json")
        assert done.returncode == 0, done.stdout
        return dict(json.loads(done.stdout))

    def _told(self, output: str) -> str:
        logs = self.folder.glob("home/plugins/*/double.log")
        return output + "".join(path.read_text()[-3000:] for path in logs)


def docker_project(folder: Path, engine: Engine) -> Project:
    """A project with an empty stack and no policy pack, whose provider talks to ``engine``."""
    for name in ("home", "state"):
        (folder / name).mkdir(parents=True)
    runtime = {"name": "python", "options": {"toolchain": "pip", "virtualenv": sys.prefix}}
    about = {"name": "project", "runtime": runtime}
    (folder / "Pulumi.yaml").write_text(yaml.safe_dump(about))
    environment = {
        **os.environ,
        **variables("local", {"PATH": os.environ["PATH"]}),
        **engine.environment,
        "PULUMI_HOME": str(folder / "home"),
        "PULUMI_BACKEND_URL": (folder / "state").as_uri(),
        "PULUMI_CONFIG_PASSPHRASE": "test",
    }
    for name in ("PULUMI_OPTION_POLICY_PACK", "PULUMI_OPTION_POLICY_PACK_CONFIG"):
        environment.pop(name, None)
    install_docker_double(folder / "home")
    project = Project(folder, engine, environment)
    created = project.pulumi("stack", "init", STACK)
    assert created.returncode == 0, created.stdout
    return project

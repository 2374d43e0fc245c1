"""A scratch place to run the real CLI in."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

PROJECTS = Path(__file__).parent / "projects"
COMMAND_SECONDS = 60


@dataclass
class Workspace:
    """A scratch directory with a home, a backend and copies of the projects in ``projects/``."""

    folder: Path
    bin: Path
    extra: dict[str, str] = field(default_factory=dict)

    @property
    def environment(self) -> dict[str, str]:
        own_variables = {
            name: value for name, value in os.environ.items() if not name.startswith("PULUMI_")
        }
        return own_variables | {
            "PATH": f"{self.bin}{os.pathsep}{os.environ['PATH']}",
            "PULUMI_HOME": str(self.folder / "home"),
            "PULUMI_BACKEND_URL": (self.folder / "state").as_uri(),
            "PULUMI_CONFIG_PASSPHRASE": "test",
            "PULUMI_SKIP_UPDATE_CHECK": "true",
            "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
            "PULUMI_DISABLE_REGISTRY_RESOLVE": "true",
            **self.extra,
        }

    def add(self, project: str, folder: Path | None = None) -> Path:
        """A copy of ``project``, by default under its own name, whose ``venv`` is this Python's."""
        target = folder or self.folder / project
        shutil.copytree(PROJECTS / project, target, dirs_exist_ok=True)
        (target / "venv").symlink_to(sys.prefix)
        return target

    def add_plugin(self) -> None:
        """Install the provider double where the CLI looks for plugins."""
        self.add("plugin", self.folder / "home" / "plugins" / "resource-thing-v1.0.0")

    def stack(self, project: str, **config: str) -> Path:
        """A copy of ``project`` with a stack ``dev``; returns its directory."""
        folder = self.add(project)
        assert self.run(folder, "stack", "init", "dev").returncode == 0
        for key, value in config.items():
            secret = ["--secret"] if key == "password" else ["--plaintext"]
            assert self.run(folder, "config", "set", *secret, key, value).returncode == 0
        return folder

    def run(self, project: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run ``pulumi`` to its end; stdout and stderr come together."""
        return subprocess.run(
            ["pulumi", *arguments, "--non-interactive", "--color", "never"],
            cwd=project,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=COMMAND_SECONDS,
        )

    def start(self, project: Path, *arguments: str) -> subprocess.Popen[str]:
        """Start ``pulumi`` as a shell does: at the head of a process group."""
        return subprocess.Popen(
            ["pulumi", *arguments, "--non-interactive", "--color", "never"],
            cwd=project,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            process_group=0,
        )

    def outputs(self, project: Path) -> dict[str, Any]:
        result = self.run(project, "stack", "output", "--json", "--show-secrets")
        assert result.returncode == 0, result.stdout
        outputs: dict[str, Any] = json.loads(result.stdout)
        return outputs

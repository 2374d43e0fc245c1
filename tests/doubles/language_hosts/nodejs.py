"""The host for TypeScript: Pulumi's script for programs, which `@pulumi/pulumi` contains."""

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.doubles.language_hosts.host import Host, run, serve


class NodeHost(Host):
    language = "nodejs"

    def program(
        self, folder: Path, request: Any, values: Mapping[str, str]
    ) -> tuple[Sequence[str], Mapping[str, str]]:
        flags = [
            f"--{name}={values[name]}"
            for name in ("monitor", "engine", "project", "stack", "organization", "parallel")
        ]
        dry = ["--dry-run"] if request.dryRun else []
        script = folder / "node_modules" / "@pulumi" / "pulumi" / "cmd" / "run"
        words = ["node", str(script), *flags, *dry, f"--pwd={request.pwd}", str(folder)]
        return words, {
            "PULUMI_CONFIG": values["config"],
            "PULUMI_CONFIG_SECRET_KEYS": values["config_secret_keys"],
            "PULUMI_NODEJS_TYPESCRIPT": "true",
        }

    def link(self, folder: Path, name: str, sdk: str) -> None:
        path = folder / "package.json"
        about = json.loads(path.read_text())
        about["dependencies"][f"@pulumi/{name}"] = f"file:{sdk}"
        path.write_text(json.dumps(about, indent=2) + "\n")

    def install(self, folder: Path) -> subprocess.CompletedProcess[bytes]:
        words = ["npm", "install", "--no-audit", "--no-fund", "--prefer-offline"]
        completed = run([*words, "--ignore-scripts"], folder)
        for sdk in folder.glob("sdks/*"):
            # which compiles the SDK; npm 11 asks for a permission to run it
            tools = f"{sdk}/node_modules/.bin:{folder}/node_modules/.bin:{os.environ['PATH']}"
            words = ["env", f"PATH={tools}", "node", "scripts/postinstall.js"]
            completed = completed if completed.returncode else run(words, sdk)
        return completed


if __name__ == "__main__":
    serve(NodeHost)

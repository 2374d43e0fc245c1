"""The host for Go: builds the program, and runs it."""

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.doubles.language_hosts.host import Host, run, serve


class GoHost(Host):
    language = "go"

    def program(
        self, folder: Path, request: Any, values: Mapping[str, str]
    ) -> tuple[Sequence[str], Mapping[str, str]]:
        environment = {f"PULUMI_{name.upper()}": value for name, value in values.items()}
        return ["go", "run", "."], {
            **environment,
            "PULUMI_DRY_RUN": "true" if request.dryRun else "false",
        }

    def link(self, folder: Path, name: str, sdk: str) -> None:
        (module_file,) = Path(folder, sdk).rglob("go.mod")
        module = module_file.read_text().split()[1]
        sdk_path = f"./{module_file.parent.relative_to(folder)}"
        for edit in (f"-replace={module}={sdk_path}", f"-require={module}@v0.0.0"):
            subprocess.run(["go", "mod", "edit", edit], cwd=folder, check=True)

    def install(self, folder: Path) -> subprocess.CompletedProcess[bytes]:
        return run(["go", "mod", "tidy"], folder)


if __name__ == "__main__":
    serve(GoHost)

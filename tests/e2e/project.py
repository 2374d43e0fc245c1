"""A stack of a program that a test writes: real CLI, own home and backend, no policy pack."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import dedent
from typing import Any

import yaml

from toolchain.environment import variables
from toolchain.paths import ROOT

STACK = "test"
SHORT_LIVED = {"GOGC": "400"}
"""A variable for a CLI that ends in seconds: it collects garbage less often.

Not for users: an official plugin would inherit it, and need as much more memory.
"""


@dataclass
class Project:
    folder: Path
    header: str
    """The program's imports."""
    environment: dict[str, str] = field(repr=False)

    def write(self, program: str) -> None:
        """Writes the program's text after the imports."""
        (self.folder / "__main__.py").write_text(f"{self.header}\n\n{dedent(program)}")

    def pulumi(self, *arguments: str, timeout: float = 180) -> subprocess.CompletedProcess[str]:
        """Runs the CLI. Its output has the errors too, as on a terminal."""
        return subprocess.run(
            self.command("pulumi", *arguments, "--non-interactive", "--color", "never"),
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=timeout,
        )

    def command(self, *words: str) -> Sequence[str]:
        """The command that is run for ``words``."""
        return words

    def up(self, *flags: str) -> str:
        """`pulumi up`, which must succeed."""
        return self.run("up", "--yes", "--skip-preview", *flags)

    def run(self, *arguments: str) -> str:
        """Runs a command that must succeed, and returns its output."""
        completed = self.pulumi(*arguments)
        assert completed.returncode == 0, self._with_plugin_logs(completed.stdout)
        return completed.stdout

    def output_of_command(self, *words: str, status: int = 0) -> str:
        """The output, with errors, of another command, which must end with ``status``."""
        completed = subprocess.run(
            words,
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=180,
            check=False,
        )
        assert completed.returncode == status, completed.stdout
        return completed.stdout

    def failed_output(self, *flags: str, command: str = "up") -> str:
        """Runs a command that must fail without a stack trace, and returns its output."""
        yes = ("--yes", "--skip-preview") if command == "up" else ()
        completed = self.pulumi(command, *yes, *flags)
        assert completed.returncode != 0, completed.stdout
        assert "Traceback" not in completed.stdout, self._with_plugin_logs(completed.stdout)
        return completed.stdout

    def updating(self) -> AbstractContextManager[subprocess.Popen[str]]:
        """Runs `pulumi up` within a block; see `updating`."""
        return updating(self.command, self.folder, self.environment)

    def destroy(self) -> None:
        self.run("destroy", "--yes", "--skip-preview")

    def outputs(self) -> dict[str, Any]:
        return dict(json.loads(self.run("stack", "output", "--json")))

    def resources(self) -> list[dict[str, Any]]:
        """The resources in the stack's state."""
        state = json.loads(self.run("stack", "export"))
        return list(state["deployment"].get("resources", []))

    def _with_plugin_logs(self, output: str) -> str:
        logs = self.folder.glob("home/plugins/*/double.log")
        return output + "".join(path.read_text()[-3000:] for path in logs)


@contextmanager
def updating(
    command: Callable[..., Sequence[str]], folder: Path, environment: Mapping[str, str]
) -> Iterator[subprocess.Popen[str]]:
    """Runs `pulumi up` in its own process group, like a terminal; it ends within the block.

    ``command`` makes the command from words.
    """
    with subprocess.Popen(
        command("pulumi", "up", "--yes", "--skip-preview", "--non-interactive"),
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        process_group=0,
    ) as child:
        yield child


def prepare_home(
    folder: Path, extra_variables: Mapping[str, str], name: str = "project"
) -> dict[str, str]:
    """Makes ``folder`` the home of a project ``name``. Returns the environment of its commands."""
    for inner in ("home", "state"):
        (folder / inner).mkdir(parents=True)
    runtime = {"name": "python", "options": {"toolchain": "pip", "virtualenv": sys.prefix}}
    plugins = yaml.safe_load((ROOT / "Pulumi.yaml").read_text())["plugins"]
    for plugin in plugins["providers"]:
        plugin["path"] = str(ROOT / plugin["path"])
    document = {"name": name, "runtime": runtime, "plugins": plugins}
    (folder / "Pulumi.yaml").write_text(yaml.safe_dump(document))
    environment = {
        **os.environ,
        **variables("local", {"PATH": os.environ["PATH"]}),
        **SHORT_LIVED,
        **extra_variables,
        "PULUMI_HOME": str(folder / "home"),
        "PULUMI_BACKEND_URL": (folder / "state").as_uri(),
        "PULUMI_CONFIG_PASSPHRASE": "test",
    }
    return environment

"""The real Pulumi engine on its own project: backend, home, and the program of this tree."""

import contextlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import yaml
from earshot_pulumi.local.process import stop
from earshot_pulumi.local.process_record import read_record, running

from earshot.config.passwords import KEY as PASSWORDS
from earshot.project import POLICIES
from tests.e2e.ports import consecutive_ports
from tests.e2e.project import SHORT_LIVED, updating
from toolchain.environment import variables
from toolchain.paths import ROOT

STACK = "test"
PASSPHRASE = "test"
FEW_PARTITIONS = {"offsets.topic.num.partitions": "3", "transaction.state.log.num.partitions": "3"}
"""Settings of Kafka's own topics; with 50 partitions each, every start and stop of a broker moves
all."""


@dataclass
class Deployment:
    """One stack in its own folder. `up` and other commands return the output of the CLI."""

    folder: Path
    environment: dict[str, str]
    cluster: dict[str, Any]
    policy: dict[str, Any] = field(default_factory=dict)
    stack: str = STACK

    @property
    def root(self) -> Path:
        """The folder of the nodes' directories."""
        return self.folder / ".earshot" / "stacks" / self.stack / "kafka"

    @property
    def stack_file(self) -> Path:
        return self.folder / "stacks" / f"Pulumi.{self.stack}.yaml"

    def pulumi(self, *arguments: str, timeout: float = 240) -> subprocess.CompletedProcess[str]:
        """Runs the CLI. Its output has the errors too, as on a terminal."""
        self.write()
        return subprocess.run(
            ["pulumi", *arguments, "--non-interactive"],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=timeout,
            check=False,
        )

    def updating(self) -> AbstractContextManager[subprocess.Popen[str]]:
        """Runs `pulumi up` within a block; see `tests.e2e.project.updating`."""
        self.write()
        return updating(lambda *words: words, self.folder, self.environment)

    def up(self, *flags: str) -> str:
        """`pulumi up`, which must succeed."""
        completed = self.pulumi("up", "--yes", "--skip-preview", *flags)
        assert completed.returncode == 0, completed.stdout
        return completed.stdout

    def refusal(self, *flags: str, command: str = "up") -> str:
        """`pulumi up` (or another command), which must fail; its output."""
        yes = ("--yes",) if command == "up" else ()
        completed = self.pulumi(command, *yes, *flags)
        assert completed.returncode != 0, completed.stdout
        assert "Traceback" not in completed.stdout
        return completed.stdout

    def destroy(self) -> None:
        completed = self.pulumi("destroy", "--yes", "--skip-preview")
        assert completed.returncode == 0, completed.stdout

    def outputs(self) -> dict[str, Any]:
        completed = self.pulumi("stack", "output", "--json")
        assert completed.returncode == 0, completed.stdout
        return dict(json.loads(completed.stdout))

    def resources(self) -> list[dict[str, Any]]:
        """The resources in the state."""
        completed = self.pulumi("stack", "export")
        assert completed.returncode == 0, completed.stdout
        return list(json.loads(completed.stdout)["deployment"]["resources"])

    def pids(self) -> dict[int, int]:
        """The pids of running nodes, by node id."""
        pids = {}
        for directory in self.root.glob("node-*"):
            record = running(directory)
            if record is not None:
                pids[int(directory.name.removeprefix("node-"))] = record.pid
        return pids

    def stop_all(self) -> None:
        for directory in self.root.glob("node-*"):
            if read_record(directory) is not None:
                stop(directory, grace=1.0)

    def write(self) -> None:
        """Writes the stack's file, as every command does before it runs."""
        document = {"config": {"earshot:cluster": self.cluster}}
        old_document = (
            yaml.safe_load(self.stack_file.read_text()) if self.stack_file.exists() else {}
        )
        if "encryptionsalt" in (old_document or {}):
            document["encryptionsalt"] = old_document["encryptionsalt"]
        if passwords := ((old_document or {}).get("config") or {}).get(PASSWORDS):
            document["config"][PASSWORDS] = passwords
        self.stack_file.write_text(yaml.safe_dump(document, sort_keys=False))
        config = self.folder / POLICIES / f"{self.stack}.json"
        config.parent.mkdir(parents=True, exist_ok=True)
        config.write_text(json.dumps(self.policy))


def living_processes(processes: Iterable[psutil.Process]) -> list[psutil.Process]:
    """The processes that have not ended. A zombie has ended."""
    living_processes = []
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            if process.status() != psutil.STATUS_ZOMBIE and process.is_running():
                living_processes.append(process)
    return living_processes


def local_cluster(brokers: int = 3, **settings: Any) -> dict[str, Any]:
    """`earshot:cluster` of a local stack on free ports."""
    ports = consecutive_ports(brokers, 3)
    return {
        "placement": "local",
        "brokers": brokers,
        "listeners": [
            {"name": "INTERNAL", "port": ports[0], "scopes": ["internal"]},
            {"name": "EXTERNAL", "port": ports[1], "scopes": ["host"]},
        ],
        "controllers": {"port": ports[2]},
        "extra": FEW_PARTITIONS,
        "validation": {"records": 300, "deadline": 120},
        **settings,
    }


@contextmanager
def deployment(
    folder: Path, cluster: Mapping[str, Any] | None = None, stack: str = STACK
) -> Iterator[Deployment]:
    """A stack without resources. Its processes are stopped at the end."""
    (folder / "stacks").mkdir(parents=True)
    (folder / "state").mkdir()
    (folder / "__main__.py").symlink_to(ROOT / "__main__.py")
    project = yaml.safe_load((ROOT / "Pulumi.yaml").read_text())
    project["runtime"]["options"]["virtualenv"] = sys.prefix
    for plugin in project["plugins"]["providers"]:
        plugin["path"] = str(ROOT / plugin["path"])
    (folder / "Pulumi.yaml").write_text(yaml.safe_dump(project))
    environment = {
        **os.environ,
        **variables("local", {"PATH": os.environ["PATH"]}),
        **SHORT_LIVED,
        "PULUMI_HOME": str(folder / "home"),
        "PULUMI_BACKEND_URL": (folder / "state").as_uri(),
        "PULUMI_CONFIG_PASSPHRASE": PASSPHRASE,
    }
    new_deployment = Deployment(folder, environment, dict(cluster or local_cluster()), stack=stack)
    init = new_deployment.pulumi("stack", "init", stack)
    assert init.returncode == 0, init.stdout
    try:
        yield new_deployment
    finally:
        new_deployment.stop_all()
        shutil.rmtree(folder, ignore_errors=True)

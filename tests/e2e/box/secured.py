"""A secured stack in a box: its secrets and their places, its users, and their results."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from earshot.certificates.store import Store
from earshot.listeners.properties import read_properties
from earshot.listeners.terms import Scope
from earshot.report.json import read_report
from earshot.user_data.boot import SECRETS
from earshot.validation.client import translate
from earshot.validation.result import Report
from earshot.validation.terms import Stage, Verdict
from tests.e2e.attack import Attack, attack_within
from tests.e2e.box.cloud_box import CloudBox
from tests.e2e.box.place import Place
from tests.e2e.box.stack import RECORDS, BoxStack
from tests.e2e.project import STACK
from tests.e2e.secured import secrets_in, watched_processes
from toolchain.paths import ROOT

BROKERS = {id: f"{STACK}-broker-{id}" for id in (1, 2, 3)}
NODES = {**BROKERS, 10001: f"{STACK}-controller-10001"}
INTERNAL, EXTERNAL = "INTERNAL", "EXTERNAL"
PORT = 9092
"""EXTERNAL's port."""
SECURITY = {"users": [{"name": "app", "prefixes": ["app-"]}]}
PARAMETERS = f"/earshot/{STACK}/security"
STATE = Path(".earshot", "stacks", STACK)


@dataclass
class SecuredBox:
    """The deployed stack, proved once from outside, and the texts of processes meanwhile."""

    box: CloudBox
    stack: BoxStack
    laptop: Place
    old_holdings: set[str]
    """The resources before the stack."""
    process_texts: set[str] = field(default_factory=set)
    attack: Attack = field(default_factory=Attack)
    """The answers and files that another user of the laptop got meanwhile."""

    @property
    def folder(self) -> Path:
        return self.stack.project.folder

    @property
    def store(self) -> Store:
        return Store(self.folder / STATE / "kafka" / "security")

    @property
    def validator(self) -> Path:
        """The client properties of earshot itself."""
        return self.store.folder / "validator.properties"

    @property
    def secrets(self) -> dict[str, str]:
        """The secrets, by file or parameter."""
        secrets = secrets_in(self.store.folder)
        lines = self.parameter("users").splitlines()
        # a user's password in base64, as in the instance's parameter
        return secrets | {line: line.split()[2] for line in lines if line.startswith("password")}

    def current_secrets(self) -> dict[str, str]:
        """The secrets in files, also during the first update."""
        with contextlib.suppress(FileNotFoundError):
            return secrets_in(self.store.folder)
        return {}

    def prove(self) -> None:
        """A proof by Spark from the laptop, as the validator."""
        words = ("validate", "--stack", STACK, "--only", Scope.EXTERNAL, *RECORDS)
        report = self.folder / "spark.json"
        command = self.laptop.command(
            sys.executable, "-m", "earshot", *words, "--format", "json", "--output", str(report)
        )
        completed = subprocess.run(
            command, cwd=self.folder, capture_output=True, text=True, timeout=300
        )
        assert completed.returncode in (0, 3), (
            completed.stdout + completed.stderr
        )  # INTERNAL was not asked for
        proof = read_report(report.read_bytes(), report.name)
        assert {delivery.verdict for delivery in proof.delivery} == {Verdict.PASS}, proof.delivery

    def parameter(self, name: str) -> str:
        ssm = self.box.server.client("ssm")
        parameter = {"Name": f"{PARAMETERS}/{name}", "WithDecryption": True}
        return str(ssm.get_parameter(**parameter)["Parameter"]["Value"])

    def client(self, user: str, listener: str) -> dict[str, Any]:
        """librdkafka's settings of ``user``, as `earshot client` knows them."""
        file = self.folder / f"{user}.properties"
        command = self.laptop.command(
            sys.executable, "-m", "earshot", "client", "--stack", STACK,
            "--user", user, "--listener", listener, "--output", str(file),
        )  # fmt: skip
        completed = subprocess.run(
            command, cwd=self.folder, capture_output=True, text=True, timeout=240
        )
        assert completed.returncode == 0, completed.stderr
        values = read_properties(file.read_text()).values
        file.unlink()
        return {**translate(values), "bootstrap.servers": values["bootstrap.servers"]}

    def write_results(self, place: Place, file: Path, clients: Mapping[str, Any]) -> dict[str, str]:
        """The result of writing a record as each of ``clients`` (settings and a topic each) at
        ``place``. The clients are written to ``file``."""
        file.write_text(json.dumps(list(clients.values())))
        command = place.command(sys.executable, "-m", "tests.e2e.distant_writers", str(file))
        process = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=240)
        assert process.returncode == 0, process.stderr
        return dict(zip(clients, json.loads(process.stdout), strict=True))

    def files_with_secrets(self, name: str, folder: Path) -> set[str]:
        """The files of the instance ``name`` that contain a secret.

        A file with the search patterns stays in ``folder``.
        """
        patterns, broker = folder / "patterns", self.box.instance(name)
        patterns.write_text("\n".join(self.secrets.values()) + "\n")
        self.box.engine.run("cp", str(patterns), f"{broker.container}:/patterns")
        places = "/etc /home /opt /root /run /tmp /usr/local /var"
        command = f"grep -rlsF --devices=skip -f /patterns {places}; rm /patterns"
        return set(broker.run("sh", "-c", command).split())

    def secret_file_rights(self, name: str) -> dict[str, str]:
        """Mode and owner of each file of an instance's secrets."""
        output = self.box.instance(name).run("find", SECRETS, "-type", "f", "-printf", "%f %m %u\n")
        return {
            file: rights
            for file, _, rights in (line.partition(" ") for line in output.splitlines())
        }


def security_of(report: Report) -> set[tuple[str, str]]:
    """The listeners of cells that passed, with the protocol of each."""
    return {
        (cell.listener, stage.detail.partition(",")[0])
        for cell in report.cells
        for stage in cell.stages
        if stage.stage is Stage.SECURITY and cell.verdict is Verdict.PASS
    }


def cluster(box: CloudBox, **settings: Any) -> dict[str, Any]:
    """A cluster with replication factor 3, two replicas in sync at least, and proofs without
    records."""
    return box.cluster(
        3,
        security=SECURITY,
        clear_text={},
        prove="here",
        replication_factor=3,
        min_insync_replicas=2,
        controllers={"mode": "separate", "count": 1, "port": 29092},
        controller_volume={"size_gib": 1},
        validation={"records": 0, "deadline": 240},
        **settings,
    )


@contextlib.contextmanager
def secured_box(box: CloudBox, folder: Path) -> Iterator[SecuredBox]:
    """The `cluster` as a deployed stack of a project in ``folder``."""
    old_holdings = box.server.holdings()
    with box.place("outside") as laptop:
        stack = box.stack(folder, laptop)
        stack.configure(cluster(box))
        secured = SecuredBox(box, stack, laptop, old_holdings)
        with (
            watched_processes(secured.process_texts),
            attack_within(
                secured.folder, secured.current_secrets, list, laptop.pid
            ) as secured.attack,
        ):
            stack.up()
            secured.prove()
        yield secured

"""A stack of this checkout on three Docker hosts in a box, changed by the commands of `make`."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import yaml

from earshot.project import CLUSTER_KEY, Project
from earshot.report.json import read_report
from earshot.validation.contract import Contract
from earshot.validation.result import Report
from tests.doubles.aws.server import REGION
from tests.doubles.docker.install import install_docker_plugin
from tests.e2e import aws_project
from tests.e2e.box.cloud_box import CloudBox
from tests.e2e.box.docker_hosts import give_engines, journals
from tests.e2e.box.place import with_resolver
from tests.e2e.instance import Instance
from toolchain.paths import ROOT

HOSTS = ("a", "b", "c")
BROKERS = {f"kafka-{id}": host for id, host in enumerate(HOSTS, 1)}
UP_SECONDS = 900
UNFENCED = "has been unfenced. Transitioning from RECOVERY to RUNNING"


@dataclass
class CommandStack:
    """A stack of this checkout, changed by the commands of `make`."""

    name: str
    box: CloudBox
    home: aws_project.Project
    """The project whose Pulumi home and backend the stack uses."""
    cluster: dict[str, Any]
    resolver: Path
    """The VPC's resolver file, which `make up` uses as through a VPN."""

    @property
    def project(self) -> Project:
        return Project(ROOT)

    def configure(self) -> None:
        settings = aws_project.aws_settings(self.box.server)
        config = {f"aws:{name}": setting for name, setting in settings.items()}
        text = yaml.safe_dump({"config": {**config, CLUSTER_KEY: self.cluster}})
        self.project.stack_file(self.name).write_text(text)

    def run(self, command: str) -> tuple[int, str]:
        """The exit status and the output of `make COMMAND`."""
        words = [sys.executable, "-m", "toolchain.stack", command, "--stack", self.name]
        completed = subprocess.run(
            with_resolver(self.resolver, words),
            cwd=ROOT,
            env=self.home.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=UP_SECONDS,
        )
        assert "Traceback" not in completed.stdout, completed.stdout
        return completed.returncode, completed.stdout

    def up(self) -> str:
        """`make up`, which must succeed."""
        code, output = self.run("up")
        assert code == 0, f"{output}\n{journals(self.box)}"
        return output

    def refusal(self) -> str:
        """The output of `make up`, which must fail, without line ends."""
        code, output = self.run("up")
        assert code != 0, output
        return " ".join(output.split())

    def report(self) -> Report:
        return read_report(self.project.report_file(self.name).read_bytes(), "report")

    def instance_name(self, host: str) -> str:
        return f"{self.name}-hosts-{host}"

    def host(self, name: str) -> Instance:
        return self.box.instance(self.instance_name(name))

    def ids(self) -> dict[str, str]:
        """Instance ids, by host."""
        return {host: self.host(host).id for host in HOSTS}

    def client_file(self, folder: Path) -> Path:
        """librdkafka's settings for clients in the VPC."""
        contract = Contract.model_validate_json(self.project.contract_file(self.name).read_text())
        file = folder / "client.json"
        file.write_text(json.dumps({"bootstrap.servers": contract.listener("EXTERNAL").bootstrap}))
        return file

    def roll(self, instance: dict[str, Any]) -> None:
        """Changes the instances of all hosts, and checks that each broker was back before the next
        host changed."""
        start_time = time.time()
        self.cluster["hosts"]["aws"]["instance"] = instance
        self.configure()
        self.up()
        changes = [change for change in self.box.fleet.power_changes if change.when > start_time]
        expected = [
            (action, self.instance_name(host)) for host in HOSTS for action in ("off", "on")
        ]
        assert [(change.action, change.name) for change in changes] == expected
        stops = {change.name: change.when for change in changes if change.action == "off"}
        for (broker, host), next_host in zip(BROKERS.items(), HOSTS[1:], strict=False):
            assert self.unfenced_at(broker, host, start_time) < stops[self.instance_name(next_host)]

    def unfenced_at(self, broker: str, host: str, since: float) -> float:
        """When the first start of ``broker`` after ``since`` ended (s since the epoch)."""
        output = self.host(host).run(
            "sh", "-c", f"docker logs --timestamps --since={int(since)} {broker} 2>&1"
        )
        line = next(line for line in output.splitlines() if UNFENCED in line)
        return datetime.fromisoformat(line.partition(" ")[0]).timestamp()


@contextlib.contextmanager
def command_stack(box: CloudBox, kafka_image: str, folder: Path) -> Iterator[CommandStack]:
    """A stack that extends the template `aws-docker`; nothing of it is up yet."""
    name = f"aws-docker-e2e-{os.getpid()}"
    base = give_engines(box, [f"{name}-hosts-{host}" for host in HOSTS], kafka_image, folder)
    home = aws_project.aws_project(folder / "home", box.server)
    install_docker_plugin(home.folder / "home")
    hosts = {
        "host_zones": dict(zip(HOSTS, (f"{REGION}{letter}" for letter in "abc"), strict=True)),
        "deployers": {"here": f"{box.ground.vpc.gateway}/32"},
        "clients": {"apps": str(box.ground.vpc.clients)},
        "cidr": str(box.ground.vpc.range),
        "volume": {"size_gib": 8},
        "ready_seconds": 200,
    }
    cluster = {
        "extends": "aws-docker",
        "image": kafka_image,
        "brokers": len(HOSTS),
        "hosts": {"aws": hosts},
        "heap": "256m",
        "validator": {"base": base},
        "validation": {"records": 300, "deadline": 240},
        "data": "delete",
    }
    resolver = folder / "resolv.conf"
    resolver.write_text(f"nameserver {box.ground.vpc.gateway}\n")
    stack = CommandStack(name, box, home, cluster, resolver)
    try:
        stack.configure()
        yield stack
        code, output = stack.run("clean")
        assert code == 0, output
    finally:
        stack.project.stack_file(name).unlink(missing_ok=True)

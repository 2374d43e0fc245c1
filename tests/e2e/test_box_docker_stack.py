"""`make up` of a stack that extends the template `aws-docker`, in a box, and what goes wrong there.

The hosts are instances that boot real user data, with a real engine each. The tests go on from each
other; what engines let in, and what a replaced host keeps, is in `test_box_docker_hosts.py`.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from earshot.project import CLUSTER_KEY, Project
from earshot.report.json import read_report
from earshot.validation.contract import Contract
from earshot.validation.result import Report
from tests.doubles.aws.server import REGION
from tests.doubles.docker.install import install_docker_double
from tests.e2e import aws_project
from tests.e2e.box.cloud_box import CloudBox
from tests.e2e.box.docker_hosts import give_engines, journals
from tests.e2e.box.place import resolving
from tests.e2e.box.stack import passed
from tests.e2e.instance import Instance
from toolchain.paths import ROOT

pytestmark = [pytest.mark.e2e, pytest.mark.combination, pytest.mark.timeout(1500)]

HOSTS = ("a", "b")
UP_SECONDS = 900
FULL = "/var/lib/docker/full"


@dataclass
class Made:
    """A stack of this checkout, moved by the commands behind `make`."""

    name: str
    box: CloudBox
    home: aws_project.Project
    """Whose Pulumi home and backend it has."""
    cluster: dict[str, Any]
    resolver: Path
    """Of the VPC, which `make up` asks as through a VPN."""

    @property
    def project(self) -> Project:
        return Project(ROOT)

    def configure(self) -> None:
        settings = aws_project.aws_settings(self.box.server)
        config = {f"aws:{name}": it for name, it in settings.items()}
        text = yaml.safe_dump({"config": {**config, CLUSTER_KEY: self.cluster}})
        self.project.stack_file(self.name).write_text(text)

    def run(self, command: str) -> tuple[int, str]:
        """The exit status of `make COMMAND`, and what it prints."""
        words = [sys.executable, "-m", "toolchain.stack", command, "--stack", self.name]
        done = subprocess.run(
            resolving(self.resolver, words),
            cwd=ROOT,
            env=self.home.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=UP_SECONDS,
        )
        assert "Traceback" not in done.stdout, done.stdout
        return done.returncode, done.stdout

    def up(self) -> str:
        """`make up`, which must succeed."""
        code, said = self.run("up")
        assert code == 0, f"{said}\n{journals(self.box)}"
        return said

    def refused(self) -> str:
        """What `make up` prints, which must fail; without line ends."""
        code, said = self.run("up")
        assert code != 0, said
        return " ".join(said.split())

    def report(self) -> Report:
        return read_report(self.project.report_file(self.name).read_bytes(), "report")

    def host(self, name: str) -> Instance:
        return self.box.instance(f"{self.name}-hosts-{name}")


@pytest.fixture(scope="module")
def made(
    box: CloudBox, kafka_image: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Made]:
    folder: Path = tmp_path_factory.mktemp("made")
    name = f"aws-docker-e2e-{os.getpid()}"
    base = give_engines(box, [f"{name}-hosts-{host}" for host in HOSTS], kafka_image, folder)
    home = aws_project.aws_project(folder / "home", box.server)
    install_docker_double(home.folder / "home")
    hosts = {
        "host_zones": dict(zip(HOSTS, (f"{REGION}{it}" for it in "ab"), strict=True)),
        "deployers": {"here": f"{box.ground.vpc.gateway}/32"},
        "clients": {"apps": str(box.ground.vpc.clients)},
        "cidr": str(box.ground.vpc.range),
        "volume": {"size_gib": 8},
        "ready_seconds": 200,
    }
    cluster = {
        "extends": "aws-docker",
        "image": kafka_image,
        "hosts": {"aws": hosts},
        "heap": "256m",
        "validator": {"base": base},
        "validation": {"records": 300, "deadline": 240},
        "data": "delete",
    }
    resolver = folder / "resolv.conf"
    resolver.write_text(f"nameserver {box.ground.vpc.gateway}\n")
    stack = Made(name, box, home, cluster, resolver)
    try:
        stack.configure()
        yield stack
        code, said = stack.run("clean")
        assert code == 0, said
    finally:
        stack.project.stack_file(name).unlink(missing_ok=True)


def test_one_command_makes_and_proves_all_of_it(made: Made, tmp_path: Path) -> None:
    said = made.up()
    report = made.report()
    cells = {(listener, broker) for _, listener, broker in passed(report)}
    assert cells == {(it, id) for it in ("INTERNAL", "EXTERNAL") for id in (1, 2)}, said
    (vpc,) = (
        it
        for it in made.box.server.client("ec2").describe_vpcs()["Vpcs"]
        if it["CidrBlock"] == str(made.box.ground.vpc.range)
    )
    assert not vpc["IsDefault"]
    contract = tmp_path / "contract.json"
    known = Contract.model_validate_json(made.project.contract_file(made.name).read_text())
    contract.write_text(known.for_scope(known.listener("EXTERNAL").scopes[0]).to_json())
    words = ["-m", "earshot", "doctor", "--contract", str(contract), "--format", "json"]
    with made.box.place("inside") as apps:  # another machine of the VPC
        done = subprocess.run(
            apps.command(sys.executable, *words), capture_output=True, text=True, timeout=180
        )
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_second_run_changes_nothing(made: Made) -> None:
    hosts = {host: made.host(host).id for host in HOSTS}
    said = made.up()
    assert "Nothing changed; validating what runs" in said
    assert " unchanged" in said and " updated" not in said and " replaced" not in said, said
    assert {host: made.host(host).id for host in HOSTS} == hosts


def test_a_replaced_host_brings_its_broker_back(made: Made) -> None:
    before = {host: made.host(host).id for host in HOSTS}
    made.cluster["hosts"]["aws"]["instances"] = {"b": {"root_gib": 20}}
    made.configure()
    made.up()
    after = {host: made.host(host).id for host in HOSTS}
    assert after["a"] == before["a"] and after["b"] != before["b"]
    assert len(passed(made.report())) == 4


def test_an_engine_that_does_not_run_is_named_and_its_broker_comes_back(made: Made) -> None:
    host = made.host("b")
    host.run("systemctl", "stop", "docker.service")
    try:
        said = made.refused()
    finally:
        host.run("systemctl", "start", "docker.service")
    assert "Docker engine at tcp://" in said and "it is on a host of this stack" in said
    made.up()
    assert len(passed(made.report())) == 4


def test_a_full_volume_is_named_and_the_broker_comes_back_with_space(made: Made) -> None:
    host = made.host("b")
    host.run("sh", "-c", f"cat /dev/zero >{FULL} || true")
    try:
        said = made.refused()
    finally:
        host.run("rm", FULL)
    assert "container kafka-2 on Docker host b: cannot be started" in said
    assert "no space left on device" in said
    made.up()
    assert len(passed(made.report())) == 4

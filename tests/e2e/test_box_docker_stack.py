"""`make up` of a stack that extends the template `aws-docker`, in a box, and what goes wrong there.

Three hosts with a broker each. They are instances that boot real user data, with a real engine. The
tests go on from each other; two hosts, what engines let in, and what a replaced host keeps, are in
`test_box_docker_hosts.py`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
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
from tests.e2e.distant_producer import DistantProducer
from tests.e2e.instance import Instance
from tests.e2e.steady_producer import all_there, longest_wait_of_a_partition
from tests.measured import MEASURED
from toolchain.paths import ROOT

pytestmark = [pytest.mark.e2e, pytest.mark.combination, pytest.mark.timeout(1500)]

HOSTS = ("a", "b", "c")
BROKERS = {f"kafka-{id}": host for id, host in enumerate(HOSTS, 1)}
UP_SECONDS = 900
UNFENCED = "has been unfenced. Transitioning from RECOVERY to RUNNING"
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
        config = {f"aws:{name}": setting for name, setting in settings.items()}
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

    def instance_name(self, host: str) -> str:
        return f"{self.name}-hosts-{host}"

    def host(self, name: str) -> Instance:
        return self.box.instance(self.instance_name(name))

    def ids(self) -> dict[str, str]:
        """Instances, by host."""
        return {host: self.host(host).id for host in HOSTS}

    def client_file(self, folder: Path) -> Path:
        """librdkafka's settings for clients in the VPC."""
        known = Contract.model_validate_json(self.project.contract_file(self.name).read_text())
        file = folder / "client.json"
        file.write_text(json.dumps({"bootstrap.servers": known.listener("EXTERNAL").bootstrap}))
        return file

    def roll(self, instance: dict[str, Any]) -> None:
        """Change the instances of all hosts, and check that each broker was back before the next
        host was touched."""
        began = time.time()
        self.cluster["hosts"]["aws"]["instance"] = instance
        self.configure()
        self.up()
        doings = [doing for doing in self.box.fleet.doings if doing.when > began]
        expected = [(what, self.instance_name(it)) for it in HOSTS for what in ("off", "on")]
        assert [(it.what, it.name) for it in doings] == expected
        stops = {it.name: it.when for it in doings if it.what == "off"}
        for (broker, host), following in zip(BROKERS.items(), HOSTS[1:], strict=False):
            assert self.was_unfenced(broker, host, began) < stops[self.instance_name(following)]

    def was_unfenced(self, broker: str, host: str, since: float) -> float:
        """When the first start of ``broker`` after ``since`` ended (s since the epoch)."""
        output = self.host(host).run(
            "sh", "-c", f"docker logs --timestamps --since={int(since)} {broker} 2>&1"
        )
        line = next(it for it in output.splitlines() if UNFENCED in it)
        return datetime.fromisoformat(line.partition(" ")[0]).timestamp()


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
        "host_zones": dict(zip(HOSTS, (f"{REGION}{it}" for it in "abc"), strict=True)),
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
    stack = Made(name, box, home, cluster, resolver)
    try:
        stack.configure()
        yield stack
        code, said = stack.run("clean")
        assert code == 0, said
    finally:
        stack.project.stack_file(name).unlink(missing_ok=True)


def test_one_command_makes_and_proves_all_of_it(made: Made, tmp_path: Path) -> None:
    output = made.up()
    report = made.report()
    cells = {(listener, broker) for _, listener, broker in passed(report)}
    assert cells == {(it, id) for it in ("INTERNAL", "EXTERNAL") for id in (1, 2, 3)}, output
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


def test_every_host_is_a_rack_and_has_no_partition_alone(made: Made, tmp_path: Path) -> None:
    file = made.client_file(tmp_path)
    with made.box.place("inside") as apps:
        words = apps.command(sys.executable, "-m", "tests.e2e.racks", str(file), "spread")
        done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["racks"] == {str(id): host for id, host in enumerate(HOSTS, 1)}
    assert len(found["partitions"]) == 12
    assert all(len(set(partition)) == 2 for partition in found["partitions"]), found


def test_a_second_run_changes_nothing(made: Made) -> None:
    hosts = made.ids()
    output = made.up()
    assert "Nothing changed; validating what runs" in output
    assert " unchanged" in output and " updated" not in output and " replaced" not in output, output
    assert made.ids() == hosts


def test_types_and_images_change_under_load_host_by_host_and_no_record_is_lost(
    made: Made, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    """EC2 changes the type in place: it stops the instance. Another image replaces it."""
    old_ids, ec2 = made.ids(), made.box.server.client("ec2")
    (reservation,) = ec2.describe_instances(InstanceIds=[old_ids["a"]])["Reservations"]
    image = ec2.copy_image(
        Name="own", SourceImageId=reservation["Instances"][0]["ImageId"], SourceRegion=REGION
    )["ImageId"]
    with (
        made.box.place("inside") as apps,
        DistantProducer(apps.command, made.client_file(tmp_path), "kept") as producer,
    ):
        made.roll({"type": "t4g.large", "root_gib": 16})
        assert made.ids() == old_ids
        made.roll({"type": "t4g.large", "root_gib": 16, "ami": image})
        assert not {*made.ids().values()} & {*old_ids.values()}
    assert len(passed(made.report())) == 6
    assert producer.failed == [] and len(producer.acknowledged) == producer.sent > 0
    all_there(producer.acknowledged, producer.found)
    assert len(producer.found) == producer.sent, "and none was written twice"
    worst = longest_wait_of_a_partition(producer.acknowledged)
    record_property(
        MEASURED,
        f"acks=all with two replicas in sync while three Docker hosts got another type and then "
        f"another image: {producer.sent} records acknowledged, none lost; longest time of a "
        f"partition without an acknowledgement {worst:.2f} s",
    )


def test_no_host_changes_while_a_broker_on_another_is_down(made: Made) -> None:
    broker, host = "kafka-3", made.host("c")
    old_ids = made.ids()
    host.run("docker", "stop", broker)
    made.cluster["hosts"]["aws"]["instances"] = {"a": {"type": "t4g.xlarge"}}
    made.configure()
    try:
        output = made.refused()
    finally:
        host.run("docker", "start", broker)
        del made.cluster["hosts"]["aws"]["instances"]
        made.configure()
    assert "Docker host a would be restarted or replaced while c is down" in output, output
    assert f"c: container {broker}: it does not run" in output
    assert made.ids() == old_ids


def test_an_engine_that_does_not_run_is_named_and_its_broker_comes_back(made: Made) -> None:
    host = made.host("b")
    host.run("systemctl", "stop", "docker.service")
    try:
        output = made.refused()
    finally:
        host.run("systemctl", "start", "docker.service")
    assert "Docker engine at tcp://" in output and "it is on a host of this stack" in output
    made.up()
    assert len(passed(made.report())) == 6


def test_a_full_volume_is_named_and_the_broker_comes_back_with_space(made: Made) -> None:
    host = made.host("b")
    host.run("sh", "-c", f"cat /dev/zero >{FULL} || true")
    try:
        output = made.refused()
    finally:
        host.run("rm", FULL)
    assert "container kafka-2 on Docker host b: cannot be started" in output
    assert "no space left on device" in output
    made.up()
    assert len(passed(made.report())) == 6

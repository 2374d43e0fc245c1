"""Real user data, booted: with systemd and cloud-init, from archive and volume to a broker."""

import subprocess
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from earshot.config.aws_sections import KafkaRelease
from earshot.listeners.model import ClusterPlan
from earshot.listeners.terms import Role
from earshot.user_data.boot import NodeReport, NodeState, System
from earshot.user_data.render import MOUNT, digest, user_data
from tests.e2e.depot import Depot
from tests.e2e.docker_engine import Engine
from tests.e2e.instance import (
    Instance,
    PrivateNetwork,
    Volume,
    free_subnet,
    instance,
    private_network,
    volume,
)
from tests.e2e.kafka_archive import KafkaArchive, kafka_archive
from tests.user_data.nodes import BOTH, boot, cluster, node

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]
READY_SECONDS = 200
NAMES = ("broker-1.kafka.example.com", "broker-2.kafka.example.com")
KAFKA = "/opt/kafka/bin"
META = f"{MOUNT}/data/meta.properties"


@dataclass(frozen=True)
class Box:
    """A network of instances, and the depot from which they fetch and to which they report."""

    engine: Engine
    network: PrivateNetwork
    depot: Depot
    files: dict[str, Path]
    """The files of the depot, by name. Tests may add some."""
    archive: KafkaArchive
    client: str

    @property
    def hosts(self) -> Mapping[str, str]:
        """Host names in place of those of a zone."""
        return {name: self.address(id) for id, name in enumerate(NAMES, 1)}

    def address(self, id: int) -> str:
        return str(self.network.subnet[10 + id])

    def text(self, plan: ClusterPlan, id: int = 1, **changes: Any) -> str:
        """The user data of node ``id``."""
        values = {
            "system": System.DEBIAN,
            "archive": KafkaRelease(url=f"{self.depot.url}/kafka.tgz", sha512=self.archive.sha512),
            "report": self.depot.report_command,
            "heap": "256m",
        }
        return user_data(plan, plan.node(id), boot(**values | changes))

    def start(self, text: str, disk: Volume, id: int = 1) -> Any:
        return instance(
            self.engine,
            text,
            network=self.network.name,
            address=self.address(id),
            volumes=[disk],
            hosts=self.hosts,
        )

    def report(self, machine: Instance, *states: NodeState, node: int = 1) -> NodeReport:
        """The next report of ``node`` with one of ``states``."""
        return self.depot.await_report(
            node, *states, seconds=READY_SECONDS, describe=lambda: machine.journal()[-5000:]
        )

    def kcat(self, *arguments: str, stdin: str = "") -> str:
        """kcat from a container of the network."""
        names = [f"--add-host={name}:{address}" for name, address in self.hosts.items()]
        command = ["docker", "--host", self.engine.address, "run", "--rm", "--interactive"]
        command += [f"--network={self.network.name}", *names, self.client, "kcat", *arguments]
        completed = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=60)
        assert completed.returncode == 0, completed.stderr
        return completed.stdout


@pytest.fixture(scope="module")
def box(
    docker_engine: Engine, client_image: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Box]:
    folder: Path = tmp_path_factory.mktemp("depot")
    archive = kafka_archive(folder)
    files = {"kafka.tgz": archive.path}
    with (
        private_network(docker_engine, free_subnet()) as network,
        Depot(network.gateway, files).open() as depot,
    ):
        yield Box(docker_engine, network, depot, files, archive, client_image)


@pytest.fixture
def disk() -> Iterator[Volume]:
    with volume() as new_volume:
        yield new_volume


def test_a_broker_boots_serves_and_keeps_its_data(box: Box, disk: Volume) -> None:
    plan = cluster(node())
    text = box.text(plan, volume=disk.id)
    with box.start(text, disk) as machine:
        report = box.report(machine, NodeState.IN_SYNC, NodeState.FAILED)
        assert report.lacks(1, machine.id, digest(text)) == ""
        for port in (9092, 19092):
            output = box.kcat("-b", f"{NAMES[0]}:{port}", "-L")
            assert f"broker 1 at {NAMES[0]}:{port}" in output
        box.kcat("-P", "-b", f"{NAMES[0]}:9092", "-t", "kept", stdin="first\n")

        # cloud-init, systemd and the sandbox are content
        assert "status: done" in machine.run("cloud-init", "status")
        units = ["kafka-prepare", "kafka", "kafka-ready"]
        verify = "systemd-analyze verify " + " ".join(f"{unit}.service" for unit in units)
        assert machine.run("sh", "-c", f"{verify} 2>&1") == ""
        main = machine.show("kafka", "MainPID")
        status = machine.run("cat", f"/proc/{main}/status")
        assert "NoNewPrivs:\t1" in status and "CapBnd:\t0000000000000000" in status
        assert "Uid:\t9092" in status and "Seccomp:\t2" in status
        assert machine.show("kafka", "LimitNOFILE") == "1000000"  # of which a container gets less
        machine.run("systemd-analyze", "security", "--threshold=20", "kafka.service")

        meta_text = machine.run("cat", META)
        machine.run("journalctl", "--sync")  # the log of this boot is looked at after the next one
        machine.reboot()
        report = box.report(machine, NodeState.IN_SYNC, NodeState.FAILED)
        assert report.lacks(1, machine.id, digest(text)) == ""
        assert machine.run("cat", META) == meta_text
        journal = machine.journal("kafka-prepare")
        assert journal.count(f"fetching {box.depot.url}") == 1
        assert journal.count("formatting /dev/") == 1
        assert journal.count("formatting Kafka's storage") == 1
        assert "shut down completed" in machine.journal("kafka")
        assert machine.run("grep", "--count", MOUNT, "/etc/fstab").strip() == "1"
        read = ("-C", "-b", f"{NAMES[0]}:9092", "-t", "kept", "-o", "beginning", "-e", "-q")
        assert box.kcat(*read) == "first\n"

    # replaced: another instance with other user data, the same volume and address
    text = box.text(plan, volume=disk.id, heap="300m")
    with box.start(text, disk) as machine:
        report = box.report(machine, NodeState.IN_SYNC, NodeState.FAILED)
        assert report.lacks(1, machine.id, digest(text)) == ""
        assert machine.run("cat", META) == meta_text
        assert "formatting" not in machine.journal("kafka-prepare")
        assert box.kcat(*read) == "first\n"


@pytest.mark.combination
def test_a_volume_of_another_cluster_is_refused(box: Box, disk: Volume) -> None:
    plan = cluster(node())
    with box.start(box.text(plan, volume=disk.id), disk) as machine:
        box.report(machine, NodeState.IN_SYNC)
        meta_text = machine.run("cat", META)
    other_user_data = box.text(plan, volume=disk.id, cluster_id="b3RoZXItdGVzdHMtY2x1cw")
    with box.start(other_user_data, disk) as machine:
        report = box.report(machine, NodeState.IN_SYNC, NodeState.FAILED)
        assert report.state is NodeState.FAILED
        assert "holds data of cluster ZWFyc2hvdC10ZXN0cy1ydQ, not of b3Ro" in report.detail
        assert machine.run("cat", META) == meta_text


@pytest.mark.combination
def test_broker_and_controller_of_their_own_find_each_other(box: Box, disk: Volume) -> None:
    """One of them is late: its archive is missing when it boots."""
    plan = cluster(node(1, (Role.BROKER,)), node(2, (Role.CONTROLLER,)))
    late_release = KafkaRelease(url=f"{box.depot.url}/late.tgz", sha512=box.archive.sha512)
    with volume() as controller_disk:
        broker = box.text(plan, 1, volume=disk.id)
        controller = box.text(plan, 2, volume=controller_disk.id, archive=late_release)
        with (
            box.start(broker, disk) as broker_machine,
            box.start(controller, controller_disk, id=2) as controller_machine,
        ):
            assert box.report(broker_machine, NodeState.STARTING).node == 1
            while f"cannot fetch {late_release.url}" not in controller_machine.journal(
                "kafka-prepare"
            ):
                time.sleep(0.5)
            box.files["late.tgz"] = box.archive.path
            for id, machine, text in (
                (2, controller_machine, controller),
                (1, broker_machine, broker),
            ):
                report = box.report(machine, NodeState.IN_SYNC, NodeState.FAILED, node=id)
                assert report.lacks(id, machine.id, digest(text)) == ""
            assert f"broker 1 at {NAMES[0]}:9092" in box.kcat("-b", f"{NAMES[0]}:9092", "-L")


@pytest.mark.combination
def test_a_volume_is_formatted_only_when_blank(box: Box, disk: Volume) -> None:
    def start_of(device: Path) -> bytes:
        with device.open("rb") as file:
            return file.read(2 << 20)

    def again(machine: Instance) -> NodeReport:
        machine.run("systemctl", "restart", "--no-block", "kafka-prepare.service")
        return box.report(machine, NodeState.IN_SYNC, NodeState.FAILED)

    subprocess.run(["mkswap", disk.device], check=True, capture_output=True)
    old_bytes = start_of(disk.device)
    with box.start(box.text(cluster(node()), volume=disk.id), disk) as machine:
        report = box.report(machine, NodeState.IN_SYNC, NodeState.FAILED)
        assert report.state is NodeState.FAILED
        assert "is neither blank nor xfs (found: swap); left as it is" in report.detail
        assert start_of(disk.device) == old_bytes

        # without a signature that anyone knows, and not blank all the same
        unknown_data = bytes(512 << 10) + b"a database of some kind" + bytes(1 << 20)
        disk.device.write_bytes(unknown_data)
        report = again(machine)
        assert "(found: unknown data)" in report.detail
        assert start_of(disk.device).startswith(unknown_data)

        disk.device.write_bytes(bytes(2 << 20))
        assert again(machine).state is NodeState.IN_SYNC
        assert "formatting /dev/disk/by-id/" in machine.journal("kafka-prepare")


@pytest.mark.combination
def test_a_wrong_checksum_installs_nothing(box: Box, disk: Volume) -> None:
    wrong_release = KafkaRelease(url=f"{box.depot.url}/kafka.tgz", sha512="0" * 128)
    with box.start(
        box.text(cluster(node(roles=BOTH)), volume=disk.id, archive=wrong_release), disk
    ) as machine:
        report = box.report(machine, NodeState.IN_SYNC, NodeState.FAILED)
        assert report.state is NodeState.FAILED
        problem = f"has the wrong checksum: SHA-512 is {box.archive.sha512}, not 000"
        assert problem in report.detail
        journal = machine.journal("kafka-prepare")
        assert problem in journal
        assert journal.count("fetching") == 1  # it would be the same again
        assert machine.run("ls", "-A", "/opt") == ""
        assert machine.show("kafka", "ActiveState") == "inactive"


@pytest.mark.combination
def test_a_volume_that_is_attached_late_is_waited_for_and_named(box: Box, disk: Volume) -> None:
    """An update died between creation and attachment, and runs again much later."""
    late_volume = "vol-00000000000000000"
    text = box.text(cluster(node()), volume=late_volume, volume_seconds=1)
    with box.start(text, disk) as machine:
        report = box.report(machine, NodeState.STARTING, NodeState.IN_SYNC, NodeState.FAILED)
        device = "/dev/disk/by-id/nvme-Amazon_Elastic_Block_Store_vol00000000000000000"
        assert report.lacking == f"starting: {device} is not attached yet"
        machine.run("ln", "-s", disk.device_in_instance(), device)
        report = box.report(machine, NodeState.IN_SYNC, NodeState.FAILED)
        assert report.lacks(1, machine.id, digest(text)) == ""

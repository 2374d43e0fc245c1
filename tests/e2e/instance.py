"""Instances of a cloud in a box: containers that boot real user data with systemd and cloud-init.

An instance has the private address that its interface was promised, a NoCloud seed in the place of
a metadata service, and its data volume as a block device under the name that an EBS volume gets.
The volume outlives it. What a container cannot show: udev and kernel settings.
"""

import contextlib
import os
import secrets
import shutil
import subprocess
import tempfile
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network
from pathlib import Path

from earshot.files import cache
from tests.e2e.docker_engine import Engine
from tests.e2e.images.load import instance_image
from tests.skips import lacking

RUN_OPTIONS = (
    "--cap-add=SYS_ADMIN", "--cap-add=NET_ADMIN",
    "--security-opt=seccomp=unconfined", "--security-opt=apparmor=unconfined",
    "--cgroupns=host", "--volume=/sys/fs/cgroup:/sys/fs/cgroup:rw",
    "--tmpfs=/run", "--tmpfs=/tmp:exec", "--env=container=docker",
)  # fmt: skip
BY_ID = "/dev/disk/by-id/nvme-Amazon_Elastic_Block_Store_"
VOLUME_MIB = 512
STOP_SECONDS = 60


@dataclass(frozen=True)
class Volume:
    """A block device of this machine in place of an EBS volume."""

    id: str
    device: Path

    def device_in_instance(self) -> str:
        return BY_ID + self.id.replace("-", "")

    def grow(self, mebibytes: int) -> None:
        """Enlarges the device if it is smaller, also while it is in use."""
        if int(_output("blockdev", "--getsize64", str(self.device))) < mebibytes << 20:
            file = _output(
                "losetup", "--list", "--noheadings", "--output=BACK-FILE", str(self.device)
            )
            os.truncate(file.strip(), mebibytes << 20)
            _output("losetup", "--set-capacity", str(self.device))


@contextlib.contextmanager
def volume(mebibytes: int = VOLUME_MIB, id: str = "") -> Iterator[Volume]:
    """An empty volume, which is removed at the end."""
    if os.geteuid() != 0 or shutil.which("losetup") is None:
        lacking("a data volume is a loop device, which needs root and losetup")
    parent = cache.root() / "docker"
    parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(prefix="volume-", dir=parent) as file:
        file.truncate(mebibytes << 20)
        device = _output("losetup", "--find", "--show", file.name).strip()
        try:
            yield Volume(id or f"vol-{uuid.uuid4().hex[:17]}", Path(device))
        finally:
            _output("losetup", "--detach", device)


@dataclass(frozen=True)
class PrivateNetwork:
    name: str
    subnet: IPv4Network

    @property
    def gateway(self) -> str:
        """This machine's address on it."""
        return str(self.subnet[1])


@dataclass(frozen=True)
class Instance:
    """A created instance."""

    engine: Engine
    container: str
    id: str
    """The instance id in cloud-init."""

    def run(self, *command: str) -> str:
        """Runs a command in it and returns the output. A failure has its error output."""
        return self.engine.run("exec", self.container, *command)

    def journal(self, *units: str) -> str:
        """Its log since its creation, of all or of these ``units``."""
        arguments = [f"--unit={unit}" for unit in units]
        return self.run("journalctl", "--no-pager", "--output=cat", *arguments)

    def show(self, unit: str, property: str) -> str:
        """A property of ``unit``, from systemd."""
        return self.run("systemctl", "show", f"--property={property}", "--value", unit).strip()

    def reboot(self) -> None:
        """Shuts down in order and boots with the same disk and interface and an empty memory."""
        self.engine.run("restart", f"--time={STOP_SECONDS}", self.container)

    def remove(self) -> None:
        """Removes the instance, if it exists."""
        with contextlib.suppress(AssertionError):
            self.engine.run("rm", "--force", "--volumes", self.container)


@dataclass(frozen=True)
class Seed:
    """The folder with the boot settings of an instance, which is kept as long as the instance."""

    folder: Path
    user_data: bytes
    id: str
    hostname: str

    def write_files(self) -> Sequence[str]:
        """Writes the files. Returns Docker's options for them."""
        (self.folder / "user-data").write_bytes(self.user_data)
        meta_data = f"instance-id: {self.id}\nlocal-hostname: {self.hostname}\n"
        (self.folder / "meta-data").write_text(meta_data)
        return (f"--volume={self.folder}:/var/lib/cloud/seed/nocloud:ro",)


@contextlib.contextmanager
def instance(
    engine: Engine,
    user_data: str,
    *,
    network: str,
    address: str,
    volumes: Sequence[Volume] = (),
    hosts: Mapping[str, str] | None = None,
) -> Iterator[Instance]:
    """Boot ``user_data`` at ``address`` of ``network``; terminated and removed at the end.

    ``hosts`` are names that it resolves by its hosts file.
    """
    id = f"i-{uuid.uuid4().hex[:17]}"
    seed = Path(tempfile.mkdtemp(prefix="earshot-seed-"))
    hostname = "ip-" + address.replace(".", "-")
    new_instance = Instance(engine, f"earshot-test-{id}", id)
    options = [f"--name={new_instance.container}", f"--hostname={hostname}", *RUN_OPTIONS]
    options += [f"--network={network}", f"--ip={address}"]
    options += Seed(seed, user_data.encode(), id, hostname).write_files()
    options += [f"--device={volume.device}:{volume.device_in_instance()}" for volume in volumes]
    options += [f"--add-host={name}:{ip}" for name, ip in (hosts or {}).items()]
    try:
        engine.run("run", "--detach", *options, instance_image(engine))
        yield new_instance
    finally:
        new_instance.remove()
        shutil.rmtree(seed)


@contextlib.contextmanager
def private_network(engine: Engine, subnet: IPv4Network) -> Iterator[PrivateNetwork]:
    """A network with the addresses of a VPC."""
    new_network = PrivateNetwork(f"earshot-test-vpc-{uuid.uuid4().hex[:8]}", subnet)
    options = (f"--subnet={subnet}", f"--gateway={new_network.gateway}")
    engine.run("network", "create", *options, new_network.name)
    try:
        yield new_network
    finally:
        engine.run("network", "rm", new_network.name)


def free_subnet() -> IPv4Network:
    """256 addresses that are unlikely to be used on this machine."""
    return IPv4Network((f"10.{64 + secrets.randbelow(64)}.{secrets.randbelow(256)}.0", 24))


def _output(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout

"""Several Docker hosts on this machine, each in its own network namespace.

A host is a namespace with an engine in it: own bridge, own packet rules, own images and data. All
hosts and this machine meet on one switch (a bridge in a namespace that no engine touches), so a
host has an address under which the others reach it, as on a local network.
"""

import contextlib
import itertools
import os
import random
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from ipaddress import IPv4Network
from pathlib import Path

import psutil

from earshot.files import cache
from tests.doubles.certificates import self_signed
from tests.e2e.docker_engine import Daemon, Engine, refusal
from tests.skips import lacking

NAMESPACES = Path("/run/netns")
TLS_PORT = 2376
# For measuring network devices (RFC 2544): it is not routed, and Docker does not choose from it.
# The other half of 198.18 is the outside of clouds in a box, and `outside` has 198.19.
POOL = IPv4Network("198.18.128.0/17")


@dataclass(frozen=True)
class Host:
    """A Docker host: its namespace, its address on the network, its engine."""

    namespace: str
    address: str
    engine: Engine
    daemon: Daemon = field(repr=False)
    certificates: Path | None = None
    """The folder of ca.pem, cert.pem and key.pem: the engine serves TLS with them."""

    @property
    def url(self) -> str:
        """The address of the engine for a stack: on the network with TLS, otherwise its socket."""
        return f"tcp://{self.address}:{TLS_PORT}" if self.certificates else self.engine.address

    def inside(self, *command: str) -> list[str]:
        """``command`` in this host's network. `ip netns exec` would hide cgroups from an engine."""
        return inside(self.namespace, *command)

    def stop_engine(self) -> None:
        """Stops the engine like its machine: containers end, data is kept."""
        self.daemon.halt()

    def start_engine(self) -> None:
        options: list[str] = []
        if self.certificates is not None:
            files = {"cacert": "ca.pem", "cert": "cert.pem", "key": "key.pem"}
            options = ["--host", self.url, "--tlsverify"]
            options += [f"--tls{key}={self.certificates / name}" for key, name in files.items()]
        self.daemon.start(prefix=self.inside(), options=options)


@dataclass
class Network:
    """The switch and its machines. `gateway` is this machine's address on it."""

    name: str
    subnet: IPv4Network
    gateway: str
    _cleanup: contextlib.ExitStack
    _count: Iterator[int] = field(default_factory=lambda: itertools.count(11))

    def host(self, certificates: Path | None = None) -> Host:
        """Adds a running Docker host, which is removed with the network.

        With ``certificates``, a new folder, its engine also speaks TLS on the network.
        """
        namespace, address = self.machine()
        if certificates is not None:
            certificates.mkdir(parents=True)
            self_signed(certificates, f"IP:{address}")
            shutil.copy(certificates / "cert.pem", certificates / "ca.pem")
        daemon = Daemon.start_fresh()
        self._cleanup.callback(daemon.stop)
        engine = Engine(daemon.address, started=True)
        new_host = Host(namespace, address, engine, daemon, certificates)
        new_host.start_engine()
        return new_host

    def machine(self, *, is_routed: bool = True) -> tuple[str, str]:
        """Adds a machine. Returns its namespace and address.

        Without ``is_routed`` the machine reaches no other network."""
        number = next(self._count)
        address = str(self.subnet[number])
        namespace = f"{self.name}-{number}"
        _add_namespace(namespace, self._cleanup)
        self.plug(namespace, "eth0", address, is_routed=is_routed)
        return namespace, address

    def plug(
        self, namespace: str | None, device: str, address: str, *, is_routed: bool = True
    ) -> None:
        """Gives ``namespace`` (None: this machine's own) a device on the switch."""
        end = f"p{address.rpartition('.')[2]}"
        owner = str(os.getpid()) if namespace is None else namespace
        _ip("-n", self.name, "link", "add", end, "type", "veth", "peer", device, "netns", owner)
        _ip("-n", self.name, "link", "set", end, "master", "switch", "up")
        in_namespace = () if namespace is None else ("-n", namespace)
        _ip(*in_namespace, "address", "add", f"{address}/{self.subnet.prefixlen}", "dev", device)
        _ip(*in_namespace, "link", "set", device, "up")
        if namespace is not None and is_routed:
            _ip(*in_namespace, "route", "add", "default", "via", self.gateway)


@contextlib.contextmanager
def docker_network() -> Iterator[Network]:
    """A network for Docker hosts. Skips like `docker_engine` if no engine may be started.

    Engines are stopped first; removing a namespace ends its other processes.
    """
    if (reason := refusal()) is not None:
        lacking(reason)
    with switch() as network:
        yield network


@contextlib.contextmanager
def switch() -> Iterator[Network]:
    """A network for any machines. Needs root."""
    subnet = _free_subnet()
    name = f"earshot{subnet.network_address.packed[2]:02x}"
    with contextlib.ExitStack() as cleanup:
        if not NAMESPACES.is_mount():  # the first namespace makes it one
            cleanup.callback(_forget_namespaces)
        _add_namespace(name, cleanup)
        _ip("-n", name, "link", "add", "switch", "type", "bridge")
        _ip("-n", name, "link", "set", "switch", "up")
        network = Network(name, subnet, str(subnet[1]), cleanup)
        network.plug(None, name, network.gateway)
        cleanup.callback(_ip, "link", "delete", name)  # a namespace's own devices go later
        yield network


def copy_images(source: Engine, targets: Sequence[Engine], *names: str) -> None:
    """Copies images of ``source`` to ``targets``, which have no other source of them."""
    save = ["docker", "--host", source.address, "save", *names]
    # a file without a name, of which a killed session leaves nothing
    with tempfile.TemporaryFile(dir=cache.root() / "docker") as file:
        subprocess.run(save, stdout=file, check=True)
        path = f"/proc/{os.getpid()}/fd/{file.fileno()}"
        with ThreadPoolExecutor(len(targets)) as pool:
            list(pool.map(lambda engine: engine.run("load", "--quiet", "--input", path), targets))


def inside(namespace: str, *command: str) -> list[str]:
    return ["nsenter", f"--net={NAMESPACES / namespace}", *command]


def _add_namespace(name: str, cleanup: contextlib.ExitStack) -> None:
    _ip("netns", "add", name)
    cleanup.callback(_ip, "netns", "delete", name)
    cleanup.callback(_end_processes, name)
    _ip("-n", name, "link", "set", "lo", "up")


def _forget_namespaces() -> None:
    """Unmounts the folder of namespaces, which fails if another one was added since."""
    subprocess.run(["umount", NAMESPACES], capture_output=True)


def _end_processes(namespace: str) -> None:
    """Kills processes that tests left in a namespace, which would keep it alive."""
    pids = _ip("netns", "pids", namespace)
    for pid in map(int, pids.split()):
        with contextlib.suppress(psutil.NoSuchProcess):
            psutil.Process(pid).kill()


def _free_subnet(
    choose: Callable[[Sequence[IPv4Network]], IPv4Network] = random.choice,
) -> IPv4Network:
    """A /24 of the pool without an address of this machine."""
    addresses = _ip("-4", "-o", "address")
    subnets = list(POOL.subnets(new_prefix=24))
    return choose(
        [subnet for subnet in subnets if f" {str(subnet).removesuffix('0/24')}" not in addresses]
    )


def _ip(*arguments: str) -> str:
    completed = subprocess.run(["ip", *arguments], capture_output=True, text=True)
    assert completed.returncode == 0, f"ip {' '.join(arguments)}: {completed.stderr.strip()}"
    return completed.stdout

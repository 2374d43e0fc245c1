"""Start topologies on a Docker engine as `docker compose up` would, and ask their places."""

import contextlib
import json
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import docker

from tests.e2e.docker_hosts import Host
from tests.topologies.generate import Document, Topology

PLACE = Path(__file__).with_name("place.py")
READY_SECONDS = 60.0
MOUNTED = "/judge"
HEAP = "-Xms96m -Xmx256m"
NO_NAMESERVER = "127.0.0.1"
"""Refuses at once: names beyond Docker's own are none, instead of a wait for another server."""


@dataclass(frozen=True)
class ProbeResult:
    """The result of probing one address: greetings by address, or the ``error`` of the lookup."""

    error: str
    greetings: Mapping[str, str | None]


@dataclass
class Running:
    """A topology that runs: its places answer, and its containers' addresses are known."""

    topology: Topology
    folder: Path
    addresses: dict[str, dict[str, set[str]]] = field(default_factory=dict)
    """Addresses by service and the network's key. The key of the default bridge is empty."""
    client: docker.DockerClient | None = None
    ids: dict[str, str] = field(default_factory=dict)
    """The ids of the containers, by service."""

    def ask(self, place: str, addresses: Sequence[tuple[str, int]]) -> list[ProbeResult]:
        """The results of probing each address from ``place``. An empty place is the machine."""
        folder = self.folder.parent if not place else self.folder
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(READY_SECONDS)
            connection.connect(str(folder / f"{place or 'HOST'}.sock"))
            with connection.makefile("rw") as stream:
                stream.write(json.dumps(list(addresses)) + "\n")
                stream.flush()
                return [ProbeResult(**probe) for probe in json.loads(stream.readline())]

    def run(self, service: str, command: str) -> tuple[int, str]:
        """The exit code of a shell's ``command`` in the container, and its standard output."""
        assert self.client is not None
        completed = self.client.containers.get(self.ids[service]).exec_run(
            ["sh", "-c", command], stderr=False
        )
        return int(completed.exit_code), completed.output.decode(errors="replace")

    def logs(self, service: str) -> str:
        """The output of the container's process."""
        assert self.client is not None
        return str(self.client.api.logs(self.ids[service]).decode(errors="replace"))


@dataclass
class Judge:
    """A Docker host, the image of its places, and a folder that all of them see."""

    host: Host
    image: str
    folder: Path
    client: docker.DockerClient
    kafka_image: str = ""
    """The image of brokers with Kafka's own settings. Without it they run `place.py`."""

    @contextlib.contextmanager
    def running(self, topologies: Sequence[Topology]) -> Iterator[list[Running]]:
        """``topologies`` at once, all of them gone at the end."""
        running_topologies = [
            Running(drawn_topology, self.folder / f"t{drawn_topology.seed}", client=self.client)
            for drawn_topology in topologies
        ]
        try:
            with ThreadPoolExecutor(6) as pool:
                list(pool.map(self._start, running_topologies))
            yield running_topologies
        finally:
            with ThreadPoolExecutor(6) as pool:
                list(pool.map(self._remove, running_topologies))

    def _start(self, running: Running) -> None:
        running.folder.mkdir()
        document = running.topology.document
        api = self.client.api
        network_names = {key: network_name(document, key, running) for key in document["networks"]}
        for key, top in document["networks"].items():
            pools = [
                docker.types.IPAMPool(subnet=config["subnet"]) for config in top["ipam"]["config"]
            ]
            api.create_network(
                network_names[key],
                driver="bridge",
                internal=bool(top.get("internal")),
                enable_ipv6=bool(top.get("enable_ipv6")),
                ipam=docker.types.IPAMConfig(pool_configs=pools),
                labels={"judge": str(running.topology.seed)},
            )
        started = running.ids
        services = document["services"]
        order = sorted(services, key=lambda name: _waits(services[name]))
        for name in order:
            started[name] = self._create(running, name, services[name], network_names, started)
            api.start(started[name])
        end = time.monotonic() + READY_SECONDS
        for name in services:
            while (
                not self._runs_kafka(services[name])
                and not (running.folder / f"{name}.sock").exists()
            ):
                if time.monotonic() > end:
                    raise TimeoutError(f"{name}: {api.logs(started[name]).decode()}")
                time.sleep(0.05)
        keys = {value: key for key, value in network_names.items()} | {"bridge": ""}
        for name, id in started.items():
            settings = api.inspect_container(id)["NetworkSettings"]["Networks"]
            running.addresses[name] = {
                keys[net]: {
                    address
                    for address in (
                        endpoint_settings["IPAddress"],
                        endpoint_settings["GlobalIPv6Address"],
                    )
                    if address
                }
                for net, endpoint_settings in settings.items()
                if net in keys
            }

    def _create(
        self,
        running: Running,
        name: str,
        service: Document,
        network_names: Mapping[str, str],
        started: Mapping[str, str],
    ) -> str:
        api = self.client.api
        mode = str(service.get("network_mode", ""))
        service_networks = {} if mode else service.get("networks") or {"default": {}}
        first_network = next(iter(service_networks), None)
        if mode.startswith("service:"):
            mode = f"container:{started[mode.removeprefix('service:')]}"
        config = api.create_host_config(
            network_mode=mode or network_names[str(first_network)],
            binds=[f"{running.folder}:{MOUNTED}", f"{PLACE}:/place.py:ro"],
            port_bindings=None if mode == "host" else bindings(service),
            extra_hosts=_hosts(service),
            dns=None if mode.startswith(("container", "host", "none")) else [NO_NAMESERVER],
            dns_opt=None if mode.startswith(("container", "host", "none")) else ["timeout:1"],
            init=True,
        )
        links = _links(running, service)
        endpoint_configs = {
            key: self._endpoint(name, network_config or {}, links)
            for key, network_config in service_networks.items()
        }
        image, command = self.image, ["python3", "/place.py", MOUNTED, name]
        environment = service["environment"]
        if self._runs_kafka(service):
            image, command = self.kafka_image, []
            environment = {"KAFKA_HEAP_OPTS": HEAP, **environment}
        container = api.create_container(
            image,
            command or None,
            name=_container_name(running, name),
            hostname=None if mode.startswith(("container", "host")) else service.get("hostname"),
            environment=environment,
            ports=None if mode == "host" else _exposed(service),
            host_config=config,
            networking_config=api.create_networking_config(
                {network_names[first_network]: endpoint_configs[first_network]}
            )
            if first_network is not None
            else None,
            labels={"judge": str(running.topology.seed)},
        )
        for key in list(service_networks)[1:]:
            api.connect_container_to_network(
                container["Id"], network_names[key], **self._plain(endpoint_configs[key])
            )
        return str(container["Id"])

    def _runs_kafka(self, service: Document) -> bool:
        return bool(self.kafka_image) and "KAFKA_PROCESS_ROLES" in service["environment"]

    def _endpoint(self, name: str, network_config: Document, links: list[tuple[str, str]]) -> Any:
        aliases = [name, *network_config.get("aliases", [])]
        return self.client.api.create_endpoint_config(
            aliases=aliases,
            links=links or None,
            ipv4_address=network_config.get("ipv4_address"),
            ipv6_address=network_config.get("ipv6_address"),
        )

    @staticmethod
    def _plain(config: Mapping[str, Any]) -> dict[str, Any]:
        """An endpoint's configuration as the arguments of a second network's connection."""
        ipam_config = config.get("IPAMConfig") or {}
        addresses = {
            "ipv4_address": ipam_config.get("IPv4Address"),
            "ipv6_address": ipam_config.get("IPv6Address"),
        }
        links = [tuple(link.split(":")) for link in config.get("Links") or []]
        return {"aliases": config["Aliases"], **addresses, "links": links or None}

    def _remove(self, running: Running) -> None:
        marked = {"label": f"judge={running.topology.seed}"}
        for container in self.client.containers.list(all=True, filters=marked, ignore_removed=True):
            container.remove(force=True)
        for network in self.client.networks.list(filters=marked):
            network.remove()
        shutil.rmtree(running.folder, ignore_errors=True)


def network_name(document: Document, key: str, running: Running) -> str:
    """Compose's name of a network: PROJECT_KEY, unless the file names it."""
    return str(document["networks"][key].get("name") or f"p{running.topology.seed}_{key}")


def _waits(service: Document) -> bool:
    return bool(service.get("links")) or str(service.get("network_mode")).startswith("service:")


def _container_name(running: Running, service: str) -> str:
    explicit_name = running.topology.document["services"][service].get("container_name")
    return str(explicit_name or f"p{running.topology.seed}-{service}-1")


def _links(running: Running, service: Document) -> list[tuple[str, str]]:
    links = []
    for link in service.get("links", []):
        target, _, name = link.partition(":")
        links.append((_container_name(running, target), name or target))
    return links


def _hosts(service: Document) -> dict[str, str] | None:
    pairs = (entry_text.partition(":") for entry_text in service.get("extra_hosts", []))
    return {name: address for name, _, address in pairs} or None


def bindings(service: Document) -> dict[int, Any]:
    """The published ports of the machine by container port, computed without the model."""
    ports_by_container_port: dict[int, Any] = {}
    for port_entry in service.get("ports", []):
        if isinstance(port_entry, dict):
            ports_by_container_port[int(port_entry["target"])] = int(port_entry["published"])
            continue
        text, address = str(port_entry), ""
        if text.startswith("["):
            address, _, text = text[1:].partition("]:")
        *host_part, container_part = text.split(":")
        address = host_part[0] if len(host_part) == 2 else address
        first_port, _, last_port = container_part.partition("-")
        for i in range(int(last_port or first_port) - int(first_port) + 1):
            host = int(host_part[-1].partition("-")[0]) + i if host_part else None
            ports_by_container_port[int(first_port) + i] = (address, host) if address else host
    return ports_by_container_port


def _exposed(service: Document) -> list[int]:
    return list(bindings(service))


@contextlib.contextmanager
def judge(
    host: Host, image: str, kafka_image: str = "", *, names: Mapping[str, str] | None = None
) -> Iterator[Judge]:
    """A judge on ``host``; a process of its machine answers for the machine's own place.

    ``names`` are those of its hosts file, with their addresses.
    """
    folder = Path(tempfile.mkdtemp(prefix="earshot-judge-", dir="/tmp"))
    resolver = folder / "resolv.conf"
    resolver.write_text(f"nameserver {NO_NAMESERVER}\noptions timeout:1 attempts:1\n")
    hosts = folder / "hosts"
    lines = [f"{address} {name}\n" for name, address in (names or {}).items()]
    hosts.write_text("".join(("127.0.0.1 localhost\n::1 localhost\n", *lines)))
    mount_command = f"mount --bind {resolver} /etc/resolv.conf && mount --bind {hosts} /etc/hosts"
    start_command = f"{mount_command} && exec {sys.executable} {PLACE} {folder} ''"
    command = host.inside(
        "unshare", "--mount", "--propagation", "private", "sh", "-c", start_command
    )
    machine = subprocess.Popen(command, stdin=subprocess.DEVNULL)
    try:
        with contextlib.closing(host.engine.client()) as client:
            yield Judge(host, image, folder, client, kafka_image)
    finally:
        machine.kill()
        machine.wait()
        shutil.rmtree(folder, ignore_errors=True)

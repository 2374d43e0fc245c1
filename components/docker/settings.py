"""What running containers were started with."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from components.docker.container_address import Engines
from components.docker.on_engines import Seen, SeenContainer, WantedStack
from earshot.config.docker import DockerHost
from earshot.listeners.properties import read_environment


@dataclass(frozen=True)
class Running:
    """A container of this deployment that runs, as its engine describes it."""

    seen: SeenContainer
    host: DockerHost
    values: dict[str, str]
    """Kafka's settings in its environment."""
    gateways: tuple[str, ...]
    """The addresses that its host has on the container's networks."""


def running(engines: Engines, wanted: WantedStack, seen: Seen) -> Iterator[Running]:
    """Those of ``seen`` that belong to ``wanted``. Raises EarshotError where an engine fails."""
    hosts = {host.name: host for host in wanted.hosts}
    for found in seen.containers:
        host = hosts.get(found.host)
        if host is None or not wanted.owns(found.labels) or not found.running:
            continue
        inspected = engines.inspect(f"Docker host {host.name}", host, found.id)
        if inspected is None:
            continue
        variables = dict(entry.partition("=")[::2] for entry in inspected["Config"]["Env"] or ())
        networks = (inspected.get("NetworkSettings") or {}).get("Networks", {}).values()
        gateways = (it.get(key) for it in networks for key in ("Gateway", "IPv6Gateway"))
        values = dict(read_environment(variables).values)
        yield Running(found, host, values, tuple(filter(None, gateways)))

"""Names of brokers that are containers: aliases on a network, and published ports of their hosts.

What each name means to whom: https://docs.docker.com/engine/network/ (user-defined networks).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from earshot.config.docker import DockerHost, DockerSpec
from earshot.errors import EarshotError
from earshot.facts.container import PublishedPort
from earshot.listeners.address import MAX_PORT
from earshot.listeners.terms import Scope, UnknownHost
from earshot.placement.local_names import LOCALHOST, LOOPBACK
from earshot.placement.plan import NodeNames

DATA = "/var/lib/kafka/data"
"""Where apache/kafka and cp-kafka let their own user write."""
KEYS = "/etc/kafka/secrets"
"""Where both have a place for keys."""


@dataclass(frozen=True)
class DockerNames:
    """Per node its names and the ports of its host, and what a user should know about them."""

    names: dict[int, NodeNames]
    published: dict[int, dict[str, PublishedPort]]
    """By node id and listener, the port of the host that leads to it."""
    notes: tuple[str, ...] = ()


def docker_names(spec: DockerSpec) -> DockerNames:
    """The names of every node of ``spec``; pure.

    On one host, scopes internal and controller get the container's name, host gets `localhost`
    and external the host's `external`, both with a published port. On several hosts, whose
    networks do not span them, internal and controller get the name of the host and a published
    port too. Raises EarshotError where two listeners want one port of a host.
    """
    apart = len(spec.hosts) > 1
    names: dict[int, NodeNames] = {}
    published: dict[int, dict[str, PublishedPort]] = {}
    for index, host in enumerate(spec.hosts):
        # on each host brokers come first, so that their ports do not depend on the controllers'
        nodes = [id for id in spec.node_ids if spec.host_of[id] == index]
        for turn, id in enumerate(nodes):
            published[id] = dict(_published(spec, id, turn, apart))
            names[id] = NodeNames(
                hosts=_hosts(spec, id, host, apart),
                published={name: it.host_port or 0 for name, it in published[id].items()},
                log_dir=DATA,
            )
    _check_ports(spec, published)
    ordered = spec.node_ids
    return DockerNames(
        {id: names[id] for id in ordered},
        {id: published[id] for id in ordered},
        tuple(_notes(spec)),
    )


def _hosts(
    spec: DockerSpec, id: int, host: DockerHost, apart: bool
) -> dict[Scope, str | UnknownHost]:
    inside = (host.between_hosts if apart else None) or spec.name_of(id)
    found: dict[Scope, str | UnknownHost] = {Scope.CONTROLLER: inside, Scope.INTERNAL: inside}
    if not apart:
        found[Scope.HOST] = LOCALHOST
    if host.external is not None:
        found[Scope.EXTERNAL] = host.external
    return found


def _published(
    spec: DockerSpec, id: int, turn: int, apart: bool
) -> Iterator[tuple[str, PublishedPort]]:
    if id in spec.ids:
        for item in spec.listeners:
            if apart or id in item.published or set(item.scopes) & {Scope.HOST, Scope.EXTERNAL}:
                port = item.published.get(id, item.port + turn)
                # a listener for processes of its host is nobody else's business
                ip = LOOPBACK if not apart and item.scopes == (Scope.HOST,) else ""
                yield item.name, PublishedPort(item.port, port, ip)
    if apart and id in spec.controller_ids:
        port = spec.controllers.port
        yield spec.controllers.name, PublishedPort(port, port + turn)


def _check_ports(spec: DockerSpec, published: dict[int, dict[str, PublishedPort]]) -> None:
    taken: dict[tuple[int, int], str] = {}
    for id, ports in published.items():
        for listener, item in ports.items():
            claim, port = f"{listener} of node {id}", item.host_port or 0
            host = spec.hosts[spec.host_of[id]].name
            if port > MAX_PORT:
                raise EarshotError(
                    f"listener {listener}, node {id}",
                    observed=f"would be published on port {port} of host {host}",
                    allowed=f"ports up to {MAX_PORT}",
                    remedy=f"choose a lower port for {listener}",
                )
            holder = taken.setdefault((spec.host_of[id], port), claim)
            if holder is not claim:
                raise EarshotError(
                    f"port {port} of Docker host {host}",
                    observed=f"is claimed by {holder} and by {claim}",
                    allowed="one listener of one node per port; nodes of one host take consecutive "
                    "ports, beginning at each listener's `port`",
                    remedy="move the listeners' ports further apart, or set `published`",
                )


def _notes(spec: DockerSpec) -> Iterator[str]:
    (first, *others) = spec.hosts
    if others or first.external is not None:
        return
    if not any(Scope.EXTERNAL in item.scopes for item in spec.listeners):
        held = [item.name for item in spec.listeners if Scope.HOST in item.scopes]
        yield (
            f"{', '.join(held) or 'every listener'}: not for clients beyond the Docker host, which "
            "has no name for them; `hosts[0].external` gives it one"
        )

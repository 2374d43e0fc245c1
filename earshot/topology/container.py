"""What a broker's container has, as far as rules need it: names, networks, ports, variables.

Docker gives every member of a user-defined network the names that the other members gave it:
container name, hostname, aliases, and `name.network`. The default bridge resolves none of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from earshot.listeners.address import bracketed
from earshot.listeners.images import Family, broker_property, broker_settings, family_by_settings
from earshot.listeners.properties import NodeSettings
from earshot.names.kinds import NameKind, ip_of, kind_of

HOST_NETWORK = "host"
DEFAULT_BRIDGES = frozenset({"", "bridge", "default"})
SHARED_CONFIG = "/mnt/shared/config"
MOUNTED = "mounted files"
"""In `Container.unknown`: files that may hold its settings, and that were not read."""
START_SCRIPTS = ("/etc/confluent/docker", "/opt/bitnami/scripts", "/etc/kafka/docker")
"""Where the images have the scripts that read their variables."""
_LOOPBACK = (NameKind.LOOPBACK_ADDRESS, NameKind.LOCALHOST)


def is_loopback(host: str) -> bool:
    """Whether ``host`` means the machine or container that asks."""
    return kind_of(host) in _LOOPBACK


def folded(host: str) -> str:
    """``host`` as hosts are compared: a name in lower case, an address in its usual form."""
    number = ip_of(host)
    return host.lower() if number is None else str(number)


@dataclass(frozen=True)
class JoinedNetwork:
    """A user-defined network that the container has joined, with its names and address there."""

    name: str
    aliases: tuple[str, ...] = ()
    address: str = ""
    internal: bool = False
    """It has no way out, and no published port leads into it."""
    is_named: bool = field(default=True, compare=False)
    """Docker has it under ``name``: else Compose puts the project's name before it."""


@dataclass(frozen=True)
class PublishedPort:
    """One port of the container on its host; no ``host_port`` means that Docker chooses one."""

    container_port: int
    host_port: int | None
    host_ip: str = ""
    """The host's address that it is bound to; an empty text means all of them."""
    protocol: str = "tcp"

    @property
    def for_host_only(self) -> bool:
        """Whether only processes on the host itself reach it."""
        return bool(self.host_ip) and is_loopback(self.host_ip)

    @property
    def for_loopback(self) -> bool:
        """`localhost` on the host leads to it."""
        any_address = not self.host_ip or kind_of(self.host_ip) is NameKind.ANY_ADDRESS
        return any_address or self.for_host_only

    def excludes(self, other: PublishedPort) -> bool:
        """Docker publishes only one of them: both take one port of one address."""
        ips = (self.host_ip, other.host_ip)
        anywhere = any(not ip or kind_of(ip) is NameKind.ANY_ADDRESS for ip in ips)
        port, there = (self.host_port, self.protocol), (other.host_port, other.protocol)
        if self.host_port is None or {type(self), type(other)} == {NodePort}:
            return False  # two nodes have the port twice
        return port == there and (anywhere or ips[0] == ips[1])

    def __str__(self) -> str:
        host = f"{bracketed(self.host_ip)}:" if self.host_ip else ""
        outer: object = self.host_port
        if self.host_port is None:
            outer = "(a variable)" if isinstance(self, HiddenPort) else "(chosen by Docker)"
        return f"{host}{outer}->{self.container_port}"


@dataclass(frozen=True)
class NodePort(PublishedPort):
    """One that a Swarm publishes on the node that the container runs on, and nowhere else."""


class HiddenPort(PublishedPort):
    """One whose port or address on the host is a variable that is not set."""


@dataclass(frozen=True)
class Container:
    """The inputs of one container that decide where its listeners can be reached.

    ``image`` is what the image is called, an id if that is unknown; ``env`` are its variables as
    given; ``mounts`` the paths inside the container at which something is mounted.
    """

    name: str
    image: str = ""
    hostname: str = ""
    networks: tuple[JoinedNetwork, ...] = ()
    published: tuple[PublishedPort, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    mounts: tuple[str, ...] = ()
    network_mode: str = ""
    unknown: tuple[str, ...] = ()
    """Inputs whose values are not known yet."""
    extra_hosts: Mapping[str, str] = field(default_factory=dict)
    """Names that its own hosts file has, with their addresses."""
    open_networks: bool = False
    """Its networks may have names that are not described."""
    links: Mapping[str, str] = field(default_factory=dict)
    """Services by the names, in lower case, that this container alone has for them."""
    profiles: tuple[str, ...] = ()
    """Compose profiles of which one has to be chosen for it to run; none means always."""

    @cached_property
    def family(self) -> Family:
        """What the image makes of its variables."""
        return family_by_settings(self.image, self.env)

    @property
    def settings(self) -> NodeSettings:
        """The broker properties that the image makes of its variables, and the notes in them."""
        return broker_settings(self.family, self.env, self.image)

    def property_of(self, variable: str) -> str:
        """The broker property that ``variable`` sets; an empty text where it sets none."""
        return broker_property(self.family, variable, self.image)

    @property
    def has_file(self) -> bool:
        """A properties file may be mounted where apache/kafka reads one."""
        return any(path.startswith(SHARED_CONFIG) for path in self.mounts)

    @property
    def has_own_script(self) -> bool:
        """Whether a start script of its image may have been replaced by a mounted one."""
        return any(path.startswith(START_SCRIPTS) for path in self.mounts)

    @property
    def on_host_network(self) -> bool:
        """Whether it has no network of its own, so that its ports are the host's."""
        return self.network_mode == HOST_NETWORK

    @property
    def is_cut_off(self) -> bool:
        """Whether all its networks are internal: nothing beyond them reaches it, nor it them."""
        return bool(self.networks) and all(network.internal for network in self.networks)

    @cached_property
    def names(self) -> frozenset[str]:
        """Every name of the container inside its networks, in lower case."""
        found = {self.name, self.hostname}
        for network in self.networks:
            found |= {*network.aliases}
            if network.is_named:
                found |= {f"{alias}.{network.name}" for alias in (self.name, *network.aliases)}
        return frozenset(name.lower() for name in found if name)

    @cached_property
    def addresses(self) -> frozenset[str]:
        """Its own fixed addresses."""
        return frozenset(
            str(ip_of(network.address)) for network in self.networks if network.address
        )

    def names_on(self, network: JoinedNetwork) -> frozenset[str]:
        """Its names, in lower case, and its fixed address on one of its networks."""
        there = replace(self, networks=(network,))
        return there.names | there.addresses

    def has_name(self, host: str) -> bool:
        """Whether ``host`` is one of its names or addresses inside its networks."""
        return folded(host) in (self.names if ip_of(host) is None else self.addresses)

    def published_at(self, container_port: int) -> tuple[PublishedPort, ...]:
        """Where the host publishes a TCP port of the container."""
        if self.on_host_network:
            return (PublishedPort(container_port, container_port),)
        return tuple(
            port
            for port in self.published
            if port.container_port == container_port and port.protocol == "tcp"
        )

    def ports_behind(self, host_port: int) -> tuple[PublishedPort, ...]:
        """What a TCP port of the host leads to."""
        return tuple(
            port
            for port in self.published
            if port.host_port == host_port and port.protocol == "tcp"
        )


def may_be_configuration(target: str) -> bool:
    """Whether apache/kafka may find its server.properties in what is mounted at ``target``."""
    return target.rstrip("/") in (SHARED_CONFIG, f"{SHARED_CONFIG}/server.properties")

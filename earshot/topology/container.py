"""A broker's container: names, networks, ports, variables.

On user-defined networks Docker resolves container name, hostname, aliases and `name.network`. The
default bridge resolves none of them.
"""

from __future__ import annotations

import contextlib
import ipaddress
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
"""In `Container.unknown`: mounted files that may contain its settings and were not read."""
PLACEHOLDER = "a placeholder"
"""In `Container.unknown`: a value in place of a list, which may contain its settings."""
START_SCRIPTS = ("/etc/confluent/docker", "/opt/bitnami/scripts", "/etc/kafka/docker")
"""Folders of the images' start scripts, which read the variables."""
_LOOPBACK = (NameKind.LOOPBACK_ADDRESS, NameKind.LOCALHOST)


def is_loopback(host: str) -> bool:
    """Whether ``host`` is `localhost` or a loopback address."""
    return kind_of(host) in _LOOPBACK


def folded(host: str) -> str:
    """``host`` for comparison: a name in lower case, an address in canonical form."""
    number = ip_of(host)
    return host.lower() if number is None else str(number)


@dataclass(frozen=True)
class JoinedNetwork:
    """A user-defined network of the container, with its names and address there."""

    name: str
    aliases: tuple[str, ...] = ()
    address: str = ""
    internal: bool = False
    """It has no route to other networks, and no published ports."""
    is_named: bool = field(default=True, compare=False)
    """Docker calls it ``name``; otherwise Compose adds the project's name as a prefix."""
    is_shown: bool = field(default=False, compare=False)
    """The file contains every container of the network."""
    is_routed: bool = field(default=False, compare=False)
    """Other machines may connect to its containers' addresses (`is_routed_network`)."""
    subnets: tuple[str, ...] = field(default=(), compare=False)
    """Its subnets as written, if they are set."""
    gateways: tuple[str, ...] = field(default=(), compare=False)
    """The machine's addresses on it as written. Docker takes a subnet's first one by default."""

    def excludes(self, host: str) -> bool:
        """Whether ``host`` is an address of this network, and neither the container's fixed one nor
        the machine's. On a network with routes to others, another machine may have it."""
        number, own, *gateways = map(ip_of, (host, self.address, *self.gateways))
        if number is None or own is None or None in gateways or self.is_routed:
            return False
        if number.version != own.version or number in (own, *gateways):
            return False
        for text in self.subnets:
            with contextlib.suppress(ValueError):
                subnet = ipaddress.ip_network(text, strict=False)
                if number in subnet and number != subnet.network_address + 1:
                    return True
        return False


def is_routed_network(driver: object, options: object) -> bool:
    """Whether a network of ``driver`` with ``options`` needs no published ports, as macvlan,
    ipvlan, drivers of plugins, and a bridge in gateway mode `routed` or `nat-unprotected`."""
    is_open = any(mode in str(options) for mode in ("routed", "nat-unprotected"))
    return is_open or str(driver or "bridge").lower() not in ("bridge", "overlay")


@dataclass(frozen=True)
class PublishedPort:
    """A published port; Docker chooses the host's port if ``host_port`` is None."""

    container_port: int
    host_port: int | None
    host_ip: str = ""
    """The host's address that it is bound to; empty for all addresses."""
    protocol: str = "tcp"

    @property
    def for_host_only(self) -> bool:
        """Whether only processes on the host can connect."""
        return bool(self.host_ip) and is_loopback(self.host_ip)

    @property
    def for_loopback(self) -> bool:
        """Whether `localhost` on the host leads to it."""
        any_address = not self.host_ip or kind_of(self.host_ip) is NameKind.ANY_ADDRESS
        return any_address or self.for_host_only

    def excludes(self, other: PublishedPort) -> bool:
        """Whether both need one port of one address, so that Docker publishes only one."""
        ips = (self.host_ip, other.host_ip)
        anywhere = any(not ip or kind_of(ip) is NameKind.ANY_ADDRESS for ip in ips)
        port, there = (self.host_port, self.protocol), (other.host_port, other.protocol)
        if self.host_port is None or {type(self), type(other)} == {NodePort}:
            return False  # each node of a Swarm has the port
        return port == there and (anywhere or ips[0] == ips[1])

    def __str__(self) -> str:
        host = f"{bracketed(self.host_ip)}:" if self.host_ip else ""
        outer: object = self.host_port
        if self.host_port is None:
            outer = "(a variable)" if isinstance(self, HiddenPort) else "(chosen by Docker)"
        return f"{host}{outer}->{self.container_port}"


@dataclass(frozen=True)
class NodePort(PublishedPort):
    """A port that a Swarm publishes only on the container's node."""


class HiddenPort(PublishedPort):
    """A port whose host side is a variable that is not set."""


@dataclass(frozen=True)
class Container:
    """The inputs of one container that decide how its listeners can be reached.

    ``image`` is the image's name, or its id if the name is unknown; ``env`` the variables as
    given; ``mounts`` the target paths of mounts.
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
    """The inputs that are not known yet."""
    extra_hosts: Mapping[str, str] = field(default_factory=dict)
    """Addresses by name in its hosts file."""
    open_networks: bool = False
    """Its networks may have names that are not described here."""
    links: Mapping[str, str] = field(default_factory=dict)
    """Services by link name in lower case; only this container resolves these names."""
    profiles: tuple[str, ...] = ()
    """Compose profiles that start it; empty if it always starts."""
    needs: tuple[str, ...] = ()
    """Services that are started before it (`depends_on`)."""
    has_proxy_labels: bool = False
    """Its labels configure a proxy that may run elsewhere (`configures_proxy`)."""
    is_published_elsewhere: bool = False
    """A file that is not merged into this one publishes ports of it."""
    advertises_address: bool = False
    """Its image advertises its address, for which the settings contain its name."""

    @cached_property
    def family(self) -> Family:
        """The image's family, which decides what its variables set."""
        return family_by_settings(self.image, self.env)

    @cached_property
    def settings(self) -> NodeSettings:
        """The broker properties that the image derives from its variables, with their notes."""
        return broker_settings(self.family, self.env, self.image)

    def property_of(self, variable: str) -> str:
        """The broker property that ``variable`` sets, or an empty string."""
        return broker_property(self.family, variable, self.image)

    @property
    def has_file(self) -> bool:
        """Whether a properties file may be mounted where apache/kafka reads one."""
        return any(path.startswith(SHARED_CONFIG) for path in self.mounts)

    @property
    def has_own_script(self) -> bool:
        """Whether a mount may replace a start script of its image."""
        return any(path.startswith(START_SCRIPTS) for path in self.mounts)

    @property
    def has_link_variables(self) -> bool:
        """Whether Docker sets variables for its links, as it does on the default bridge only."""
        return bool(self.links) and not self.networks and self.network_mode in DEFAULT_BRIDGES

    @property
    def has_unknown_ports(self) -> bool:
        """Whether it may publish other ports: its ports, or options of its command, are unknown."""
        return not {"ports", "options"}.isdisjoint(self.unknown)

    @property
    def on_host_network(self) -> bool:
        """Whether it uses the host's network, so that its ports are the host's."""
        return self.network_mode == HOST_NETWORK

    @property
    def is_cut_off(self) -> bool:
        """Whether all its networks are internal, without routes to others."""
        return bool(self.networks) and all(network.internal for network in self.networks)

    @property
    def is_network_shown(self) -> bool:
        """Whether the file contains every container of its networks."""
        return bool(self.networks) and all(network.is_shown for network in self.networks)

    @cached_property
    def names(self) -> frozenset[str]:
        """The container's names on its networks, in lower case."""
        names = {self.name, self.hostname}
        for network in self.networks:
            names |= {*network.aliases}
            if network.is_named:
                names |= {f"{alias}.{network.name}" for alias in (self.name, *network.aliases)}
        return frozenset(name.lower() for name in names if name)

    @cached_property
    def addresses(self) -> frozenset[str]:
        """Its fixed addresses."""
        return frozenset(
            str(ip_of(network.address)) for network in self.networks if network.address
        )

    def names_on(self, network: JoinedNetwork) -> frozenset[str]:
        """Its names in lower case and its fixed address on ``network``."""
        member = replace(self, networks=(network,))
        return member.names | member.addresses

    def has_name(self, host: str) -> bool:
        """Whether ``host`` is one of its names or addresses on its networks."""
        return folded(host) in (self.names if ip_of(host) is None else self.addresses)

    def published_at(self, container_port: int) -> tuple[PublishedPort, ...]:
        """The published ports of a TCP port of the container."""
        if self.on_host_network:
            return (PublishedPort(container_port, container_port),)
        return tuple(
            port
            for port in self.published
            if port.container_port == container_port and port.protocol == "tcp"
        )

    def ports_behind(self, host_port: int) -> tuple[PublishedPort, ...]:
        """The published ports at a TCP port of the host."""
        return tuple(
            port
            for port in self.published
            if port.host_port == host_port and port.protocol == "tcp"
        )


def configures_proxy(label: str) -> bool:
    """Whether a proxy such as Traefik reads ``label`` of containers that it forwards to."""
    return label.startswith(("traefik.", "caddy", "tsdproxy."))


def may_be_configuration(target: str) -> bool:
    """Whether a mount at ``target`` may contain apache/kafka's server.properties."""
    return target.rstrip("/") in (SHARED_CONFIG, f"{SHARED_CONFIG}/server.properties")

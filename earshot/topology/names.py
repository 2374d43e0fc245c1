"""Resolution of a host at a place: to the place itself, a container, or the machine.

A hosts file has precedence over Docker's DNS, which resolves members of user-defined networks.
Names of other DNS servers are unknown.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from earshot.listeners.listed import by_key, shortened
from earshot.listeners.placeholders import is_known
from earshot.names.kinds import NameKind, ip_of, kind_of
from earshot.topology.container import Container, folded, is_loopback

HOST = ""
"""The place of a client on the machine itself; any other place is a service's name."""
OUTSIDE = "another machine"
"""The place of a client elsewhere; no service has a blank in its name."""
_OF_SERVICE = "service:"
_OF_CONTAINER = "container:"
SHARED = (_OF_SERVICE, _OF_CONTAINER)
"""Prefixes of `network_mode` for a container in the network of another."""
NO_NETWORK = "none"
_DOCKERS = "{} is a name that Docker gives on its networks only"
ROUTE_TO_CONTAINERS = "whether the machine has a route to its containers: on Linux it has"


def is_gateway(host: str) -> bool:
    """Whether ``host`` is a name of the machine that runs the containers (`host.docker.internal`),
    or Compose's keyword for its address."""
    return kind_of(host) is NameKind.DOCKER_HOST or host.lower() == "host-gateway"


def engine_of(host: str) -> str:
    """Who defines ``host``, a name of the machine that runs the containers."""
    return "Podman" if host.lower().endswith(".containers.internal") else "Docker Desktop"


@dataclass(frozen=True)
class Unknown:
    """An unknown result; ``fact`` names the missing fact."""

    fact: str


@dataclass(frozen=True)
class Loopback:
    """The client's own loopback; ``address`` is empty for a name such as localhost."""

    address: str = ""


@dataclass(frozen=True)
class Member:
    """A service's container on a network; ``network`` is empty for the default bridge."""

    service: str
    network: str = ""


@dataclass(frozen=True)
class Machine:
    """An address of the machine that is not loopback; empty for the one that containers get."""

    address: str = ""


Target = Loopback | Member | Machine


@dataclass(frozen=True)
class Resolution:
    """The targets of a host with the reason; ``doubt`` is an assumption, or empty."""

    targets: tuple[Target, ...]
    because: str
    doubt: str = ""


@dataclass(frozen=True)
class UnresolvedName:
    """The name does not resolve here; ``because`` is the reason."""

    because: str


class Names:
    """Resolves the names of ``containers`` (by service) and of the machine.

    ``machine`` are hosts that brokers advertise with a published port, which are assumed to be the
    machine's. ``own`` are certain names of the machine with their addresses.
    """

    def __init__(
        self,
        containers: Mapping[str, Container],
        machine: frozenset[str] = frozenset(),
        own: Mapping[str, str] | None = None,
    ) -> None:
        self.containers = containers
        self.machine = machine
        self.own = own or {}

    def resolve(self, place: str, host: str) -> Resolution | UnresolvedName | Unknown:
        """Resolves ``host`` at ``place``: a service, `HOST` or `OUTSIDE`."""
        place, host = self.owner(place), host.lower()
        client = self.containers.get(place)
        if client is not None and client.network_mode.startswith(SHARED):
            return Unknown("the network of the client, which is that of a container elsewhere")
        by_hosts_file = client is not None and host in client.extra_hosts
        if client is not None and host in client.extra_hosts:
            host = client.extra_hosts[host].lower()
            if not is_known(host):
                return Unknown("the address that extra_hosts of the client holds")
        if is_loopback(host) or kind_of(host) is NameKind.ANY_ADDRESS:
            number = ip_of(host)
            itself = Loopback("" if number is None else str(number))
            return Resolution((itself,), f"{host} is the client's own machine")
        if place == OUTSIDE:
            return self._outside(host)
        if is_gateway(host):
            return _gateway(host, client, is_given=by_hosts_file)
        if client is None or client.on_host_network:
            return self._on_machine(host)
        if resolution := self._members(place, client, folded(host)):
            return resolution
        return self._unlisted_name(place, client, host)

    def owner(self, place: str) -> str:
        """The service whose network ``place`` uses: itself, or the target of `network_mode`."""
        return self._owners.get(place, place)

    @cached_property
    def all(self) -> frozenset[str]:
        """Every name of a container, in lower case."""
        container_names = {
            name for container in self.containers.values() for name in container.names
        }
        return frozenset(container_names | {name.lower() for name in self.containers})

    def apart(self, service: str, alternative: str) -> bool:
        """Whether two services are alternatives: no profile runs both."""
        first, second = self._profiles.get(service), self._profiles.get(alternative)
        return bool(first and second) and not set(first or ()) & set(second or ())

    def has_profiles(self, service: str) -> bool:
        """Whether the service runs only with some profiles."""
        return service in self._profiles

    def sharing(self, owner: str) -> Sequence[str]:
        """The services in the network of ``owner``, which comes first."""
        return self._sharing.get(owner, ())

    def _on_machine(self, host: str) -> Resolution | UnresolvedName | Unknown:
        if address := self.own.get(host):
            target = Loopback(address) if is_loopback(address) else Machine(address)
            return Resolution((target,), f"{host} is {address} of this machine")
        if ip_of(host) is not None:
            meant = self._address(host)
            if folded(host) in self._by_address and isinstance(meant, Resolution):
                return replace(meant, doubt=ROUTE_TO_CONTAINERS)
            return meant
        if "." not in host and host in self.all:
            # the machine does not resolve names of containers
            return UnresolvedName(_DOCKERS.format(host))
        if host in self.machine:
            return self._advertised(host)
        return Unknown(f"what {host} means to the machine's resolver")

    def _outside(self, host: str) -> Resolution | UnresolvedName:
        """A name that Docker does not define is assumed to resolve to the machine."""
        if is_gateway(host) or folded(host) in self._by_address:
            return UnresolvedName(f"{host} is known on the Docker host only")
        if host in self.all:
            return UnresolvedName(_DOCKERS.format(host))
        address = self.own.get(host, "")
        if address and not is_loopback(address):
            because = f"{host} is {address} of the brokers' machine"
            return Resolution((Machine(address),), because)
        doubt = f"whether {host} leads to the brokers' machine"
        return Resolution((Machine(host),), f"{host} is taken for the machine", doubt)

    def _advertised(self, host: str) -> Resolution:
        doubt = f"whether {host} is this machine"
        return Resolution((Machine(host),), f"{host} is advertised with a published port", doubt)

    def _members(self, place: str, client: Container, host: str) -> Resolution | Unknown | None:
        if client.hostname and host == client.hostname.lower():
            because = f"{host} is the hostname of {place}, in its hosts file"
            return Resolution(tuple(self._interfaces(place, client)), because)
        members: dict[Member, None] = {}
        for network in client.networks:
            for name in self._by_network_name.get((network.name, host), ()):
                members[Member(name, network.name)] = None
        linked = client.links.get(host)
        if linked in self.containers and linked is not None:
            members |= dict.fromkeys(self._link_members(client, linked))
        if not members and self._is_own_name(place, client, host):
            members |= dict.fromkeys(self._interfaces(place, client))
        if not members:
            return None
        possible = [member for member in members if not self.apart(place, member.service)]
        if not possible:
            return Unknown(f"which of the profiles runs that has {host}")
        targets = _first_network_members(client, possible)
        if not targets:
            return Unknown(f"on which network of the client {host} is asked for first")
        networks = dict.fromkeys(
            f"network {target.network}" if target.network else "the default bridge"
            for target in targets
        )
        services = shortened(list(dict.fromkeys(target.service for target in targets)))
        return Resolution(targets, f"{host} is {services} on {', '.join(networks)}")

    def _is_own_name(self, place: str, client: Container, host: str) -> bool:
        """Whether ``host`` is one of the names that Docker gives it on user-defined networks."""
        return bool(client.networks) and (client.has_name(host) or host == place.lower())

    def _interfaces(self, place: str, client: Container) -> list[Member]:
        if not client.networks:
            return [Member(place)]
        return [Member(place, network.name) for network in client.networks]

    def _link_members(self, client: Container, service: str) -> list[Member]:
        linked = self.containers[service]
        mine = {network.name for network in client.networks}
        if not mine:
            return [] if linked.networks else [Member(service)]
        return [
            Member(service, network.name) for network in linked.networks if network.name in mine
        ]

    def _unlisted_name(
        self, place: str, client: Container, host: str
    ) -> Resolution | UnresolvedName | Unknown:
        """Resolves a host that is not a name on a network of ``place``."""
        if ip_of(host) is not None:
            return self._address(host)
        if host in self.machine and "." in host:
            return self._advertised(host)
        if client.open_networks or client.unknown:
            return Unknown("which other names there are on the networks of the client")
        if "." in host:
            return self._full_name(host)
        if self._may_be_generated(host):
            return Unknown(f"whether Compose generates the name {host}")
        if client.network_mode == NO_NETWORK:
            return UnresolvedName("the client has no network")
        where = [network.name for network in client.networks]
        return UnresolvedName(
            f"nothing on network {', '.join(where)} is called {host}"
            if where
            else f"the default bridge of Docker has no names, so not {host}"
        )

    def _address(self, host: str) -> Resolution | Unknown:
        """Resolves an address: of a container, or of the machine."""
        if members := self._by_address.get(folded(host)):
            return Resolution(tuple(members), f"{host} is the address of a container")
        if address := self.own.get(host):
            return Resolution((Machine(address),), f"{host} is an address of the machine")
        if host in self.machine:
            return self._advertised(host)
        return Unknown(f"whose address {host} is")

    def _full_name(self, host: str) -> UnresolvedName | Unknown:
        """A full name may be another DNS server's, unless it is a name on another network."""
        holders = [container for container in self.containers.values() if container.has_name(host)]
        if holders and not any(holder.published for holder in holders):
            networks = [
                net.name
                for holder in holders
                for net in holder.networks
                if folded(host) in holder.names_on(net)
            ]
            names = ", ".join(dict.fromkeys(networks))
            return UnresolvedName(f"{host} is known on network {names} only")
        return Unknown(f"what {host} means to other DNS servers")

    def _may_be_generated(self, host: str) -> bool:
        """Whether Compose may generate ``host`` (`PROJECT-SERVICE-1`), or a variable be it."""
        if any(not is_known(container.hostname) for container in self.containers.values()):
            return True
        head = re.fullmatch(r"(.+)[-_][0-9]+", host)
        return head is not None and any(
            head[1].endswith((f"-{name.lower()}", f"_{name.lower()}")) for name in self.containers
        )

    @cached_property
    def _by_network_name(self) -> Mapping[tuple[str, str], Sequence[str]]:
        """Services by network and name on it."""
        return by_key(
            ((network.name, name), service)
            for service, container in self.containers.items()
            for network in container.networks
            for name in container.names_on(network) | {service.lower()}
        )

    @cached_property
    def _by_address(self) -> Mapping[str, Sequence[Member]]:
        """Containers by their fixed addresses."""
        return by_key(
            (folded(network.address), Member(service, network.name))
            for service, container in self.containers.items()
            for network in container.networks
            if network.address
        )

    @cached_property
    def _profiles(self) -> Mapping[str, tuple[str, ...]]:
        return {
            name: container.profiles
            for name, container in self.containers.items()
            if container.profiles
        }

    @cached_property
    def _owners(self) -> Mapping[str, str]:
        called = {container.name: name for name, container in self.containers.items()}
        return {name: self._owner(name, called) for name in self.containers}

    def _owner(self, name: str, called: Mapping[str, str]) -> str:
        visited = {name}
        while (mode := self.containers[name].network_mode).startswith(SHARED):
            kind, _, target = mode.partition(":")
            target = called.get(target, target) if f"{kind}:" == _OF_CONTAINER else target
            if target in visited or target not in self.containers:
                break
            visited.add(target)
            name = target
        return name

    @cached_property
    def _sharing(self) -> Mapping[str, Sequence[str]]:
        by_owner = by_key((owner, name) for name, owner in self._owners.items())
        return {
            key: [key, *(name for name in names if name != key)] for key, names in by_owner.items()
        }


def _first_network_members(client: Container, members: Sequence[Member]) -> tuple[Member, ...]:
    """The members on the network that Docker resolves first: not internal, then by name.

    Empty if the project's name decides the order and the networks have different members.
    """
    joined = {network.name: network for network in client.networks}
    groups = by_key((member.network, member) for member in members)
    outer = [name for name in groups if name in joined and not joined[name].internal]
    names = sorted(outer or groups)
    first = groups[names[0]]
    kinds = {joined[name].is_named for name in names if name in joined}
    member_sets = {frozenset(group.service for group in groups[name]) for name in names}
    return tuple(first) if len(kinds) < 2 or len(member_sets) == 1 else ()


def _gateway(host: str, client: Container | None, *, is_given: bool) -> Resolution:
    """A name of the machine, which extra_hosts, Docker Desktop or Podman define."""
    because = f"{host} is the machine that runs the containers"
    if is_given:
        return Resolution((Machine(),), because)
    doubt = (
        f"whether {host} exists here: {engine_of(host)} has it, on Linux an entry of extra_hosts"
    )
    at_machine = client is None or client.on_host_network
    return Resolution((Loopback() if at_machine else Machine(),), because, doubt)

"""Containers of one file that may meet: their names and networks, brokers, and clients.

`Deployment.way` follows a client: where an address leads from a place, and who listens there.
What containers of other files, DNS or the user's machine decide is not known.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from earshot.facts.container import Container, is_loopback
from earshot.listeners.address import Address
from earshot.names.kinds import NameKind, ip_of, kind_of

GATEWAYS = frozenset(
    {
        "host.docker.internal",
        "gateway.docker.internal",
        "docker.for.mac.host.internal",
        "docker.for.mac.localhost",
        "docker.for.win.localhost",
        "host.containers.internal",
        "host-gateway",
    }
)
"""Names of the machine that runs the containers, and Compose's word for its address."""


@dataclass(frozen=True)
class Endpoint:
    """One listener of a broker in its container; None stands for what is not known."""

    name: str
    bind: Address
    advertised: Address | None
    is_controller: bool = False


@dataclass(frozen=True)
class Broker:
    """A broker or controller of the file.

    ``endpoints`` are its listeners, None where the file does not show them all. ``cluster`` tells
    clusters apart; ``voters`` are those of its quorum.
    """

    service: str
    container: Container
    id: int | None
    endpoints: tuple[Endpoint, ...] | None
    inter_broker: str = ""
    cluster: str = ""
    is_broker: bool = True
    is_controller: bool = False
    voters: Mapping[int, Address] = field(default_factory=dict)
    is_told: bool = True
    """What its image makes of its settings is known."""

    def named(self, listener: str) -> Endpoint | None:
        """Its listener of that name."""
        return next((it for it in self.endpoints or () if it.name == listener), None)


@dataclass(frozen=True)
class Bootstrap:
    """The addresses with which one service begins, and the setting that holds them."""

    service: str
    setting: str
    addresses: tuple[Address, ...]


class End(StrEnum):
    """Where a way ends that leads to no broker."""

    UNKNOWN = "unknown"
    SELF = "the client itself"
    NOWHERE = "no such name"
    REFUSED = "nobody listens"


@dataclass(frozen=True)
class Arrival:
    """A listener of a broker."""

    broker: Broker
    endpoint: Endpoint


Way = Arrival | End
HOST = ""
"""The place of a client on the machine itself; any other place is a service's name."""


@dataclass(frozen=True)
class Deployment:
    """All containers by service, the brokers among them, and what clients begin with."""

    containers: Mapping[str, Container]
    brokers: tuple[Broker, ...]
    bootstraps: tuple[Bootstrap, ...] = ()

    def way(self, place: str, address: Address) -> Way:
        """Where ``address`` leads from ``place`` (a service, or `HOST`)."""
        found = self._target(place, address.host.lower())
        if isinstance(found, End):
            return found
        if found is None:
            return self._on_host(address.port, place == HOST)
        ends = [self._listens(name, address.port, from_itself=name == place) for name in found]
        arrivals = [end for end in ends if isinstance(end, Arrival)]
        if arrivals:
            return arrivals[0]
        if any(end is End.UNKNOWN for end in ends):
            return End.UNKNOWN
        return End.SELF if place in found else End.REFUSED

    def members(self, broker: Broker) -> Iterator[Broker]:
        """Brokers of the same cluster, itself too."""
        for other in self.brokers:
            if other is broker or (other.is_broker and other.cluster == broker.cluster):
                yield other

    def _target(self, place: str, host: str) -> Collection[str] | End | None:
        """Services that ``host`` may mean; None for the machine."""
        own = self.containers.get(place)
        on_host = own is None or own.on_host_network
        if own is not None and host in own.extra_hosts:
            host = own.extra_hosts[host].lower()
        if is_loopback(host) or kind_of(host) is NameKind.ANY_ADDRESS:
            return None if on_host else (place,)
        if host in GATEWAYS:
            return None
        if on_host:
            return self._seen_from_host(place, host)
        assert own is not None
        number = ip_of(host)
        if own.network_mode.startswith(("service:", "container:")):
            return End.UNKNOWN
        networks = {item.name for item in own.networks}
        found = [
            name
            for name, other in self.containers.items()
            if (networks & {item.name for item in other.networks} or name == place)
            and (other.answers_to(host) or name.lower() == host)
        ]
        if found:
            return found
        if number is not None or "." in host or own.open_networks or own.unknown:
            return End.UNKNOWN
        return End.NOWHERE

    def _seen_from_host(self, place: str, host: str) -> Collection[str] | End | None:
        """A container's name means nothing to the machine; any other may mean anything."""
        if ip_of(host) is not None or "." in host:
            return End.UNKNOWN
        known = {name for item in self.containers.values() for name in item.names}
        return End.NOWHERE if host in known or host in self.containers else End.UNKNOWN

    def _on_host(self, port: int, is_user: bool) -> Way:
        """Who gets a connection to a port of the machine."""
        for name, container in self.containers.items():
            if container.on_host_network:
                if isinstance(end := self._listens(name, port, from_itself=True), Arrival):
                    return end
                continue
            for item in container.behind(port):
                return self._listens(name, item.container_port, from_itself=False)
        return End.UNKNOWN

    def _listens(self, service: str, port: int, *, from_itself: bool) -> Way:
        broker = next((item for item in self.brokers if item.service == service), None)
        if broker is None:
            return End.REFUSED if from_itself else End.UNKNOWN
        if broker.endpoints is None:
            return End.UNKNOWN
        for item in broker.endpoints:
            if item.bind.port == port and (from_itself or not is_loopback(item.bind.host)):
                return Arrival(broker, item)
        return End.REFUSED

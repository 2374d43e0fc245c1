"""Containers of one file that may meet, and where an address leads between them.

`Deployment.way` follows a client: where an address leads from a place, and who listens there.
What containers of other files, DNS or the user's machine decide is not known.
"""

import re
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property

from earshot.facts.container import Container, folded, is_loopback
from earshot.facts.settings import is_known
from earshot.listeners.address import Address
from earshot.listeners.listed import by_key
from earshot.listeners.terms import Protocol
from earshot.names.kinds import NameKind, ip_of, kind_of


@dataclass(frozen=True)
class Endpoint:
    """One listener of a broker in its container; None stands for what is not known."""

    name: str
    bind: Address
    advertised: Address | None
    is_controller: bool = False
    protocol: Protocol | None = None
    """Its security protocol, where the file shows it."""


@dataclass(frozen=True)
class Broker:
    """A broker or controller of the file.

    ``endpoints`` are its listeners, None where the file does not show them all. ``cluster`` keeps
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
    quorum_servers: tuple[Address, ...] = ()
    """`controller.quorum.bootstrap.servers`."""
    quorum_address: Address | None = None
    """What a controller of a dynamic quorum advertises to the other nodes."""
    quorum_protocol: Protocol | None = None
    """The security protocol over which it talks to controllers."""
    cluster_id: str | None = None
    """Under which its image formats the storage: "" for a random one, None where not known."""
    is_kafka: bool = True
    """It has Kafka's properties: else it only speaks Kafka's protocol, as Redpanda."""
    is_image_known: bool = True
    """What its image makes of its settings is known."""
    switched_off: tuple[tuple[str, Address], ...] = ()
    """What it would advertise by entries that stand in comments, each with its variable."""

    @property
    def for_clients(self) -> tuple[Endpoint, ...]:
        """Its listeners, as far as they are known, without those of controllers."""
        return tuple(item for item in self.endpoints or () if not item.is_controller)

    def named(self, listener: str) -> Endpoint | None:
        """Its listener of that name."""
        return next((it for it in self.endpoints or () if it.name == listener), None)


@dataclass(frozen=True)
class Bootstrap:
    """The addresses with which one service begins, and the setting that holds them."""

    service: str
    setting: str
    addresses: tuple[Address, ...]
    protocol: Protocol | None = None
    """The security protocol that it speaks, None where it is not known."""


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


_OF_SERVICE = "service:"
SHARED = (_OF_SERVICE, "container:")
"""What `network_mode` begins with where a container has the network of another, with its ports."""
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
        place = self._owners.get(place, place)
        found = self._target(place, address.host.lower())
        if isinstance(found, End):
            return found
        if found is None:
            return self._on_host(address.port)
        ends = [self._listens(name, address.port, from_itself=name == place) for name in found]
        arrivals = [end for end in ends if isinstance(end, Arrival)]
        if arrivals:
            return arrivals[0]
        if any(end is End.UNKNOWN for end in ends):
            return End.UNKNOWN
        return End.SELF if place in found else End.REFUSED

    def members(self, broker: Broker) -> Iterator[Broker]:
        """Brokers of the same cluster, itself too."""
        may_part = broker.service in self._profiles
        for other in self._clusters[broker.cluster]:
            parted = may_part and self.apart(broker.service, other.service)
            if other is broker or (other.is_broker and not parted):
                yield other

    def apart(self, one: str, other: str) -> bool:
        """Whether two services are alternatives: no profile runs both."""
        first, second = self._profiles.get(one), self._profiles.get(other)
        return bool(first and second) and not set(first or ()) & set(second or ())

    def outlook(self, place: str) -> Hashable:
        """What decides where an address leads from ``place``, if it is no name of its own.

        The same for services that are alike; that of a service with hosts of its own is its own.
        """
        return self._outlooks.get(place, place)

    def may_be_machine(self, address: Address) -> bool:
        """Whether the machine may be called so: a published port, under nobody's name."""
        host = address.host.lower()
        is_found = is_loopback(host) or ip_of(host) is not None or host in self._names
        return not is_found and bool(self._on_host_network or address.port in self._published)

    @cached_property
    def by_service(self) -> Mapping[str, Broker]:
        """The brokers and controllers by their services."""
        return {item.service: item for item in self.brokers}

    @cached_property
    def advertised_hosts(self) -> frozenset[str]:
        """Every host that a broker advertises, in lower case."""
        endpoints = (item for broker in self.brokers for item in broker.endpoints or ())
        return frozenset(it.advertised.host.lower() for it in endpoints if it.advertised)

    @cached_property
    def _names(self) -> frozenset[str]:
        named = {name for item in self.containers.values() for name in item.names}
        return frozenset(named | {name.lower() for name in self.containers})

    @cached_property
    def _known(self) -> Mapping[tuple[str, str], Sequence[str]]:
        """Services by a network and what they are called there."""
        return by_key(
            ((network.name, name), service)
            for service, container in self.containers.items()
            for network in container.networks
            for name in container.known_as(network) | {service.lower()}
        )

    @cached_property
    def _profiles(self) -> Mapping[str, tuple[str, ...]]:
        return {name: it.profiles for name, it in self.containers.items() if it.profiles}

    @cached_property
    def _clusters(self) -> Mapping[str, Sequence[Broker]]:
        return by_key((item.cluster, item) for item in self.brokers)

    @cached_property
    def _outlooks(self) -> Mapping[str, Hashable]:
        found: dict[str, Hashable] = {}
        for name, own in self.containers.items():
            flags = (own.network_mode, own.open_networks, bool(own.unknown), own.profiles)
            alike = (tuple(item.name for item in own.networks), *flags)
            found[name] = name if own.extra_hosts else alike
        return found

    @cached_property
    def _published(self) -> Mapping[int, tuple[str, int]]:
        """By a port of the machine: the first service behind it, and its container's port."""
        found: dict[int, tuple[str, int]] = {}
        for name, container in self.containers.items():
            for item in container.published:
                if item.host_port is not None and item.protocol == "tcp":
                    found.setdefault(item.host_port, (name, item.container_port))
        return found

    @cached_property
    def _on_host_network(self) -> tuple[str, ...]:
        return tuple(name for name, item in self.containers.items() if item.on_host_network)

    def _target(self, place: str, host: str) -> Collection[str] | End | None:
        """Services that ``host`` may mean; None for the machine."""
        own = self.containers.get(place)
        if own is not None and own.network_mode.startswith(SHARED):
            return End.UNKNOWN
        if own is not None and host in own.extra_hosts:
            host = own.extra_hosts[host].lower()
        if is_loopback(host) or kind_of(host) is NameKind.ANY_ADDRESS:
            return None if own is None or own.on_host_network else (place,)
        if host in GATEWAYS:
            return None
        if own is None or own.on_host_network:
            # a container's name means nothing to the machine; any other may mean anything
            is_theirs = ip_of(host) is None and "." not in host and host in self._names
            return End.NOWHERE if is_theirs else End.UNKNOWN
        known = folded(host)
        found = {
            name: None for item in own.networks for name in self._known.get((item.name, known), ())
        }
        if own.answers_to(host) or host == place.lower():
            found[place] = None
        if found:  # of alternatives that may be chosen together, nothing is certain
            return tuple(it for it in found if not self.apart(place, it)) or End.UNKNOWN
        if ip_of(host) is not None or "." in host or own.open_networks or own.unknown:
            return End.UNKNOWN
        return End.UNKNOWN if self._may_be_generated(host) else End.NOWHERE

    def _may_be_generated(self, host: str) -> bool:
        """Compose calls containers `PROJECT-SERVICE-1`; a hostname may hold a variable."""
        if any(not is_known(item.hostname) for item in self.containers.values()):
            return True
        head = re.fullmatch(r"(.+)[-_][0-9]+", host)
        return head is not None and any(
            head[1].endswith((f"-{name.lower()}", f"_{name.lower()}")) for name in self.containers
        )

    def _on_host(self, port: int) -> Way:
        """Who gets a connection to a port of the machine."""
        for name in self._on_host_network:
            if isinstance(end := self._listens(name, port, from_itself=True), Arrival):
                return end
        if port in self._published:
            name, inside = self._published[port]
            return self._listens(name, inside, from_itself=False)
        return End.UNKNOWN

    def _listens(self, service: str, port: int, *, from_itself: bool) -> Way:
        """Who has ``port`` in the network of ``service``, which others may share."""
        shared = [
            self.by_service[it] for it in self._sharing.get(service, ()) if it in self.by_service
        ]
        if not shared:
            return End.REFUSED if from_itself else End.UNKNOWN
        for broker in shared:
            for item in broker.endpoints or ():
                if item.bind.port == port and (from_itself or not is_loopback(item.bind.host)):
                    return Arrival(broker, item)
        if any(broker.endpoints is None for broker in shared):
            return End.UNKNOWN
        return End.REFUSED if service in self.by_service or from_itself else End.UNKNOWN

    @cached_property
    def _owners(self) -> Mapping[str, str]:
        """By service the one whose network it has: its own name, unless the file shows another."""
        return {name: self._owner(name) for name in self.containers}

    def _owner(self, name: str) -> str:
        seen = {name}
        while (mode := self.containers[name].network_mode).startswith(_OF_SERVICE):
            other = mode.removeprefix(_OF_SERVICE)
            if other in seen or other not in self.containers:
                break
            seen.add(other)
            name = other
        return name

    @cached_property
    def _sharing(self) -> Mapping[str, Sequence[str]]:
        """The services of each network by its owner, who comes first."""
        listed = by_key((owner, name) for name, owner in self._owners.items())
        return {
            key: [key, *(name for name in names if name != key)] for key, names in listed.items()
        }

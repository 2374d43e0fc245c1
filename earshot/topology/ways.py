"""Traces of an address from a place: name resolution, network way, and listening socket.

The model is Docker on Linux: networks are isolated, ports are published on addresses of the
machine, and containers connect to these at the machine's address. Other programs on the machine
are unknown.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property

from earshot.listeners.address import Address
from earshot.listeners.listed import by_key
from earshot.listeners.placeholders import is_known
from earshot.names.kinds import NameKind, ip_of, kind_of
from earshot.topology.broker import Broker, Endpoint, ReachedListener
from earshot.topology.container import Container, PublishedPort, is_loopback
from earshot.topology.msk import corrected_address
from earshot.topology.names import (
    NO_NETWORK,
    OUTSIDE,
    Loopback,
    Machine,
    Member,
    Names,
    Target,
    Unknown,
    UnresolvedName,
)


class Failure(StrEnum):
    """Why an address leads to no broker."""

    SELF = "the client itself"
    NOWHERE = "no such name"
    REFUSED = "nothing listens"
    NO_WAY = "no way there"


class HopKind(StrEnum):
    """The kinds of hops of a walk, in their order."""

    RESOLVE = "resolve"
    WAY = "way"
    SOCKET = "socket"
    PROTOCOL = "protocol"
    BROKER = "broker"


class Answer(StrEnum):
    """The result of a hop."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Hop:
    """One step of a walk; ``because`` is the reason, or the unknown fact."""

    kind: HopKind
    answer: Answer
    because: str


Outcome = ReachedListener | Failure | Unknown
NO_BROKER_IN_CLIENT = "the address leads to the client itself, where no broker listens"


@dataclass(frozen=True)
class Trace:
    """The hops from a place to ``address``, without the place, as several places share a trace.

    ``end`` is the outcome, ``ends`` that of each address of the host; ``doubt`` is an assumption,
    or empty.
    """

    address: Address
    hops: tuple[Hop, ...]
    end: Outcome
    ends: tuple[Outcome, ...] = ()
    doubt: str = ""

    @property
    def reached(self) -> ReachedListener | None:
        """The listener that the address leads to, or None."""
        return self.end if isinstance(self.end, ReachedListener) else None

    @property
    def reached_services(self) -> frozenset[str]:
        """The services of the brokers that the addresses of the host lead to."""
        return frozenset(
            end.broker.service for end in self.ends if isinstance(end, ReachedListener)
        )


@dataclass(frozen=True)
class Leg:
    """The hops to one target and their outcome."""

    end: Outcome
    hops: tuple[Hop, ...]

    def depending_on(self, fact: str) -> "Leg":
        """The same leg, with a way that also depends on the unknown ``fact``."""
        way, *rest = self.hops
        is_sure = way.answer is Answer.YES
        return replace(
            self, hops=(Hop(HopKind.WAY, Answer.UNKNOWN, fact) if is_sure else way, *rest)
        )


def unknown_trace(address: Address, fact: str) -> Trace:
    """The trace of a host whose meaning depends on ``fact``."""
    end = Unknown(fact)
    return Trace(address, (Hop(HopKind.RESOLVE, Answer.UNKNOWN, fact),), end, (end,))


def unresolved_trace(
    address: Address, because: str, doubt: str = "", end: Failure = Failure.NOWHERE
) -> Trace:
    """The trace of a host that leads nowhere, or to the client itself."""
    return Trace(address, (Hop(HopKind.RESOLVE, Answer.NO, because),), end, (end,), doubt)


def best_trace(address: Address, resolved: Hop, legs: Sequence[Leg], doubt: str = "") -> Trace:
    """The trace by the best of ``legs``, as clients try every address of a host."""

    def rank(leg: Leg) -> int:
        if isinstance(leg.end, ReachedListener):
            return 0
        return 1 if isinstance(leg.end, Unknown) else 2 + (leg.end is not Failure.SELF)

    best = min(legs, key=rank)
    return Trace(address, (resolved, *best.hops), best.end, tuple(leg.end for leg in legs), doubt)


def unknown_leg(fact: str) -> Leg:
    """A leg whose way depends on ``fact``."""
    return Leg(Unknown(fact), (Hop(HopKind.WAY, Answer.UNKNOWN, fact),))


def blocked_leg(end: Failure, because: str) -> Leg:
    """A leg without a way."""
    return Leg(end, (Hop(HopKind.WAY, Answer.NO, because),))


def socket_leg(way: Hop, end: Outcome, because: str) -> Leg:
    """A leg that ends at a socket."""
    answers = {ReachedListener: Answer.YES, Unknown: Answer.UNKNOWN}
    return Leg(end, (way, Hop(HopKind.SOCKET, answers.get(type(end), Answer.NO), because)))


def unknown_socket(fact: str) -> tuple[Outcome, str]:
    """The outcome that depends on ``fact``, and its reason."""
    return Unknown(fact), fact


class Ways:
    """The ways between ``containers`` and to ``brokers``, both by service."""

    def __init__(
        self, containers: Mapping[str, Container], brokers: Mapping[str, Broker], names: Names
    ) -> None:
        self._containers = containers
        self._brokers = brokers
        self._names = names

    def trace(self, place: str, address: Address) -> Trace:
        """Traces ``address`` from ``place``: a service, `HOST` or `OUTSIDE`."""
        if (right := corrected_address(address)) is not None:
            why = f"a broker of Amazon MSK with this name listens at {right.port} instead"
            resolved = Hop(HopKind.RESOLVE, Answer.YES, f"{address.host} is a broker of Amazon MSK")
            refused = Leg(Failure.REFUSED, (Hop(HopKind.SOCKET, Answer.NO, why),))
            return best_trace(address, resolved, [refused])
        meant = self._names.resolve(place, address.host)
        if isinstance(meant, Unknown):
            return unknown_trace(address, meant.fact)
        if isinstance(meant, UnresolvedName):
            return unresolved_trace(address, meant.because)
        answer = Answer.UNKNOWN if meant.doubt else Answer.YES
        resolved = Hop(HopKind.RESOLVE, answer, meant.doubt or meant.because)
        owner = self._names.owner(place)
        legs = [self._leg(owner, target, address.port) for target in meant.targets]
        return best_trace(address, resolved, legs, meant.doubt)

    def through(self, service: str, port: PublishedPort) -> tuple[Hop, ...]:
        """The hops from the machine through a published port of ``service`` to a listener."""
        return self._published_leg(service, port, port.host_ip or "an address").hops

    def _leg(self, place: str, target: Target, port: int) -> Leg:
        client = self._containers.get(place)
        at_machine = client is None or client.on_host_network
        if isinstance(target, Machine):
            if client is not None and client.network_mode == NO_NETWORK:
                return blocked_leg(Failure.NO_WAY, "the client has no network")
            leg = self._on_machine(port, target.address, is_loopback_way=False)
            if client is not None and client.is_cut_off and isinstance(leg.end, ReachedListener):
                # Docker 20.10 does, and its documentation excludes it
                return unknown_leg("whether this Docker lets internal networks reach the machine")
            return leg
        if isinstance(target, Loopback):
            if place == OUTSIDE:
                way = Hop(HopKind.WAY, Answer.YES, "the loopback of that machine")
                return socket_leg(way, Failure.SELF, NO_BROKER_IN_CLIENT)
            if at_machine:
                return self._on_machine(port, target.address, is_loopback_way=True)
            return self._inside(place, place, port, loopback=target.address)
        if target.service != place and not at_machine and not self._share_network(place, target):
            network = target.network or "the default bridge"
            why = f"the client is not on {network}: Docker keeps them apart"
            return blocked_leg(Failure.NO_WAY, why)
        return self._inside(place, target.service, port, network=target.network)

    def _share_network(self, place: str, target: Member) -> bool:
        client = self._containers[place]
        if not target.network:
            return not client.networks and client.network_mode != NO_NETWORK
        return any(network.name == target.network for network in client.networks)

    def _inside(
        self, place: str, service: str, port: int, *, network: str = "", loopback: str | None = None
    ) -> Leg:
        """The leg from ``place`` to ``port`` in the network of ``service``.

        ``loopback`` is the loopback address in use, empty for localhost, None for other addresses.
        """
        from_itself = place == service
        to = f"to {service}" if loopback is None else f"the loopback of {service}"
        end, why = self._listens(service, port, from_itself, network, loopback)
        if end is Failure.REFUSED and from_itself:
            end, why = Failure.SELF, f"it is the client itself, and {why}"
        return socket_leg(Hop(HopKind.WAY, Answer.YES, to), end, why)

    def _listens(
        self, service: str, port: int, from_itself: bool, network: str, loopback: str | None
    ) -> tuple[Outcome, str]:
        shared = self._brokers_sharing(service)
        refusal = f"nothing listens at port {port}"
        refusal += "" if from_itself else f" of {service}"
        for broker in shared:
            for endpoint in broker.endpoints or ():
                if endpoint.bind.port != port:
                    continue
                is_accepted = self._accepts(broker, endpoint, network, loopback)
                name = f"{endpoint.name} of {broker.service}"
                if is_accepted is True:
                    return ReachedListener(broker, endpoint), f"{name} listens there"
                if is_accepted is None:
                    where = f"on which address of {broker.service} {endpoint.bind} listens"
                    return unknown_socket(where)
                refusal = f"{name} listens on {endpoint.bind} alone"
        is_shown = from_itself or service in self._brokers
        if not is_shown or any(broker.endpoints is None for broker in shared):
            return unknown_socket(f"what listens at port {port} of {service}")
        return Failure.REFUSED, refusal

    def _accepts(
        self, broker: Broker, endpoint: Endpoint, network: str, loopback: str | None
    ) -> bool | None:
        """Whether ``endpoint`` accepts a connection to ``loopback`` or to its address on
        ``network``, which is the machine's address for host networking; None if unknown."""
        host = endpoint.bind.host
        if not host or kind_of(host) is NameKind.ANY_ADDRESS:
            return True
        if is_loopback(host):
            # a container's localhost is both addresses
            either = loopback == "" and not broker.container.on_host_network
            return loopback is not None and (either or _is_same_loopback(host, loopback))
        container = self._containers.get(self._names.owner(broker.service))
        if container is None:
            return None
        if loopback is not None:
            return None if container.on_host_network and ip_of(host) is None else False
        if container.on_host_network:
            return ip_of(network) == ip_of(host) if ip_of(network) else None
        number = ip_of(host)
        for joined in container.networks:
            if number is not None and ip_of(joined.address) == number:
                return joined.name == network
        return True if len(container.networks) < 2 else None

    def _on_machine(self, port: int, address: str, *, is_loopback_way: bool) -> Leg:
        """The leg to a port of the machine, by its loopback or another address."""
        via = address or ("loopback" if is_loopback_way else "the address that containers use")
        way = Hop(HopKind.WAY, Answer.YES, f"{via} of the machine")
        loopback = address if is_loopback_way else None
        for name in (*self._on_host_network.get(port, ()), *self._on_host_network.get(None, ())):
            end, why = self._listens(name, port, True, address, loopback)
            broker = self._brokers.get(name)
            if not isinstance(end, Failure) or (broker is not None and port in broker.ports):
                return socket_leg(way, end, why)
        elsewhere: list[tuple[str, PublishedPort]] = []
        for name, published in self._published.get(port, ()):
            if self._containers[name].is_cut_off:
                elsewhere.append((name, published))
                continue
            is_published = _is_published_at(published, address, is_loopback_way=is_loopback_way)
            if is_published is None:
                fact = f"whether {published.host_ip} is the address of the machine that is used"
                if is_loopback_way and is_loopback(published.host_ip):
                    fact = f"whether localhost is {published.host_ip} here"
                return unknown_leg(fact)
            if is_published:
                return self._published_leg(name, published, via)
            elsewhere.append((name, published))
        if elsewhere:
            name, published = elsewhere[0]
            if self._containers[name].is_cut_off:
                return self._published_leg(name, published, via)
            why = f"port {port} is published on {published.host_ip} alone"
            return socket_leg(way, Failure.REFUSED, why)
        return socket_leg(way, *unknown_socket(f"what listens at port {port} of the machine"))

    def _published_leg(self, name: str, port: PublishedPort, via: str) -> Leg:
        """The leg through a published port into the container."""
        if self._containers[name].is_cut_off:
            return blocked_leg(Failure.NO_WAY, f"{port} of {name}, whose networks are internal")
        way = Hop(HopKind.WAY, Answer.YES, f"{via} of the machine, published port {port} of {name}")
        networks = [network for network in self._containers[name].networks if not network.internal]
        network = networks[0].name if len(networks) == 1 else ""
        return socket_leg(way, *self._listens(name, port.container_port, False, network, None))

    @cached_property
    def _published(self) -> Mapping[int, Sequence[tuple[str, PublishedPort]]]:
        """The services that publish each port of the machine."""
        return by_key(
            (port.host_port, (name, port))
            for name, container in self._containers.items()
            for port in container.published
            if port.host_port is not None and port.protocol == "tcp"
        )

    @cached_property
    def _on_host_network(self) -> Mapping[int | None, Sequence[str]]:
        """Services on the machine's network by the port that they may listen at; None: any."""
        services_by_port: dict[int | None, list[str]] = {}
        for name, container in self._containers.items():
            sharing = self._brokers_sharing(name) if container.on_host_network else []
            is_open = any(broker.endpoints is None for broker in sharing)
            ports = {port for broker in sharing for port in broker.ports}
            for port in (None,) if is_open else ports:
                services_by_port.setdefault(port, []).append(name)
        return services_by_port

    def _brokers_sharing(self, owner: str) -> list[Broker]:
        """The brokers in the network of ``owner``."""
        services = self._names.sharing(owner)
        return [self._brokers[service] for service in services if service in self._brokers]

    def is_published(self, port: int) -> bool:
        """Whether a container publishes ``port`` of the machine, or uses the machine's network."""
        return port in self._published or any(
            container.on_host_network for container in self._containers.values()
        )


def _is_published_at(port: PublishedPort, address: str, *, is_loopback_way: bool) -> bool | None:
    """Whether a connection to the machine's loopback or to ``address`` reaches a published port;
    None if unknown."""
    if not port.host_ip or kind_of(port.host_ip) is NameKind.ANY_ADDRESS:
        return True
    if not is_known(port.host_ip):
        return None
    if is_loopback_way:
        return is_loopback(port.host_ip) and _is_same_loopback(port.host_ip, address)
    if is_loopback(port.host_ip):
        return False
    # another address may be translated to this one
    return True if ip_of(address) == ip_of(port.host_ip) else None


def _is_same_loopback(host: str, address: str) -> bool | None:
    """Whether a connection to ``address`` (empty: localhost) reaches a port at ``host``.

    localhost is 127.0.0.1 everywhere, and ::1 on most machines.
    """
    number = ip_of(host)
    if number is None or number == ip_of(address or "127.0.0.1"):
        return True
    return None if not address else False

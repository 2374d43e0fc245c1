"""A client's two connections: to its bootstrap address, then to each advertised address.

A broker answers with the addresses that all brokers of its cluster advertise on the listener of
the first connection. Each hop of a walk ends in yes, no or unknown, with a reason.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from earshot.listeners.address import Address
from earshot.topology.broker import Bootstrap, Broker, Endpoint, ReachedListener
from earshot.topology.container import HiddenPort, PublishedPort
from earshot.topology.model import Deployment
from earshot.topology.names import HOST, ROUTE_TO_CONTAINERS, Unknown
from earshot.topology.ways import (
    Answer,
    Failure,
    Hop,
    HopKind,
    Trace,
    best_trace,
    unknown_leg,
    unresolved_trace,
)


@dataclass(frozen=True)
class BrokerConnection:
    """A client's connection to one broker, at the address that it advertises on ``listener``.

    ``trace`` is None if the broker has no such listener or its advertised address is unknown.
    """

    broker: Broker
    listener: str
    trace: Trace | None
    hops: tuple[Hop, ...]

    @property
    def answer(self) -> Answer:
        """Whether the client reaches this broker."""
        return worst(self.hops)


@dataclass(frozen=True)
class BootstrapConnection:
    """The connection to one bootstrap address, and the broker connections that follow."""

    trace: Trace
    hops: tuple[Hop, ...]
    sent: tuple[BrokerConnection, ...] = ()

    @property
    def answer(self) -> Answer:
        """Whether a broker answers at the address."""
        return worst(self.hops)


@dataclass(frozen=True)
class Walk:
    """All connections of a client."""

    client: Bootstrap
    connections: tuple[BootstrapConnection, ...]

    @property
    def answer(self) -> Answer:
        """NO if no bootstrap address or not every broker is reached; UNKNOWN if that may be."""
        answers = [bootstrap.answer for bootstrap in self.connections]
        if all(answer is Answer.NO for answer in answers):
            return Answer.NO
        later = [
            connection.answer for bootstrap in self.connections for connection in bootstrap.sent
        ]
        if Answer.NO in later:
            return Answer.NO
        return Answer.UNKNOWN if Answer.UNKNOWN in (*answers, *later) else Answer.YES


def failing(hops: Iterable[Hop]) -> Hop | None:
    """The first hop that ends in NO, or None."""
    return next((hop for hop in hops if hop.answer is Answer.NO), None)


def worst(hops: Iterable[Hop]) -> Answer:
    """NO if any hop ends in NO, else UNKNOWN if any does, else YES."""
    answers = {hop.answer for hop in hops}
    return next((answer for answer in (Answer.NO, Answer.UNKNOWN) if answer in answers), Answer.YES)


def walk(deployment: Deployment, client: Bootstrap) -> Walk:
    """The walk of ``client``, with each of its addresses."""
    first_ones = bootstrap_connections(deployment, client)
    return Walk(client, tuple(_with_following(deployment, client, first) for first in first_ones))


def _with_following(
    deployment: Deployment, client: Bootstrap, first: BootstrapConnection
) -> BootstrapConnection:
    reached = first.trace.reached
    if first.answer is Answer.NO or reached is None or reached.endpoint.is_controller:
        return first
    return replace(first, sent=tuple(broker_connections(deployment, client, reached)))


def bootstrap_connections(
    deployment: Deployment, client: Bootstrap
) -> Sequence[BootstrapConnection]:
    """The connections of ``client`` to its addresses, without those that follow."""
    traces = [deployment.trace(client.service, address) for address in client.addresses]
    return [
        BootstrapConnection(trace, (*trace.hops, _protocol_hop(client, trace.reached)))
        if trace.reached
        else BootstrapConnection(trace, trace.hops)
        for trace in traces
    ]


def broker_connections(
    deployment: Deployment, client: Bootstrap, arrival: ReachedListener
) -> Iterator[BrokerConnection]:
    """The connections of ``client`` to every broker of the cluster that it bootstrapped to."""
    for broker in deployment.members(arrival.broker):
        yield broker_connection(deployment, client, broker, arrival.endpoint.name)


def broker_connection(
    deployment: Deployment, client: Bootstrap, broker: Broker, listener: str
) -> BrokerConnection:
    """The connection of ``client`` to ``broker`` after a bootstrap on ``listener``."""
    endpoint = broker.named(listener)
    if endpoint is None and broker.endpoints:
        why = f"{broker.service} has no listener of that name"
        return BrokerConnection(broker, listener, None, (Hop(HopKind.RESOLVE, Answer.NO, why),))
    if endpoint is None or endpoint.advertised is None:
        fact = f"what {broker.service} advertises for {listener}"
        if endpoint is not None and endpoint.template is not None:
            fact = f"which host {endpoint.template} has: {broker.service} advertises it"
        return BrokerConnection(
            broker, listener, None, (Hop(HopKind.RESOLVE, Answer.UNKNOWN, fact),)
        )
    trace = _trace_to(deployment, client.service, broker, endpoint.advertised)
    hops = trace.hops
    if trace.reached:
        last = _broker_hop(client.service, broker, trace)
        hops = (*hops, _protocol_hop(client, trace.reached), last)
    return BrokerConnection(broker, listener, trace, hops)


def _trace_to(deployment: Deployment, place: str, broker: Broker, advertised: Address) -> Trace:
    """The trace from ``place`` to an address that ``broker`` advertises."""
    client = deployment.containers.get(place)
    on_machine = place == HOST or (client is not None and client.on_host_network)
    if not (on_machine and broker.container.advertises_address):
        return _trace_by_fixed_address(deployment, place, broker, advertised)
    because = f"it is the address of the container {broker.service}"
    legs = [unknown_leg(ROUTE_TO_CONTAINERS)]
    return best_trace(advertised, Hop(HopKind.RESOLVE, Answer.YES, because), legs)


def _trace_by_fixed_address(
    deployment: Deployment, place: str, broker: Broker, address: Address
) -> Trace:
    """The trace from ``place`` to an ``address`` of ``broker``. It ends at an address that no
    container is known to have, of a network of both on which the broker has another, fixed one."""
    trace = deployment.trace(place, address)
    client = deployment.containers.get(place)
    is_free = trace.hops[0].answer is Answer.UNKNOWN and isinstance(trace.end, Unknown)
    if client is None or not is_free:
        return trace
    joined = {network.name for network in client.networks}
    for network in broker.container.networks:
        if network.name in joined and network.excludes(address.host):
            why = f"on {network.name}, {broker.service} has the address {network.address}"
            return unresolved_trace(address, why, end=Failure.REFUSED)
    return trace


def failing_hop_to(
    deployment: Deployment, place: str, address: Address, broker: Broker
) -> Hop | None:
    """The hop that fails between ``place`` and ``broker`` at ``address``, or None."""
    trace = _trace_by_fixed_address(deployment, place, broker, address)
    last = (_broker_hop(place, broker, trace),) if trace.reached else ()
    return failing((*trace.hops, *last))


def may_resolve(deployment: Deployment, place: str, address: Address) -> bool:
    """Whether another file may define a name that does not resolve at ``place``."""
    trace = deployment.trace(place, address)
    return trace.end is Failure.NOWHERE and bool(trace.doubt)


def _broker_hop(place: str, broker: Broker, trace: Trace) -> Hop:
    """Whether the reached broker is ``broker``."""
    reached = trace.reached_services
    if reached == {broker.service}:
        return Hop(HopKind.BROKER, Answer.YES, f"it is {broker.service}")
    if broker.service in reached:
        fact = f"which of {', '.join(sorted(reached))} answers: all have the name"
        return Hop(HopKind.BROKER, Answer.UNKNOWN, fact)
    reached_names = "the client itself" if reached == {place} else ", ".join(sorted(reached))
    return Hop(HopKind.BROKER, Answer.NO, f"it is {reached_names} and not {broker.service}")


def _protocol_hop(client: Bootstrap, arrival: ReachedListener) -> Hop:
    """Whether client and listener use the same security protocol."""
    name, protocol = arrival.endpoint.name, arrival.endpoint.protocol
    if protocol is None:
        fact = f"which security protocol {name} of {arrival.broker.service} speaks"
        return Hop(HopKind.PROTOCOL, Answer.UNKNOWN, fact)
    if client.protocol is None:
        fact = f"which security protocol the client speaks: {name} speaks {protocol}"
        return Hop(HopKind.PROTOCOL, Answer.UNKNOWN, fact)
    if client.protocol == protocol:
        return Hop(HopKind.PROTOCOL, Answer.YES, f"both speak {protocol}")
    why = f"the client speaks {client.protocol}, {name} is {protocol}"
    return Hop(HopKind.PROTOCOL, Answer.NO, why)


def clients_by_published_ports(deployment: Deployment) -> Iterator[Bootstrap]:
    """A client on the machine for each published port of a broker's listener.

    It uses the listener's security protocol.
    """
    for broker in deployment.brokers:
        for endpoint in broker.for_clients:
            for port in broker.container.published_at(endpoint.bind.port):
                if port.host_port is not None:
                    is_anywhere = port.host_ip in ("", "0.0.0.0", "::")
                    host = "localhost" if is_anywhere else port.host_ip
                    where = f"published port {port} of {broker.service}"
                    address = Address(host, port.host_port)
                    yield Bootstrap(HOST, where, (address,), endpoint.protocol)


@dataclass(frozen=True)
class PublishedListener:
    """A listener of a broker, its published ports, and the trace of a client on the machine to the
    advertised address.

    Without ``ports`` nothing shows that such a client exists.
    """

    broker: Broker
    endpoint: Endpoint
    ports: tuple[PublishedPort, ...]
    hops: tuple[Hop, ...]
    """The hops through the first of ``ports``."""
    sent: Trace

    @property
    def address(self) -> Address:
        """The advertised address; of an unknown host only the port is known."""
        return self.sent.address

    @property
    def fixed_ports(self) -> list[PublishedPort]:
        """Its published ports with a known port of the machine."""
        return [port for port in self.ports if port.host_port is not None]

    @property
    def has_hidden_port(self) -> bool:
        """Whether a variable has a published port."""
        return any(isinstance(port, HiddenPort) for port in self.ports)


def published_listeners(deployment: Deployment, broker: Broker) -> Iterator[PublishedListener]:
    """The listeners of ``broker`` with a known advertised address, or a known port of one."""
    owner = deployment.names.owner(broker.service)
    for endpoint in broker.for_clients:
        if endpoint.advertised is not None:
            trace = _trace_to(deployment, HOST, broker, endpoint.advertised)
        elif endpoint.template is not None:
            trace = Trace(endpoint.template, (), Unknown(f"which host {endpoint.template} has"))
        else:
            continue
        ports = broker.container.published_at(endpoint.bind.port)
        hops = deployment.through(owner, ports[0]) if ports else ()
        yield PublishedListener(broker, endpoint, ports, hops, trace)

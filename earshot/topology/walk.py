"""A client's two connections: to what it bootstraps with, then to what each broker advertises.

A broker answers with the addresses that all brokers of its cluster advertise on the listener that
the client came in on. Each hop of a walk ends in yes, no because, or unknown because.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from earshot.listeners.address import Address
from earshot.topology.broker import Bootstrap, Broker, Endpoint, ReachedListener
from earshot.topology.container import PublishedPort
from earshot.topology.model import Deployment
from earshot.topology.names import HOST
from earshot.topology.ways import Answer, Failure, Hop, Stage, Trace


@dataclass(frozen=True)
class BrokerConnection:
    """Where a client is sent for one broker, after it came in on ``listener``.

    ``trace`` is None where the broker has no such listener, or what it advertises is not known.
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
    """One address of a client, the hops to it, and where it is sent from there."""

    trace: Trace
    hops: tuple[Hop, ...]
    sent: tuple[BrokerConnection, ...] = ()

    @property
    def answer(self) -> Answer:
        """Whether a broker answers there."""
        return worst(self.hops)


@dataclass(frozen=True)
class Walk:
    """All that a client meets."""

    client: Bootstrap
    connections: tuple[BootstrapConnection, ...]

    @property
    def answer(self) -> Answer:
        """No where no address answers, or a broker is not reached; unknown where that may be."""
        answers = [item.answer for item in self.connections]
        if all(answer is Answer.NO for answer in answers):
            return Answer.NO
        sent = [it.answer for item in self.connections for it in item.sent]
        if Answer.NO in sent:
            return Answer.NO
        return Answer.UNKNOWN if Answer.UNKNOWN in (*answers, *sent) else Answer.YES


def failing(hops: Iterable[Hop]) -> Hop | None:
    """The first hop that ends in no."""
    return next((hop for hop in hops if hop.answer is Answer.NO), None)


def worst(hops: Iterable[Hop]) -> Answer:
    """One no is a no, whatever is not known beside it."""
    answers = {hop.answer for hop in hops}
    return next((answer for answer in (Answer.NO, Answer.UNKNOWN) if answer in answers), Answer.YES)


def walk(deployment: Deployment, client: Bootstrap) -> Walk:
    """The walk of ``client``, each of its addresses by itself."""
    return Walk(
        client,
        tuple(_both_connections(deployment, client, address) for address in client.addresses),
    )


def _both_connections(
    deployment: Deployment, client: Bootstrap, address: Address
) -> BootstrapConnection:
    first = bootstrap_connection(deployment, client, address)
    end = first.trace.end
    if (
        first.answer is Answer.NO
        or not isinstance(end, ReachedListener)
        or end.endpoint.is_controller
    ):
        return first
    return replace(first, sent=tuple(broker_connections(deployment, client, end)))


def bootstrap_connection(
    deployment: Deployment, client: Bootstrap, address: Address
) -> BootstrapConnection:
    """The first connection of ``client`` alone."""
    trace = deployment.trace(client.service, address)
    if not isinstance(trace.end, ReachedListener):
        return BootstrapConnection(trace, trace.hops)
    return BootstrapConnection(trace, (*trace.hops, _protocol_hop(client, trace.end)))


def broker_connections(
    deployment: Deployment, client: Bootstrap, arrival: ReachedListener
) -> Iterator[BrokerConnection]:
    """Where ``client`` is sent for every broker of the cluster that it came in at."""
    for broker in deployment.members(arrival.broker):
        yield broker_connection(deployment, client, broker, arrival.endpoint.name)


def broker_connection(
    deployment: Deployment, client: Bootstrap, broker: Broker, listener: str
) -> BrokerConnection:
    """Where ``client`` is sent for one broker, having come in on ``listener``."""
    endpoint = broker.named(listener)
    if endpoint is None and broker.endpoints:
        why = f"{broker.service} has no listener of that name"
        return BrokerConnection(broker, listener, None, (Hop(Stage.RESOLVE, Answer.NO, why),))
    if endpoint is None or endpoint.advertised is None:
        fact = f"what {broker.service} advertises for {listener}"
        return BrokerConnection(broker, listener, None, (Hop(Stage.RESOLVE, Answer.UNKNOWN, fact),))
    trace = deployment.trace(client.service, endpoint.advertised)
    return BrokerConnection(
        broker, listener, trace, (*trace.hops, *_final_hops(client, broker, trace))
    )


def _final_hops(client: Bootstrap, broker: Broker, trace: Trace) -> Iterator[Hop]:
    """The protocol, and whether it is the broker that is meant."""
    if not isinstance(trace.end, ReachedListener):
        return
    yield _protocol_hop(client, trace.end)
    yield _broker_hop(client.service, broker, trace)


def failing_hop_to(
    deployment: Deployment, place: str, address: Address, broker: Broker
) -> Hop | None:
    """The hop that fails between ``place`` and ``broker``, which shall be at ``address``."""
    trace = deployment.trace(place, address)
    is_there = isinstance(trace.end, ReachedListener)
    return failing((*trace.hops, _broker_hop(place, broker, trace)) if is_there else trace.hops)


def may_resolve(deployment: Deployment, place: str, address: Address) -> bool:
    """Whether a name that does not resolve for ``place`` may exist by another file."""
    trace = deployment.trace(place, address)
    return trace.end is Failure.NOWHERE and bool(trace.doubt)


def _broker_hop(place: str, broker: Broker, trace: Trace) -> Hop:
    """Whether it is the broker that is meant."""
    others = {end.broker.service for end in trace.ends if isinstance(end, ReachedListener)}
    if others == {broker.service}:
        return Hop(Stage.BROKER, Answer.YES, f"it is {broker.service}")
    if broker.service in others:
        fact = f"which of {', '.join(sorted(others))} answers: all have the name"
        return Hop(Stage.BROKER, Answer.UNKNOWN, fact)
    other = "the client itself" if others == {place} else ", ".join(sorted(others))
    return Hop(Stage.BROKER, Answer.NO, f"it is {other} and not {broker.service}")


def _protocol_hop(client: Bootstrap, arrival: ReachedListener) -> Hop:
    """Who connects and who listens must speak one security protocol."""
    name, protocol = arrival.endpoint.name, arrival.endpoint.protocol
    if protocol is None:
        fact = f"which security protocol {name} of {arrival.broker.service} speaks"
        return Hop(Stage.PROTOCOL, Answer.UNKNOWN, fact)
    if client.protocol is None:
        fact = f"which security protocol the client speaks: {name} speaks {protocol}"
        return Hop(Stage.PROTOCOL, Answer.UNKNOWN, fact)
    if client.protocol == protocol:
        return Hop(Stage.PROTOCOL, Answer.YES, f"both speak {protocol}")
    why = f"the client speaks {client.protocol}, {name} is {protocol}"
    return Hop(Stage.PROTOCOL, Answer.NO, why)


def clients_by_published_ports(deployment: Deployment) -> Iterator[Bootstrap]:
    """A client on the machine for each published port behind which a broker listens.

    It speaks the protocol of the listener that the port is published for.
    """
    for broker in deployment.brokers:
        for endpoint in broker.for_clients:
            for port in broker.container.published_at(endpoint.bind.port):
                if port.host_port is not None:
                    host = (
                        port.host_ip if port.host_ip not in ("", "0.0.0.0", "::") else "localhost"
                    )
                    where = f"published port {port} of {broker.service}"
                    address = Address(host, port.host_port)
                    yield Bootstrap(HOST, where, (address,), endpoint.protocol)


@dataclass(frozen=True)
class PublishedListener:
    """A client on the machine that comes in by a published port, and where its listener sends it.

    ``ports`` are all that lead to the listener; without one nothing shows such a client.
    """

    endpoint: Endpoint
    ports: tuple[PublishedPort, ...]
    hops: tuple[Hop, ...]
    """Those through the first of the ports."""
    sent: Trace


def published_listeners(deployment: Deployment, broker: Broker) -> Iterator[PublishedListener]:
    """The clients on the machine that the listeners of ``broker`` may have, each to itself."""
    for endpoint in broker.for_clients:
        if endpoint.advertised is not None:
            ports = broker.container.published_at(endpoint.bind.port)
            hops = deployment.through(broker.service, ports[0]) if ports else ()
            yield PublishedListener(
                endpoint, ports, hops, deployment.trace(HOST, endpoint.advertised)
            )

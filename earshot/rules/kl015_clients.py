"""KL015: the clients of a file reach its brokers, also at the advertised addresses.

Each finding is a failing hop of a client's bootstrap or of a connection that follows, reported
once for all clients that fail there.
"""

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from earshot.facts.cluster import ClusterFacts
from earshot.listeners.address import Address
from earshot.listeners.listed import by_key, shortened
from earshot.names.kinds import ip_of
from earshot.rules import kl015_no_clients
from earshot.rules.kl002_kafka_mechanisms import EXPECTED, NOT_A_MECHANISM, is_protocol
from earshot.rules.kl017_published import on_all_interfaces
from earshot.rules.rule import AppliedAt, Finding, Rule, Severity
from earshot.topology.broker import Bootstrap, Broker, ReachedListener
from earshot.topology.container import DEFAULT_BRIDGES
from earshot.topology.model import Deployment
from earshot.topology.names import engine_of, is_gateway
from earshot.topology.walk import (
    BootstrapConnection,
    BrokerConnection,
    bootstrap_connections,
    broker_connection,
    broker_connections,
    failing,
    walk,
)
from earshot.topology.ways import Answer, Failure, HopKind, Trace

_PROTOCOL = "the client's security.protocol"


@dataclass(frozen=True)
class _FailedConnection:
    """The hop at which clients of a listener do not reach one broker."""

    service: str
    listener: str
    hop: HopKind
    problem: str
    is_certain: bool


def check(facts: ClusterFacts) -> Iterator[Finding]:
    """Checks the bootstrap of every client, then the connections that follow."""
    deployment = facts.deployment
    if deployment is None:
        return
    yield from _unhealthy(deployment)
    for name, closed in deployment.closed_ports():
        yield _closed(name, closed)
    bootstrapped: list[tuple[Bootstrap, Sequence[BootstrapConnection]]] = []
    lost_clients: set[Bootstrap] = set()
    for client in deployment.bootstraps:
        entrances = bootstrap_connections(deployment, client)
        traces = [entrance.trace for entrance in entrances]
        lost = all(isinstance(trace.end, Failure) for trace in traces)
        if lost and deployment.shows_brokers(client, traces):
            address = Bootstrap(client.service, client.setting, client.addresses)
            if address not in lost_clients:
                yield _no_bootstrap(deployment, client, entrances)
            lost_clients.add(address)
        else:
            bootstrapped.append((client, entrances))
    yield from _protocol_mismatches(deployment, bootstrapped)
    yield from _not_mechanisms(bootstrapped)
    failed_connections = _failed_connections(deployment, bootstrapped)
    for failed, services in failed_connections.items():
        yield _wrong_address(deployment, failed, services)
    reported = {(failed.service, failed.listener) for failed in failed_connections}
    yield from kl015_no_clients.check(deployment, RULE, reported)
    failed_services = {name for names in failed_connections.values() for name in names}
    clients_by_host = by_key(
        (client.addresses[0].host.lower(), client)
        for client, connections in bootstrapped
        if all(_needs_one_engine(entry.trace) for entry in connections)
        and client.service not in failed_services
    )
    for host, clients in clients_by_host.items():
        yield _of_one_engine(host, clients)


def _closed(port: str, closed: ReachedListener) -> Finding:
    """The finding that no client connects through ``port``."""
    listener, bind = closed.endpoint.name, closed.endpoint.bind
    return RULE.finding(
        f"{port} leads to {listener}, which listens on {bind} alone: no client connects",
        "a listener on all interfaces of the pod",
        listener=listener,
        container=closed.broker.service,
        remedy=on_all_interfaces(closed.endpoint),
        inputs=("listeners",),
    )


def _unhealthy(deployment: Deployment) -> Iterator[Finding]:
    """Warnings for health checks that do not reach their own broker, which may work."""
    for client in deployment.health_checks:
        broker, address = deployment.by_service[client.service], client.addresses[0]
        if broker.endpoints is None or len(client.addresses) > 1:
            continue
        trace, why = deployment.trace(client.service, address), ""
        if isinstance(trace.end, Failure):
            why = f"connects to {address}, where nothing listens in the container"
        elif trace.reached and trace.reached.broker is broker:
            why = _health_check_failure(deployment, client, trace.reached)
        if why:
            yield RULE.finding(
                f"its health check {why}",
                "a listener whose advertised address works in the container",
                container=client.service,
                severity=Severity.WARNING,
                remedy="check the listener that the other containers use, at the port that it "
                "listens on",
                inputs=("healthcheck",),
            )


def _health_check_failure(deployment: Deployment, client: Bootstrap, first: ReachedListener) -> str:
    """The problem of a health check at the advertised address of ``first``, or empty."""
    if first.endpoint.is_controller:
        return ""
    sent = broker_connection(deployment, client, first.broker, first.endpoint.name).trace
    if sent is None or sent.doubt or sent.end is Failure.NOWHERE:
        return ""  # another source may define the name
    start = f"connects to {client.addresses[0]} and is sent on to {sent.address}"
    if isinstance(sent.end, Failure):
        return f"{start}, where nothing listens in the container"
    if sent.reached and sent.reached.endpoint.is_controller:
        return f"{start}, which is {sent.reached.endpoint.name}, a listener of the controller"
    return ""


def _protocol_mismatches(
    deployment: Deployment,
    let_in: Iterable[tuple[Bootstrap, Sequence[BootstrapConnection]]],
) -> Iterator[Finding]:
    """Findings for clients with another security protocol than the listener's.

    A warning if another bootstrap address of the client may work.
    """
    mismatches = []
    for client, entries in let_in:
        lost = all(entry.answer is Answer.NO for entry in entries)
        for entry in entries:
            hop, reached = failing(entry.hops), entry.trace.reached
            if reached and hop and hop.kind is HopKind.PROTOCOL:
                key = (reached.broker.service, reached.endpoint.name, reached.endpoint.protocol)
                settings = (client.protocol_setting, client.setting)
                other = _listener_that_serves(deployment, client, reached.broker)
                problem = (key, client.protocol, settings, lost, other)
                mismatches.append((problem, client.service))
                break
    for (listened, actual, settings, lost, other), clients in by_key(mismatches).items():
        broker, listener, expected = listened
        own_setting = settings[0]
        verb = "speaks" if len(clients) == 1 else "speak"
        yield RULE.finding(
            f"{shortened(list(clients))} {verb} {actual} to {listener} of {broker}, which is "
            f"{expected}{f' ({own_setting})' if own_setting else ''}",
            "the protocol of the listener",
            listener=listener,
            container=clients[0],
            severity=None if lost else Severity.WARNING,
            remedy=f"set {own_setting or _PROTOCOL} to {expected}"
            f"{f', or bootstrap to {other}, which is {actual}' if other else ''}",
            inputs=tuple(filter(None, settings)),
        )


def _listener_that_serves(deployment: Deployment, client: Bootstrap, broker: Broker) -> str:
    """The first listener of ``broker`` with the protocol of ``client`` that leads it back to
    ``broker``, or empty."""
    names = (one.name for one in broker.for_clients if one.protocol == client.protocol)
    connections = (broker_connection(deployment, client, broker, name) for name in names)
    return next((one.listener for one in connections if not failing(one.hops)), "")


def _not_mechanisms(
    let_in: Iterable[tuple[Bootstrap, Sequence[BootstrapConnection]]],
) -> Iterator[Finding]:
    """Findings for clients with the name of a security protocol as their SASL mechanism."""
    for client, entries in let_in:
        if client.protocol is None or not client.protocol.sasl or not is_protocol(client.mechanism):
            continue
        if all(entry.answer is Answer.NO for entry in entries):
            continue  # its protocol is reported
        setting, used = client.mechanism_setting, client.mechanism
        yield RULE.finding(
            f"{setting}: {used} {NOT_A_MECHANISM}; {client.service} cannot log in",
            EXPECTED,
            container=client.service,
            remedy=f"set {setting} to a mechanism that the listener has",
            inputs=(setting, client.setting),
        )


def _failed_connections(
    deployment: Deployment, clients: Iterable[tuple[Bootstrap, Sequence[BootstrapConnection]]]
) -> dict[_FailedConnection, list[str]]:
    """The services of clients that do not reach a broker, by failed connection."""
    sent: dict[_FailedConnection, list[str]] = {}
    answers: dict[Hashable, Sequence[_FailedConnection]] = {}
    for client, entrances in clients:
        for entry in entrances:
            reached = entry.trace.reached
            if not reached or reached.endpoint.is_controller or entry.answer is Answer.NO:
                continue
            key = _client_group(deployment, client, reached)
            if key not in answers:
                connections = broker_connections(deployment, client, reached)
                answers[key] = tuple(_failures(deployment, connections))
            for failed in answers[key]:
                sent.setdefault(failed, []).append(client.service)
    return sent


def _needs_one_engine(trace: Trace) -> bool:
    """Whether a broker is reached at a name that only Docker Desktop or only Podman defines."""
    return bool(trace.reached and trace.doubt) and is_gateway(trace.address.host)


def _of_one_engine(host: str, clients: Sequence[Bootstrap]) -> Finding:
    services = shortened(list(dict.fromkeys(client.service for client in clients)))
    kind = "a former name" if host.lower().startswith("docker.for.") else "a name"
    engine = engine_of(host)
    lacks = "Docker does not give" if engine == "Podman" else "on Linux nothing gives"
    return RULE.finding(
        f"{clients[0].setting}: {host} is {kind} of {engine}, and {lacks} it to {services}",
        "a name that every Docker engine gives",
        container=clients[0].service,
        severity=Severity.WARNING,
        remedy=f'write extra_hosts: ["{host}:host-gateway"] for {services}, or bootstrap to '
        "a name of the broker on a network that both are on",
        inputs=(clients[0].setting,),
    )


def _client_group(deployment: Deployment, client: Bootstrap, arrival: ReachedListener) -> Hashable:
    """A key that is equal for clients with the same connections, of which one is walked."""
    place = client.service
    container = deployment.containers.get(place)
    names = container.names | {place.lower()} if container else {place}
    needs_own_walk = bool(names & deployment.advertised_hosts) or place in deployment.by_service
    outlook = place if needs_own_walk else deployment.position(place)
    broker = arrival.broker
    profiles, listener = broker.container.profiles, arrival.endpoint.name
    return (outlook, broker.cluster, profiles, listener, client.protocol)


def _failures(
    deployment: Deployment, sent: Iterable[BrokerConnection]
) -> Iterator[_FailedConnection]:
    """The failed ones of the connections ``sent``."""
    for connection in sent:
        hop = failing(connection.hops)
        if hop is None:
            continue
        trace, is_certain = connection.trace, True
        if trace is None:
            problem = f"sent on, but {hop.because}, and is never found"
        else:
            host = trace.address.host
            problem = f"sent on to {trace.address}: {hop.because}"
            if hop.kind is HopKind.BROKER:
                continue  # KL016 reports another broker's address
            if hop.kind is HopKind.PROTOCOL and (
                connection.hops[-1].answer is Answer.NO
                or connection.listener == connection.broker.inter_broker
            ):
                continue  # KL016 reports another broker's address, and another protocol
            if hop.kind is HopKind.SOCKET and ip_of(host) is not None and "published on" in problem:
                continue  # KL017 reports the published address
            is_certain = deployment.is_certain(trace, connection.broker)
        yield _FailedConnection(
            connection.broker.service, connection.listener, hop.kind, problem, is_certain
        )


def _wrong_address(
    deployment: Deployment, failed: _FailedConnection, clients: Sequence[str]
) -> Finding:
    service, listener = failed.service, failed.listener
    endpoint = deployment.by_service[service].named(listener)
    services = list(dict.fromkeys(clients))
    verb = "bootstrap to {} and are" if len(services) > 1 else "bootstraps to {} and is"
    expected = "an address that works where these clients are"
    remedy = f"give {service} the listener {listener} as well"
    if endpoint:
        remedy = (
            f"advertise {listener} under a name and port by which these clients reach {service}, "
            "and give clients elsewhere a listener of their own"
        )
    inputs = "advertised.listeners"
    if failed.hop is HopKind.PROTOCOL:
        expected, inputs = "one protocol on all brokers", "listener.security.protocol.map"
        remedy = f"map {listener} to one protocol on all brokers of the cluster"
    return RULE.finding(
        f"{shortened(services)} {verb.format(listener)} {failed.problem}",
        expected,
        listener=listener,
        container=service,
        severity=None if failed.is_certain else Severity.WARNING,
        remedy=remedy,
        inputs=(inputs,),
    )


def _works(deployment: Deployment, client: Bootstrap, address: Address) -> bool:
    """Whether ``client`` may bootstrap to ``address`` and then connect to the broker there."""
    (entrance,) = walk(deployment, replace(client, addresses=(address,))).connections
    reached = entrance.trace.reached
    later = [
        connection.answer
        for connection in entrance.sent
        if reached is not None and connection.broker is reached.broker
    ]
    return Answer.NO not in (entrance.answer, *later)


def _no_bootstrap(
    deployment: Deployment, client: Bootstrap, entrances: Sequence[BootstrapConnection]
) -> Finding:
    reached = "; ".join(
        f"{entrance.trace.address}: {entrance.trace.hops[-1].because}" for entrance in entrances
    )
    traces = [entrance.trace for entrance in entrances]
    offers = deployment.alternative_addresses(client, traces)
    working = [offer for offer in offers if _works(deployment, client, offer)]
    expected = f"one of {', '.join(map(str, working))}" if working else "a listener of a broker"
    remedy = "bootstrap to a listener whose advertised address works in this container"
    if offers and not working:
        expected = "a listener for clients in this container, and no broker has one"
        remedy = "add a listener that advertises an address of this network, and bootstrap to it"
    refused = [trace.address for trace in traces if trace.end is Failure.REFUSED]
    for address in refused:
        if (closed := deployment.loopback_listener(client.service, address)) is not None:
            expected, remedy = f"one of {', '.join(map(str, offers))}", on_all_interfaces(closed)
    if apart := _broker_on_other_network(deployment, client.service, traces):
        net = apart.container.networks[0].name
        expected = f"a network that {client.service} and {apart.service} have in common"
        remedy = f"put {client.service} on the network {net} as well, where {apart.service} is"
        if deployment.containers[client.service].network_mode:
            remedy = f"write no network_mode, so that {client.service} is on the network {net}"
    return RULE.finding(
        f"{client.setting} leads to no broker ({reached})",
        expected,
        container=client.service,
        severity=None if all(map(deployment.is_certain, traces)) else Severity.WARNING,
        remedy=remedy,
        inputs=(client.setting,),
    )


def _broker_on_other_network(
    deployment: Deployment, place: str, traces: Sequence[Trace]
) -> Broker | None:
    """The broker that a client looks for by name, on networks that the client is not on."""
    client = deployment.containers.get(place)
    hosts = [trace.address.host for trace in traces if trace.end is Failure.NOWHERE]
    if client is None or not (client.networks or client.network_mode in DEFAULT_BRIDGES):
        return None
    for broker in deployment.brokers:
        if broker.container.networks and any(map(broker.container.has_name, hosts)):
            return broker
    return None


RULE = Rule(
    id="KL015",
    title="Clients in the same file reach the brokers, and are sent where they can connect",
    reason="A client that bootstraps well is then sent to the advertised address, and hangs there.",
    remedy="advertise an address that works for these clients",
    source="https://kafka.apache.org/documentation/#brokerconfigs_advertised.listeners",
    check=check,
    oldest=(0, 11),
    needs="deployment",
    applied_at=(AppliedAt.FILE, AppliedAt.PODS, AppliedAt.CONTAINERS),
)

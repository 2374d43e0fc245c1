"""Part of KL017: clients of one broker's published port reach all brokers of the cluster.

Clients of a published port connect to the listener of that name on every broker of the cluster.
Kafka omits a broker without such a listener from its answer (LISTENER_NOT_FOUND).
"""

from collections.abc import Collection, Iterator

from earshot.listeners.address import Address
from earshot.rules.rule import Finding, Rule, Severity
from earshot.topology.broker import Bootstrap, Broker
from earshot.topology.container import PublishedPort, is_loopback
from earshot.topology.model import Deployment
from earshot.topology.names import HOST, Unknown
from earshot.topology.walk import (
    BrokerConnection,
    broker_connection,
    failing,
    published_listeners,
)


def check(
    deployment: Deployment, rule: Rule, reported: Collection[tuple[str, str]]
) -> Iterator[Finding]:
    """One finding for each broker and listener that such clients do not reach.

    `kl017_published` checks brokers that publish the listener. Pairs of service and listener in
    ``reported`` have a finding.
    """
    checked_pairs = set(reported)
    for broker in deployment.brokers:
        for listener, port in _client_listeners(deployment, broker):
            for member in deployment.members(broker):
                if member is broker or (member.service, listener) in checked_pairs:
                    continue
                checked_pairs.add((member.service, listener))
                if _may_publish(member, listener):
                    continue
                entrance = f"published port {port} of {broker.service}"
                client = Bootstrap(HOST, entrance, ())
                connection = broker_connection(deployment, client, member, listener)
                problem = _problem(deployment, connection)
                if not problem:
                    continue
                own_name = _own_name(deployment, connection, broker)
                checked_pairs.add((broker.service, own_name))  # different names are one cause
                observed = f"{problem}, and clients of the {entrance} are sent to every broker"
                yield _finding(rule, connection, broker.service, own_name, observed)


def _client_listeners(
    deployment: Deployment, broker: Broker
) -> Iterator[tuple[str, PublishedPort]]:
    """The published listeners of ``broker``, each with its port, whose advertised address is not
    known to fail or to be another broker's."""
    if broker.container.on_host_network or broker.container.has_unknown_ports:
        return
    for walk in published_listeners(deployment, broker):
        reached = walk.sent.reached
        is_other = reached is not None and reached.broker is not broker
        is_other = is_other or broker.container.advertises_address
        if walk.fixed_ports and not is_other and not failing((*walk.hops, *walk.sent.hops)):
            yield walk.endpoint.name, walk.fixed_ports[0]


def _may_publish(broker: Broker, listener: str) -> bool:
    """Whether a port of the machine may lead to the listener of ``broker``."""
    if broker.endpoints is None or broker.container.has_unknown_ports:
        return True
    endpoint = broker.named(listener)
    return endpoint is not None and bool(broker.container.published_at(endpoint.bind.port))


def _problem(deployment: Deployment, connection: BrokerConnection) -> str:
    """The reason why clients on the machine do not reach the broker, or an empty string."""
    if connection.trace is None:
        return f"has no listener {connection.listener}" if failing(connection.hops) else ""
    address = connection.trace.address
    if hop := failing(connection.hops):
        is_certain = deployment.is_certain(connection.trace)
        return f"advertises {address}: {hop.because}" if is_certain else ""
    if isinstance(connection.trace.end, Unknown) and not _is_published(deployment, address):
        return f"advertises {address}, and publishes no port for {connection.listener}"
    return ""


def _own_name(deployment: Deployment, connection: BrokerConnection, broker: Broker) -> str:
    """The name of a published listener of the other broker that ``broker`` lacks, or empty."""
    if connection.trace is not None:
        return ""
    names = (name for name, _ in _client_listeners(deployment, connection.broker))
    return next((name for name in names if broker.named(name) is None), "")


def _is_published(deployment: Deployment, address: Address) -> bool:
    """Whether a container publishes the port, and may forward its connections."""
    return any(container.ports_behind(address.port) for container in deployment.containers.values())


def _finding(
    rule: Rule, connection: BrokerConnection, sender: str, own_name: str, observed: str
) -> Finding:
    listener, service = connection.listener, connection.broker.service
    remedy = _remedy(connection, own_name, sender)
    inputs = ("listeners", "advertised.listeners", "ports")
    is_no = (
        connection.trace is None
        or failing(connection.hops)
        or is_loopback(connection.trace.address.host)
    )
    certain = is_no and connection.broker.is_image_known
    return rule.finding(
        observed,
        f"a listener {listener} of every broker that its clients reach",
        listener=listener,
        container=service,
        severity=None if certain else Severity.WARNING,
        remedy=remedy,
        inputs=inputs if connection.trace is None else inputs[1:],
    )


def _remedy(connection: BrokerConnection, own_name: str, sender: str) -> str:
    service, listener = connection.broker.service, connection.listener
    endpoint = connection.broker.named(listener)
    if own_name:
        return f"rename {own_name} of {service} to {listener}, its name on {sender}"
    if endpoint is None or connection.trace is None:
        return (
            f"give {service} a listener {listener} with a published port of its own, and advertise "
            "that port under a name of the machine"
        )
    if failing(connection.hops) is None:
        return f"publish {connection.trace.address.port}:{endpoint.bind.port}"
    return f"publish a port of the machine for {endpoint.bind.port}, and advertise that port there"

"""Part of KL017: clients of a published port are sent to a container's name.

Docker resolves such a name on its networks only.
"""

from collections.abc import Iterator, Sequence

from earshot.listeners.address import Address
from earshot.listeners.placeholders import is_known
from earshot.rules.rule import Finding, Rule, Severity
from earshot.topology.broker import Broker, Endpoint
from earshot.topology.container import HiddenPort, is_loopback
from earshot.topology.model import Deployment
from earshot.topology.names import HOST, is_gateway
from earshot.topology.walk import PublishedListener, failing
from earshot.topology.ways import Failure


def check(
    deployment: Deployment, rule: Rule, broker: Broker, walks: Sequence[PublishedListener]
) -> Iterator[Finding]:
    """One finding for all published listeners that advertise containers' names or addresses; none
    if another listener serves the machine."""
    by_address = broker.container.advertises_address
    misled = [walk for walk in walks if by_address or walk.sent.end is Failure.NOWHERE]
    lost = [
        (walk.endpoint, port_text)
        for walk in misled
        if (port_text := _shown_ports(deployment, walk))
    ]
    is_random = not lost
    lost = lost or [*_random_ports(deployment, misled)]
    if not lost or serves_machine(deployment, broker):
        return
    endpoints = [endpoint for endpoint, _ in lost]
    ports = ", ".join(dict.fromkeys(port for _, port in lost))
    hosts = ", ".join(
        dict.fromkeys(endpoint.advertised.host for endpoint in endpoints if endpoint.advertised)
    )
    has_clients = any(_has_clients(deployment, endpoint) for endpoint in endpoints)
    certain = not (is_random or by_address) and (broker.is_image_known or not has_clients)
    by_hand = _commented_address(deployment, broker)
    remedy = "give these clients a listener of their own that advertises localhost and its "
    remedy += "published port, or publish the port no more"
    for own, address in unpublished_for_machine(broker)[:1]:
        remedy = f"publish {address.port}:{own.bind.port} in place of {ports}, because {own.name} "
        remedy += f"advertises {address}"
    sent_to = f"{hosts}, a name that only the containers know"
    if by_address:
        sent_to = f"the address of the container {broker.service}, which other machines do not "
        sent_to += "reach, and this machine only with Linux"
    observed = f"publishes {ports}, and clients that come in there are sent to {sent_to}"
    if by_hand:
        observed += f"; {by_hand[0]} with {by_hand[1]} is beside it in a comment"
        remedy += "; with both listeners the line need not be changed by hand"
    yield rule.finding(
        observed,
        "for clients outside the containers a listener that advertises a name of the machine",
        listener=endpoints[0].name if len(endpoints) == 1 else None,
        container=broker.service,
        severity=None if certain and not by_hand else Severity.WARNING,
        remedy=remedy,
        inputs=("advertised.listeners", "ports"),
    )


def unpublished_for_machine(broker: Broker) -> list[tuple[Endpoint, Address]]:
    """The listeners without a published port that advertise localhost to clients, with that
    address."""
    return [
        (endpoint, endpoint.advertised)
        for endpoint in broker.for_clients
        if endpoint.advertised is not None
        and is_loopback(endpoint.advertised.host)
        and not is_loopback(endpoint.bind.host)
        and not broker.container.published_at(endpoint.bind.port)
    ]


def _commented_address(deployment: Deployment, broker: Broker) -> tuple[str, Address] | None:
    """The variable and address in a comment that is no container's name: its author knows which
    clients the other line is for."""
    for name, address in broker.switched_off:
        host = address.host.lower()
        is_address = "." in host or ":" in host or is_loopback(host) or not is_known(host)
        is_nowhere = deployment.way(HOST, address) is Failure.NOWHERE
        if (is_address or is_gateway(host)) and not is_nowhere:
            return name, address
    return None


def _shown_ports(deployment: Deployment, walk: PublishedListener) -> str:
    """The port of clients outside, or an empty string without one.

    `_random_ports` has the ports that Docker chooses. A container whose name is advertised may
    forward its own published port.
    """
    if walk.ports:
        if failing(walk.hops) is not None:
            return ""
        ports = (port for port in walk.ports if port.host_port or isinstance(port, HiddenPort))
        return next(map(str, ports), "")
    host, number = walk.address.host, walk.address.port
    proxy = None if host in deployment.by_service else deployment.containers.get(host)
    if proxy is None or walk.broker.container.ports_behind(number):
        return ""
    published = proxy.published_at(number)
    return f"{published[0]} (by {host})" if published else ""


def _random_ports(
    deployment: Deployment, walks: Sequence[PublishedListener]
) -> Iterator[tuple[Endpoint, str]]:
    """The listeners of ``walks`` at ports of the machine that Docker chooses, each with one.

    Such a port shows clients outside only if no other container may be the client.
    """
    possible_clients = (
        container
        for service, container in deployment.containers.items()
        if service not in deployment.by_service
    )
    if any("zookeeper" not in container.image.lower() for container in possible_clients):
        return
    for walk in walks:
        if walk.ports and failing(walk.hops) is None:
            yield walk.endpoint, f"{walk.endpoint.bind.port} at a port that Docker chooses"


def serves_machine(deployment: Deployment, broker: Broker, besides: Endpoint | None = None) -> bool:
    """Whether a published listener, besides one, advertises a name that the machine may resolve."""
    published = (
        endpoint
        for endpoint in broker.endpoints or ()
        if endpoint != besides and broker.container.published_at(endpoint.bind.port)
    )
    return any(
        endpoint.template is not None
        or (
            endpoint.advertised is not None and _leads_on(deployment, endpoint, endpoint.advertised)
        )
        for endpoint in published
    )


def _leads_on(deployment: Deployment, endpoint: Endpoint, address: Address) -> bool:
    """Whether the machine may resolve what the listener at ``address`` advertises, which may be
    another one than ``endpoint``."""
    reached = deployment.reached(HOST, address)
    following = (reached.endpoint if reached else endpoint).advertised
    return following is None or deployment.way(HOST, following) is not Failure.NOWHERE


def _has_clients(deployment: Deployment, endpoint: Endpoint) -> bool:
    """Whether services bootstrap to this listener, so that it may have no other clients."""
    return any(
        (reached := deployment.reached(bootstrap.service, address)) and reached.endpoint == endpoint
        for bootstrap in deployment.bootstraps
        for address in bootstrap.addresses
    )

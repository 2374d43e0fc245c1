"""KL017: who comes in by a published port is sent to an address that works outside the containers.

A published port shows that clients on the machine, or beyond it, shall use the listener behind it.
"""

from collections.abc import Iterator

from earshot.facts.cluster import ClusterFacts
from earshot.listeners.address import Address
from earshot.listeners.placeholders import is_known
from earshot.names.kinds import ip_of
from earshot.rules.registry import Finding, Rule, Severity
from earshot.topology.broker import Arrival, Broker, Endpoint
from earshot.topology.container import HiddenPort, PublishedPort, is_loopback
from earshot.topology.model import Deployment
from earshot.topology.names import GATEWAYS, HOST, Unknown
from earshot.topology.ways import End

Published = tuple[PublishedPort, ...]


def check(facts: ClusterFacts) -> Iterator[Finding]:
    """Ports that two containers take; then per broker each listener with what is published."""
    if facts.deployment is None:
        return
    yield from _taken(facts.deployment)
    for broker in facts.deployment.brokers:
        if broker.container.on_host_network or "ports" in broker.container.unknown:
            continue
        named: list[tuple[Endpoint, str]] = []
        for endpoint, published in _for_clients(broker):
            yield from _of_listener(facts.deployment, broker, endpoint, published, named)
        yield from _named(facts.deployment, broker, named)


def _of_listener(
    deployment: Deployment,
    broker: Broker,
    endpoint: Endpoint,
    published: Published,
    named: list[tuple[Endpoint, str]],
) -> Iterator[Finding]:
    """Adds to ``named`` what is advertised under another name, with its published port."""
    assert endpoint.advertised is not None
    fixed = all(item.host_port is not None for item in published)
    hidden = any(isinstance(item, HiddenPort) for item in published)
    if published and broker.container.is_cut_off:
        yield _cut_off(broker, endpoint, published[0])
    elif published and is_loopback(endpoint.bind.host):
        yield _for_itself(broker, endpoint, published[0])
    elif is_loopback(endpoint.advertised.host):
        if fixed:
            yield from _for_host(deployment, broker, endpoint, published)
        elif not hidden:
            yield from _at_random(deployment, broker, endpoint, published)
    elif published and not (fixed or hidden):
        return  # a port that Docker chooses may be there to be shown alone
    elif published:
        named.append((endpoint, str(published[0])))
        if fixed:
            yield from _beyond(deployment, broker, endpoint, published)
    elif dead := _without_listener(broker, endpoint.advertised.port):
        yield _to_nobody(deployment, broker, endpoint, dead)
    elif proxied := _by_proxy(deployment, endpoint):
        named.append((endpoint, f"{proxied[0]} (by {endpoint.advertised.host})"))


def _for_clients(broker: Broker) -> Iterator[tuple[Endpoint, Published]]:
    """Its advertised listeners, each with how it is published."""
    for endpoint in broker.for_clients:
        if endpoint.advertised:
            yield endpoint, broker.container.published_at(endpoint.bind.port)


def _taken(deployment: Deployment) -> Iterator[Finding]:
    """One port of the machine for two containers, of which one at least runs a broker."""
    brokers = {item.service for item in deployment.brokers}
    by_port: dict[int | None, list[tuple[str, PublishedPort]]] = {}
    for service, container in deployment.containers.items():
        for port in container.published:
            taken = by_port.setdefault(port.host_port, [])
            clashing = [
                (name, other)
                for name, other in taken
                if port.excludes(other)
                and brokers & {name, service}
                and not (name == service or deployment.apart(name, service))
            ]
            taken.append((service, port))
            if not clashing:
                continue
            (late, mine), (early, other) = (service, port), clashing[0]
            if late not in brokers:
                (late, mine), (early, other) = (early, other), (late, mine)
            yield RULE.finding(
                f"publishes {mine}, and {early} publishes {other}: Docker starts only one of them",
                "a port of the machine for each container",
                container=late,
                remedy="publish another port of the machine, and advertise that one",
                inputs=("ports",),
            )


def _for_itself(broker: Broker, endpoint: Endpoint, published: PublishedPort) -> Finding:
    anywhere = f"{endpoint.name}://0.0.0.0:{endpoint.bind.port}"
    return RULE.finding(
        f"publishes {published}, and {endpoint.name} listens on {endpoint.bind}, which is the "
        "container alone: nobody comes in there",
        "a listener on all interfaces of the container",
        listener=endpoint.name,
        container=broker.service,
        remedy=f"write {anywhere} into listeners, and keep what it advertises",
        inputs=("listeners", "ports"),
    )


def _cut_off(broker: Broker, endpoint: Endpoint, published: PublishedPort) -> Finding:
    names = ", ".join(item.name for item in broker.container.networks)
    return RULE.finding(
        f"publishes {published}, and {names} is internal: Docker publishes no port there",
        "a network that is not internal",
        listener=endpoint.name,
        container=broker.service,
        remedy=f"put {broker.service} on another network as well, or publish the port no more",
        inputs=("ports", "networks"),
    )


def _at_random(
    deployment: Deployment, broker: Broker, endpoint: Endpoint, published: Published
) -> Iterator[Finding]:
    """Advertised as localhost with a fixed port, and Docker chooses another each time."""
    assert endpoint.advertised is not None
    port = endpoint.advertised.port
    if broker.container.behind(port) or any(item.host_port == port for item in published):
        return
    yield RULE.finding(
        f"advertises {endpoint.advertised}, and its port is published without a port of the "
        f"machine: {published[0]}",
        f"a published port that leads to {endpoint.bind.port}, advertised as it is",
        listener=endpoint.name,
        container=broker.service,
        remedy=f"publish {port}:{endpoint.bind.port}",
        inputs=("ports", "advertised.listeners"),
    )


def _for_host(
    deployment: Deployment, broker: Broker, endpoint: Endpoint, published: Published
) -> Iterator[Finding]:
    """Advertised as localhost: its port on the machine must lead back to this broker."""
    assert endpoint.advertised is not None
    leads = broker.container.behind(endpoint.advertised.port)
    fitting = [item for item in published if item in leads]
    if fitting and not any(item.for_loopback for item in fitting):
        yield RULE.finding(
            f"advertises {endpoint.advertised}, and the port is published on {fitting[0].host_ip} "
            f"alone ({fitting[0]}), where {endpoint.advertised.host} does not lead",
            "a port published on the address that the advertised name leads to",
            listener=endpoint.name,
            container=broker.service,
            remedy=f"publish {endpoint.advertised.port}:{endpoint.bind.port} on all addresses of "
            "the machine, or advertise the address that it is published on",
            inputs=("advertised.listeners", "ports"),
        )
        return
    way = deployment.way(HOST, endpoint.advertised)
    if fitting or (isinstance(way, Arrival) and way.broker is broker):
        return  # of two that publish one port, it is said already or they never run together
    if not published and not leads:
        return  # only the broker itself can mean it
    to = (published or leads)[0]
    if isinstance(way, Arrival):
        problem = f"{endpoint.advertised} on the machine is {way.broker.service}"
    elif way is End.REFUSED:
        problem = f"its published port {to} leads to no listener of the container"
    else:
        problem = f"the published port is {to}"
    remedy = f"publish {endpoint.advertised.port}:{endpoint.bind.port}"
    if published:
        remedy += f", or advertise {endpoint.name}://localhost:{published[0].host_port}"
    yield RULE.finding(
        f"advertises {endpoint.advertised} and listens on {endpoint.bind.port}, and {problem}",
        f"a published port that leads to {endpoint.bind.port}, advertised as it is",
        remedy,
        listener=endpoint.name,
        container=broker.service,
        inputs=("advertised.listeners",),
    )


def _beyond(
    deployment: Deployment, broker: Broker, endpoint: Endpoint, published: Published
) -> Iterator[Finding]:
    """Advertised under a name or address of elsewhere: of the machine, or of what stands before it.

    No more than a warning where something before it may translate ports.
    """
    assert endpoint.advertised is not None
    host, port = endpoint.advertised.host, endpoint.advertised.port
    is_inside = any(item.answers_to(host) for item in deployment.containers.values())
    fitting = [item for item in published if item.host_port == port]
    if fitting and all(item.for_host_only for item in fitting) and not is_inside:
        yield from _on_loopback_alone(broker, endpoint, fitting[0])
    way = deployment.way(HOST, endpoint.advertised)
    if (
        is_inside
        or not isinstance(way, Unknown)
        or any(item.host_port == port for item in published)
    ):
        return
    if any(item.behind(port) for item in deployment.containers.values()):
        return  # another container may pass it on
    yield RULE.finding(
        f"advertises {endpoint.advertised}, and the published port is {published[0]}",
        f"a published port that leads to {endpoint.bind.port}, advertised as it is",
        listener=endpoint.name,
        container=broker.service,
        severity=None if host.lower() in GATEWAYS else Severity.WARNING,
        remedy=f"publish {port}:{endpoint.bind.port}, or advertise "
        f"{endpoint.name}://{Address(host, published[0].host_port or port)}, unless a proxy or "
        "router translates the port",
        inputs=("advertised.listeners", "ports"),
    )


def _on_loopback_alone(
    broker: Broker, endpoint: Endpoint, published: PublishedPort
) -> Iterator[Finding]:
    """Advertised under an address of the machine at which the port is not published.

    Nothing of a name: a hosts file may give it to loopback.
    """
    assert endpoint.advertised is not None
    host, port = endpoint.advertised.host, endpoint.advertised.port
    if ip_of(host) is None:
        return
    yield RULE.finding(
        f"advertises {endpoint.advertised}, and the port is published on {published.host_ip} alone "
        f"({published}), where {host} does not lead",
        "a port published on the address that the advertised name leads to",
        listener=endpoint.name,
        container=broker.service,
        remedy=f"publish {port}:{endpoint.bind.port} on all addresses of the machine, or advertise "
        f"localhost:{port}",
        inputs=("advertised.listeners", "ports"),
    )


def _without_listener(broker: Broker, host_port: int) -> PublishedPort | None:
    """What publishes ``host_port``, where it leads to no listener of the broker."""
    binds = {item.bind.port for item in broker.endpoints or ()}
    leads = broker.container.behind(host_port)
    return leads[0] if leads and not any(it.container_port in binds for it in leads) else None


def _to_nobody(
    deployment: Deployment, broker: Broker, endpoint: Endpoint, dead: PublishedPort
) -> Finding:
    """The finding; only a warning where another container may bring clients to the address,
    and of an image that is not known: something else may listen in it."""
    assert endpoint.advertised is not None
    is_inside = deployment.way(HOST, endpoint.advertised) is End.NOWHERE
    certain = broker.is_image_known and (is_inside or endpoint.advertised.host.lower() in GATEWAYS)
    remedy = f"publish {dead.host_port}:{endpoint.bind.port}"
    if is_inside:
        remedy = f"publish {dead} no more, or give clients outside the containers a listener of "
        remedy += "their own behind it that advertises localhost"
    return RULE.finding(
        f"advertises {endpoint.advertised} and listens on {endpoint.bind.port}, and its published "
        f"port {dead} leads to no listener of the container",
        f"a published port that leads to {endpoint.bind.port}, advertised as it is",
        listener=endpoint.name,
        container=broker.service,
        severity=None if certain else Severity.WARNING,
        remedy=remedy,
        inputs=("advertised.listeners", "ports"),
    )


def _named(
    deployment: Deployment, broker: Broker, found: list[tuple[Endpoint, str]]
) -> Iterator[Finding]:
    """Advertised under names that the machine has no reason to know: they serve nobody there."""
    lost = [
        (endpoint, port)
        for endpoint, port in found
        if endpoint.advertised and deployment.way(HOST, endpoint.advertised) is End.NOWHERE
    ]
    if not lost or _serves_host(deployment, broker):
        return
    endpoints = [endpoint for endpoint, _ in lost]
    ports = ", ".join(dict.fromkeys(port for _, port in lost))
    hosts = ", ".join(dict.fromkeys(item.advertised.host for item in endpoints if item.advertised))
    certain = broker.is_image_known or not any(_users(deployment, item) for item in endpoints)
    by_hand = _by_hand(deployment, broker)
    remedy = "give these clients a listener of their own that advertises localhost and its "
    remedy += "published port, or publish the port no more"
    observed = f"publishes {ports}, and clients that come in there are sent to {hosts}, a name "
    observed += "that only the containers know"
    if by_hand:
        observed += f"; {by_hand[0]} with {by_hand[1]} stands beside it in a comment"
        remedy += "; with both listeners nobody has to change the line by hand"
    yield RULE.finding(
        observed,
        "for clients outside the containers a listener that advertises a name of the machine",
        listener=endpoints[0].name if len(endpoints) == 1 else None,
        container=broker.service,
        severity=None if certain and not by_hand else Severity.WARNING,
        remedy=remedy,
        inputs=("advertised.listeners", "ports"),
    )


def _by_hand(deployment: Deployment, broker: Broker) -> tuple[str, Address] | None:
    """What a comment would have it advertise that is no container's name: who leaves it there knows
    for whom the line is that counts."""
    for name, address in broker.switched_off:
        host = address.host.lower()
        is_address = "." in host or ":" in host or is_loopback(host) or not is_known(host)
        if (is_address or host in GATEWAYS) and deployment.way(HOST, address) is not End.NOWHERE:
            return name, address
    return None


def _users(deployment: Deployment, endpoint: Endpoint) -> list[str]:
    """Services that bootstrap to this listener: then others need not be meant."""
    return [
        item.service
        for item in deployment.bootstraps
        for address in item.addresses
        if isinstance(way := deployment.way(item.service, address), Arrival)
        and way.endpoint == endpoint
    ]


def _serves_host(deployment: Deployment, broker: Broker) -> bool:
    """Whether another listener of the broker is for clients outside the containers."""
    return any(
        item.advertised is not None
        and broker.container.published_at(item.bind.port)
        and deployment.way(HOST, item.advertised) is not End.NOWHERE
        for item in broker.endpoints or ()
    )


def _by_proxy(deployment: Deployment, endpoint: Endpoint) -> tuple[PublishedPort, ...]:
    """Ports of another container under whose name the listener is advertised."""
    assert endpoint.advertised is not None
    others = (item.service for item in deployment.brokers)
    proxy = deployment.containers.get(endpoint.advertised.host)
    if proxy is None or endpoint.advertised.host in others:
        return ()
    return proxy.published_at(endpoint.advertised.port)


RULE = Rule(
    id="KL017",
    title="A published port leads to a listener whose advertised address works from there",
    reason="Who comes in by a published port is sent to the advertised address, and hangs there.",
    remedy="advertise the published port under a name of the machine",
    source="https://docs.docker.com/engine/network/port-publishing/",
    check=check,
    kafka=">=0.11",
    needs="deployment",
    in_files=True,
)

"""KL017: a listener behind a published port advertises an address that works outside of containers.

A published port shows clients on the machine or elsewhere; each finding is a failing hop of their
walk.
"""

import re
from collections.abc import Iterator

from earshot.facts.cluster import ClusterFacts
from earshot.listeners.address import Address, bracketed
from earshot.names.kinds import ip_of
from earshot.rules import kl017_container_names, kl017_members, kl017_unpublished
from earshot.rules.kl017_container_names import serves_machine
from earshot.rules.rule import AppliedAt, Finding, Rule, Severity
from earshot.topology.broker import Broker, Endpoint
from earshot.topology.container import HiddenPort, PublishedPort, is_loopback
from earshot.topology.model import Deployment
from earshot.topology.names import Unknown, is_gateway
from earshot.topology.walk import PublishedListener, failing, published_listeners
from earshot.topology.ways import Failure, HopKind

_OWN_ADDRESS = re.compile(r"(?<!-)\bhostname\b|\bip\b|\bifconfig\b|/etc/hosts|\bgetent\b")
"""A shell command that may print the container's own name or address."""
_NUMBER = re.compile(r"(?<![0-9])[0-9]{1,5}(?![0-9])", re.ASCII)
_BY_PORT = ("advertised.listeners", "ports")


def check(facts: ClusterFacts) -> Iterator[Finding]:
    """Findings for ports that two containers publish, then for clients of published ports."""
    deployment = facts.deployment
    if deployment is None:
        return
    yield from _port_conflicts(deployment)
    unpublished: set[tuple[str, str]] = set()
    for broker in deployment.brokers:
        container = deployment.containers[deployment.names.owner(broker.service)]
        if container.on_host_network or container.has_unknown_ports:
            continue
        walks = [*published_listeners(deployment, broker)]
        for walk in walks:
            findings = [*_walk_findings(deployment, walk)]
            if not (findings or walk.ports or is_loopback(walk.endpoint.bind.host)):
                findings += _unpublished(deployment, walk)
                unpublished |= {(broker.service, finding.listener or "") for finding in findings}
            yield from findings
        yield from kl017_container_names.check(deployment, RULE, broker, walks)
    yield from kl017_members.check(deployment, RULE, unpublished)


def _walk_findings(deployment: Deployment, walk: PublishedListener) -> Iterator[Finding]:
    """The first failing hop of one walk; `kl017_container_names` checks names."""
    hop = failing(walk.hops)
    if hop is not None and hop.kind is HopKind.WAY:
        yield _internal_network(walk)
    elif hop is not None and is_loopback(walk.endpoint.bind.host):
        yield _bound_to_loopback(walk)
    elif udp_ports := () if walk.ports else _published_by_udp(deployment, walk):
        yield _without_tcp(walk, udp_ports[0])
    elif not walk.ports:
        yield from _dead_port(deployment, walk)
    elif is_loopback(walk.address.host):
        yield from _advertises_localhost(walk)
    elif not walk.has_hidden_port:
        yield from _advertises_machine(deployment, walk)


def _port_conflicts(deployment: Deployment) -> Iterator[Finding]:
    """Findings for a port of the machine that a broker and another container publish."""
    brokers = {broker.service for broker in deployment.brokers}
    by_port: dict[int | None, list[tuple[str, PublishedPort]]] = {}
    for service, container in deployment.containers.items():
        for port in container.published:
            earlier_ports = by_port.setdefault(port.host_port, [])
            clashing = [
                (name, earlier_port)
                for name, earlier_port in earlier_ports
                if port.excludes(earlier_port)
                and brokers & {name, service}
                and not (name == service or deployment.apart(name, service))
            ]
            earlier_ports.append((service, port))
            if not clashing:
                continue
            (late, late_port), (early, early_port) = (service, port), clashing[0]
            if late not in brokers:
                (late, late_port), (early, early_port) = (early, early_port), (late, late_port)
            yield RULE.finding(
                f"publishes {late_port}, and {early} publishes {early_port}: "
                "Docker starts only one of them",
                "a port of the machine for each container",
                container=late,
                remedy="publish another port of the machine, and advertise that one",
                inputs=("ports",),
            )


def _internal_network(walk: PublishedListener) -> Finding:
    names = ", ".join(network.name for network in walk.broker.container.networks)
    observed = f"publishes {walk.ports[0]}, and {names} is internal: Docker publishes no port there"
    remedy = f"put {walk.broker.service} on another network as well, or publish the port no more"
    expected = "a network that is not internal"
    return _finding(walk, observed, expected, remedy, ("ports", "networks"))


def on_all_interfaces(endpoint: Endpoint) -> str:
    """The remedy for a listener that only its own container or pod can connect to."""
    address = f"{endpoint.name}://0.0.0.0:{endpoint.bind.port}"
    return f"write {address} into listeners, and keep what it advertises"


def _bound_to_loopback(walk: PublishedListener) -> Finding:
    where = f"{walk.endpoint.name} listens on {walk.endpoint.bind}, which is the container alone"
    return _finding(
        walk,
        f"publishes {walk.ports[0]}, and {where}: no client connects there",
        "a listener on all interfaces of the container",
        on_all_interfaces(walk.endpoint),
        ("listeners", "ports"),
    )


def _published_by_udp(deployment: Deployment, walk: PublishedListener) -> tuple[PublishedPort, ...]:
    """The published ports of a listener without TCP; none if its clients are in other
    containers."""
    host, ports = walk.address.host, walk.broker.container.published
    if any(container.has_name(host) for container in deployment.containers.values()):
        return ()
    return tuple(port for port in ports if port.container_port == walk.endpoint.bind.port)


def _without_tcp(walk: PublishedListener, port: PublishedPort) -> Finding:
    """The finding for a port of a listener that is not published with TCP.

    A warning if the listener may be for the container alone, or if a proxy may serve its clients.
    """
    is_for_machine = is_loopback(walk.address.host) and (
        port.host_port == walk.address.port or _has_other_host(walk.broker)
    )
    host_ip = f"{bracketed(port.host_ip)}:" if port.host_ip else ""
    host_port = walk.address.port if port.host_port is None else port.host_port
    return _finding(
        walk,
        f"publishes {port} as {port.protocol.upper()} alone, and {walk.endpoint.name} listens with "
        "TCP: no client connects there",
        "the listener's port published with TCP",
        f"publish {host_ip}{host_port}:{port.container_port}, without /{port.protocol}",
        ("ports",),
        None if is_for_machine else Severity.WARNING,
    )


def _dead_port(deployment: Deployment, walk: PublishedListener) -> Iterator[Finding]:
    """A finding if the advertised port, or every published port, leads to no listener.

    A warning if another container may forward clients to the address, or something else may listen
    in an unknown image, or if the listener may be for clients in the container alone.
    """
    ports = walk.broker.container.ports_behind(walk.address.port)
    is_for_machine = bool(ports) or _has_other_host(walk.broker)
    ports = ports or _only_dead_ports(deployment, walk)
    if not ports or any(port.container_port in walk.broker.ports for port in ports):
        return
    host, dead = walk.address.host.lower(), ports[0]
    is_name = walk.sent.end is Failure.NOWHERE
    is_own = walk.broker.container.has_name(host)
    certain = is_loopback(host) or (
        walk.broker.is_image_known and (is_name or is_own or is_gateway(host))
    )
    remedy = f"publish {walk.address.port}:{walk.endpoint.bind.port}"
    if is_name:
        remedy = f"publish {dead} no more, or give clients outside the containers a listener of "
        remedy += "their own behind it that advertises localhost"
    problem = f"its published port {dead} leads to no listener of the container"
    yield _mismatch(
        walk,
        f"listens on {walk.endpoint.bind.port}, and {problem}",
        remedy,
        None if certain and is_for_machine else Severity.WARNING,
    )


def _unpublished(deployment: Deployment, walk: PublishedListener) -> Iterator[Finding]:
    """A finding for an address of the machine, if no port of the machine leads to the listener."""
    severity = kl017_unpublished.severity(deployment, walk)
    if severity is not None:
        port = walk.address.port
        remedy = f"publish {port}:{walk.endpoint.bind.port}"
        observed = "no port of the machine leads to it"
        yield _mismatch(walk, observed, remedy, severity)


def _has_other_host(broker: Broker) -> bool:
    """Whether another listener than those at localhost serves the other containers."""
    advertised = [endpoint.advertised for endpoint in broker.for_clients]
    return any(address is not None and not is_loopback(address.host) for address in advertised)


def _only_dead_ports(deployment: Deployment, walk: PublishedListener) -> tuple[PublishedPort, ...]:
    """All published ports of ``broker`` if they can be meant for nothing but the listener.

    The listener advertises localhost, no container may publish that port, and no variable of the
    broker contains a published port, as those of JMX and of Java agents do.
    """
    address, container = walk.address, walk.broker.container
    if not (walk.broker.is_image_known and is_loopback(address.host)):
        return ()
    all_ports = [
        port for published_by in deployment.containers.values() for port in published_by.published
    ]
    if any(isinstance(port, HiddenPort) or port.host_port == address.port for port in all_ports):
        return ()
    numbers = {int(number) for number in _NUMBER.findall(" ".join(container.env.values()))}
    ports = tuple(port for port in container.published if port.protocol == "tcp")
    return () if any(port.container_port in numbers for port in ports) else ports


def _advertises_localhost(walk: PublishedListener) -> Iterator[Finding]:
    """A finding if the port at localhost does not lead to this broker."""
    reached, number, fixed = walk.sent.reached, walk.address.port, walk.fixed_ports
    if reached and reached.broker is walk.broker:
        return
    fitting = [port for port in fixed if port.host_port == number]
    if walk.has_hidden_port or any(port.for_loopback for port in fitting):
        return  # a variable may contain the port, or `_port_conflicts` reports it
    bind = walk.endpoint.bind.port
    remedy = f"publish {number}:{bind}"
    if fitting:
        instead = "advertise the address that it is published on"
        yield _published_elsewhere(walk, fitting[0], instead)
    elif not fixed:
        why = f"its port is published without a port of the machine: {walk.ports[0]}"
        yield _mismatch(walk, why, remedy)
    else:
        remedy += f", or advertise {walk.endpoint.name}://localhost:{fixed[0].host_port}"
        why = f"the published port is {fixed[0]}"
        if reached:
            why = f"{walk.address} on the machine is {reached.broker.service}"
        yield _mismatch(walk, f"listens on {bind}, and {why}", remedy)


def _advertises_machine(deployment: Deployment, walk: PublishedListener) -> Iterator[Finding]:
    """A finding for a host other than localhost at a port that is not published there.

    A warning, as a proxy may translate ports. A name is accepted for a port on loopback, which a
    hosts file may map it to.
    """
    host, number, fixed = walk.address.host, walk.address.port, walk.fixed_ports
    fitting = [port for port in fixed if port.host_port == number]
    containers = deployment.containers.values()
    if any(container.has_name(host) for container in containers):
        return
    if fitting:
        if ip_of(host) is not None and all(port.for_host_only for port in fitting):
            yield _published_elsewhere(walk, fitting[0], f"advertise localhost:{number}")
        return
    if not fixed or not isinstance(walk.sent.end, Unknown):
        return
    if any(container.ports_behind(number) for container in containers):
        return  # another container may forward it
    if walk.endpoint.template is not None and _may_be_container(deployment, walk):
        return
    first = fixed[0]
    proposed = f"{walk.endpoint.name}://{Address(host, first.host_port or number)}"
    yield _mismatch(
        walk,
        f"the published port is {first}",
        f"publish {number}:{walk.endpoint.bind.port}, or advertise {proposed}, unless a proxy or "
        "router translates the port",
        None if is_gateway(host) else Severity.WARNING,
    )


def _may_be_container(deployment: Deployment, walk: PublishedListener) -> bool:
    """Whether the unknown host may be a container that clients reach at the advertised port."""
    port = walk.address.port
    if any(
        container.published_at(port)
        for service, container in deployment.containers.items()
        if service not in deployment.by_service
    ):
        return True
    if port != walk.endpoint.bind.port:
        return False
    command = walk.broker.container.env.get("HOSTNAME_COMMAND", "")
    is_computed = "HOSTNAME_COMMAND" in walk.address.host
    if is_computed and _OWN_ADDRESS.search(command):
        return True
    return serves_machine(deployment, walk.broker, walk.endpoint)


def _published_elsewhere(walk: PublishedListener, port: PublishedPort, instead: str) -> Finding:
    """The finding that the port is published on another address than the advertised one."""
    bound_to = f"{port.host_ip} alone ({port}), where {walk.address.host} does not lead"
    anywhere = f"{port.host_port}:{port.container_port} on all addresses of the machine"
    return _finding(
        walk,
        f"advertises {walk.address}, and the port is published on {bound_to}",
        "a port published on the address that the advertised name leads to",
        f"publish {anywhere}, or {instead}",
        _BY_PORT,
    )


def _mismatch(
    walk: PublishedListener, why: str, remedy: str, severity: Severity | None = None
) -> Finding:
    """The finding that the advertised port is not the published one."""
    joint = " and" if why.startswith("listens") else ", and"
    inputs = ("advertised.listeners",) if is_loopback(walk.address.host) else _BY_PORT
    if all(port.host_port is None for port in walk.ports) and walk.ports:
        inputs = ("ports", "advertised.listeners")
    observed = f"advertises {walk.address}{joint} {why}"
    expected = f"a published port that leads to {walk.endpoint.bind.port}, advertised unchanged"
    return _finding(walk, observed, expected, remedy, inputs, severity)


def _finding(
    walk: PublishedListener,
    observed: str,
    expected: str,
    remedy: str,
    inputs: tuple[str, ...],
    severity: Severity | None = None,
) -> Finding:
    return RULE.finding(
        observed,
        expected,
        remedy,
        listener=walk.endpoint.name,
        container=walk.broker.service,
        severity=severity,
        inputs=inputs,
    )


RULE = Rule(
    id="KL017",
    title="A published port leads to a listener whose advertised address works from there",
    reason="Who comes in by a published port is sent to the advertised address, and hangs there.",
    remedy="advertise the published port under a name of the machine",
    source="https://docs.docker.com/engine/network/port-publishing/",
    check=check,
    oldest=(0, 11),
    needs="deployment",
    applied_at=(AppliedAt.FILE, AppliedAt.CONTAINER, AppliedAt.CONTAINERS),
)

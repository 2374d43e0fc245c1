"""Candidates of lines to write against a finding of a file, the smallest change first.

`earshot.checks.remedies` proves them.
"""

from bisect import bisect
from collections.abc import Iterator, Sequence
from dataclasses import replace

from earshot.checks.remedy_lines import (
    CheckedFile,
    RemedyLines,
    added_listener,
    advertised_text,
    bootstrapped,
    moved_to,
    name_for_clients,
    port_line,
    protocols_of,
    with_entry,
)
from earshot.listeners.address import MAX_PORT, Address
from earshot.listeners.listed import shortened
from earshot.rules.kl017_container_names import unpublished_for_machine
from earshot.rules.rule import Finding, LineToWrite
from earshot.topology.broker import Bootstrap, Broker, Endpoint
from earshot.topology.container import PublishedPort, is_loopback
from earshot.topology.model import Deployment
from earshot.topology.walk import bootstrap_connections, failing_hop_to
from earshot.topology.ways import Answer, HopKind

INTERNAL_PORT = 29092
OUTSIDE_PORT = 19092


def candidates(file: CheckedFile, finding: Finding) -> Iterator[RemedyLines]:
    """Proposals against ``finding``; without properties for brokers that are not Kafka."""
    others = {broker.service for broker in file.deployment.brokers if not broker.is_kafka}
    for candidate in _candidates(file, finding):
        if all(line.service not in others or line.setting == "ports" for line in candidate.lines):
            yield candidate


def _candidates(file: CheckedFile, finding: Finding) -> Iterator[RemedyLines]:
    broker = file.deployment.by_service.get(finding.container)
    match finding.rule, finding.inputs:
        case "KL015", ("advertised.listeners",) if broker is not None:
            yield from _for_clients_of(file, broker, finding.listener or "")
        case "KL015", (setting,):
            yield from _for_bootstrap(file, finding.container, setting)
        case "KL016", ("advertised.listeners",) if broker is not None:
            yield from _between_brokers(file, broker, finding.listener or "")
        case "KL016", ("controller.quorum.voters",):
            yield from _voters(file, finding.container)
        case "KL016", ("node.id", "broker.id") if broker is not None:
            yield from _id(file, broker)
        case "KL017", ("ports",) if broker is not None:
            yield from _port_conflict(file, broker)
        case "KL017", inputs if broker is not None:
            endpoint = broker.named(finding.listener or "")
            address = (endpoint.advertised or endpoint.template) if endpoint else None
            if endpoint is None or address is None:
                yield from _for_outside(file, broker)
            elif inputs[0] == "listeners":
                yield from _bind_all_interfaces(file, broker, endpoint)
            else:
                yield from _published_as_advertised(file, broker, endpoint, address)
                yield from _for_outside(file, broker)


def _for_clients_of(file: CheckedFile, broker: Broker, listener: str) -> Iterator[RemedyLines]:
    """Remedies for clients of ``listener`` whose advertised address does not work for them."""
    members = tuple(member.service for member in file.deployment.members(broker))
    endpoints = tuple(
        (endpoint.name, endpoint.bind.port, endpoint.is_controller)
        for endpoint in broker.endpoints or ()
    )
    key = (listener, members, endpoints, tuple(protocols_of(file, broker).items()))
    if key not in file.proposals:
        file.proposals[key] = tuple(_proposals_for_misled(file, broker, listener))
    yield from file.proposals[key]


def _proposals_for_misled(
    file: CheckedFile, broker: Broker, listener: str
) -> Iterator[RemedyLines]:
    clients, brokers = misled_clients(file.deployment, broker, listener)
    if not brokers:
        return
    services_text = shortened([*dict.fromkeys(client.service for client in clients)])
    protocols = protocols_of(file, broker)
    for endpoint in broker.for_clients:
        # with another protocol a client would need more than an address
        has_same_protocol = protocols.get(endpoint.name.upper()) == protocols.get(
            listener.upper(), ""
        )
        if endpoint.name != listener and has_same_protocol:
            lines = bootstrapped(file, clients, broker, endpoint.name)
            yield RemedyLines(f"bootstrap {services_text} to {endpoint.name}", lines)
    yield from _readvertised(file, brokers, listener, clients)
    yield from _with_own_listener(file, brokers, listener, clients)


def _for_bootstrap(file: CheckedFile, client: str, setting: str) -> Iterator[RemedyLines]:
    """Remedies for a client whose bootstrap address does not work."""
    clients = [
        bootstrap
        for bootstrap in file.deployment.bootstraps
        if (bootstrap.service, bootstrap.setting) == (client, setting)
    ]
    brokers = [broker for broker in file.deployment.brokers if broker.is_broker]
    if len({broker.cluster for broker in brokers}) != 1:
        return  # the client's cluster is unknown
    first = brokers[0]
    for endpoint in first.for_clients:
        lines = bootstrapped(file, clients, first, endpoint.name)
        yield RemedyLines(f"bootstrap {client} to {endpoint.name}", lines)
        if is_loopback(endpoint.bind.host):
            yield from _bind_all_interfaces(file, first, endpoint)
    if any(_is_misunderstood(file.deployment, client) for client in clients):
        return  # a less secure listener is not a remedy
    members = [*file.deployment.members(first)]
    for endpoint in first.for_clients:
        yield from _with_own_listener(file, members, endpoint.name, clients)


def _is_misunderstood(deployment: Deployment, client: Bootstrap) -> bool:
    """Whether the client reaches a listener with another protocol."""
    connections = bootstrap_connections(deployment, client)
    hops = (hop for connection in connections for hop in connection.hops)
    return any(hop.kind is HopKind.PROTOCOL and hop.answer is Answer.NO for hop in hops)


def _between_brokers(file: CheckedFile, broker: Broker, listener: str) -> Iterator[RemedyLines]:
    """Remedies for an inter-broker address that other brokers do not reach."""
    endpoint = broker.named(listener)
    if endpoint is None or endpoint.advertised is None:
        return
    host, ports = endpoint.advertised.host, broker.container.published_at(endpoint.bind.port)
    if is_loopback(host) and ports:  # it serves the machine and must remain
        members = [*file.deployment.members(broker)]
        yield from _with_own_listener(file, members, listener, (), between=True)
        return
    for port in ports:
        if port.host_port is not None and "." in host:  # the name may be other brokers' too
            yield _advertised(file, broker, listener, Address(host, port.host_port))
    yield _advertised(file, broker, listener, Address(broker.service, endpoint.bind.port))


def _voters(file: CheckedFile, service: str) -> Iterator[RemedyLines]:
    """A list of voters with each node of the file at its controller listener."""
    asking = file.deployment.by_service[service]
    places: dict[int, Address] = {}
    for node in file.deployment.brokers:
        is_voter = node.cluster == asking.cluster and node.id in asking.voters
        listener = node.for_controllers if is_voter and not node.container.on_host_network else None
        if listener is not None and node.id is not None:
            places[node.id] = Address(node.service, listener.bind.port)
    voters = {**asking.voters, **places}
    text = ",".join(f"{id}@{address}" for id, address in voters.items())
    lines = tuple(
        file.line(node, "controller.quorum.voters", text)
        for node in file.deployment.brokers
        if node.cluster == asking.cluster and node.voters
    )
    yield RemedyLines("list each voter where its controller listener is", lines)


def _id(file: CheckedFile, broker: Broker) -> Iterator[RemedyLines]:
    used_ids = {node.id for node in file.deployment.brokers if node.cluster == broker.cluster}
    free_ids = [id for id in broker.voters if id not in used_ids]
    free = next(id for id in range(1, len(used_ids) + 2) if id not in used_ids)
    id = free_ids[0] if free_ids else free
    for key in ("node.id", "broker.id"):
        if key in file.settings(broker).values:
            yield RemedyLines("give it an id of its own", (file.line(broker, key, str(id)),))


def _port_conflict(file: CheckedFile, broker: Broker) -> Iterator[RemedyLines]:
    """Remedies for a port of the machine that another container publishes."""
    unused = [number for number in range(1, MAX_PORT + 1) if number not in file.published]
    for port in broker.container.published:
        if port.host_port is None or type(port) is not PublishedPort:
            continue
        holders = file.published[port.host_port]
        if len({name for name, other in holders if port.excludes(other)}) < 2:
            continue
        above = bisect(unused, port.host_port)
        if above == len(unused):
            continue
        free = unused[above]
        lines = [port_line(broker, port, free, port.container_port)]
        text = advertised_text(file, broker)
        for endpoint in broker.endpoints or ():
            advertised = endpoint.advertised
            if (
                advertised
                and endpoint.bind.port == port.container_port
                and is_loopback(advertised.host)
            ):
                text = with_entry(text, endpoint.name, Address(advertised.host, free))
                lines.append(file.line(broker, "advertised.listeners", text))
        remedy = "publish a port of its own, and advertise that one"
        yield RemedyLines(remedy, tuple(lines), is_choice=True)


def _bind_all_interfaces(
    file: CheckedFile, broker: Broker, endpoint: Endpoint
) -> Iterator[RemedyLines]:
    text = file.settings(broker).values.get("listeners", "")
    to = Address("0.0.0.0", endpoint.bind.port)
    line = file.line(broker, "listeners", with_entry(text, endpoint.name, to))
    yield RemedyLines("let it listen on all interfaces of its container", (line,))


def _published_as_advertised(
    file: CheckedFile, broker: Broker, endpoint: Endpoint, advertised: Address
) -> Iterator[RemedyLines]:
    """Lines that advertise the published address, and lines that publish the advertised one."""
    published = broker.container.published_at(endpoint.bind.port)
    for port in published:
        if port.host_port not in (None, advertised.port):
            to = Address(advertised.host, port.host_port or 0)
            yield _advertised(file, broker, endpoint.name, to)
        elif port.for_host_only and port.host_port and not is_loopback(advertised.host):
            to = Address("localhost", port.host_port)
            yield replace(_advertised(file, broker, endpoint.name, to), is_choice=True)
    for port in published or broker.container.ports_behind(advertised.port):
        if type(port) is PublishedPort and port.host_port is not None:
            line = port_line(broker, port, advertised.port, endpoint.bind.port)
            yield RemedyLines(f"publish {line.value}", (line,), is_choice=bool(published))


def _for_outside(file: CheckedFile, broker: Broker) -> Iterator[RemedyLines]:
    """Lines with which an existing or a new published listener advertises localhost."""
    clients = broker.for_clients
    bound = {endpoint.bind.port for endpoint in clients}
    misleading = [port for port in broker.container.published if port.container_port in bound]
    for own, address in unpublished_for_machine(broker):
        for port in misleading:
            if type(port) is PublishedPort and port.host_port is not None:
                line = port_line(broker, port, address.port, own.bind.port)
                is_choice = port.host_port != address.port
                yield RemedyLines(f"publish {line.value}", (line,), is_choice=is_choice)
    for endpoint in clients if len(clients) > 1 else ():
        for port in broker.container.published_at(endpoint.bind.port):
            if port.host_port is not None and endpoint.name != broker.inter_broker:
                to = Address("localhost", port.host_port)
                readvertised = _advertised(file, broker, endpoint.name, to)
                yield replace(readvertised, is_choice=True)
    members = [*file.deployment.members(broker)]
    for endpoint in clients:
        yield from _with_published_listener(file, [broker], endpoint.name)
        if len(members) > 1:  # clients are sent to every one of them
            yield from _with_published_listener(file, members, endpoint.name)


def _with_published_listener(
    file: CheckedFile, brokers: Sequence[Broker], listener: str
) -> Iterator[RemedyLines]:
    """Lines that add a listener for the machine, at the published port of ``listener``."""
    published = []
    for broker in brokers:
        endpoint = broker.named(listener)
        ports = broker.container.published_at(endpoint.bind.port) if endpoint else ()
        published.append([port for port in ports if type(port) is PublishedPort])
    for ports in zip(*published, strict=False):
        lines: list[LineToWrite] = []
        for broker, port in zip(brokers, ports, strict=True):
            added = added_listener(file, broker, listener, ("EXTERNAL", "HOST"), OUTSIDE_PORT)
            if added is None or port.host_port is None:
                break
            lines += added.lines(Address("localhost", port.host_port))
            lines.append(port_line(broker, port, port.host_port, added.port))
        else:
            remedy = "give clients on the machine a listener of their own"
            yield RemedyLines(remedy, tuple(lines), is_choice=True)


def _readvertised(
    file: CheckedFile, brokers: Sequence[Broker], listener: str, clients: Sequence[Bootstrap]
) -> Iterator[RemedyLines]:
    """Lines that advertise ``listener`` at the brokers' own names, if it is not published."""
    lines: list[LineToWrite] = []
    for broker in brokers:
        endpoint = broker.named(listener)
        if endpoint is None or broker.container.published_at(endpoint.bind.port):
            return
        to = Address(name_for_clients(file.deployment, broker, clients), endpoint.bind.port)
        lines += _advertised(file, broker, listener, to).lines
    yield RemedyLines("advertise the name that these clients have for it", tuple(lines))


def _with_own_listener(
    file: CheckedFile,
    brokers: Sequence[Broker],
    listener: str,
    clients: Sequence[Bootstrap],
    *,
    between: bool = False,
) -> Iterator[RemedyLines]:
    """Lines that add a listener for containers, like ``listener``, to every one of ``brokers``."""
    lines: list[LineToWrite] = []
    port = 0
    for broker in brokers:
        added = added_listener(file, broker, listener, ("INTERNAL", "DOCKER"), INTERNAL_PORT)
        if added is None or (port and added.port != port):
            return
        port = added.port
        lines += added.lines(Address(name_for_clients(file.deployment, broker, clients), port))
        if between:
            lines.append(file.line(broker, "inter.broker.listener.name", added.name))
    moved = moved_to(
        file, clients, brokers, dict.fromkeys((broker.service for broker in brokers), port)
    )
    remedy = "give other brokers" if between else "give clients in containers"
    yield RemedyLines(f"{remedy} a listener of their own", (*lines, *moved))


def _advertised(file: CheckedFile, broker: Broker, listener: str, to: Address) -> RemedyLines:
    text = with_entry(advertised_text(file, broker), listener, to)
    line = file.line(broker, "advertised.listeners", text)
    return RemedyLines(f"advertise {listener}://{to}", (line,))


def misled_clients(
    deployment: Deployment, broker: Broker, listener: str
) -> tuple[Sequence[Bootstrap], Sequence[Broker]]:
    """The clients on ``listener`` in the cluster of ``broker`` that do not reach an advertised
    address, and the brokers that advertise it."""
    members = [*deployment.members(broker)]
    clients, brokers = [], set()
    for bootstrap in deployment.bootstraps:
        met = {
            member.service
            for address in bootstrap.addresses
            if (reached := deployment.reached(bootstrap.service, address))
            and reached.endpoint.name == listener
            for member in deployment.members(reached.broker)
        }
        wrong = {
            member.service
            for member in members
            if member.service in met and _fails(deployment, bootstrap.service, member, listener)
        }
        clients += [bootstrap] if wrong else []
        brokers |= wrong
    return list(dict.fromkeys(clients)), [member for member in members if member.service in brokers]


def _fails(deployment: Deployment, place: str, broker: Broker, listener: str) -> bool:
    endpoint = broker.named(listener)
    if endpoint is None or endpoint.advertised is None:
        return False
    return failing_hop_to(deployment, place, endpoint.advertised, broker) is not None

"""What may be written against a finding of a whole file: the smallest changes first.

A candidate is a proposal with that file's values; `earshot.checks.remedies` proves it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from earshot.facts.brokers import Bootstrap, Broker, Endpoint
from earshot.facts.container import PublishedPort, is_loopback
from earshot.facts.deployment import GATEWAYS, Arrival, Deployment
from earshot.facts.settings import BrokerSettings
from earshot.listeners.address import Address
from earshot.listeners.images import BITNAMI_PREFIX, broker_property, variable_of
from earshot.names.kinds import ip_of
from earshot.rules.finding import Finding, Line
from earshot.rules.grouped import shortened
from earshot.rules.kl015_clients import failure
from earshot.sources.compose import Service
from earshot.sources.deployment import settings_of

INTERNAL_PORT = 29092
OUTSIDE_PORT = 19092
_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_CONFIGURATION = re.compile(r"[={\n]|:\s")
"""In a variable that holds more than addresses."""


@dataclass(frozen=True)
class Candidate:
    """What to do, and the lines that do it."""

    remedy: str
    lines: tuple[Line, ...]
    is_choice: bool = False
    """Somebody may just as well want something else."""


@dataclass(frozen=True)
class Whole:
    """All services of a file, and what they are together."""

    services: Sequence[Service]
    deployment: Deployment

    @cached_property
    def by_name(self) -> dict[str, Service]:
        return {item.name: item for item in self.services}

    @cached_property
    def brokers(self) -> dict[str, Broker]:
        return {item.service: item for item in self.deployment.brokers}

    def settings(self, broker: Broker) -> BrokerSettings:
        return settings_of(self.by_name[broker.service])

    def line(self, broker: Broker, key: str, value: str) -> Line:
        """The line that gives a broker's property ``key`` this value."""
        return Line(broker.service, _setting(self.by_name[broker.service], key), value)


def candidates(whole: Whole, finding: Finding) -> Iterator[Candidate]:
    """Proposals against ``finding``; none where nothing is known that may help."""
    broker = whole.brokers.get(finding.container)
    match finding.rule, finding.inputs:
        case "KL015", ("advertised.listeners",) if broker is not None:
            yield from _sent_on(whole, broker, finding.listener or "")
        case "KL015", (setting,):
            yield from _no_way(whole, finding.container, setting)
        case "KL016", ("advertised.listeners",) if broker is not None:
            yield from _between(whole, broker, finding.listener or "")
        case "KL016", ("controller.quorum.voters",):
            yield from _voters(whole, finding.container)
        case "KL016", ("node.id", "broker.id") if broker is not None:
            yield from _id(whole, broker)
        case "KL017", ("ports",) if broker is not None:
            yield from _taken(whole, broker)
        case "KL017", inputs if broker is not None:
            endpoint = broker.named(finding.listener or "")
            if endpoint is None or endpoint.advertised is None:
                yield from _for_outside(whole, broker)
            elif inputs[0] == "listeners":
                yield from _to_all_interfaces(whole, broker, endpoint)
            else:
                yield from _published_as_advertised(whole, broker, endpoint)
                yield from _for_outside(whole, broker)


def _sent_on(whole: Whole, broker: Broker, listener: str) -> Iterator[Candidate]:
    """Clients come in on ``listener``, and what it advertises does not work for them."""
    wrong = [
        (item, other)
        for item in whole.deployment.bootstraps
        for other in whole.deployment.members(broker)
        if _arrives(whole.deployment, item, other, listener)
        and _fails(whole.deployment, item.service, other, listener)
    ]
    clients = list(dict.fromkeys(item for item, _ in wrong))
    brokers = [item for item in whole.deployment.members(broker) if item in [b for _, b in wrong]]
    if not brokers:
        return
    named = shortened([*dict.fromkeys(item.service for item in clients)])
    spoken = _protocols(whole, broker)
    for endpoint in broker.endpoints or ():
        if endpoint.name == listener or endpoint.is_controller:
            continue
        # with another protocol a client would need more than an address
        if spoken.get(endpoint.name.upper()) == spoken.get(listener.upper(), ""):
            lines = _bootstrapped(whole, clients, broker, endpoint.name)
            yield Candidate(f"bootstrap {named} to {endpoint.name}", lines)
    yield from _readvertised(whole, brokers, listener, clients)
    yield from _with_own_listener(whole, brokers, listener, clients)


def _no_way(whole: Whole, client: str, setting: str) -> Iterator[Candidate]:
    """A client's first address leads nowhere."""
    clients = [
        item
        for item in whole.deployment.bootstraps
        if (item.service, item.setting) == (client, setting)
    ]
    if len({item.cluster for item in whole.deployment.brokers if item.is_broker}) != 1:
        return  # to which of them it belongs is not known
    first = next(item for item in whole.deployment.brokers if item.is_broker)
    for endpoint in first.endpoints or ():
        if not endpoint.is_controller:
            lines = _bootstrapped(whole, clients, first, endpoint.name)
            yield Candidate(f"bootstrap {client} to {endpoint.name}", lines)
            if is_loopback(endpoint.bind.host):
                yield from _to_all_interfaces(whole, first, endpoint)
    members = [*whole.deployment.members(first)]
    for endpoint in first.endpoints or ():
        if not endpoint.is_controller:
            yield from _with_own_listener(whole, members, endpoint.name, clients)


def _between(whole: Whole, broker: Broker, listener: str) -> Iterator[Candidate]:
    """Other brokers do not get to this one by what it advertises."""
    endpoint = broker.named(listener)
    if endpoint is None or endpoint.advertised is None:
        return
    host, ports = endpoint.advertised.host, broker.container.published_at(endpoint.bind.port)
    if is_loopback(host) and ports:  # it is for the machine, which must not lose it
        members = [*whole.deployment.members(broker)]
        yield from _with_own_listener(whole, members, listener, (), between=True)
        return
    for port in ports:
        if port.host_port is not None and (host in GATEWAYS or "." in host):
            yield _advertised(whole, broker, listener, Address(host, port.host_port))
    yield _advertised(whole, broker, listener, Address(broker.service, endpoint.bind.port))


def _voters(whole: Whole, service: str) -> Iterator[Candidate]:
    """Each voter that is a node of the file, at its own controller listener."""
    asking = whole.brokers[service]
    places: dict[int, Address] = {}
    for node in whole.deployment.brokers:
        if node.cluster == asking.cluster and node.id is not None and node.id in asking.voters:
            own = next((item for item in node.endpoints or () if item.is_controller), None)
            if own is not None and not node.container.on_host_network:
                places[node.id] = Address(node.service, own.bind.port)
    voters = {**asking.voters, **places}
    text = ",".join(f"{id}@{address}" for id, address in voters.items())
    lines = [
        whole.line(node, "controller.quorum.voters", text)
        for node in whole.deployment.brokers
        if node.cluster == asking.cluster and node.voters
    ]
    yield Candidate("list each voter where its controller listener is", tuple(lines))


def _id(whole: Whole, broker: Broker) -> Iterator[Candidate]:
    taken = {item.id for item in whole.deployment.brokers if item.cluster == broker.cluster}
    listed = [id for id in broker.voters if id not in taken]
    free = next(id for id in range(1, len(taken) + 2) if id not in taken)
    values = whole.settings(broker).values
    for key in ("node.id", "broker.id"):
        if key in values:
            id = listed[0] if listed else free
            yield Candidate("give it an id of its own", (whole.line(broker, key, str(id)),))


def _taken(whole: Whole, broker: Broker) -> Iterator[Candidate]:
    """Another container publishes the same port of the machine."""
    used = {port.host_port for it in whole.services for port in it.container.published}
    for port in broker.container.published:
        holders = [it for it in whole.services if any(map(port.excludes, it.container.published))]
        if port.host_port is None or len(holders) < 2 or type(port) is not PublishedPort:
            continue
        free = next(it for it in range(port.host_port + 1, 65_536) if it not in used)
        lines = [_port(broker, port, free, port.container_port)]
        text = _advertised_text(whole, broker)
        for endpoint in broker.endpoints or ():
            there = endpoint.advertised
            if there and endpoint.bind.port == port.container_port and is_loopback(there.host):
                text = _with_entry(text, endpoint.name, Address(there.host, free))
                lines.append(whole.line(broker, "advertised.listeners", text))
        remedy = "publish a port of its own, and advertise that one"
        yield Candidate(remedy, tuple(lines), is_choice=True)


def _to_all_interfaces(whole: Whole, broker: Broker, endpoint: Endpoint) -> Iterator[Candidate]:
    text = whole.settings(broker).values.get("listeners", "")
    to = Address("0.0.0.0", endpoint.bind.port)
    line = whole.line(broker, "listeners", _with_entry(text, endpoint.name, to))
    yield Candidate("let it listen on all interfaces of its container", (line,))


def _published_as_advertised(
    whole: Whole, broker: Broker, endpoint: Endpoint
) -> Iterator[Candidate]:
    """Either what it advertises becomes what is published, or the other way round."""
    assert endpoint.advertised is not None
    there = endpoint.advertised
    published = broker.container.published_at(endpoint.bind.port)
    for port in published:
        if port.host_port not in (None, there.port):
            to = Address(there.host, port.host_port or 0)
            yield _advertised(whole, broker, endpoint.name, to)
    for port in published or broker.container.behind(there.port):
        if type(port) is PublishedPort and port.host_port is not None:
            line = _port(broker, port, there.port, endpoint.bind.port)
            yield Candidate(f"publish {line.value}", (line,), is_choice=bool(published))


def _for_outside(whole: Whole, broker: Broker) -> Iterator[Candidate]:
    """A published listener advertises the machine: one that is there, or a new one."""
    clients = [item for item in broker.endpoints or () if not item.is_controller]
    for endpoint in clients if len(clients) > 1 else ():
        for port in broker.container.published_at(endpoint.bind.port):
            if port.host_port is not None and endpoint.name != broker.inter_broker:
                to = Address("localhost", port.host_port)
                found = _advertised(whole, broker, endpoint.name, to)
                yield replace(found, is_choice=True)
    for endpoint in clients:
        for port in broker.container.published_at(endpoint.bind.port):
            if port.host_port is None or type(port) is not PublishedPort:
                continue
            own = _own_listener(whole, broker, endpoint.name, ("EXTERNAL", "HOST"), OUTSIDE_PORT)
            if own is None:
                continue
            bind, add = own
            lines = add(Address("localhost", port.host_port))
            moved = _port(broker, port, port.host_port, bind.port)
            remedy = "give clients on the machine a listener of their own"
            yield Candidate(remedy, (*lines, moved), is_choice=True)


def _readvertised(
    whole: Whole, brokers: Sequence[Broker], listener: str, clients: Sequence[Bootstrap]
) -> Iterator[Candidate]:
    """``listener`` under the brokers' own names, where nobody outside can be using it."""
    lines: list[Line] = []
    for broker in brokers:
        endpoint = broker.named(listener)
        if endpoint is None or broker.container.published_at(endpoint.bind.port):
            return
        to = Address(_known_as(whole.deployment, broker, clients), endpoint.bind.port)
        lines += _advertised(whole, broker, listener, to).lines
    yield Candidate("advertise the name that these clients have for it", tuple(lines))


def _with_own_listener(
    whole: Whole,
    brokers: Sequence[Broker],
    listener: str,
    clients: Sequence[Bootstrap],
    *,
    between: bool = False,
) -> Iterator[Candidate]:
    """A listener for the containers beside ``listener``, on every one of ``brokers``."""
    lines: list[Line] = []
    name, port = "", 0
    for broker in brokers:
        own = _own_listener(whole, broker, listener, ("INTERNAL", "DOCKER"), INTERNAL_PORT)
        if own is None or (port and own[0].port != port):
            return
        bind, add = own
        port = bind.port
        added = add(Address(_known_as(whole.deployment, broker, clients), port))
        name = added[0].value.rpartition("://")[0].rpartition(",")[2]
        lines += added
        if between:
            lines.append(whole.line(broker, "inter.broker.listener.name", name))
    moved = _moved(whole, clients, brokers, port)
    remedy = "give other brokers" if between else "give clients in containers"
    yield Candidate(f"{remedy} a listener of their own", (*lines, *moved))


class _OwnListener:
    """A listener to add to a broker: bound on all interfaces, with the protocol of another."""

    def __init__(self, whole: Whole, broker: Broker, name: str, bind: Address) -> None:
        self.whole, self.broker, self.name, self.bind = whole, broker, name, bind

    def __call__(self, advertised: Address) -> tuple[Line, ...]:
        """The lines that add it, the advertised one first."""
        values = self.whole.settings(self.broker).values
        text = _advertised_text(self.whole, self.broker)
        found = [self._line("advertised.listeners", f"{text},{self.name}://{advertised}")]
        service = self.whole.by_name[self.broker.service]
        derived = "listeners" not in values or not _is_set(service, "listeners")
        if not (derived and self.bind.port == advertised.port):
            listened = _tidy(values.get("listeners", "")) or "PLAINTEXT://:9092"
            found.append(self._line("listeners", f"{listened},{self.name}://{self.bind}"))
        key = "listener.security.protocol.map"
        protocols = _tidy(values.get(key, "")) or ",".join(
            f"{item.name}:{item.name if item.name in _PROTOCOLS else 'PLAINTEXT'}"
            for item in self.broker.endpoints or ()
        )
        found.append(self._line(key, f"{protocols},{self.name}:PLAINTEXT"))
        return tuple(found)

    def _line(self, key: str, value: str) -> Line:
        return self.whole.line(self.broker, key, value)


def _own_listener(
    whole: Whole, broker: Broker, beside: str, names: Iterable[str], first_port: int
) -> tuple[Address, _OwnListener] | None:
    """Where a new listener would bind, and what adds it; None where it would need more settings."""
    protocols = _protocols(whole, broker)
    endpoints = broker.endpoints
    if not endpoints or broker.container.on_host_network:
        return None
    if protocols.get(beside.upper()) != "PLAINTEXT":
        return None
    taken = {item.name.upper() for item in endpoints} | set(protocols)
    name = next((item for item in names if item not in taken), None)
    ports = {item.bind.port for item in endpoints}
    ports |= {item.container_port for item in broker.container.published}
    port = next(item for item in range(first_port, 65_536) if item not in ports)
    bind = Address("0.0.0.0", port)
    return None if name is None else (bind, _OwnListener(whole, broker, name, bind))


def _protocols(whole: Whole, broker: Broker) -> dict[str, str]:
    """By the name of each listener that has one, its protocol; all in capitals."""
    text = whole.settings(broker).values.get("listener.security.protocol.map", "")
    if not text:  # Kafka's own: each protocol is a listener's name
        return dict(zip(_PROTOCOLS, _PROTOCOLS, strict=True))
    return dict(re.findall(r"([^,:\s]+)\s*:\s*([^,\s]+)", text.upper()))


def _bootstrapped(
    whole: Whole, clients: Sequence[Bootstrap], broker: Broker, listener: str
) -> tuple[Line, ...]:
    """The lines that let ``clients`` begin with ``listener``."""
    endpoint = broker.named(listener)
    port = endpoint.bind.port if endpoint is not None else 0
    return _moved(whole, clients, [*whole.deployment.members(broker)], port)


def _moved(
    whole: Whole, clients: Sequence[Bootstrap], brokers: Sequence[Broker], port: int
) -> tuple[Line, ...]:
    """``clients`` with each address at ``port`` of the broker that it leads to, or of the next."""
    lines = []
    for item in clients:
        rest = [broker for broker in brokers if broker.is_broker]
        new = []
        for address in item.addresses:
            way = whole.deployment.way(item.service, address)
            to = way.broker if isinstance(way, Arrival) else _called(rest, address.host)
            to = to or (rest[0] if rest else brokers[0])
            rest = [broker for broker in rest if broker is not to]
            host = address.host if to.container.answers_to(address.host) else to.service
            new.append(Address(host, port))
        before, after = map(_listed, (item.addresses, dict.fromkeys(new)))
        text = whole.by_name[item.service].container.env.get(item.setting)
        is_part = text is None or _CONFIGURATION.search(text) is not None
        lines.append(Line(item.service, item.setting, after, before if is_part else ""))
    return tuple(lines)


def _called(brokers: Iterable[Broker], host: str) -> Broker | None:
    return next((it for it in brokers if it.container.answers_to(host)), None)


def _listed(addresses: Iterable[Address]) -> str:
    return ",".join(map(str, addresses))


def _arrives(deployment: Deployment, item: Bootstrap, broker: Broker, listener: str) -> bool:
    """Whether a client comes in on ``listener`` of a broker in the cluster of ``broker``."""
    ways = (deployment.way(item.service, address) for address in item.addresses)
    return any(
        isinstance(way, Arrival)
        and way.endpoint.name == listener
        and broker in deployment.members(way.broker)
        for way in ways
    )


def _fails(deployment: Deployment, place: str, broker: Broker, listener: str) -> bool:
    endpoint = broker.named(listener)
    if endpoint is None or endpoint.advertised is None:
        return False
    way = deployment.way(place, endpoint.advertised)
    return bool(failure(way, endpoint.advertised, place, broker))


def _known_as(deployment: Deployment, broker: Broker, clients: Iterable[Bootstrap]) -> str:
    """The name that ``clients`` have for a broker already, or its service's."""
    for item in clients:
        for address in item.addresses:
            way = deployment.way(item.service, address)
            named = broker.container.answers_to(address.host) and ip_of(address.host) is None
            if isinstance(way, Arrival) and way.broker is broker and named:
                return address.host
    return broker.service


def _advertised(whole: Whole, broker: Broker, listener: str, to: Address) -> Candidate:
    text = _with_entry(_advertised_text(whole, broker), listener, to)
    line = whole.line(broker, "advertised.listeners", text)
    return Candidate(f"advertise {listener}://{to}", (line,))


def _advertised_text(whole: Whole, broker: Broker) -> str:
    """`advertised.listeners` as set, or what stands for it."""
    text = whole.settings(broker).values.get("advertised.listeners", "")
    return _tidy(text) or ",".join(
        f"{item.name}://{item.advertised}" for item in broker.endpoints or () if item.advertised
    )


def _tidy(text: str) -> str:
    """A list on one line, be it written over several."""
    return ",".join(item.strip() for item in text.split(",") if item.strip())


def _with_entry(text: str, listener: str, to: Address) -> str:
    """A list of listeners with another address for one of them."""
    entries = [item.strip() for item in text.split(",") if item.strip()]
    return ",".join(
        f"{name}://{to}" if (name := item.partition("://")[0]).upper() == listener.upper() else item
        for item in entries
    )


def _port(broker: Broker, port: PublishedPort, outer: int, inner: int) -> Line:
    ip = f"[{port.host_ip}]:" if ":" in port.host_ip else f"{port.host_ip}:"
    head = ip if port.host_ip else ""
    before = f"{head}{port.host_port}:{port.container_port}"
    return Line(broker.service, "ports", f"{head}{outer}:{inner}", replaces=before)


def _is_set(service: Service, key: str) -> bool:
    """Whether the file itself sets a property."""
    setting = _setting(service, key)
    return setting.islower() or setting in service.container.env


def _setting(service: Service, key: str) -> str:
    """What sets a property in a service: its variable there, or else the one of its image."""
    family, env = service.container.family, service.container.env
    for name in env:
        if broker_property(family, name, service.container.image) == key:
            return name
    if service.properties:
        return key
    if any(name.startswith(BITNAMI_PREFIX) for name in env):
        return BITNAMI_PREFIX + key.upper().replace(".", "_")
    return variable_of(family, key)

"""Remedies and their lines, with the settings' names in a file's services.

A remedy may add a listener to a broker, with the security of an existing one. Kafka reads settings
of one listener from `listener.name.NAME.`, and a broker's logins from there or from a JAAS file:
https://kafka.apache.org/documentation/#security_jaas_broker
"""

import re
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from earshot.facts.settings import BrokerSettings
from earshot.listeners.address import MAX_PORT, Address, bracketed
from earshot.listeners.images import variable_of
from earshot.listeners.listed import by_key
from earshot.listeners.placeholders import is_known
from earshot.listeners.secrets import reveals
from earshot.names.kinds import ip_of
from earshot.rules.rule import LineToWrite
from earshot.sources.service import Service
from earshot.topology.broker import Bootstrap, Broker
from earshot.topology.container import PublishedPort
from earshot.topology.model import Deployment

_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_LOGIN = ".sasl.jaas.config"
_CONFIGURATION = re.compile(r"[={\n]|:\s")
"""Text of a variable that contains more than addresses."""


@dataclass(frozen=True)
class RemedyLines:
    """A remedy and its lines."""

    remedy: str
    lines: tuple[LineToWrite, ...]
    is_choice: bool = False
    """Other remedies are as good."""


@dataclass(frozen=True)
class CheckedFile:
    """All services of a file, and their deployment."""

    services: Sequence[Service]
    deployment: Deployment
    proposals: dict[Hashable, tuple[RemedyLines, ...]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    """Cached proposals, which several findings share."""

    @cached_property
    def by_name(self) -> dict[str, Service]:
        return {service.name: service for service in self.services}

    @cached_property
    def published(self) -> Mapping[int, Sequence[tuple[str, PublishedPort]]]:
        """(service, port) by port of the machine."""
        return by_key(
            (port.host_port, (service.name, port))
            for service in self.services
            for port in service.container.published
            if port.host_port is not None
        )

    @cached_property
    def _settings(self) -> dict[str, BrokerSettings]:
        return {name: self.by_name[name].settings for name in self.deployment.by_service}

    def settings(self, broker: Broker) -> BrokerSettings:
        return self._settings[broker.service]

    def line(self, broker: Broker, key: str, value: str) -> LineToWrite:
        """The line that sets a broker's property ``key``."""
        return LineToWrite(broker.service, setting_of(self.by_name[broker.service], key), value)


def advertised_text(file: CheckedFile, broker: Broker) -> str:
    """`advertised.listeners` as set, or its default."""
    text = file.settings(broker).values.get("advertised.listeners", "")
    return on_one_line(text) or ",".join(
        f"{endpoint.name}://{endpoint.advertised}"
        for endpoint in broker.endpoints or ()
        if endpoint.advertised
    )


def on_one_line(text: str) -> str:
    """A list on one line."""
    return ",".join(entry.strip() for entry in text.split(",") if entry.strip())


def with_entry(text: str, listener: str, to: Address) -> str:
    """A list of listeners with the address ``to`` for ``listener``."""
    return ",".join(
        f"{name}://{to}"
        if (name := entry.partition("://")[0]).upper() == listener.upper()
        else entry
        for entry in on_one_line(text).split(",")
    )


def port_line(broker: Broker, port: PublishedPort, outer: int, inner: int) -> LineToWrite:
    head = f"{bracketed(port.host_ip)}:" if port.host_ip else ""
    before = f"{head}{port.host_port}:{port.container_port}"
    return LineToWrite(broker.service, "ports", f"{head}{outer}:{inner}", replaces=before)


def is_set(service: Service, key: str) -> bool:
    """Whether the file sets a property."""
    setting = setting_of(service, key)
    return setting.islower() or setting in service.container.env


def setting_of(service: Service, key: str) -> str:
    """The name that sets a property: the service's variable or key, or else its image's."""
    family, env = service.container.family, service.container.env
    for name in env:
        if service.container.property_of(name) == key:
            return name
    if service.properties:
        return key
    return variable_of(family, key)


@dataclass(frozen=True)
class AddedListener:
    """A listener to add to ``broker``, bound to all interfaces, with the security of ``beside``."""

    file: CheckedFile
    broker: Broker
    name: str
    port: int
    beside: str
    protocol: str

    def lines(self, advertised: Address) -> tuple[LineToWrite, ...]:
        """The lines that add it, the advertised one first."""
        values = self.file.settings(self.broker).values
        text = advertised_text(self.file, self.broker)
        lines = [self._line("advertised.listeners", f"{text},{self.name}://{advertised}")]
        service = self.file.by_name[self.broker.service]
        derived = "listeners" not in values or not is_set(service, "listeners")
        if not (derived and self.port == advertised.port):
            listened = on_one_line(values.get("listeners", "")) or "PLAINTEXT://:9092"
            lines.append(self._line("listeners", f"{listened},{self.name}://0.0.0.0:{self.port}"))
        key = "listener.security.protocol.map"
        protocols = on_one_line(values.get(key, "")) or ",".join(
            f"{endpoint.name}:{endpoint.name if endpoint.name in _PROTOCOLS else 'PLAINTEXT'}"
            for endpoint in self.broker.endpoints or ()
        )
        lines.append(self._line(key, f"{protocols},{self.name}:{self.protocol}"))
        return (*lines, *self._copied())

    def _line(self, key: str, value: str) -> LineToWrite:
        return self.file.line(self.broker, key, value)

    def _copied(self) -> Iterator[LineToWrite]:
        """The lines that copy the settings of ``beside``."""
        service = self.file.by_name[self.broker.service]
        for key, value in _listener_settings(self.file, self.broker, self.beside).items():
            setting = setting_of(service, key)
            old, new = self.beside.upper().replace("_", "__"), self.name
            if setting.islower():
                old, new = self.beside.lower(), self.name.lower()
            yield LineToWrite(self.broker.service, setting.replace(old, new, 1), value)


def added_listener(
    file: CheckedFile, broker: Broker, beside: str, names: Iterable[str], first_port: int
) -> AddedListener | None:
    """A listener with the first free name of ``names`` and the first free port; None if it needs
    more settings."""
    protocols = protocols_of(file, broker)
    endpoints = broker.endpoints
    if not endpoints or broker.container.on_host_network:
        return None
    protocol = protocols.get(beside.upper(), "")
    if obstacle(file, broker, beside, protocol):
        return None
    used_names = {endpoint.name.upper() for endpoint in endpoints} | set(protocols)
    name = next((name for name in names if name not in used_names), None)
    ports = broker.ports | {port.container_port for port in broker.container.published}
    port = next((number for number in range(first_port, MAX_PORT + 1) if number not in ports), None)
    if name is None or port is None:
        return None
    return AddedListener(file, broker, name, port, beside, protocol)


def obstacle(file: CheckedFile, broker: Broker, listener: str, protocol: str) -> str:
    """The reason why a listener like ``listener`` cannot be added, or an empty string."""
    settings = _listener_settings(file, broker, listener)
    if protocol == "PLAINTEXT":
        return ""
    if protocol in ("SSL", "SASL_SSL"):
        return f"the certificate of {listener} has to be good for the new address, too"
    if protocol != "SASL_PLAINTEXT":
        return f"the protocol of {listener} is not known"
    if not any(key.endswith(_LOGIN) for key in settings):
        return f"the logins of {listener} are elsewhere, as in a JAAS file"
    if any(reveals(key, value) or not is_known(value) for key, value in settings.items()):
        return f"the settings of {listener} hold a secret"
    return ""


def _listener_settings(file: CheckedFile, broker: Broker, listener: str) -> dict[str, str]:
    prefix, values = f"listener.name.{listener.lower()}.", file.settings(broker).values
    return {key: value for key, value in values.items() if key.startswith(prefix)}


def protocols_of(file: CheckedFile, broker: Broker) -> dict[str, str]:
    """Protocols by listener name, in upper case."""
    text = file.settings(broker).values.get("listener.security.protocol.map", "")
    if not text:  # Kafka's default
        return dict(zip(_PROTOCOLS, _PROTOCOLS, strict=True))
    return dict(re.findall(r"([^,:\s]+)\s*:\s*([^,\s]+)", text.upper()))


def name_for_clients(deployment: Deployment, broker: Broker, clients: Iterable[Bootstrap]) -> str:
    """The name that ``clients`` have for a broker already, or its service's."""
    for client in clients:
        for address in client.addresses:
            reached = deployment.reached(client.service, address)
            is_answered = broker.container.has_name(address.host) and ip_of(address.host) is None
            if reached and reached.broker is broker and is_answered:
                return address.host
    return broker.service


def bootstrapped(
    file: CheckedFile, clients: Sequence[Bootstrap], broker: Broker, listener: str
) -> tuple[LineToWrite, ...]:
    """The lines that let ``clients`` begin with ``listener``, at the port that each broker has."""
    members = [*file.deployment.members(broker)]
    ports = {
        member.service: endpoint.bind.port
        for member in (broker, *members)
        if (endpoint := member.named(listener)) is not None
    }
    return moved_to(file, clients, members, ports)


def moved_to(
    file: CheckedFile,
    clients: Sequence[Bootstrap],
    brokers: Sequence[Broker],
    ports: Mapping[str, int],
) -> tuple[LineToWrite, ...]:
    """``clients`` with each address at the port of the broker that it leads to, or of the next;
    no address where a broker has none of ``ports``."""
    lines = []
    for client in clients:
        rest = list(brokers)
        new = []
        for address in client.addresses:
            reached = file.deployment.reached(client.service, address)
            called = (broker for broker in rest if broker.container.has_name(address.host))
            following = rest[0] if rest else brokers[0]
            to = reached.broker if reached else next(called, following)
            rest = [broker for broker in rest if broker is not to]
            host = address.host if to.container.has_name(address.host) else to.service
            new += [Address(host, ports[to.service])] if to.service in ports else []
        before, after = (
            ",".join(map(str, address)) for address in (client.addresses, dict.fromkeys(new))
        )
        text = file.by_name[client.service].container.env.get(client.setting)
        is_part = text is None or _CONFIGURATION.search(text) is not None
        lines.append(LineToWrite(client.service, client.setting, after, before if is_part else ""))
    return tuple(dict.fromkeys(lines))

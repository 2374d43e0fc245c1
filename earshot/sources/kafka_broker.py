"""Brokers and controllers of a Compose file, or the one of a `server.properties`.

In a `server.properties` only the advertised host shows a listener's scope. An ambiguous host (one
label, a private address) has no scope until the user states it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from earshot.errors import EarshotError
from earshot.facts.settings import inter_broker_name, node_id, roles_of
from earshot.listeners.address import Address, bracketed
from earshot.listeners.images import Family, broker_settings, family_of, is_broker
from earshot.listeners.properties import NodeSettings, read_properties
from earshot.listeners.terms import Role, Scope
from earshot.names.kinds import NameKind, kind_of
from earshot.sources.container import listeners_in
from earshot.sources.image_settings import effective_properties, with_default_listeners
from earshot.sources.parsed_listener import Audience, ParsedListener, parsed_listeners
from earshot.sources.service import Service
from earshot.topology.container import Container

_SCOPES = {
    NameKind.LOOPBACK_ADDRESS: Scope.HOST,
    NameKind.LOCALHOST: Scope.HOST,
    NameKind.EC2_PRIVATE: Scope.INTERNAL,
    NameKind.EC2_RESOURCE: Scope.INTERNAL,
    NameKind.PRIVATE_TLD: Scope.INTERNAL,
    NameKind.EC2_PUBLIC: Scope.EXTERNAL,
    NameKind.PUBLIC_ADDRESS: Scope.EXTERNAL,
    NameKind.FQDN: Scope.EXTERNAL,
}


@dataclass(frozen=True)
class KafkaBroker:
    """One Kafka process of the source.

    ``raw`` are its properties as written, ``values`` those with the defaults of image and Kafka,
    ``listeners`` the readable ones.
    """

    id: int
    name: str
    raw: NodeSettings
    values: Mapping[str, str]
    listeners: tuple[ParsedListener, ...]
    container: Container | None = None

    @property
    def is_broker(self) -> bool:
        return Role.BROKER in roles_of(self.values)

    @property
    def is_controller(self) -> bool:
        return Role.CONTROLLER in roles_of(self.values)

    @property
    def is_zookeeper(self) -> bool:
        """Whether it uses ZooKeeper: it has no `process.roles`."""
        return not self.values.get("process.roles", "").strip()

    @property
    def inter_broker(self) -> str:
        return inter_broker_name(self.values)

    @property
    def image(self) -> str:
        return self.container.image if self.container is not None else ""

    @property
    def family(self) -> Family:
        return family_of(self.image)


def brokers_in(
    services: Sequence[Service], chosen: Sequence[str], scopes: Mapping[str, tuple[Scope, ...]]
) -> tuple[KafkaBroker, ...]:
    """The brokers of the ``chosen`` services (default: all), in the order of the file.

    A broker without an id gets the first free one. Raises EarshotError if there is no broker, a
    chosen service runs none, or two have the same id.
    """
    names = [service.name for service in services]
    kafka = [
        service
        for service in services
        if is_broker(service.container.image, service.container.env, service.command)
    ]
    running = [service.name for service in kafka]
    for allowed_names, observed in (
        (names, "the file has no such service"),
        (running, "runs no Kafka broker or controller"),
    ):
        for name in (name for name in chosen if name not in allowed_names):
            allowed = ", ".join(allowed_names) or "none in this file"
            raise EarshotError(f"--service {name}", observed=observed, allowed=allowed)
    selected = [service for service in kafka if not chosen or service.name in chosen]
    if not selected:
        raise EarshotError(
            "services",
            observed=f"none of {', '.join(names)} runs a Kafka broker",
            allowed="a service with an image of Kafka, or with KAFKA_ variables for a broker",
        )
    return _numbered([(service, *_broker(service.container, scopes)) for service in selected])


def _broker(
    container: Container, scopes: Mapping[str, tuple[Scope, ...]]
) -> tuple[KafkaBroker, bool]:
    """The broker, and whether its id is set."""
    raw = broker_settings(family_of(container.image), container.env, container.image)
    values = effective_properties(container)
    broker = KafkaBroker(
        id=node_id(values),
        name=container.name,
        raw=NodeSettings(raw.values, raw.notes),
        values=values,
        listeners=tuple(listeners_in(container, values, scopes)),
        container=container,
    )
    text = values.get("node.id", values.get("broker.id", ""))
    return broker, text.isdigit()


def _numbered(brokers: Sequence[tuple[Service, KafkaBroker, bool]]) -> tuple[KafkaBroker, ...]:
    holders: dict[int, str] = {}
    for service, broker, has_id in brokers:
        holder = holders.setdefault(broker.id, service.name) if has_id else service.name
        if holder != service.name:
            raise EarshotError(
                f"services {holder} and {service.name}",
                observed=f"both have the node id {broker.id}",
                allowed="a node id of its own for each",
                remedy="fix one of them, or choose with --service",
            )
    free = iter(id for id in range(1, len(brokers) + len(holders) + 2) if id not in holders)
    return tuple(
        replace(broker, name=service.name, id=broker.id if has_id else next(free))
        for service, broker, has_id in brokers
    )


def read_broker(text: str, file_name: str, scopes: Mapping[str, tuple[Scope, ...]]) -> KafkaBroker:
    """The broker of a properties file. Raises EarshotError if it is not a broker's."""
    raw = read_properties(text)
    if not {"listeners", "advertised.listeners", "broker.id", "node.id"} & set(raw.values):
        raise EarshotError(
            file_name,
            observed="sets neither listeners nor a node's id",
            allowed="the properties file of a broker",
        )
    values = with_default_listeners(raw.values)
    between = inter_broker_name(values)
    listeners = parsed_listeners(
        values,
        lambda name, _, advertised: audience_of(advertised, between=name == between),
        "localhost",
        scopes_by_name=scopes,
    )
    return KafkaBroker(
        id=node_id(values), name=file_name, raw=raw, values=values, listeners=tuple(listeners)
    )


def audience_of(advertised: Address, *, between: bool) -> Audience:
    """The scopes of a broker's listener outside of containers; ``between`` is True for the
    inter-broker listener."""
    host, kind = bracketed(advertised.host), kind_of(advertised.host)
    scope = _SCOPES.get(kind)
    if between and scope in (None, Scope.INTERNAL, Scope.HOST):
        return Audience((Scope.INTERNAL,), "the brokers talk through it")
    if scope is None:
        return Audience((), f"{host} is {kind}, which says nothing about who resolves it")
    why = f"{host} is {kind}"
    if between:
        return Audience((Scope.INTERNAL, scope), f"the brokers talk through it; {why}")
    return Audience((scope,), why)

"""Remedies and their lines, under the names that a file's services have for their settings."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from earshot.facts.container import PublishedPort
from earshot.facts.deployment import Broker, Deployment
from earshot.facts.settings import BrokerSettings
from earshot.listeners.address import Address, bracketed
from earshot.listeners.images import variable_of
from earshot.listeners.listed import by_key
from earshot.rules.finding import LineToWrite
from earshot.sources.compose import Service
from earshot.sources.deployment import settings_of


@dataclass(frozen=True)
class RemedyLines:
    """What to do, and the lines that do it."""

    remedy: str
    lines: tuple[LineToWrite, ...]
    is_choice: bool = False
    """The user may just as well want another remedy."""


@dataclass(frozen=True)
class Whole:
    """All services of a file, and what they are together."""

    services: Sequence[Service]
    deployment: Deployment
    kept: dict[Hashable, tuple[RemedyLines, ...]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    """Proposals that several findings have in common."""

    @cached_property
    def by_name(self) -> dict[str, Service]:
        return {item.name: item for item in self.services}

    @cached_property
    def published(self) -> Mapping[int, Sequence[tuple[str, PublishedPort]]]:
        """By a port of the machine the services that publish it, each with how it does."""
        return by_key(
            (port.host_port, (service.name, port))
            for service in self.services
            for port in service.container.published
            if port.host_port is not None
        )

    @cached_property
    def brokers(self) -> dict[str, Broker]:
        return {item.service: item for item in self.deployment.brokers}

    @cached_property
    def _settings(self) -> dict[str, BrokerSettings]:
        return {name: settings_of(self.by_name[name]) for name in self.brokers}

    def settings(self, broker: Broker) -> BrokerSettings:
        return self._settings[broker.service]

    def line(self, broker: Broker, key: str, value: str) -> LineToWrite:
        """The line that gives a broker's property ``key`` this value."""
        return LineToWrite(broker.service, setting_of(self.by_name[broker.service], key), value)


def advertised_text(whole: Whole, broker: Broker) -> str:
    """`advertised.listeners` as set, or what stands for it."""
    text = whole.settings(broker).values.get("advertised.listeners", "")
    return on_one_line(text) or ",".join(
        f"{item.name}://{item.advertised}" for item in broker.endpoints or () if item.advertised
    )


def on_one_line(text: str) -> str:
    """A list on one line, be it written over several."""
    return ",".join(item.strip() for item in text.split(",") if item.strip())


def with_entry(text: str, listener: str, to: Address) -> str:
    """A list of listeners with another address for one of them."""
    return ",".join(
        f"{name}://{to}" if (name := item.partition("://")[0]).upper() == listener.upper() else item
        for item in on_one_line(text).split(",")
    )


def port_line(broker: Broker, port: PublishedPort, outer: int, inner: int) -> LineToWrite:
    head = f"{bracketed(port.host_ip)}:" if port.host_ip else ""
    before = f"{head}{port.host_port}:{port.container_port}"
    return LineToWrite(broker.service, "ports", f"{head}{outer}:{inner}", replaces=before)


def is_set(service: Service, key: str) -> bool:
    """Whether the file itself sets a property."""
    setting = setting_of(service, key)
    return setting.islower() or setting in service.container.env


def setting_of(service: Service, key: str) -> str:
    """What sets a property in a service: its variable there, or else the one of its image."""
    family, env = service.container.family, service.container.env
    for name in env:
        if service.container.property_of(name) == key:
            return name
    if service.properties:
        return key
    return variable_of(family, key)

"""The containers that run on one engine: the findings about them, and what is not known."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from earshot.checks.deployment import advice_on_services, mistakes
from earshot.rules.rule import Finding
from earshot.sources.deployment import all_brokers
from earshot.sources.open_listeners import open_listeners
from earshot.sources.other_images import may_be_broker
from earshot.sources.service import Service


@dataclass(frozen=True)
class Containers:
    """The ``services`` that one engine runs; ``noun`` is the word for one of them in a report."""

    services: Sequence[Service]
    noun: str = "container"

    @cached_property
    def brokers(self) -> frozenset[str]:
        """The names of those that run a broker."""
        return frozenset(broker.name for broker in all_brokers(self.services))

    @cached_property
    def findings(self) -> tuple[Finding, ...]:
        """The mistakes, and the most important advice on security."""
        findings = mistakes(self.services)
        return (*findings, *advice_on_services(self.services, findings))

    def unknown_images(self) -> Iterator[tuple[str, str]]:
        """(service, reason) for each with an image that may run a broker."""
        return unknown_images(self.services, self.noun)

    def unread(self) -> Iterator[tuple[str, str]]:
        """(service, reason) for each unknown image or value."""
        yield from self.unknown_images()
        for service in self.services:
            for setting in service.container.unknown:
                yield service.name, f"{self.noun} {service.name}: {setting} could not be read"

    def open_listeners(self) -> Iterator[tuple[str, str]]:
        """(service, reason) for each broker with unknown listeners."""
        for name, reason in open_listeners(self.services):
            yield name, f"{self.noun} {name}: {reason}"


def unknown_images(services: Sequence[Service], noun: str) -> Iterator[tuple[str, str]]:
    """(service, reason) for each image that looks like a broker, and that earshot does not know."""
    for service in services:
        if not service.command and may_be_broker(service.container):
            image = f"{noun} {service.name}: {service.container.image}"
            reason = "looks like a broker, but how it reads its variables is unknown"
            yield service.name, f"{image} {reason}"

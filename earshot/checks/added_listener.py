"""A listener that a remedy adds to a broker beside those that it has."""

from __future__ import annotations

import re
from collections.abc import Iterable

from earshot.checks.copied_security import copied, obstacle
from earshot.checks.remedy_lines import Whole, advertised_text, is_set, on_one_line
from earshot.facts.brokers import Broker
from earshot.listeners.address import Address
from earshot.rules.finding import LineToWrite

_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")


class AddedListener:
    """A listener to add to a broker: bound on all interfaces, with the protocol of another."""

    def __init__(
        self, whole: Whole, broker: Broker, name: str, bind: Address, beside: tuple[str, str]
    ) -> None:
        self.whole, self.broker, self.name, self.bind = whole, broker, name, bind
        self.beside, self.protocol = beside

    def __call__(self, advertised: Address) -> tuple[LineToWrite, ...]:
        """The lines that add it, the advertised one first."""
        values = self.whole.settings(self.broker).values
        text = advertised_text(self.whole, self.broker)
        found = [self._line("advertised.listeners", f"{text},{self.name}://{advertised}")]
        service = self.whole.by_name[self.broker.service]
        derived = "listeners" not in values or not is_set(service, "listeners")
        if not (derived and self.bind.port == advertised.port):
            listened = on_one_line(values.get("listeners", "")) or "PLAINTEXT://:9092"
            found.append(self._line("listeners", f"{listened},{self.name}://{self.bind}"))
        key = "listener.security.protocol.map"
        protocols = on_one_line(values.get(key, "")) or ",".join(
            f"{item.name}:{item.name if item.name in _PROTOCOLS else 'PLAINTEXT'}"
            for item in self.broker.endpoints or ()
        )
        found.append(self._line(key, f"{protocols},{self.name}:{self.protocol}"))
        found += copied(self.whole, self.broker, self.beside, self.name)
        return tuple(found)

    def _line(self, key: str, value: str) -> LineToWrite:
        return self.whole.line(self.broker, key, value)


def added_listener(
    whole: Whole, broker: Broker, beside: str, names: Iterable[str], first_port: int
) -> tuple[Address, AddedListener] | None:
    """Where a new listener would bind, and what adds it; None where it would need more settings."""
    protocols = protocols_of(whole, broker)
    endpoints = broker.endpoints
    if not endpoints or broker.container.on_host_network:
        return None
    protocol = protocols.get(beside.upper(), "")
    if obstacle(whole, broker, beside, protocol):
        return None
    taken = {item.name.upper() for item in endpoints} | set(protocols)
    name = next((item for item in names if item not in taken), None)
    ports = {item.bind.port for item in endpoints}
    ports |= {item.container_port for item in broker.container.published}
    port = next((item for item in range(first_port, 65_536) if item not in ports), None)
    if name is None or port is None:
        return None
    bind = Address("0.0.0.0", port)
    return bind, AddedListener(whole, broker, name, bind, (beside, protocol))


def protocols_of(whole: Whole, broker: Broker) -> dict[str, str]:
    """By the name of each listener that has one, its protocol; all in capitals."""
    text = whole.settings(broker).values.get("listener.security.protocol.map", "")
    if not text:  # Kafka's own: each protocol is a listener's name
        return dict(zip(_PROTOCOLS, _PROTOCOLS, strict=True))
    return dict(re.findall(r"([^,:\s]+)\s*:\s*([^,\s]+)", text.upper()))

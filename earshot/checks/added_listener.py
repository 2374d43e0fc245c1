"""A listener that a remedy adds to a broker beside one that it has, with the same security.

Kafka takes settings of one listener from `listener.name.NAME.`, and a broker's logins from there or
from a JAAS file: https://kafka.apache.org/documentation/#security_jaas_broker
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from earshot.checks.remedy_lines import Whole, advertised_text, is_set, on_one_line, setting_of
from earshot.facts.deployment import Broker
from earshot.facts.settings import is_known
from earshot.listeners.address import MAX_PORT, Address
from earshot.listeners.secrets import reveals
from earshot.rules.finding import LineToWrite

_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_LOGIN = ".sasl.jaas.config"


@dataclass(frozen=True)
class AddedListener:
    """A listener to add to ``broker``: bound on all interfaces, with the protocol of ``beside``."""

    whole: Whole
    broker: Broker
    name: str
    port: int
    beside: str
    protocol: str

    def lines(self, advertised: Address) -> tuple[LineToWrite, ...]:
        """The lines that add it, the advertised one first."""
        values = self.whole.settings(self.broker).values
        text = advertised_text(self.whole, self.broker)
        found = [self._line("advertised.listeners", f"{text},{self.name}://{advertised}")]
        service = self.whole.by_name[self.broker.service]
        derived = "listeners" not in values or not is_set(service, "listeners")
        if not (derived and self.port == advertised.port):
            listened = on_one_line(values.get("listeners", "")) or "PLAINTEXT://:9092"
            found.append(self._line("listeners", f"{listened},{self.name}://0.0.0.0:{self.port}"))
        key = "listener.security.protocol.map"
        protocols = on_one_line(values.get(key, "")) or ",".join(
            f"{item.name}:{item.name if item.name in _PROTOCOLS else 'PLAINTEXT'}"
            for item in self.broker.endpoints or ()
        )
        found.append(self._line(key, f"{protocols},{self.name}:{self.protocol}"))
        return (*found, *self._copied())

    def _line(self, key: str, value: str) -> LineToWrite:
        return self.whole.line(self.broker, key, value)

    def _copied(self) -> Iterator[LineToWrite]:
        """The lines that give it what the listener beside it has of its own."""
        service = self.whole.by_name[self.broker.service]
        for key, value in _own(self.whole, self.broker, self.beside):
            setting = setting_of(service, key)
            old, new = self.beside.upper().replace("_", "__"), self.name
            if setting.islower():
                old, new = self.beside.lower(), self.name.lower()
            yield LineToWrite(self.broker.service, setting.replace(old, new, 1), value)


def added_listener(
    whole: Whole, broker: Broker, beside: str, names: Iterable[str], first_port: int
) -> AddedListener | None:
    """The first of ``names``, at the first port that are free; None where it would need more
    settings."""
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
    port = next((item for item in range(first_port, MAX_PORT + 1) if item not in ports), None)
    if name is None or port is None:
        return None
    return AddedListener(whole, broker, name, port, beside, protocol)


def obstacle(whole: Whole, broker: Broker, listener: str, protocol: str) -> str:
    """Why a listener like ``listener`` cannot be written down, or an empty text."""
    own = dict(_own(whole, broker, listener))
    if protocol == "PLAINTEXT":
        return ""
    if protocol in ("SSL", "SASL_SSL"):
        return f"the certificate of {listener} has to be good for the new address, too"
    if protocol != "SASL_PLAINTEXT":
        return f"the protocol of {listener} is not known"
    if not any(key.endswith(_LOGIN) for key in own):
        return f"the logins of {listener} stand elsewhere, as in a JAAS file"
    if any(reveals(key, value) or not is_known(value) for key, value in own.items()):
        return f"the settings of {listener} hold a secret"
    return ""


def _own(whole: Whole, broker: Broker, listener: str) -> Iterator[tuple[str, str]]:
    prefix = f"listener.name.{listener.lower()}."
    for key, value in whole.settings(broker).values.items():
        if key.startswith(prefix):
            yield key, value


def protocols_of(whole: Whole, broker: Broker) -> dict[str, str]:
    """By the name of each listener that has one, its protocol; all in capitals."""
    text = whole.settings(broker).values.get("listener.security.protocol.map", "")
    if not text:  # Kafka's own: each protocol is a listener's name
        return dict(zip(_PROTOCOLS, _PROTOCOLS, strict=True))
    return dict(re.findall(r"([^,:\s]+)\s*:\s*([^,\s]+)", text.upper()))

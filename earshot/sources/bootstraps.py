"""What the services of a file begin with: the addresses of brokers in their settings.

Told by the names that clients have for it (`bootstrap.servers` in every spelling of a variable,
`KAFKA_BROKERS`, `KAFKA_BROKERCONNECT`), in the environment and in the command.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from earshot.facts.deployment import Bootstrap
from earshot.facts.settings import is_known
from earshot.listeners.address import Address
from earshot.sources.compose import Service

_SETTING = re.compile(
    r"(?:.*[_.\-])?(?:BOOTSTRAP[_.\-]?(?:SERVERS?|BROKERS?)|BROKERCONNECT|BROKER[_.\-]LIST"
    r"|KAFKA[_.\-](?:BROKERS?|SERVERS?|HOSTS?|URLS?|ADDR(?:ESS(?:ES)?)?|BROKER[_.\-](?:ADDR(?:ESS(?:ES)?)?|URLS?|HOSTS?|SERVERS?))"
    r"|BOOTSTRAPSERVERS|KAFKASTORE[_.\-]BOOTSTRAP[_.\-]SERVERS)(?:[_.\-][0-9]+)?",
    re.ASCII | re.IGNORECASE,
)
_ADDRESS = re.compile(
    r"(?:[A-Za-z_]+://)?([A-Za-z0-9._-]+|\[[0-9A-Fa-f:]+\]):([0-9]{2,5})", re.ASCII
)
_OPTION = re.compile(
    r"--(?:bootstrap-servers?|broker-list|kafka-server|kafka\.server|brokers?)[= ]([^\s'\";|&]+)"
    r"|\b(?:cub kafka-ready (?:-b|.*? -b)|kcat -b|kafkacat -b) ([^\s'\";|&]+)",
    re.ASCII,
)


def bootstraps(services: Iterable[Service], brokers: Iterable[str]) -> Iterator[Bootstrap]:
    """Those of ``services``; of ``brokers``, their listeners' own settings are none."""
    own = set(brokers)
    for service in services:
        for name, value in service.container.env.items():
            if not _SETTING.fullmatch(name):
                continue
            if service.name in own and "QUORUM" in name.upper():
                continue
            if found := _addresses(value):
                yield Bootstrap(service.name, name, found)
        if service.name in own:
            continue
        text = " ".join(service.command)
        for match in _OPTION.finditer(text):
            if found := _addresses(match[1] or match[2]):
                yield Bootstrap(service.name, "command", found)


def _addresses(text: str) -> tuple[Address, ...]:
    """All of them, or none where one cannot be read: nothing is told of a part."""
    if not is_known(text):
        return ()
    found = []
    for entry in re.split(r"[,;\s]+", text.strip().strip("[]\"'")):
        match = _ADDRESS.fullmatch(entry.strip("\"'"))
        if match is None or int(match[2]) > 65_535:
            return ()
        found.append(Address(match[1].strip("[]"), int(match[2])))
    return tuple(found)

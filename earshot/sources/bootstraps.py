"""What the services of a file begin with: the addresses of brokers in their settings.

Found by the names that clients have for it (`bootstrap.servers` in every spelling of a variable,
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
    r"(?:(?!https?:)[A-Za-z_]+://)?([A-Za-z0-9._-]+|\[[0-9A-Fa-f:]+\]):([0-9]{2,5})", re.ASCII
)
_OPTION = re.compile(
    r"(?<![\w.-])(?:--|-D)(?:[\w.-]*bootstrap[.-]servers?|broker-list|kafka-server|brokers?)"
    r"[= ]([^\s'\";|&]+)"
    r"|\b(?:cub kafka-ready (?:-b|.{0,200}? -b)|kcat -b|kafkacat -b) ([^\s'\";|&]+)",
    re.ASCII,
)
_REPORTERS = "KAFKA_METRIC_REPORTERS"
_REPEATED = re.compile(r"--kafka\.server[= ]([^\s'\";|&]+)", re.ASCII)
_WITHIN = re.compile(r"""["']?bootstrap\.servers["']?\s*[:=]\s*["']?([^\s"'\\}]+)""", re.ASCII)
"""In a variable that holds a whole configuration, as AKHQ's."""


def bootstraps(services: Iterable[Service], brokers: Iterable[str]) -> Iterator[Bootstrap]:
    """Those of ``services``; of ``brokers``, their listeners' own settings are none."""
    own = set(brokers)
    for service in services:
        listed = [*_in_variables(service, is_broker=service.name in own)]
        if service.name not in own:
            listed += _in_command(" ".join(service.command))
        for setting, value in listed:
            if found := _addresses(value):
                yield Bootstrap(service.name, setting, found)


def _in_variables(service: Service, *, is_broker: bool) -> Iterator[tuple[str, str]]:
    env = service.container.env
    for name, value in env.items():
        if not _SETTING.fullmatch(name):
            yield from ((name, item) for item in dict.fromkeys(_WITHIN.findall(value)))
            continue
        if is_broker and "QUORUM" in name.upper():
            continue
        if "METRICS_REPORTER" in name.upper() and not env.get(_REPORTERS):
            continue  # nobody reads it
        yield name, value


def _in_command(text: str) -> Iterator[tuple[str, str]]:
    for match in _OPTION.finditer(text):
        yield "command", match[1] or match[2]
    if servers := _REPEATED.findall(text):  # one each, and all of one client
        yield "command", ",".join(servers)


def _addresses(text: str) -> tuple[Address, ...]:
    """All of them, or none where one cannot be read: a part proves nothing."""
    if not is_known(text):
        return ()
    found = []
    for entry in re.split(r"[,;\s]+", text.strip().strip("[]\"'")):
        match = _ADDRESS.fullmatch(entry.strip("\"'"))
        if match is None or int(match[2]) > 65_535:
            return ()
        found.append(Address(match[1].strip("[]"), int(match[2])))
    return tuple(found)

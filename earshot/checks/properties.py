"""A `server.properties` that others wrote: what Kafka refuses in it.

Which Kafka shall read it is not known: what every release since 3.9 refuses counts, and with
ZooKeeper what 3.9 refuses.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from earshot.checks.deployment import kafka_refusals
from earshot.checks.security_advice import advice_on_settings
from earshot.facts.settings import NEWEST, BrokerSettings
from earshot.listeners.properties import malformed_keys, read_properties
from earshot.rules import kl002_kafka
from earshot.rules.finding import Finding

OLDEST = (3, 9)
_OF_BROKER = {"advertised.listeners", "process.roles", "zookeeper.connect", "broker.id", "node.id"}
_OF_CLIENT = re.compile(r"bootstrap\.servers|kafkastore\.|.*\.bootstrap\.servers|group\.id")
_STATEMENT = re.compile(r"\{%|\{\{|<%|<#")
"""Of a template language, which may leave lines out or add some."""


def is_of_broker(text: str) -> bool:
    """Whether the properties are a broker's or a controller's: clients have listeners too."""
    values = read_properties(text).values
    if any(_OF_CLIENT.fullmatch(key) for key in values):
        return False
    if re.match(r"\s*https?://", values.get("listeners", ""), re.IGNORECASE):
        return False  # of a REST proxy, which knew ZooKeeper too
    return bool(_OF_BROKER & set(values))


def mistakes_in_properties(
    text: str, release: tuple[int, int] | None = None
) -> tuple[Finding, ...]:
    """What Kafka, of this ``release`` where one is given, has against them; the first alone, for it
    stops there."""
    for key in malformed_keys(text):
        said = "has a \\u without four hexadecimal digits; Java loads no such file"
        return (kl002_kafka.RULE.finding(f"{key}: {said}", "a backslash twice", inputs=(key,)),)
    return mistakes_in_values(read_properties(text).values, release, complete=_is_whole(text))


def advice_in_properties(text: str, release: tuple[int, int] | None = None) -> tuple[Finding, ...]:
    """How secure the broker is, of which Kafka has nothing to say: one piece of advice, or none."""
    values = read_properties(text).values
    return advice_on_settings(settings_in(values, release, complete=_is_whole(text)))


def _is_whole(text: str) -> bool:
    return not _STATEMENT.search(text)


def mistakes_in_values(
    given: Mapping[str, str], release: tuple[int, int] | None, *, complete: bool
) -> tuple[Finding, ...]:
    """The same of properties by name; where not ``complete``, others may be set elsewhere."""
    settings = settings_in(given, release, complete=complete)
    found = kafka_refusals(settings)
    if not (settings.is_zookeeper or release):
        newest = BrokerSettings(settings.values, settings.complete, NEWEST)
        later = {item.inputs for item in kafka_refusals(newest)}  # of nothing, in other words
        found = tuple(item for item in found if item.inputs in later)
    return found[:1]


def settings_in(
    given: Mapping[str, str], release: tuple[int, int] | None, *, complete: bool
) -> BrokerSettings:
    """Properties by name as those of one broker."""
    values = dict(given)
    # without either it is a part of a file, or a template: something else completes it
    mode = values.get("process.roles") or values.get("zookeeper.connect")
    whole = bool(values.get("listeners") and mode)
    return BrokerSettings(values, complete=complete and whole, release=release or OLDEST)

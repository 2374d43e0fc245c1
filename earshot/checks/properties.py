"""A `server.properties` that others wrote: what Kafka refuses in it.

Which Kafka shall read it is not known: what every release since 3.9 refuses counts, and with
ZooKeeper what 3.9 refuses.
"""

from __future__ import annotations

import re

from earshot.checks.deployment import kafka_refusals
from earshot.listeners.properties import read_properties
from earshot.rules.finding import Finding
from earshot.sources.deployment import NEWEST, Settings

OLDEST = (3, 9)
_OF_BROKER = {"advertised.listeners", "process.roles", "zookeeper.connect", "broker.id", "node.id"}
_OF_CLIENT = re.compile(r"bootstrap\.servers|kafkastore\.|.*\.bootstrap\.servers|group\.id")


def is_of_broker(text: str) -> bool:
    """Whether the properties are a broker's or a controller's: clients have listeners too."""
    keys = set(read_properties(text).values)
    if any(_OF_CLIENT.fullmatch(key) for key in keys):
        return False
    return bool(_OF_BROKER & keys)


def mistakes_in_properties(text: str) -> tuple[Finding, ...]:
    """What Kafka has against them; the first alone, for it stops there."""
    values = {key: value for key, value in read_properties(text).values.items() if value != ""}
    settings = Settings(values, complete=True, release=OLDEST)
    found = kafka_refusals(settings)
    if not settings.is_zookeeper:
        later = {item.observed for item in kafka_refusals(Settings(values, True, NEWEST))}
        found = tuple(item for item in found if item.observed in later)
    return found[:1]

"""What the stack file cannot hold: ZooKeeper's part, other vendors', secrets, scripts' own."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from earshot.errors import EarshotError
from earshot.listeners.images import OWN_VARIABLES, Family, broker_property
from earshot.listeners.owned import OWNED, check_property
from earshot.listeners.properties import NodeSettings, property_of, property_of_3, write_environment
from earshot.listeners.secrets import INSTEAD, reveals
from earshot.sources.compose import Service
from earshot.sources.container import version_of
from earshot.sources.kafka_broker import KafkaBroker

_ZOOKEEPER_IMAGE = re.compile(r"(?:.*/)?[a-z-]*zookeeper[a-z-]*(?:[:@].*)?")
_PLACEHOLDER = re.compile(r"_\{[A-Z_]+\}")
_GONE = {
    "inter.broker.protocol.version": "Kafka 4 has feature levels instead",
    "log.message.format.version": "Kafka 4 knows one message format",
    "broker.id.generation.enable": "KRaft never makes up node ids",
    "reserved.broker.max.id": "KRaft never makes up node ids",
}
_ACL = "kafka.security.authorizer.AclAuthorizer"
_OF_OLD = ("control.plane.listener.name", "host.name", "port")
"""Owned properties that nothing in the stack file stands for."""


@dataclass(frozen=True)
class Leftover:
    """One thing that is not carried over, and why, or what stands for it."""

    what: str
    why: str

    def __str__(self) -> str:
        return f"{self.what}: {self.why}"


_DATA = Leftover(
    "topics and their data",
    "a new KRaft cluster begins empty; moving a ZooKeeper cluster with its data takes Kafka's own "
    "migration, of which 3.9 is the last version",
)


def leftovers(brokers: Sequence[KafkaBroker], services: Sequence[Service]) -> tuple[Leftover, ...]:
    """Everything that is not carried over, each thing once."""
    found = [*_zookeepers(services)]
    for broker in brokers:
        found += [*_variables(broker), *_properties(broker)]
    if any(item.is_zookeeper for item in brokers):
        found.append(_DATA)
    return tuple(dict.fromkeys(found))


def free_properties(broker: KafkaBroker) -> dict[str, str]:
    """The broker properties that the stack file's `extra` can hold."""
    return {
        key: value
        for key, value in sorted(broker.raw.values.items())
        if key not in OWNED and not _refusal(broker, key, value)
    }


def _zookeepers(services: Sequence[Service]) -> Iterator[Leftover]:
    for service in services:
        if _ZOOKEEPER_IMAGE.fullmatch(service.container.image):
            yield Leftover(
                f"service {service.name} ({service.container.image})",
                "KRaft needs no ZooKeeper; the brokers hold the metadata themselves",
            )


def _variables(broker: KafkaBroker) -> Iterator[Leftover]:
    for name, value in (broker.container.env if broker.container is not None else {}).items():
        if name in OWN_VARIABLES and name != "KAFKA_VERSION":
            yield Leftover(f"variable {name}", "it is for the image's scripts, not for the broker")
        elif name.startswith("KAFKA_") and not broker_property(broker.family, name, broker.image):
            yield Leftover(f"variable {name}", "it is none of the broker's properties")
        if broker.family is Family.WURSTMEISTER and _PLACEHOLDER.search(value):
            yield Leftover(
                f"the placeholder in {name}",
                "only wurstmeister's start script knows it; write the name out",
            )


def _properties(broker: KafkaBroker) -> Iterator[Leftover]:
    for key, value in sorted(broker.raw.values.items()):
        if key.startswith("zookeeper."):
            yield Leftover(key, "no counterpart in KRaft")
        elif key == "broker.id":
            yield Leftover(key, f"it is KRaft's node.id now: {broker.id}")
        elif key in _OF_OLD:
            yield Leftover(key, OWNED[key])
        elif key not in OWNED and (reason := _refusal(broker, key, value)):
            yield Leftover(key, reason)


def _refusal(broker: KafkaBroker, key: str, value: str) -> str:
    """Why the free property cannot stand in the stack file, or an empty text."""
    if key in _GONE:
        return _GONE[key]
    if key == "authorizer.class.name" and value == _ACL:
        return "KRaft has org.apache.kafka.metadata.authorizer.StandardAuthorizer instead"
    if key.startswith("confluent.") or "io.confluent." in value:
        return "Apache Kafka does not have Confluent's own parts"
    if reveals(key, value):
        return f"it holds a secret in clear; a stack file takes {INSTEAD}"
    try:
        check_property(key, value)
        if broker.container is not None:
            is_3 = version_of(broker.container.image).startswith("3.")
            reads = property_of_3 if is_3 else property_of
            write_environment(NodeSettings({key: value}), reads)
    except ValueError as error:
        return str(error).removeprefix(f"{key}: ")
    except EarshotError as error:
        return error.observed
    return ""

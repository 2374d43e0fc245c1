"""`Kafka` resources of Strimzi among the documents of a file.

Source: `GenericKafkaListener` and its configuration in strimzi/strimzi-kafka-operator. The older
form, a map of `plain`, `tls` and `external`, is no longer served by any operator and is not read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from earshot.facts.settings import is_known
from earshot.facts.strimzi import StrimziBroker, StrimziKafka, StrimziListener
from earshot.sources.kubernetes import Keys, Resource, is_off, name_of, resources

_GROUP = "kafka.strimzi.io/"
_POOLS = "strimzi.io/node-pools"
_LISTENERS = "spec.kafka.listeners"
_ON = ("true", "yes", "on", "y")


@dataclass(frozen=True)
class FoundKafka:
    """One resource, where it stands, and whether its listeners are a list."""

    kafka: StrimziKafka
    path: Keys
    is_read: bool


def read_strimzi(documents: Sequence[object]) -> tuple[FoundKafka, ...]:
    """Those in the documents of a file (`read_yaml_documents`), in their order.

    The second of one name is called `NAME#2`.
    """
    listed = [(path, item) for path, item in resources(documents) if _is_strimzi(item)]
    pooled = any(item.get("kind") == "KafkaNodePool" for _, item in listed)
    found: list[FoundKafka] = []
    for path, item in listed:
        if item.get("kind") == "Kafka":
            names = {other.kafka.name for other in found}
            found.append(_found(path, item, pooled, names))
    return tuple(found)


def _is_strimzi(resource: Resource) -> bool:
    return str(resource.get("apiVersion")).startswith(_GROUP)


def _found(path: Keys, resource: Resource, pooled: bool, taken: set[str]) -> FoundKafka:
    section = _map(_map(resource.get("spec")).get("kafka"))
    listed = section.get("listeners")
    listeners = tuple(_listeners(listed)) if isinstance(listed, list) else ()
    annotations = _map(_map(resource.get("metadata")).get("annotations"))
    alone = not pooled and is_off(annotations.get(_POOLS, "false"))
    return FoundKafka(
        StrimziKafka(
            _free(resource, taken), listeners, _number(section.get("replicas")) if alone else None
        ),
        path,
        isinstance(listed, list),
    )


def _free(resource: Resource, taken: set[str]) -> str:
    name = name_of(resource)
    numbered = (f"{name}#{i}" for i in range(2, len(taken) + 3))
    return next(item for item in (name, *numbered) if item not in taken)


def _listeners(listed: list[object]) -> Iterator[StrimziListener]:
    for i, item in enumerate(listed):
        if not isinstance(item, Mapping):
            continue
        listener = _map(item)
        place = f"{_LISTENERS}[{i}]"
        configuration = listener.get("configuration")
        known = configuration is None or isinstance(configuration, Mapping)
        settings = _map(configuration)
        yield StrimziListener(
            place=place,
            name=_text(listener, "name"),
            port=_number(listener.get("port")),
            type=_text(listener, "type"),
            tls=_switch(listener.get("tls")),
            authentication=_text(_map(listener.get("authentication")), "type"),
            has_bootstrap_host=bool(_map(settings.get("bootstrap")).get("host")),
            has_host_template=bool(settings.get("hostTemplate")),
            brokers=_brokers(settings.get("brokers"), place) if known else None,
        )


def _brokers(listed: object, place: str) -> tuple[StrimziBroker, ...] | None:
    if listed is None:
        return ()
    if not isinstance(listed, list) or not all(isinstance(item, Mapping) for item in listed):
        return None
    return tuple(
        StrimziBroker(
            id=_number(item.get("broker")),
            place=f"{place}.configuration.brokers[{i}]",
            has_host=bool(item.get("host")),
            advertised_host=_text(item, "advertisedHost"),
            advertised_port=_number(item.get("advertisedPort")),
        )
        for i, item in enumerate(map(_map, listed))
    )


def _text(section: Mapping[str, object], key: str) -> str | None:
    value = section.get(key)
    if value is None:
        return ""
    return value if isinstance(value, str) and is_known(value) else None


def _number(value: object) -> int | None:
    if isinstance(value, str) and re.fullmatch(r"[0-9]{1,9}", value, re.ASCII):
        return int(value)
    return None


def _switch(value: object) -> bool | None:
    """A listener has no TLS where nothing is said of it."""
    if value is None or is_off(value):
        return False
    return True if str(value).lower() in _ON else None


def _map(value: object) -> dict[str, object]:
    return {str(key): item for key, item in value.items()} if isinstance(value, Mapping) else {}

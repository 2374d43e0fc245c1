"""`Kafka` resources of Strimzi among the documents of a file.

Source: `GenericKafkaListener` and its configuration in strimzi/strimzi-kafka-operator. The older
form, a map of `plain`, `tls` and `external`, is no longer served by any operator and is not read.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from earshot.facts.strimzi import StrimziBroker, StrimziKafka, StrimziListener
from earshot.listeners.placeholders import is_known
from earshot.sources.kubernetes import resources
from earshot.sources.pod_variables import Keys, as_map
from earshot.sources.workloads import Resource, free_name, is_off, name_of

_GROUP = "kafka.strimzi.io/"
_POOLS = "strimzi.io/node-pools"
_LISTENERS = "spec.kafka.listeners"
_ON = ("true", "yes", "on", "y")


@dataclass(frozen=True)
class FoundKafka:
    """One resource, its place, and whether its listeners are a list."""

    kafka: StrimziKafka
    path: Keys
    is_read: bool


def read_strimzi(documents: Sequence[object]) -> tuple[FoundKafka, ...]:
    """Those in the documents of a file (`read_yaml_documents`), in their order.

    The second of one name is called `NAME#2`.
    """
    listed = [
        (path, resource)
        for path, resource in resources(documents)
        if str(resource.get("apiVersion")).startswith(_GROUP)
    ]
    pooled = any(item.get("kind") == "KafkaNodePool" for _, item in listed)
    taken: set[str] = set()
    return tuple(
        _found(path, item, pooled, taken) for path, item in listed if item.get("kind") == "Kafka"
    )


def _found(path: Keys, resource: Resource, pooled: bool, taken: set[str]) -> FoundKafka:
    section = as_map(as_map(resource.get("spec")).get("kafka"))
    listed = section.get("listeners")
    listeners = tuple(_listeners(listed)) if isinstance(listed, list) else ()
    annotations = as_map(as_map(resource.get("metadata")).get("annotations"))
    alone = not pooled and is_off(annotations.get(_POOLS, "false"))
    brokers = _number(section.get("replicas")) if alone else None
    kafka = StrimziKafka(free_name(name_of(resource), taken), listeners, brokers)
    return FoundKafka(kafka, path, isinstance(listed, list))


def _listeners(listed: list[object]) -> Iterator[StrimziListener]:
    for i, item in enumerate(listed):
        if not isinstance(item, Mapping):
            continue
        listener = as_map(item)
        place = f"{_LISTENERS}[{i}]"
        configuration = listener.get("configuration")
        known = configuration is None or isinstance(configuration, Mapping)
        settings = as_map(configuration)
        yield StrimziListener(
            place=place,
            name=_text(listener, "name"),
            port=_number(listener.get("port")),
            type=_text(listener, "type"),
            tls=_switch(listener.get("tls")),
            authentication=_text(as_map(listener.get("authentication")), "type"),
            has_bootstrap_host=bool(as_map(settings.get("bootstrap")).get("host")),
            has_host_template=bool(settings.get("hostTemplate")),
            node_address=_text(settings, "preferredNodePortAddressType"),
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
        for i, item in enumerate(map(as_map, listed))
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

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
from earshot.sources.pod_variables import Keys
from earshot.sources.values import as_map
from earshot.sources.workloads import Resource, free_name, is_off, name_of

_GROUP = "kafka.strimzi.io/"
_POOLS = "strimzi.io/node-pools"
_LISTENERS = "spec.kafka.listeners"
_OLD_VERSIONS = ("v1alpha1", "v1beta1")
"""Versions of the resource that allowed the older form."""
_ON = ("true", "yes", "on", "y")


@dataclass(frozen=True)
class FoundKafka:
    """One resource, and its place."""

    kafka: StrimziKafka
    path: Keys
    open: str = ""
    """The reason for unknown listeners, or empty."""
    misshapen: str = ""
    """The value of a wrong type for which Kubernetes refuses the resource, or empty."""


def read_strimzi(documents: Sequence[object]) -> tuple[FoundKafka, ...]:
    """The `Kafka` resources of a file's documents (`read_yaml_documents`), in their order.

    The second resource of one name is called `NAME#2`.
    """
    strimzi_resources = [
        (path, resource)
        for path, resource in resources(documents)
        if str(resource.get("apiVersion")).startswith(_GROUP)
    ]
    pooled = any(resource.get("kind") == "KafkaNodePool" for _, resource in strimzi_resources)
    used_names: set[str] = set()
    return tuple(
        _found(path, resource, pooled, used_names)
        for path, resource in strimzi_resources
        if resource.get("kind") == "Kafka"
    )


def _found(path: Keys, resource: Resource, pooled: bool, used_names: set[str]) -> FoundKafka:
    section = as_map(as_map(resource.get("spec")).get("kafka"))
    listener_list = section.get("listeners")
    listeners = tuple(_listeners(listener_list)) if isinstance(listener_list, list) else ()
    annotations = as_map(as_map(resource.get("metadata")).get("annotations"))
    alone = not pooled and is_off(annotations.get(_POOLS, "false"))
    brokers = _number(section.get("replicas")) if alone else None
    kafka = StrimziKafka(free_name(name_of(resource), used_names), listeners, brokers)
    version = str(resource.get("apiVersion")).removeprefix(_GROUP)
    misshapen = _misshapen(listener_list, version)
    return FoundKafka(
        kafka, path, "" if misshapen else _why_open(listener_list, listeners), misshapen
    )


def misshapen_kafkas(kafkas: Sequence[FoundKafka]) -> Iterator[tuple[str, str, str]]:
    """(resource, observed, allowed) for each resource whose listeners Kubernetes refuses."""
    for resource in kafkas:
        if resource.misshapen:
            yield (
                f"Kafka {resource.kafka.name}",
                resource.misshapen,
                "a list of listeners, each a map",
            )


def _misshapen(entries: object, version: str) -> str:
    if isinstance(entries, list):
        places = (f"{_LISTENERS}[{i}]" for i, item in enumerate(entries) if _is_no_map(item))
        place = next(places, "")
        return f"{place} is no map" if place else ""
    is_old_form = isinstance(entries, Mapping) and version in _OLD_VERSIONS
    hidden = isinstance(entries, str) and not is_known(entries)
    return "" if entries is None or is_old_form or hidden else f"{_LISTENERS} is no list"


def _is_no_map(item: object) -> bool:
    return not (isinstance(item, Mapping) or (isinstance(item, str) and not is_known(item)))


def _why_open(entries: object, listeners: Sequence[StrimziListener]) -> str:
    if entries is None:
        return f"{_LISTENERS} is not set in this file"
    if isinstance(entries, Mapping):
        return f"{_LISTENERS} is a map, the form before Strimzi 0.20, which is not read"
    if not isinstance(entries, list) or len(listeners) < len(entries):
        return f"{_LISTENERS} holds a value that is not known"
    for item in listeners:
        fields = {"name": item.name, "port": item.port, "type": item.type}
        if unknown := [field for field, value in fields.items() if value is None]:
            return f"{item.place}.{unknown[0]} is not known"
    return ""


def _listeners(entries: list[object]) -> Iterator[StrimziListener]:
    for i, entry in enumerate(entries):
        if not isinstance(entry, Mapping):
            continue
        listener = as_map(entry)
        place = f"{_LISTENERS}[{i}]"
        configuration = listener.get("configuration")
        is_readable = configuration is None or isinstance(configuration, Mapping)
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
            brokers=_brokers(settings.get("brokers"), place) if is_readable else None,
        )


def _brokers(entries: object, place: str) -> tuple[StrimziBroker, ...] | None:
    if entries is None:
        return ()
    if not isinstance(entries, list) or not all(isinstance(entry, Mapping) for entry in entries):
        return None
    return tuple(
        StrimziBroker(
            id=_number(entry.get("broker")),
            place=f"{place}.configuration.brokers[{i}]",
            has_host=bool(entry.get("host")),
            advertised_host=_text(entry, "advertisedHost"),
            advertised_port=_number(entry.get("advertisedPort")),
        )
        for i, entry in enumerate(map(as_map, entries))
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
    """A boolean, False by default; None if unknown."""
    if value is None or is_off(value):
        return False
    return True if str(value).lower() in _ON else None

"""`Kafka` resources of Strimzi among the documents of a file, and those of other operators.

Source: `KafkaClusterSpec`, `GenericKafkaListener` and its configuration in
strimzi/strimzi-kafka-operator. The older form, a map of `plain`, `tls` and `external`, is no longer
served by any operator and is not read.
"""

import re
from collections.abc import Iterator, Mapping, Sequence

from earshot.facts.strimzi import StrimziBroker, StrimziKafka, StrimziListener
from earshot.listeners.placeholders import is_known
from earshot.sources.pod_variables import Keys
from earshot.sources.values import as_map
from earshot.sources.workloads import (
    Resource,
    free_name,
    is_off,
    name_of,
    namespace_of,
    resources,
)

_GROUP = "kafka.strimzi.io/"
_CLUSTER = re.compile(r"(?:Kafka|KafkaCluster|Redpanda) .*|Cluster .*(?:kafka|redpanda).*")
"""The kind of a resource that is a cluster, and its operator's group."""
_POOLS = "strimzi.io/node-pools"
_LISTENERS = "spec.kafka.listeners"
_OLD_VERSIONS = ("v1alpha1", "v1beta1")
"""Versions of the resource that allowed the older form."""
_REQUIRED = ("name", "port", "type", "tls")
_OPERATORS = ("topicOperator", "userOperator")
_ON = ("true", "yes", "on", "y")


def read_strimzi(documents: Sequence[object]) -> tuple[StrimziKafka, ...]:
    """The `Kafka` resources of a file's documents (`read_yaml_documents`), in their order.

    The second resource of one name is called `NAME#2`.
    """
    strimzi_resources = [
        (path, resource)
        for path, resource in resources(documents)
        if str(resource.get("apiVersion")).startswith(_GROUP)
    ]
    pools = [
        resource for _, resource in strimzi_resources if resource.get("kind") == "KafkaNodePool"
    ]
    used_names: set[str] = set()
    return tuple(
        _kafka(path, resource, pools, used_names)
        for path, resource in strimzi_resources
        if resource.get("kind") == "Kafka"
    )


def of_other_operators(documents: Sequence[object]) -> tuple[str, ...]:
    """A reason for each cluster of an operator other than Strimzi, whose resources are not read."""
    return tuple(
        f"{kind} {name_of(resource)} of {group} is not read"
        for _, resource in resources(documents)
        for kind, group in [(resource.get("kind"), str(resource.get("apiVersion")).split("/")[0])]
        if _CLUSTER.fullmatch(f"{kind} {group}") and group != _GROUP.rstrip("/")
    )


def _kafka(
    path: Keys, resource: Resource, pools: Sequence[Resource], used_names: set[str]
) -> StrimziKafka:
    spec = as_map(resource.get("spec"))
    section = as_map(spec.get("kafka"))
    listener_list = section.get("listeners")
    is_old = str(resource.get("apiVersion")).removeprefix(_GROUP) in _OLD_VERSIONS
    entries = listener_list if isinstance(listener_list, list) else []
    listeners = tuple(_listeners(entries, () if is_old else _REQUIRED))
    annotations = as_map(as_map(resource.get("metadata")).get("annotations"))
    alone = not pools and is_off(annotations.get(_POOLS, "false"))
    brokers = _number(section.get("replicas")) if alone else None
    refusal = _refusal(section, is_old)
    if "listeners" not in section and _is_complete(spec, pools):
        refusal = _LISTENERS, "is not set"
    name = free_name(name_of(resource), used_names)
    why_open = "" if refusal else _why_open(listener_list, listeners)
    namespace = namespace_of(resource)
    return StrimziKafka(name, listeners, brokers, refusal, path, why_open, namespace)


def _refusal(section: Resource, is_old: bool) -> tuple[str, str] | None:
    """The place and problem of a listener list that the schema refuses."""
    listener_list = section.get("listeners")
    if isinstance(listener_list, list):
        for i, entry in enumerate(listener_list):
            if not isinstance(entry, Mapping) and not _is_hidden(entry):
                return f"{_LISTENERS}[{i}]", "is not a map"
        return None if listener_list else (_LISTENERS, "is empty")
    is_old_form = isinstance(listener_list, Mapping) and is_old
    if "listeners" not in section or is_old_form or _is_hidden(listener_list):
        return None
    return _LISTENERS, "is not a list"


def _is_hidden(value: object) -> bool:
    """Whether ``value`` is a variable that is not set."""
    return isinstance(value, str) and not is_known(value)


def _is_complete(spec: Resource, pools: Sequence[Resource]) -> bool:
    """Whether the file contains the whole resource and not a patch of it.

    A patch has no use for an operator without settings, nor for the roles of a node pool.
    """
    section, operators = as_map(spec.get("kafka")), as_map(spec.get("entityOperator"))
    has_nodes = {"replicas", "storage"} <= section.keys()
    has_pool = any("roles" in as_map(pool.get("spec")) for pool in pools)
    return (has_nodes or has_pool) and any(operators.get(name) == {} for name in _OPERATORS)


def _why_open(listener_list: object, listeners: Sequence[StrimziListener]) -> str:
    if listener_list is None:
        return f"{_LISTENERS} is not set in this file"
    if isinstance(listener_list, Mapping):
        return f"{_LISTENERS} is a map, the form before Strimzi 0.20, which is not read"
    if not isinstance(listener_list, list) or len(listeners) < len(listener_list):
        return f"{_LISTENERS} holds a value that is not known"
    for listener in listeners:
        fields = {"name": listener.name, "port": listener.port, "type": listener.type}
        for field, value in fields.items():
            if value is None and field not in listener.missing:
                return f"{listener.place}.{field} is not known"
    return ""


def _listeners(entries: list[object], required: Sequence[str]) -> Iterator[StrimziListener]:
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
            missing=tuple(field for field in required if listener.get(field) is None),
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

"""Checks that a manifest gives each node port to one Service.

A node port belongs to one Service of the whole cluster, in any namespace: Kubernetes refuses the
second one ("provided port is already allocated"). Strimzi creates a Service for the bootstrap
address and for each broker of a listener. Source:
https://kubernetes.io/docs/concepts/services-networking/service/#nodeport-custom-port.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from earshot.facts.strimzi import StrimziKafka
from earshot.listeners.placeholders import is_known
from earshot.rules import kl014_image, kl018_strimzi
from earshot.rules.rule import Finding, Severity
from earshot.sources.pod_variables import Keys
from earshot.sources.strimzi import read_strimzi
from earshot.sources.values import as_map, list_of, number_in, text_in
from earshot.sources.workloads import Resource, is_off, name_of, namespace_of, resources

SOURCE = "https://kubernetes.io/docs/concepts/services-networking/service/#nodeport-custom-port"
_SERVICE_TYPES = ("NodePort", "LoadBalancer")
_LISTENER_TYPES = ("nodeport", "loadbalancer")


@dataclass(frozen=True)
class _NodePort:
    """A fixed node port: its holder, and its place in the resource at ``path``."""

    number: int
    resource: str
    path: Keys
    place: str
    holder: str
    listener: str | None = None
    exists: bool = True
    """False if the number of brokers is unknown, so that the Service may not exist."""


def repeated_node_ports(documents: Sequence[object]) -> Iterator[tuple[Finding, Keys]]:
    """A finding, with the path of its resource, for each node port that another Service has.

    The severity is a warning if one of the two Services belongs to a broker that may not exist.
    Only TCP ports and fixed numbers count, of resources whose names are known.
    """
    holders: dict[int, _NodePort] = {}
    for port in _node_ports(documents):
        holder = holders.setdefault(port.number, port)
        if holder.holder == port.holder and holder.place == port.place:
            continue
        rule = kl014_image.RULE if port.listener is None else kl018_strimzi.RULE
        is_certain = holder.exists and port.exists
        finding = rule.finding(
            f"{port.holder} has the node port {port.number}, as {holder.holder} has; Kubernetes "
            "refuses the second Service",
            "a node port of its own for every Service of the cluster",
            listener=port.listener,
            remedy="give one of them another nodePort, or none: Kubernetes then chooses one",
            inputs=(port.place,),
            severity=None if is_certain else Severity.WARNING,
            source=SOURCE,
        )
        yield replace(finding, resource=port.resource), port.path


def _node_ports(documents: Sequence[object]) -> Iterator[_NodePort]:
    """The node ports of Services and of Strimzi's listeners, each resource once."""
    kafkas = {kafka.path: kafka for kafka in read_strimzi(documents)}
    known: set[tuple[str, str, str]] = set()
    for path, resource in resources(documents):
        is_service = resource.get("apiVersion") == "v1" and resource.get("kind") == "Service"
        identity = (str(resource.get("kind")), namespace_of(resource), name_of(resource))
        if not (is_service or path in kafkas) or not all(map(is_known, identity)):
            continue
        if identity in known:
            continue  # a second resource of one name replaces the first
        known.add(identity)
        if is_service:
            yield from _of_service(path, resource)
        else:
            yield from _of_kafka(resource, kafkas[path])


def _of_service(path: Keys, resource: Resource) -> Iterator[_NodePort]:
    spec = as_map(resource.get("spec"))
    if text_in(spec, "type") not in _SERVICE_TYPES:
        return
    name = f"Service {name_of(resource)}"
    for i, entry in enumerate(map(as_map, list_of(spec.get("ports")))):
        number = number_in(entry, "nodePort")
        # 0 lets Kubernetes choose
        if number and (text_in(entry, "protocol") or "TCP") == "TCP":
            port = text_in(entry, "name") or text_in(entry, "port")
            holder = f"port {port} of {name}"
            yield _NodePort(number, name, path, f"spec.ports[{i}].nodePort", holder)


def _of_kafka(resource: Resource, kafka: StrimziKafka) -> Iterator[_NodePort]:
    name, brokers = f"Kafka {kafka.name}", kafka.brokers
    section = as_map(as_map(resource.get("spec")).get("kafka"))
    for i, listener in enumerate(map(as_map, list_of(section.get("listeners")))):
        settings = as_map(listener.get("configuration"))
        if text_in(listener, "type") not in _LISTENER_TYPES:
            continue
        listener_name = text_in(listener, "name")
        place = f"spec.kafka.listeners[{i}].configuration"
        holder = f"listener {listener_name} of {name}"
        number = number_in(as_map(settings.get("bootstrap")), "nodePort")
        if number and not is_off(settings.get("createBootstrapService", "")):
            at, who = f"{place}.bootstrap.nodePort", f"the bootstrap of {holder}"
            yield _NodePort(number, name, kafka.path, at, who, listener_name)
        used_ids: set[int] = set()
        for j, entry in enumerate(map(as_map, list_of(settings.get("brokers")))):
            id, number = number_in(entry, "broker"), number_in(entry, "nodePort")
            if id is None or not number or id in used_ids or (brokers or id + 1) <= id:
                continue
            used_ids.add(id)
            at, who = f"{place}.brokers[{j}].nodePort", f"broker {id} of {holder}"
            exists = brokers is not None
            yield _NodePort(number, name, kafka.path, at, who, listener_name, exists)

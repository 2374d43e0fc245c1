"""Kubernetes manifests: Services, and the containers of pods with variables and command.

Each file is read separately, but files beside it may have Services and ConfigMaps for its pods.
Values from elsewhere (a Secret, a field of the pod) are unknown: the variable stays as `$(NAME)`,
or `Container.unknown` names the missing part.
Source: the Kubernetes API reference, v1 Container, EnvVar, EnvFromSource and Service.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import TypeVar

from earshot.errors import EarshotError
from earshot.facts.strimzi import StrimziKafka
from earshot.listeners.address import Address
from earshot.listeners.listed import by_key
from earshot.listeners.placeholders import is_known
from earshot.sources.bootstraps import bootstraps, ports_of
from earshot.sources.clusters import with_joined_clusters
from earshot.sources.deployment import deployment
from earshot.sources.files import texts_beside
from earshot.sources.pod_variables import ConfigMap
from earshot.sources.service import brokers_among
from earshot.sources.strimzi import read_strimzi
from earshot.sources.strimzi_clients import StrimziClient, read_clients
from earshot.sources.strimzi_cluster import brokers_of, pods_of, services_of
from earshot.sources.values import as_map, list_of, number_in, text_in
from earshot.sources.workloads import (
    HIDDEN,
    POD_IN,
    PodContainer,
    Resource,
    name_of,
    namespace_of,
    resources,
    workloads,
)
from earshot.topology.broker import Broker
from earshot.topology.cluster import ClusterService, Pod, ServicePort
from earshot.topology.container import Container
from earshot.topology.pods import PodDeployment, other_pod
from earshot.yaml_reading.document import read_yaml_documents

T = TypeVar("T")
Named = tuple[tuple[str, str], T]
"""A resource after its namespace and name."""
KINDS = frozenset({*POD_IN, "Service", "ConfigMap"})
"""Kinds of resources that are read."""
_SHARED = re.compile(r"""\bkind["']?: *["']?(?:Service|ConfigMap)\b""")
_UNREADY = "service.alpha.kubernetes.io/tolerate-unready-endpoints"


@dataclass(frozen=True)
class Manifest:
    """All containers of a file, its Services, and the replicas of the containers."""

    containers: tuple[PodContainer, ...]
    services: tuple[ClusterService, ...]
    replicas: tuple[PodContainer, ...] = ()
    kafkas: tuple[StrimziKafka, ...] = ()
    strimzi_clients: tuple[StrimziClient, ...] = ()
    """Clients that Strimzi makes."""

    @property
    def brokers(self) -> tuple[PodContainer, ...]:
        """The containers that run a broker or controller."""
        candidates = [container for container in self.containers if container.can_run_broker]
        names = {
            service.name
            for service in brokers_among([candidate.service for candidate in candidates])
        }
        return tuple(candidate for candidate in candidates if candidate.name in names)

    def by_replica(self) -> Manifest:
        """This manifest with every replica in place of its template."""
        return replace(self, containers=self.replicas)

    def with_release(self, release: tuple[int, int] | None) -> Manifest:
        """This manifest with the Kafka release that the user states for its images."""

        def stated(containers: Iterable[PodContainer]) -> tuple[PodContainer, ...]:
            return tuple(
                replace(container, service=replace(container.service, release=release))
                for container in containers
            )

        return replace(self, containers=stated(self.containers), replicas=stated(self.replicas))

    def deployment(self, broken: Collection[str] = ()) -> PodDeployment:
        """The pods with their Services, without brokers that do not start."""
        started = [
            broker for broker in self.brokers if not {broker.name, broker.template} & {*broken}
        ]
        brokers = deployment([broker.service for broker in started]).brokers
        brokers = _with_template_clusters(brokers, started)
        of_strimzi = tuple(brokers_of(self.kafkas))
        services = [container.service for container in self.containers]
        broker_names = [broker.name for broker in self.brokers]
        clients = {
            (name := other_pod(broker.namespace)): Pod(name, broker.namespace, {}, (name,))
            for broker in started
        }
        pods = PodDeployment(
            {service.name: service.container for service in services}
            | {name: Container(name) for name in clients}
            | {broker.service: broker.container for broker in of_strimzi}
            | {client.name: Container(client.name) for client in self.strimzi_clients},
            (*brokers, *of_strimzi),
            (
                *bootstraps(services, broker_names, ports_of(brokers)),
                *(bootstrap for client in self.strimzi_clients for bootstrap in client.bootstraps),
            ),
            pods={container.name: container.pod for container in self.containers}
            | clients
            | pods_of(self.kafkas)
            | {
                client.name: Pod(client.name, client.namespace, {}, (client.name,))
                for client in self.strimzi_clients
            },
            services=(*self.services, *services_of(self.kafkas)),
        )

        def cluster_at(broker: Broker, address: Address) -> str:
            reached = pods.reached(broker.service, address)
            return reached.broker.cluster if reached else ""

        pods = replace(pods, brokers=with_joined_clusters(pods.brokers, cluster_at))
        pods = replace(pods, bootstraps=(*pods.bootstraps, *pods.node_port_clients()))
        return replace(pods, bootstraps=(*pods.bootstraps, *pods.service_clients()))


def _with_template_clusters(
    brokers: Sequence[Broker], containers: Iterable[PodContainer]
) -> tuple[Broker, ...]:
    """``brokers`` with one cluster for all replicas of a template."""
    templates = {container.name: container.template for container in containers}
    clusters = {templates[broker.service]: broker.cluster for broker in reversed(brokers)}
    return tuple(
        replace(broker, cluster=clusters[template])
        if (template := templates[broker.service])
        else broker
        for broker in brokers
    )


@dataclass(frozen=True)
class SharedResources:
    """What files of a folder have for pods of the others, by file: ConfigMaps, and Services without
    pods in their own file."""

    config_maps: Mapping[str, Sequence[Named[ConfigMap]]] = field(default_factory=dict)
    services: Mapping[str, Sequence[Named[ClusterService]]] = field(default_factory=dict)

    def without(self, file: str) -> SharedResources:
        """Those of the other files than ``file``."""
        return SharedResources(
            {name: maps for name, maps in self.config_maps.items() if name != file},
            {name: services for name, services in self.services.items() if name != file},
        )


def read_manifest(
    documents: Sequence[object], beside: SharedResources = SharedResources()
) -> Manifest:
    """The manifest of a file's documents (`read_yaml_documents`), without malformed resources.

    The second container of one name is called `WORKLOAD/CONTAINER#2`. ``beside`` are the resources
    of other files for the pods.
    """
    resources_with_paths = list(resources(documents))
    maps = _only_ones(chain.from_iterable(beside.config_maps.values())) | {
        (namespace_of(resource), name_of(resource)): ConfigMap(path, as_map(resource.get("data")))
        for path, resource in resources_with_paths
        if _is_core(resource, "ConfigMap")
    }
    used_names: set[str] = set()
    containers, replicas = [], []
    for path, resource in resources_with_paths:
        for pod in workloads(path, resource):
            templates = list(pod.containers(maps, used_names))
            containers += templates
            replicas += list(pod.replicas_of(templates, maps))
    pods = [container.pod for container in containers]
    services = _only_ones(
        (name, service)
        for name, service in chain.from_iterable(beside.services.values())
        if any(service.selects(pod) for pod in pods)
    ) | {service.full_name: service for service in _services(documents)}
    kafkas = read_strimzi(documents)
    clients = tuple(read_clients(documents))
    return Manifest(tuple(containers), tuple(services.values()), tuple(replicas), kafkas, clients)


def _only_ones(pairs: Iterable[tuple[tuple[str, str], T]]) -> dict[tuple[str, str], T]:
    """The values that alone have their name; of two, the user may apply either."""
    return {name: values[0] for name, values in by_key(pairs).items() if len(values) == 1}


def _services(documents: Sequence[object]) -> list[ClusterService]:
    return [_service(item) for _, item in resources(documents) if _is_core(item, "Service")]


def resources_beside(file: Path) -> SharedResources:
    """The ConfigMaps and Services that other files in the folder of ``file`` have for its pods."""
    return _shared_resources(texts_beside(file, (".yaml", ".yml"))).without(str(file))


@lru_cache(maxsize=1)  # the files of a folder are checked one after the other
def _shared_resources(texts: Iterable[tuple[str, str]]) -> SharedResources:
    config_maps: dict[str, Sequence[Named[ConfigMap]]] = {}
    services: dict[str, Sequence[Named[ClusterService]]] = {}
    for name, text in texts:
        documents: Sequence[object] = ()
        with suppress(EarshotError):
            documents = (
                read_yaml_documents(text, name, unique=False) if _SHARED.search(text) else ()
            )
        maps = [
            ((namespace_of(item), name_of(item)), ConfigMap((), as_map(item.get("data"))))
            for _, item in resources(documents)
            if _is_core(item, "ConfigMap")
        ]
        own_pods = [container.pod for container in read_manifest(documents).containers]
        shared_services = [
            (service.full_name, service)
            for service in _services(documents)
            if not any(service.selects(pod) for pod in own_pods)
        ]
        config_maps |= {name: maps} if maps else {}
        services |= {name: shared_services} if shared_services else {}
    return SharedResources(config_maps, services)


def misshapen_pods(documents: Sequence[object]) -> Iterator[tuple[str, str, str]]:
    """(container, observed, allowed) for each value that must be a list and is not: Kubernetes
    refuses the file."""
    for path, resource in resources(documents):
        for pod in workloads(path, resource):
            for section in map(as_map, list_of(pod.spec.get("containers"))):
                for key in ("env", "envFrom"):
                    value = section.get(key)
                    if is_misshapen(value):
                        name = f"{pod.workload or pod.kind}, container {text_in(section, 'name')}"
                        yield name, f"{key} is no list", "a list"


def is_misshapen(value: object) -> bool:
    """True for a value that is set and known, and is not a list."""
    hidden = isinstance(value, str) and not is_known(value)
    return bool(value) and not (isinstance(value, list) or hidden)


def _is_core(resource: Resource, kind: str) -> bool:
    """Whether the resource is a ``kind`` of Kubernetes's core API."""
    return resource.get("apiVersion") == "v1" and resource.get("kind") == kind


def _service(resource: Resource) -> ClusterService:
    spec = as_map(resource.get("spec"))
    addresses = [text_in(spec, "clusterIP"), *map(str, list_of(spec.get("clusterIPs")))]
    return ClusterService(
        name_of(resource),
        namespace_of(resource),
        _ports(list_of(spec.get("ports"))),
        {name: str(value) for name, value in as_map(spec.get("selector")).items()},
        is_headless="None" in addresses,
        external_name=(text_in(spec, "externalName") or "?")
        if text_in(spec, "type") == "ExternalName"
        else "",
        is_balanced=text_in(spec, "type") == "LoadBalancer",
        is_for_outside=text_in(spec, "type") not in ("", "ClusterIP"),
        has_unready=text_in(spec, "publishNotReadyAddresses").lower() in ("true", "yes", "on")
        or HIDDEN in text_in(spec, "publishNotReadyAddresses")
        or text_in(as_map(as_map(resource.get("metadata")).get("annotations")), _UNREADY) == "true",
        is_local_inside=text_in(spec, "internalTrafficPolicy") == "Local",
        is_local_outside=text_in(spec, "externalTrafficPolicy") == "Local",
    )


def _ports(entries: Iterable[object]) -> tuple[ServicePort, ...] | None:
    ports = []
    for entry in map(as_map, entries):
        number = number_in(entry, "port")
        if number is None:
            return None
        target = number_in(entry, "targetPort") or text_in(entry, "targetPort") or number
        if (text_in(entry, "protocol") or "TCP") == "TCP":
            ports.append(ServicePort(number, target, number_in(entry, "nodePort")))
    return tuple(ports)

"""Kubernetes manifests: the containers of their pods with variables and command, and Services.

A file is read by itself. What it does not hold (a Secret, a field of the pod, a ConfigMap of
another file) is not known: the variable stays there as `$(NAME)`, or `Container.unknown` names what
is missing. Source: the Kubernetes API reference, v1 Container, EnvVar, EnvFromSource and Service.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from earshot.listeners.address import Address
from earshot.sources.bootstraps import bootstraps, ports_of
from earshot.sources.clusters import joined
from earshot.sources.compose import Service
from earshot.sources.deployment import brokers_among, deployment
from earshot.sources.pod_variables import (
    ConfigMap,
    Keys,
    PodVariables,
    as_map,
    list_of,
    text_in,
)
from earshot.topology.broker import Arrival, Broker
from earshot.topology.container import MOUNTED, Container
from earshot.topology.pods import ClusterService, Pod, PodDeployment, ServicePort

Resource = Mapping[str, object]
_TEMPLATE_OF_POD: Keys = ("spec", "template", "spec")
_POD_IN: Mapping[str, Keys] = {
    "Pod": ("spec",),
    **dict.fromkeys(("StatefulSet", "Deployment", "DaemonSet", "ReplicaSet"), _TEMPLATE_OF_POD),
    **dict.fromkeys(("ReplicationController", "DeploymentConfig", "Job"), _TEMPLATE_OF_POD),
    "CronJob": ("spec", "jobTemplate", *_TEMPLATE_OF_POD),
}
KINDS = frozenset({*_POD_IN, "Service", "ConfigMap"})
"""Of the resources that are read."""
_ENDS = ("Job", "CronJob")
"""Their pods come to an end: no broker runs there."""
_GIVEN_FILES = frozenset({"configMap", "secret", "projected", "csi"})
_OF_KAFKA = re.compile(r"/(?:etc/kafka|etc/confluent|opt/|mnt/shared|kafka|bitnami|usr/)", re.ASCII)
_SECRETS = "/etc/kafka/secrets"
_HIDDEN = "${"
_WHOLE = re.compile(r"\$\{[^{}]*\}")
"""A variable alone: a part of a command may be the shell's."""
_OF_CONTAINER = ("env", "envFrom", "volumeMounts", "command", "args")


@dataclass(frozen=True)
class PodContainer:
    """One container of a pod; its service is called WORKLOAD/CONTAINER.

    ``variables`` says where each variable is set, ``path`` is the container's place.
    """

    service: Service
    namespace: str
    path: Keys
    variables: Mapping[str, Keys]
    lasts: bool
    """Neither of a job nor an init container: a broker may run in it."""
    has_service_links: bool
    """Services of its namespace come in as variables (`KAFKA_PORT`)."""
    pod: Pod

    @property
    def name(self) -> str:
        return self.service.name


@dataclass(frozen=True)
class Manifest:
    """All containers of a file, and its Services."""

    containers: tuple[PodContainer, ...]
    services: tuple[ClusterService, ...]

    @property
    def brokers(self) -> tuple[PodContainer, ...]:
        """Those that run a broker or a controller."""
        lasting = [item for item in self.containers if item.lasts]
        found = {item.name for item in brokers_among([item.service for item in lasting])}
        return tuple(item for item in lasting if item.name in found)

    def deployment(self, broken: Collection[str] = ()) -> PodDeployment:
        """The pods with their Services, without brokers that do not start."""
        brokers = [it.service for it in self.brokers if it.name not in broken]
        shown = deployment(brokers).brokers
        services = [item.service for item in self.containers]
        whole = PodDeployment(
            {item.name: item.container for item in services},
            shown,
            tuple(bootstraps(services, [it.name for it in self.brokers], ports_of(shown))),
            pods={item.name: item.pod for item in self.containers},
            services=self.services,
        )

        def meant(broker: Broker, address: Address) -> str:
            end = whole.trace(broker.service, address).end
            return end.broker.cluster if isinstance(end, Arrival) else ""

        whole = replace(whole, brokers=joined(whole.brokers, meant))
        return replace(whole, bootstraps=(*whole.bootstraps, *whole.by_nodes()))


def resources(documents: Sequence[object]) -> Iterator[tuple[Keys, Resource]]:
    """The resources in a file's documents with their places, those of a List each by itself."""
    for index, document in enumerate(documents):
        found = as_map(document)
        if not (text_in(found, "apiVersion") and text_in(found, "kind")):
            continue
        if found["kind"] != "List":
            yield (index,), found
            continue
        for i, item in enumerate(list_of(found.get("items"))):
            yield (index, "items", i), as_map(item)


def read_manifest(documents: Sequence[object]) -> Manifest:
    """What the documents of a file (`read_yaml_documents`) say; what has another shape is left out.

    Of two containers of one name, the second is called `WORKLOAD/CONTAINER#2`.
    """
    listed = list(resources(documents))
    maps = {
        (namespace_of(item), name_of(item)): ConfigMap(path, as_map(item.get("data")))
        for path, item in listed
        if _is_core(item, "ConfigMap")
    }
    taken: set[str] = set()
    containers = []
    for path, item in listed:
        for pod in _pods(path, item):
            containers += list(pod.containers(maps, taken))
    services = (_service(item) for _, item in listed if _is_core(item, "Service"))
    return Manifest(tuple(containers), tuple(services))


def _is_core(resource: Resource, kind: str) -> bool:
    """Whether it is Kubernetes's own ``kind``: others have a kind called Service too."""
    return resource.get("apiVersion") == "v1" and resource.get("kind") == kind


def name_of(resource: Resource) -> str:
    """`metadata.name`."""
    return text_in(as_map(resource.get("metadata")), "name")


def namespace_of(resource: Resource) -> str:
    """`metadata.namespace`; an empty text where it is given when the file is applied."""
    return text_in(as_map(resource.get("metadata")), "namespace")


@dataclass(frozen=True)
class _Pod:
    """The pod of one workload: its `spec`, and the place of the spec."""

    kind: str
    workload: str
    namespace: str
    path: Keys
    spec: Mapping[str, object]
    labels: Mapping[str, object]
    replicas: str
    governing: str
    """`serviceName` of a StatefulSet."""

    def containers(
        self, maps: Mapping[tuple[str, str], ConfigMap], taken: set[str]
    ) -> Iterator[PodContainer]:
        found = list(self._containers(maps, taken))
        pod = replace(self._pod(), containers=tuple(item.name for item in found))
        for item in found:
            yield replace(item, pod=pod)

    def _pod(self) -> Pod:
        listed = [
            as_map(port)
            for item in list_of(self.spec.get("containers"))
            for port in list_of(as_map(item).get("ports"))
        ]
        numbers = [(port, number) for port in listed if (number := _number(port, "containerPort"))]
        return Pod(
            self.workload or self.kind,
            self.namespace,
            {name: str(value) for name, value in self.labels.items()},
            (),
            hostnames=tuple(self._hostnames()),
            subdomain=self.governing or text_in(self.spec, "subdomain"),
            ports={text_in(port, "name"): number for port, number in numbers},
            node_ports={at: to for port, to in numbers if (at := _number(port, "hostPort"))},
            is_one=self.kind == "Pod" or (self.kind != "DaemonSet" and self.replicas == "1"),
            asks_cluster=self._asks_cluster(),
        )

    def _hostnames(self) -> Iterator[str]:
        """The names of its pods, as far as they do not change."""
        hostname = text_in(self.spec, "hostname").lower()
        if self.kind == "StatefulSet":
            count = int(self.replicas) if re.fullmatch(r"[0-9]{1,3}", self.replicas) else 0
            yield from (f"{self.workload.lower()}-{number}" for number in range(count))
        elif hostname:
            yield hostname
        elif self.kind == "Pod" and not text_in(self.spec, "generateName"):
            yield self.workload.lower()

    def _containers(
        self, maps: Mapping[tuple[str, str], ConfigMap], taken: set[str]
    ) -> Iterator[PodContainer]:
        for key in ("initContainers", "containers"):
            for i, item in enumerate(list_of(self.spec.get(key))):
                section = as_map(item)
                if not section:
                    continue
                workload = self.workload or self.kind
                name = free_name(f"{workload}/{text_in(section, 'name') or i}", taken)
                lasts = key == "containers" and self.kind not in _ENDS
                yield self._container(name, section, (*self.path, key, i), lasts, maps)

    def _container(
        self,
        name: str,
        section: Mapping[str, object],
        path: Keys,
        lasts: bool,
        maps: Mapping[tuple[str, str], ConfigMap],
    ) -> PodContainer:
        variables = PodVariables(self.namespace, maps)
        variables.read(section, path)
        words = tuple(
            variables.expanded(str(word))
            for key in ("command", "args")
            for word in list_of(section.get(key))
        )
        variables.forget(" ".join(words))
        mounts = map(as_map, list_of(section.get("volumeMounts")))
        unknown = [*variables.unknown, *([MOUNTED] if self._replaces(section) else [])]
        if any(map(_is_hidden, (*map(section.get, _OF_CONTAINER), self.spec.get("volumes")))):
            unknown.append("envFrom")
        container = Container(
            name=name,
            image=text_in(section, "image"),
            env=variables.values,
            mounts=tuple(text_in(item, "mountPath") for item in mounts),
            unknown=tuple(dict.fromkeys(unknown)),
            extra_hosts=dict(self._aliases()),
        )
        links = self.spec.get("enableServiceLinks")
        return PodContainer(
            service=Service(name, container, words),
            namespace=self.namespace,
            path=path,
            variables=variables.places,
            lasts=lasts,
            has_service_links=not (is_off(links) or _HIDDEN in str(links)),
            pod=self._pod(),
        )

    def _replaces(self, section: Mapping[str, object]) -> bool:
        """Whether files from elsewhere may stand where the image has its scripts and settings."""
        listed = map(as_map, list_of(self.spec.get("volumes")))
        volumes = {text_in(item, "name"): set(item) for item in listed}
        kinds = _GIVEN_FILES | ({"emptyDir"} if self.spec.get("initContainers") else set())
        for item in list_of(section.get("volumeMounts")):
            mount = as_map(item)
            target = text_in(mount, "mountPath")
            if target.startswith(_SECRETS) or not _OF_KAFKA.match(target):
                continue
            if kinds & volumes.get(text_in(mount, "name"), set()):
                return True
        return False

    def _aliases(self) -> Iterator[tuple[str, str]]:
        for item in list_of(self.spec.get("hostAliases")):
            alias = as_map(item)
            for name in list_of(alias.get("hostnames")):
                yield str(name).lower(), text_in(alias, "ip")

    def _asks_cluster(self) -> bool:
        policy = text_in(self.spec, "dnsPolicy") or "ClusterFirst"
        on_host = "hostNetwork" in self.spec and not is_off(self.spec["hostNetwork"])
        wanted = "ClusterFirstWithHostNet" if on_host else "ClusterFirst"
        return policy in (wanted, "ClusterFirstWithHostNet") and not self.spec.get("dnsConfig")


def _is_hidden(value: object) -> bool:
    """True if a list, or an item of one, is a text: a program's value that is not known."""
    items = value if isinstance(value, list) else ()
    hidden = any(isinstance(item, str) and _WHOLE.fullmatch(item) for item in items)
    return isinstance(value, str) or hidden


def _pods(path: Keys, resource: Resource) -> Iterator[_Pod]:
    kind = text_in(resource, "kind")
    if kind not in _POD_IN:
        return
    held, spec = resource, resource
    for key in _POD_IN[kind]:
        held, spec = spec, as_map(spec.get(str(key)))
    outer = as_map(resource.get("spec"))
    replicas = outer.get("replicas")
    yield _Pod(
        kind,
        name_of(resource),
        namespace_of(resource),
        (*path, *_POD_IN[kind]),
        spec,
        as_map(as_map(held.get("metadata")).get("labels")),
        "1" if replicas is None else str(replicas),
        text_in(outer, "serviceName") if kind == "StatefulSet" else "",
    )


def _service(resource: Resource) -> ClusterService:
    spec = as_map(resource.get("spec"))
    addresses = [text_in(spec, "clusterIP"), *map(str, list_of(spec.get("clusterIPs")))]
    return ClusterService(
        name_of(resource),
        namespace_of(resource),
        _ports(list_of(spec.get("ports"))),
        {name: str(value) for name, value in as_map(spec.get("selector")).items()},
        is_headless="None" in addresses,
        is_external_name=text_in(spec, "type") == "ExternalName",
        is_balanced=text_in(spec, "type") == "LoadBalancer",
    )


def _ports(listed: Iterable[object]) -> tuple[ServicePort, ...] | None:
    found = []
    for item in map(as_map, listed):
        number = _number(item, "port")
        if number is None:
            return None
        target = _number(item, "targetPort") or text_in(item, "targetPort") or number
        if (text_in(item, "protocol") or "TCP") == "TCP":
            found.append(ServicePort(number, target, _number(item, "nodePort")))
    return tuple(found)


def _number(section: Mapping[str, object], key: str) -> int | None:
    text = text_in(section, key)
    return int(text) if re.fullmatch(r"[0-9]{1,5}", text, re.ASCII) else None


def free_name(name: str, taken: set[str]) -> str:
    """``name``, or `NAME#2` and so on where it is among those ``taken``, which gets it."""
    numbered = (f"{name}#{number}" for number in range(2, len(taken) + 3))
    found = next(item for item in (name, *numbered) if item not in taken)
    taken.add(found)
    return found


def is_off(value: object) -> bool:
    """Whether a boolean is false, as YAML 1.1 may write it; what is not there is not."""
    return str(value).lower() in ("false", "no", "off", "n")

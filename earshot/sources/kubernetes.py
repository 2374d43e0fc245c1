"""Kubernetes manifests: the containers of their pods with variables and command, and Services.

A file is read by itself. What it does not hold (a Secret, a field of the pod, a ConfigMap of
another file) is not known: the variable stays there as `$(NAME)`, or `Container.unknown` names what
is missing. Source: the Kubernetes API reference, v1 Container, EnvVar, EnvFromSource and Service.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from earshot.listeners.listed import by_key
from earshot.sources.compose import Service
from earshot.sources.deployment import brokers_among
from earshot.sources.pod_variables import (
    ConfigMap,
    Keys,
    PodVariables,
    as_map,
    list_of,
    text_in,
)
from earshot.topology.container import MOUNTED, Container

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
_OF_CONTAINER = ("env", "envFrom", "volumeMounts", "command", "args")


@dataclass(frozen=True)
class PodContainer:
    """One container of a pod; its service is called WORKLOAD/CONTAINER.

    ``variables`` says where each variable is set, ``path`` where the container stands.
    """

    service: Service
    namespace: str
    path: Keys
    variables: Mapping[str, Keys]
    lasts: bool
    """Neither of a job nor an init container: a broker may run in it."""
    has_service_links: bool
    """Services of its namespace come in as variables (`KAFKA_PORT`)."""
    asks_cluster: bool
    """Names mean what the cluster's DNS says, looked up in its own namespace first."""

    @property
    def name(self) -> str:
        return self.service.name


@dataclass(frozen=True)
class ClusterService:
    """A Service; ``ports`` are its TCP ports, None where they are not all known.

    Without an address of its own (headless, or another name) its ports filter nothing, and no
    variables tell of it.
    """

    name: str
    namespace: str
    ports: tuple[int, ...] | None
    has_address: bool
    targets: Mapping[int, int] = field(default_factory=dict)
    """Ports of the pods by its own, where both are numbers."""
    node_ports: Mapping[int, int] = field(default_factory=dict)
    """Ports of every node by those of the pods."""
    is_balanced: bool = False
    """A load balancer outside of the cluster has its ports."""


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

    def called(self, host: str, namespace: str) -> tuple[ClusterService, ...]:
        """The Services that ``host`` means for a pod in ``namespace``."""
        parts = host.lower().rstrip(".").split(".")
        if parts[3:] == ["cluster", "local"]:
            del parts[3:]
        if parts[2:] == ["svc"]:
            del parts[2:]
        if len(parts) > 2:
            return ()
        key = (parts[0], parts[1] if len(parts) > 1 else namespace)
        return tuple(self._named.get(key, ()))

    @cached_property
    def _named(self) -> Mapping[tuple[str, str], Sequence[ClusterService]]:
        return by_key(((item.name, item.namespace), item) for item in self.services)


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
    """The pod of one workload: its `spec`, and where that stands."""

    kind: str
    workload: str
    namespace: str
    path: Keys
    spec: Mapping[str, object]

    def containers(
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
            asks_cluster=self._asks_cluster(),
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
    """Whether a text stands for a list, or an item of one: a program's value that is not known."""
    return isinstance(value, str) or (
        isinstance(value, list) and any(isinstance(item, str) and _HIDDEN in item for item in value)
    )


def _pods(path: Keys, resource: Resource) -> Iterator[_Pod]:
    kind = text_in(resource, "kind")
    if kind not in _POD_IN:
        return
    spec: Mapping[str, object] = resource
    for key in _POD_IN[kind]:
        spec = as_map(spec.get(str(key)))
    yield _Pod(kind, name_of(resource), namespace_of(resource), (*path, *_POD_IN[kind]), spec)


def _service(resource: Resource) -> ClusterService:
    spec = as_map(resource.get("spec"))
    listed = list_of(spec.get("ports"))
    addresses = [text_in(spec, "clusterIP"), *map(str, list_of(spec.get("clusterIPs")))]
    return ClusterService(
        name_of(resource),
        namespace_of(resource),
        _ports(listed),
        "None" not in addresses and text_in(spec, "type") != "ExternalName",
        dict(_targets(listed)),
        {target: node for port, target in _targets(listed) if (node := _node_port(listed, port))},
        text_in(spec, "type") == "LoadBalancer",
    )


def _targets(listed: Sequence[object]) -> Iterator[tuple[int, int]]:
    for item in map(as_map, listed):
        port = text_in(item, "port")
        target = text_in(item, "targetPort") or port
        if re.fullmatch(r"[0-9]{1,5}", port) and re.fullmatch(r"[0-9]{1,5}", target):
            yield int(port), int(target)


def _node_port(listed: Sequence[object], port: int) -> int | None:
    found = (
        text_in(it, "nodePort") for it in map(as_map, listed) if text_in(it, "port") == str(port)
    )
    text = next(found, "")
    return int(text) if re.fullmatch(r"[0-9]{1,5}", text) else None


def _ports(listed: Iterable[object]) -> tuple[int, ...] | None:
    found = []
    for item in listed:
        port = as_map(item)
        number = text_in(port, "port")
        if not re.fullmatch(r"[0-9]{1,5}", number, re.ASCII):
            return None
        if (text_in(port, "protocol") or "TCP") == "TCP":
            found.append(int(number))
    return tuple(found)


def free_name(name: str, taken: set[str]) -> str:
    """``name``, or `NAME#2` and so on where it is among those ``taken``, which gets it."""
    numbered = (f"{name}#{number}" for number in range(2, len(taken) + 3))
    found = next(item for item in (name, *numbered) if item not in taken)
    taken.add(found)
    return found


def is_off(value: object) -> bool:
    """Whether a boolean is false, as YAML 1.1 may write it; what is not there is not."""
    return str(value).lower() in ("false", "no", "off", "n")

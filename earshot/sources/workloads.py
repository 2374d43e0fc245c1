"""The workloads of a manifest: the containers of the pod template and of each replica.

Values from elsewhere (a Secret, a ConfigMap of another file) are unknown: the variable stays as
`$(NAME)`, or `Container.unknown` names the missing part. The name and ordinal of a StatefulSet's
replica are known. Sources: the Kubernetes API reference, v1 Container, EnvVar,
EnvFromSource and Probe, and the documentation on StatefulSets (ordinals, pod labels).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from earshot.sources.pod_variables import NAME, ConfigMap, Keys, PodVariables
from earshot.sources.service import Service
from earshot.sources.values import as_map, list_of, number_in, text_in
from earshot.topology.cluster import Pod, ReadinessCheck
from earshot.topology.container import MOUNTED, PLACEHOLDER, Container

Resource = Mapping[str, object]
_POD_NAME = "statefulset.kubernetes.io/pod-name"
_TEMPLATE_OF_POD: Keys = ("spec", "template", "spec")
POD_IN: Mapping[str, Keys] = {
    "Pod": ("spec",),
    **dict.fromkeys(("StatefulSet", "Deployment", "DaemonSet", "ReplicaSet"), _TEMPLATE_OF_POD),
    **dict.fromkeys(("ReplicationController", "DeploymentConfig", "Job"), _TEMPLATE_OF_POD),
    "CronJob": ("spec", "jobTemplate", *_TEMPLATE_OF_POD),
}
KIND_OF = {kind.lower(): kind for kind in POD_IN}
"""Kinds by their lower case: a misspelt `Statefulset` is read as a StatefulSet."""
_ENDS = ("Job", "CronJob")
"""Kinds whose pods end, so that they run no broker."""
_GIVEN_FILES = frozenset({"configMap", "secret", "projected", "csi"})
"""Kinds of volumes that contain files from elsewhere."""
_OF_KAFKA = re.compile(r"/(?:etc/kafka|etc/confluent|opt/|mnt/shared|kafka|bitnami|usr/)", re.ASCII)
"""The beginnings of paths with the scripts and settings of Kafka's images."""
_SECRETS = "/etc/kafka/secrets"
"""A folder for keys below such a path; it has no settings."""
_REPLICATED = ("StatefulSet", "Deployment", "ReplicaSet", "ReplicationController")
MAX_REPLICAS = 9
"""Replicas of one workload; with more, only the template is read."""
HIDDEN = "${"
"""The beginning of a value that a Pulumi program does not know yet."""
_WHOLE = re.compile(r"\$\{[^{}]*\}")
"""A text that is nothing but such a value; a part of a text may be a shell variable."""
_OF_CONTAINER = ("env", "envFrom", "volumeMounts", "command", "args")
_TOOL_OF_KAFKA = re.compile(
    r"\bkafka-(?:broker-api-versions|topics|consumer-groups|configs|metadata-quorum|acls)\b.*?"
    r"--bootstrap-(?:server|controller)s?[= ][^\s,:]+:([0-9]{2,5})",
    re.ASCII | re.DOTALL,
)
_CONNECTION = re.compile(
    r"\bnc\b(?:\s+-\w+(?:\s+[0-9]{1,2})?)*\s+[\w.-]+\s+([0-9]{2,5})\b|/dev/tcp/[\w.-]+/([0-9]{2,5})\b",
    re.ASCII,
)


@dataclass(frozen=True)
class PodContainer:
    """One container of a pod; its service is called WORKLOAD/CONTAINER.

    ``path`` is the container's place in the file, ``variables`` that of each variable.
    """

    service: Service
    namespace: str
    path: Keys
    variables: Mapping[str, Keys]
    can_run_broker: bool
    """False for jobs and init containers, which end."""
    has_service_links: bool
    """It gets variables for Services of its namespace (`KAFKA_PORT`)."""
    pod: Pod
    at_run_time: frozenset[str] = frozenset()
    """Variables whose values only a running pod knows: its fields, and variables of its shell."""
    early_references: Mapping[str, str] = field(default_factory=dict)
    """By variable: another one in its value that `env` only sets after it."""
    template: str = ""
    """For a replica, the name of its container in the file."""

    @property
    def name(self) -> str:
        return self.service.name

    def as_replica(self, pod: str, template: str) -> PodContainer:
        """The container as a replica of ``template`` in the pod called ``pod``; with an empty
        ``pod`` it keeps the template's name."""
        name = f"{pod}/{self.name.partition('/')[2]}" if pod else template
        container = replace(self.service.container, name=name)
        service = replace(self.service, name=name, container=container)
        return replace(self, service=service, template=template)


@dataclass(frozen=True)
class Workload:
    """One workload, with the `spec` of its pod and its place in the file."""

    kind: str
    workload: str
    """The name of the workload; `name` is that of a replica."""
    namespace: str
    path: Keys
    spec: Mapping[str, object]
    labels: Mapping[str, object]
    replicas: str
    """The number of replicas as written, which may be a template."""
    governing: str
    """`serviceName` of a StatefulSet: the Service that gives its pods their names."""
    first: int = 0
    """The ordinal of the first replica of a StatefulSet."""
    is_ordered: bool = False
    """Each replica starts when the previous one is ready."""
    ordinal: int | None = None
    """The ordinal of a single replica; None for the template."""

    def replicas_of(
        self, templates: Sequence[PodContainer], maps: Mapping[tuple[str, str], ConfigMap]
    ) -> Iterator[PodContainer]:
        """The containers of each replica; the templates if the number of replicas is unknown."""
        count = int(self.replicas) if re.fullmatch(r"[0-9]{1,3}", self.replicas) else 0
        if self.kind not in _REPLICATED or not 0 < count <= MAX_REPLICAS:
            yield from templates
            return
        names = {template.path: template.name for template in templates}
        for number in range(self.first, self.first + count):
            replica = replace(self, ordinal=number)
            called = replica.name if self.kind == "StatefulSet" else f"{self.workload}[{number}]"
            yield from replica._with_pod(
                container.as_replica(called if count > 1 else "", names[container.path])
                for container in replica._containers(maps, set())
            )

    def _with_pod(self, containers: Iterable[PodContainer]) -> Iterator[PodContainer]:
        """``containers`` with their common pod."""
        members = list(containers)
        pod = replace(self._pod(), containers=tuple(member.name for member in members))
        for member in members:
            yield replace(member, pod=pod)

    @property
    def name(self) -> str:
        """The name of a replica of a StatefulSet."""
        return f"{self.workload}-{self.ordinal}".lower()

    def _fields(self) -> Mapping[str, str]:
        """The known fields of the pod, by path."""
        fields = {"metadata.namespace": self.namespace} if self.namespace else {}
        if self.ordinal is not None and self.kind == "StatefulSet":
            fields[NAME] = self.name
            fields["metadata.labels['apps.kubernetes.io/pod-index']"] = str(self.ordinal)
        return fields

    def containers(
        self, maps: Mapping[tuple[str, str], ConfigMap], used_names: set[str]
    ) -> Iterator[PodContainer]:
        """The containers of the pod template, whose names are added to ``used_names``."""
        yield from self._with_pod(self._containers(maps, used_names))

    def _pod(self) -> Pod:
        port_sections = [
            as_map(port)
            for entry in list_of(self.spec.get("containers"))
            for port in list_of(as_map(entry).get("ports"))
        ]
        numbers = [
            (port, number) for port in port_sections if (number := number_in(port, "containerPort"))
        ]
        return Pod(
            self.workload or self.kind,
            self.namespace,
            {name: str(value) for name, value in self.labels.items()},
            (),
            hostnames=tuple(self._hostnames()),
            subdomain=self.governing or text_in(self.spec, "subdomain"),
            ports={text_in(port, "name"): number for port, number in numbers},
            node_ports={at: to for port, to in numbers if (at := number_in(port, "hostPort"))},
            is_one=self.ordinal is not None
            or self.kind == "Pod"
            or (self.kind != "DaemonSet" and self.replicas == "1"),
            asks_cluster=self._asks_cluster(),
            is_ordered=self.is_ordered,
            on_host=self._is_on_host(),
            replica_labels=dict(self._replica_labels()),
            checks=tuple(
                check
                for entry in list_of(self.spec.get("containers"))
                for check in readiness_checks(as_map(entry))
            ),
        )

    def _hostnames(self) -> Iterator[str]:
        """The stable hostnames of its pods."""
        hostname = text_in(self.spec, "hostname").lower()
        if self.ordinal is not None and self.kind == "StatefulSet":
            yield self.name
        elif self.kind == "StatefulSet":
            count = int(self.replicas) if re.fullmatch(r"[0-9]{1,3}", self.replicas) else 0
            yield from (
                f"{self.workload.lower()}-{number}"
                for number in range(self.first, self.first + count)
            )
        elif hostname:
            yield hostname
        elif self.kind == "Pod" and not text_in(self.spec, "generateName"):
            yield self.workload.lower()

    def _containers(
        self, maps: Mapping[tuple[str, str], ConfigMap], used_names: set[str]
    ) -> Iterator[PodContainer]:
        for key in ("initContainers", "containers"):
            for i, entry in enumerate(list_of(self.spec.get(key))):
                section = as_map(entry)
                if not section:
                    continue
                workload = self.workload or self.kind
                name = free_name(f"{workload}/{text_in(section, 'name') or i}", used_names)
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
        variables = PodVariables(self.namespace, maps, self._fields())
        variables.read(section, path)
        words = tuple(
            variables.expand(str(word))
            for key in ("command", "args")
            for word in list_of(section.get(key))
        )
        words = variables.run(words)
        mounts = map(as_map, list_of(section.get("volumeMounts")))
        unknown = [*variables.unknown, *([MOUNTED] if self._replaces(section) else [])]
        if any(map(_is_hidden, (*map(section.get, _OF_CONTAINER), self.spec.get("volumes")))):
            unknown.append(PLACEHOLDER)
        container = Container(
            name=name,
            image=text_in(section, "image"),
            env=variables.values,
            mounts=tuple(text_in(mount, "mountPath") for mount in mounts),
            unknown=tuple(dict.fromkeys(unknown)),
            extra_hosts=dict(self._host_aliases()),
        )
        links = self.spec.get("enableServiceLinks")
        return PodContainer(
            service=Service(name, container, words),
            namespace=self.namespace,
            path=path,
            variables=variables.places,
            can_run_broker=lasts,
            has_service_links=not (is_off(links) or HIDDEN in str(links)),
            pod=self._pod(),
            at_run_time=frozenset(variables.at_run_time),
            early_references=variables.early_references,
        )

    def _replaces(self, section: Mapping[str, object]) -> bool:
        """Whether mounts may replace the image's scripts and settings."""
        volume_sections = map(as_map, list_of(self.spec.get("volumes")))
        volumes = {text_in(volume, "name"): set(volume) for volume in volume_sections}
        kinds = _GIVEN_FILES | ({"emptyDir"} if self.spec.get("initContainers") else set())
        for entry in list_of(section.get("volumeMounts")):
            mount = as_map(entry)
            target = text_in(mount, "mountPath")
            if target.startswith(_SECRETS) or not _OF_KAFKA.match(target):
                continue
            if kinds & volumes.get(text_in(mount, "name"), set()):
                return True
        return False

    def _host_aliases(self) -> Iterator[tuple[str, str]]:
        for entry in list_of(self.spec.get("hostAliases")):
            alias = as_map(entry)
            for name in list_of(alias.get("hostnames")):
                yield str(name).lower(), text_in(alias, "ip")

    def _is_on_host(self) -> bool:
        return "hostNetwork" in self.spec and not is_off(self.spec["hostNetwork"])

    def _replica_labels(self) -> Iterator[tuple[str, frozenset[tuple[str, str]]]]:
        """The labels that Kubernetes adds to a StatefulSet's replicas."""
        for name in self._hostnames() if self.kind == "StatefulSet" else ():
            number = name.rpartition("-")[2]
            yield name, frozenset({(_POD_NAME, name), ("apps.kubernetes.io/pod-index", number)})

    def _asks_cluster(self) -> bool:
        """Whether the cluster's DNS resolves names for the pod."""
        policy = text_in(self.spec, "dnsPolicy") or "ClusterFirst"
        expected = "ClusterFirstWithHostNet" if self._is_on_host() else "ClusterFirst"
        return policy in (expected, "ClusterFirstWithHostNet") and not self.spec.get("dnsConfig")


def _is_hidden(value: object) -> bool:
    """Whether ``value``, or an entry of it, is an unknown value of a program."""
    items = value if isinstance(value, list) else ()
    hidden = any(isinstance(entry, str) and _WHOLE.fullmatch(entry) for entry in items)
    return isinstance(value, str) or hidden


def readiness_checks(section: Mapping[str, object]) -> Iterator[ReadinessCheck]:
    """The ports that the readiness and startup probes of a container connect to; both kinds of
    probes delay readiness."""
    ports = {
        name: text_in(port, "containerPort")
        for port in map(as_map, list_of(section.get("ports")))
        if (name := text_in(port, "name"))
    }
    for key in ("readinessProbe", "startupProbe"):
        probe = as_map(section.get(key))
        port = text_in(as_map(probe.get("tcpSocket")), "port")
        number = ports.get(port, port)
        if re.fullmatch(r"[0-9]{1,5}", number, re.ASCII):
            yield ReadinessCheck(int(number), is_kafka=False)
        text = " ".join(map(str, list_of(as_map(probe.get("exec")).get("command"))))
        if match := _TOOL_OF_KAFKA.search(text):
            yield ReadinessCheck(int(match[1]), is_kafka=True)
        elif match := _CONNECTION.search(text):
            yield ReadinessCheck(int(match[1] or match[2]), is_kafka=False)


def workloads(path: Keys, resource: Resource) -> Iterator[Workload]:
    kind = KIND_OF.get(text_in(resource, "kind").lower(), "")
    if not kind:
        return
    holder, spec = resource, resource
    for key in POD_IN[kind]:
        holder, spec = spec, as_map(spec.get(str(key)))
    outer = as_map(resource.get("spec"))
    replicas = outer.get("replicas")
    yield Workload(
        kind,
        name_of(resource),
        namespace_of(resource),
        (*path, *POD_IN[kind]),
        spec,
        as_map(as_map(holder.get("metadata")).get("labels")),
        "1" if replicas is None else str(replicas),
        text_in(outer, "serviceName") if kind == "StatefulSet" else "",
        number_in(as_map(outer.get("ordinals")), "start") or 0,
        kind == "StatefulSet" and text_in(outer, "podManagementPolicy") in ("", "OrderedReady"),
    )


def resources(documents: Sequence[object]) -> Iterator[tuple[Keys, Resource]]:
    """The resources of a file's documents with their places; a List is unpacked."""
    for index, document in enumerate(documents):
        resource = as_map(document)
        if not (text_in(resource, "apiVersion") and text_in(resource, "kind")):
            continue
        if resource["kind"] != "List":
            yield (index,), resource
            continue
        for i, item in enumerate(list_of(resource.get("items"))):
            yield (index, "items", i), as_map(item)


def free_name(name: str, used_names: set[str]) -> str:
    """``name``, or `NAME#2` and so on if it is in ``used_names``, to which the result is added."""
    numbered = (f"{name}#{number}" for number in range(2, len(used_names) + 3))
    free = next(candidate for candidate in (name, *numbered) if candidate not in used_names)
    used_names.add(free)
    return free


def is_off(value: object) -> bool:
    """Whether ``value`` is false in a spelling of YAML 1.1; an absent value is not."""
    return str(value).lower() in ("false", "no", "off", "n")


def name_of(resource: Resource) -> str:
    """`metadata.name`."""
    return text_in(as_map(resource.get("metadata")), "name")


def namespace_of(resource: Resource) -> str:
    """`metadata.namespace`, empty by default."""
    return text_in(as_map(resource.get("metadata")), "namespace")

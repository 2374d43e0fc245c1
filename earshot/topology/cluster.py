"""Pods and Services of a Kubernetes manifest."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property


@dataclass(frozen=True)
class ReadinessCheck:
    """One port that a readiness or startup probe connects to."""

    port: int
    is_kafka: bool
    """The probe runs one of Kafka's tools, which needs the broker's answer."""


@dataclass(frozen=True)
class Pod:
    """The pod of one workload."""

    workload: str
    namespace: str
    labels: Mapping[str, str]
    containers: tuple[str, ...]
    """The services of its containers."""
    hostnames: tuple[str, ...] = ()
    """The hostnames of its replicas; empty if Kubernetes generates them."""
    subdomain: str = ""
    """The headless Service of its hostnames."""
    ports: Mapping[str, int] = field(default_factory=dict)
    """Container ports by name."""
    node_ports: Mapping[int, int] = field(default_factory=dict)
    """Container ports by node port (`hostPort`)."""
    is_one: bool = True
    """The workload has one pod."""
    asks_cluster: bool = True
    """Names are resolved by the cluster's DNS, in the pod's namespace first."""
    is_ordered: bool = False
    """Each replica starts when the previous one is ready."""
    checks: tuple[ReadinessCheck, ...] = ()
    """The ports that must answer before the pod is ready."""
    on_host: bool = False
    """It uses its node's network (`hostNetwork`)."""
    replica_labels: Mapping[str, frozenset[tuple[str, str]]] = field(default_factory=dict)
    """Labels that Kubernetes adds to the replicas of a StatefulSet, by replica name."""

    @cached_property
    def every_label(self) -> frozenset[tuple[str, str]]:
        """The labels of all replicas together."""
        return frozenset(self.labels.items()).union(*self.replica_labels.values())

    def labels_of(self, name: str) -> frozenset[tuple[str, str]]:
        """The labels of the replica called ``name``."""
        return self.replica_labels.get(name, frozenset()) | self.labels.items()

    def target_of(self, port: "ServicePort") -> int | None:
        """The container port that a Service's ``port`` leads to, or None."""
        return self.ports.get(port.target) if isinstance(port.target, str) else port.target

    @property
    def own_names(self) -> frozenset[str]:
        """The pod's names in the file, which do not resolve for other pods."""
        return frozenset({self.workload.lower(), *self.hostnames})

    @property
    def full_names(self) -> tuple[str, ...]:
        """The full names in the pod's own hosts file."""
        if not (self.namespace and self.subdomain):
            return ()
        domain = f"{self.subdomain}.{self.namespace}.svc.cluster.local"
        return tuple(f"{name}.{domain}".lower() for name in self.hostnames)


@dataclass(frozen=True)
class ServicePort:
    """One TCP port; ``target`` is the number or name of the pods' port."""

    port: int
    target: int | str
    node_port: int | None = None


@dataclass(frozen=True)
class ClusterService:
    """A Service; ``ports`` are its TCP ports, None if some are unknown.

    A headless Service has no address: its name resolves to the pods at any port, and pods get no
    variables for it.
    """

    name: str
    namespace: str
    ports: tuple[ServicePort, ...] | None
    selector: Mapping[str, str] = field(default_factory=dict)
    is_headless: bool = False
    external_name: str = ""
    """The target name of an `ExternalName` Service, which selects no pods."""
    is_balanced: bool = False
    """An external load balancer publishes its ports."""
    is_for_outside: bool = False
    """Its nodes or a load balancer publish its ports (`type`)."""
    has_unready: bool = False
    """It includes pods that are not ready (`publishNotReadyAddresses`)."""
    is_local_inside: bool = False
    """Its address leads only to pods on the client's node (`internalTrafficPolicy`)."""
    is_local_outside: bool = False
    """Its node ports lead only to pods on that node (`externalTrafficPolicy`)."""

    @property
    def has_address(self) -> bool:
        return not (self.is_headless or self.external_name)

    @property
    def full_name(self) -> tuple[str, str]:
        return self.namespace, self.name

    def selects(self, pod: Pod) -> bool:
        labels = self.selector.items()
        return bool(labels) and self.namespace == pod.namespace and labels <= pod.every_label


def in_cluster(host: str) -> list[str]:
    """The labels of ``host`` without the cluster's domain."""
    parts = host.lower().rstrip(".").split(".")
    if parts[-3:] == ["svc", "cluster", "local"]:
        del parts[-3:]
    elif len(parts) > 2 and parts[-1] == "svc":
        del parts[-1]
    return parts

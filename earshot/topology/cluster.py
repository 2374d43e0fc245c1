"""Pods and Services of Kubernetes, as a manifest shows them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property


@dataclass(frozen=True)
class ReadinessCheck:
    """One port that a readiness or startup probe asks."""

    port: int
    is_kafka: bool
    """One of Kafka's tools asks: it needs an answer of the broker, and not only a connection."""


@dataclass(frozen=True)
class Pod:
    """The pod of one workload, whose containers share one network."""

    workload: str
    namespace: str
    labels: Mapping[str, str]
    containers: tuple[str, ...]
    """Their services."""
    hostnames: tuple[str, ...] = ()
    """Its own name, one of each replica; none where Kubernetes makes it up."""
    subdomain: str = ""
    """The headless Service under which its hostnames resolve."""
    ports: Mapping[str, int] = field(default_factory=dict)
    """Its container ports by their names."""
    node_ports: Mapping[int, int] = field(default_factory=dict)
    """Its ports by those that it takes of its node (`hostPort`)."""
    is_one: bool = True
    """It has no replicas."""
    asks_cluster: bool = True
    """Names mean what the cluster's DNS says, looked up in its own namespace first."""
    is_ordered: bool = False
    """A replica of its workload starts when the one before it is ready."""
    checks: tuple[ReadinessCheck, ...] = ()
    """All that must answer before the pod is ready."""
    on_host: bool = False
    """It has its node's network, with its node's names (`hostNetwork`)."""
    replica_labels: Mapping[str, frozenset[tuple[str, str]]] = field(default_factory=dict)
    """Labels that Kubernetes gives to single replicas of a StatefulSet, by their names."""

    @cached_property
    def every_label(self) -> frozenset[tuple[str, str]]:
        """The labels that its replicas have, or one of them."""
        return frozenset(self.labels.items()).union(*self.replica_labels.values())

    def labels_of(self, name: str) -> frozenset[tuple[str, str]]:
        """The labels of the replica called ``name``."""
        return self.replica_labels.get(name, frozenset()) | self.labels.items()

    @property
    def own_names(self) -> frozenset[str]:
        """What the pod is called in the file, which is no name for other pods."""
        return frozenset({self.workload.lower(), *self.hostnames})

    @property
    def full_names(self) -> tuple[str, ...]:
        """What the kubelet writes into the pod's own hosts file, in full."""
        if not (self.namespace and self.subdomain):
            return ()
        domain = f"{self.subdomain}.{self.namespace}.svc.cluster.local"
        return tuple(f"{name}.{domain}".lower() for name in self.hostnames)


@dataclass(frozen=True)
class ServicePort:
    """One TCP port; ``target`` is that of the pods, as a number or a name of theirs."""

    port: int
    target: int | str
    node_port: int | None = None


@dataclass(frozen=True)
class ClusterService:
    """A Service; ``ports`` are its TCP ports, None where they are not all known.

    A headless one has no address of its own: its name means the pods, its ports filter nothing,
    and no variables tell of it.
    """

    name: str
    namespace: str
    ports: tuple[ServicePort, ...] | None
    selector: Mapping[str, str] = field(default_factory=dict)
    is_headless: bool = False
    external_name: str = ""
    """The name that its own name leads to (`ExternalName`); it selects no pods then."""
    is_balanced: bool = False
    """A load balancer outside of the cluster has its ports."""
    has_unready: bool = False
    """Its name and address lead to pods that are not ready as well (publishNotReadyAddresses)."""
    is_local_inside: bool = False
    """Its address leads to pods of the client's node alone (`internalTrafficPolicy`)."""
    is_local_outside: bool = False
    """Its ports of a node lead to pods of that node alone (`externalTrafficPolicy`)."""

    @property
    def is_external_name(self) -> bool:
        return bool(self.external_name)

    @property
    def has_address(self) -> bool:
        return not (self.is_headless or self.is_external_name)


def in_cluster(host: str) -> list[str]:
    """The labels of ``host`` without the cluster's domain."""
    parts = host.lower().rstrip(".").split(".")
    if parts[-3:] == ["svc", "cluster", "local"]:
        del parts[-3:]
    elif len(parts) > 2 and parts[-1] == "svc":
        del parts[-1]
    return parts

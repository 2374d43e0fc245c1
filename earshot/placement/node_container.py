"""The container that a node runs in."""

from dataclasses import dataclass
from typing import Any

from earshot.topology.container import PublishedPort

DATA = "/var/lib/kafka/data"
"""Where apache/kafka and cp-kafka let their own user write."""
KEYS = "/etc/kafka/secrets"
"""Where both have a place for keys."""


@dataclass(frozen=True)
class VolumeMount:
    """A volume of an engine, and where a container has it."""

    volume: str
    path: str
    read_only: bool = False

    def inputs(self) -> dict[str, Any]:
        """The mount as an item of `volumes` of `docker.Container`."""
        read_only = {"readOnly": True} if self.read_only else {}
        return {"volumeName": self.volume, "containerPath": self.path, **read_only}


@dataclass(frozen=True)
class NodeContainer:
    """Everything that decides the container of one node."""

    node_id: int
    host: int
    """Index of its Docker host."""
    name: str
    """Of the container, its hostname and its alias on the network."""
    network: str
    volume: str
    image: str
    ports: tuple[PublishedPort, ...]
    environment: dict[str, str]
    """All but the cluster's id, which no plan decides."""
    keys: str = ""
    """The volume with its key store; empty where it needs none."""

    @property
    def mounts(self) -> tuple[VolumeMount, ...]:
        """Its volumes, each with its place."""
        mounts = (VolumeMount(self.volume, DATA),)
        return (*mounts, VolumeMount(self.keys, KEYS, read_only=True)) if self.keys else mounts

    def variables(self, cluster_id: str) -> dict[str, str]:
        """The whole environment of a node of this cluster."""
        return {**self.environment, "CLUSTER_ID": cluster_id}

    def inputs(self, cluster_id: str) -> dict[str, Any]:
        """The same as inputs of `docker.Container`, by the provider's own names."""
        return {
            "name": self.name,
            "hostname": self.name,
            "image": self.image,
            "envs": [f"{key}={value}" for key, value in self.variables(cluster_id).items()],
            "ports": [
                {
                    "internal": item.container_port,
                    "external": item.host_port,
                    "ip": item.host_ip or "0.0.0.0",
                    "protocol": item.protocol,
                }
                for item in self.ports
            ],
            "networksAdvanced": [{"name": self.network, "aliases": [self.name]}],
            "volumes": [item.inputs() for item in self.mounts],
        }

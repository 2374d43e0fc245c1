"""The container of a node."""

from dataclasses import dataclass

from earshot.json_object import JsonObject
from earshot.topology.container import PublishedPort

DATA = "/var/lib/kafka/data"
"""A folder that the user of the images apache/kafka and cp-kafka can write to."""
KEYS = "/etc/kafka/secrets"
"""The folder for keys in both images."""


@dataclass(frozen=True)
class VolumeMount:
    """A volume of an engine, and its path in a container."""

    volume: str
    path: str
    read_only: bool = False

    def inputs(self) -> JsonObject:
        """The mount as an item of `volumes` of `docker.Container`."""
        read_only = {"readOnly": True} if self.read_only else {}
        return {"volumeName": self.volume, "containerPath": self.path, **read_only}


@dataclass(frozen=True)
class NodeContainer:
    """The settings of one node's container."""

    node_id: int
    host: int
    """The index of its Docker host."""
    name: str
    """The name of the container, its hostname, and its alias on the network."""
    network: str
    volume: str
    image: str
    ports: tuple[PublishedPort, ...]
    environment: dict[str, str]
    """All variables except the cluster id, which is not part of a plan."""
    keys: str = ""
    """The volume with its key store; empty if it needs none."""

    @property
    def mounts(self) -> tuple[VolumeMount, ...]:
        """The container's volumes with their paths."""
        mounts = (VolumeMount(self.volume, DATA),)
        return (*mounts, VolumeMount(self.keys, KEYS, read_only=True)) if self.keys else mounts

    def variables(self, cluster_id: str) -> dict[str, str]:
        """All environment variables, for the cluster with this id."""
        return {**self.environment, "CLUSTER_ID": cluster_id}

    def inputs(self, cluster_id: str) -> JsonObject:
        """The container as inputs of the Pulumi resource `docker.Container`."""
        return {
            "name": self.name,
            "hostname": self.name,
            "image": self.image,
            "envs": [f"{key}={value}" for key, value in self.variables(cluster_id).items()],
            "ports": [
                {
                    "internal": port.container_port,
                    "external": port.host_port,
                    "ip": port.host_ip or "0.0.0.0",
                    "protocol": port.protocol,
                }
                for port in self.ports
            ],
            "networksAdvanced": [{"name": self.network, "aliases": [self.name]}],
            "volumes": [mount.inputs() for mount in self.mounts],
        }

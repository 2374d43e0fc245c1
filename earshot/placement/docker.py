"""The plan of brokers that are containers, down to the inputs of each container."""

from __future__ import annotations

import base64
import uuid
from dataclasses import dataclass
from typing import Any

from earshot.listeners.images import IMAGE_NOTE
from earshot.listeners.model import ClusterPlan
from earshot.listeners.render import environment
from earshot.placement.docker_names import DATA, docker_names
from earshot.placement.plan import NodeNames, plan
from earshot.rules.container import PublishedPort
from earshot.spec.docker import DockerHost, DockerSpec

NAMESPACE = uuid.UUID("0bd8a5c6-6f0b-5c52-9b0e-5a1f6c1f7d55")
"""Of the ids that clusters get from their stacks' names; never to be changed."""
ROOMY = 512
"""MiB of heap in which Kafka's own default for the log cleaner (128 MiB) has room."""
SMALL_CLEANER = {"log.cleaner.dedupe.buffer.size": "2097152"}


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

    def inputs(self) -> dict[str, Any]:
        """The same as inputs of `docker.Container`, by the provider's own names."""
        return {
            "name": self.name,
            "hostname": self.name,
            "image": self.image,
            "envs": [f"{key}={value}" for key, value in self.environment.items()],
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
            "volumes": [{"volumeName": self.volume, "containerPath": DATA}],
        }


@dataclass(frozen=True)
class DockerPlan:
    """What `plan` made of a docker spec, and the containers that it comes to."""

    plan: ClusterPlan
    names: dict[int, NodeNames]
    notes: tuple[str, ...]
    containers: dict[int, NodeContainer]
    hosts: tuple[DockerHost, ...]
    cluster_id: str


def plan_docker(spec: DockerSpec, stack: str) -> DockerPlan:
    """The plan of ``spec`` as stack ``stack``. Raises EarshotError."""
    named = docker_names(spec)
    settled = spec.model_copy(update={"extra": _small(spec.heap) | spec.extra})
    made = plan(settled, named.names)
    id_of_cluster = cluster_id(stack)
    containers = {}
    for node in made.nodes:
        name = spec.name_of(node.id)
        containers[node.id] = NodeContainer(
            node_id=node.id,
            host=spec.host_of[node.id],
            name=name,
            network=network_name(stack),
            volume=f"{network_name(stack)}-{name}",
            image=spec.image_name,
            ports=tuple(
                PublishedPort(item.container_port, item.host_port, item.host_ip)
                for item in named.published[node.id]
            ),
            environment={
                **environment(made, node),
                IMAGE_NOTE: spec.image_name,  # its container is given the image's id
                "CLUSTER_ID": id_of_cluster,
                "KAFKA_HEAP_OPTS": f"-Xms{spec.heap} -Xmx{spec.heap}",
            },
        )
    return DockerPlan(made, named.names, named.notes, containers, spec.hosts, id_of_cluster)


def network_name(stack: str) -> str:
    """The brokers' network on each of their hosts."""
    return f"earshot-{stack}"


def cluster_id(stack: str) -> str:
    """Kafka's id of the cluster of ``stack``: the same again, for volumes outlive a stack."""
    for turn in range(100):
        raw = uuid.uuid5(NAMESPACE, f"{stack}/{turn}").bytes
        text = base64.urlsafe_b64encode(raw).decode().rstrip("=")
        if not text.startswith("-"):  # Kafka's tools would take it for an option
            return text
    raise AssertionError("a hundred ids in a row began with a hyphen")


def _small(heap: str) -> dict[str, str]:
    size = int(heap[:-1]) * (1024 if heap.endswith("g") else 1)
    return {} if size >= ROOMY else SMALL_CLEANER

"""The plan of brokers that are containers, down to the inputs of each container."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from earshot.config.docker import DockerHost, DockerSpec
from earshot.facts.container import PublishedPort
from earshot.listeners.images import IMAGE_NOTE
from earshot.listeners.model import ClusterPlan
from earshot.listeners.render import environment
from earshot.placement.docker_names import DATA, docker_names
from earshot.placement.plan import NodeNames, plan

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
    """All but the cluster's id, which no plan decides."""

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


def planned(spec: DockerSpec, stack: str, _state: Path) -> DockerPlan:
    """The plan of ``spec`` as stack ``stack``. Raises EarshotError."""
    return plan_docker(spec, stack)


def plan_docker(spec: DockerSpec, stack: str) -> DockerPlan:
    """The plan of ``spec`` as stack ``stack``. Raises EarshotError."""
    named = docker_names(spec)
    settled = spec.model_copy(update={"extra": _small(spec.heap) | spec.extra})
    made = plan(settled, named.names)
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
                "KAFKA_HEAP_OPTS": f"-Xms{spec.heap} -Xmx{spec.heap}",
            },
        )
    return DockerPlan(made, named.names, named.notes, containers, spec.hosts)


def network_name(stack: str) -> str:
    """The brokers' network on each of their hosts."""
    return f"earshot-{stack}"


def _small(heap: str) -> dict[str, str]:
    size = int(heap[:-1]) * (1024 if heap.endswith("g") else 1)
    return {} if size >= ROOMY else SMALL_CLEANER

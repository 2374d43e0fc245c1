"""A stack of placement docker: the cluster, what it exports, and the proof of its listeners."""

from __future__ import annotations

from pathlib import Path

from components.announced import announce, prove
from components.docker.cluster import DockerCluster
from earshot.config.docker import DockerSpec
from earshot.placement import plan_docker
from earshot.placement.docker import network_name
from earshot.placement.standpoint import docker_standpoints


def deploy(stack: str, spec: DockerSpec, state: Path) -> None:
    """Registers the stack's resources and outputs. Raises EarshotError."""
    planned = plan_docker(spec, stack)
    contract = announce(stack, spec, planned)
    standpoints = docker_standpoints(
        contract, planned.hosts, network_name(stack), spec.validator.base, spec.dns
    )
    cluster = DockerCluster(stack, spec, planned, state)
    prove(stack, spec, contract, cluster, state, standpoints)

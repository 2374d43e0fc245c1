"""A stack of placement docker: the cluster, what it exports, and the proof of its listeners."""

from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

import pulumi

from earshot.config.docker import DockerSpec
from earshot.placement.docker import DockerPlan, network_name, plan_docker, plan_step
from earshot.placement.standpoint import docker_standpoints
from earshot.topology.container import PublishedPort
from earshot.transition.change import Change
from earshot_pulumi.announced import announce, gate_policy, prove
from earshot_pulumi.change_memory import BegunChange, Made, ProvedChange, as_it_runs, recalled
from earshot_pulumi.client_output import announce_clients
from earshot_pulumi.docker.cluster import DockerCluster
from earshot_pulumi.docker.in_turn import ended
from earshot_pulumi.docker.running import settings_of_running
from earshot_pulumi.properties import read


def deploy(stack: str, spec: DockerSpec, state: Path) -> None:
    """Registers the stack's resources and outputs. Raises EarshotError."""
    wanted = plan_docker(spec, stack, state / "kafka")
    held = recalled(state)
    if held.proved:
        held = held.by(as_it_runs(state, wanted.plan, settings_of_running(stack, wanted.hosts)))
    change = Change.of(state, wanted.plan)
    planned = plan_step(spec, stack, wanted, change.plan, _published(held.running))
    contract = announce(stack, spec, planned, change)
    standpoints = docker_standpoints(
        contract, planned.hosts, network_name(stack), spec.validator.base, spec.dns
    )
    begun = held.beginning(Made(planned.plan, _ports(planned)))
    cluster = DockerCluster(
        stack,
        spec,
        planned,
        state,
        policy=gate_policy(spec, stack),
        wanted=wanted.plan,
        begin=partial(BegunChange, stack, begun, state),
        ended=ended(stack, planned) if held.proved else (),
    )
    security, root = planned.plan.security, state / "kafka"
    client_config = announce_clients(spec, security, contract, root, cluster.expires)
    identified = cluster.cluster_id.apply(contract.identified)
    now, ready = cluster.incarnations, [cluster.ready]
    proof = prove(stack, spec, identified, now, ready, state, standpoints, client_config)
    ProvedChange(stack, change, begun, state, pulumi.ResourceOptions(depends_on=[proof]))


def _ports(planned: DockerPlan) -> dict[str, Any]:
    """The published ports by node id, which no plan of listeners has."""
    return {
        str(id): [
            {"container_port": it.container_port, "host_port": it.host_port, "host_ip": it.host_ip}
            for it in container.ports
        ]
        for id, container in planned.containers.items()
    }


def _published(running: Iterable[Made]) -> dict[int, list[PublishedPort]]:
    """By node id, one port of the host for each of the container that any plan publishes.

    That of the first plan, which was proved: what a step keeps of old listeners it has of that one.
    """
    found: dict[int, dict[int, PublishedPort]] = {}
    for made in running:
        for id, ports in made.own.items():
            for props in ports:
                port = read(PublishedPort, props)
                found.setdefault(int(id), {}).setdefault(port.container_port, port)
    return {id: list(ports.values()) for id, ports in found.items()}

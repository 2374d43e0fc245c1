"""A cluster of placement docker: its brokers, its outputs, and the proof of its listeners."""

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any, Final

import pulumi

from earshot.config.docker import DockerHost, DockerSpec
from earshot.errors import EarshotError
from earshot.placement.docker import DockerPlan, network_of, plan_docker, plan_step
from earshot.placement.standpoint import docker_standpoints
from earshot.topology.container import PublishedPort
from earshot.transition.change import Change
from earshot_pulumi.change_memory import (
    BegunChange,
    Made,
    ProvedChange,
    as_it_runs,
    recalled,
    resources,
)
from earshot_pulumi.deployment import ClusterContext, is_of_stack_file
from earshot_pulumi.docker.brokers import DockerBrokers
from earshot_pulumi.docker.container_address import check_engine
from earshot_pulumi.docker.in_turn import unsettled
from earshot_pulumi.docker.running import settings_of_running
from earshot_pulumi.properties import read
from earshot_pulumi.unknown_inputs import Markers, is_marker
from earshot_pulumi.validation import check_spark

MAX_LABEL: Final = 63
"""Characters of a host's name without dots (RFC 1123, section 2.1)."""


def deploy(at: ClusterContext, spec: DockerSpec) -> dict[str, Any]:
    """The outputs of the cluster, whose resources it registers. Raises EarshotError."""
    name, state = at.name, at.folder
    spec = with_own_names(spec, name)
    known = resources()
    remembered = recalled(state, name, known)
    silent = {}
    if pulumi.runtime.is_dry_run() and not remembered.running:
        silent = dict(_silent(spec.hosts))
    markers = Markers(silent)
    if silent:
        spec, at = _without(silent, markers, spec), at.changed_by(markers.transformation)
    wanted = plan_docker(spec, name, state / "kafka")
    if remembered.proved and not any(is_marker(it.engine) for it in wanted.hosts):
        running = settings_of_running(name, wanted.hosts)
        remembered = remembered.by(as_it_runs(state, wanted.plan, running))
    change = Change.of(state, wanted.plan)
    planned = plan_step(spec, name, wanted, change.plan, _published(remembered.running))
    contract = at.announced(spec, planned, change)
    standpoints = docker_standpoints(
        contract, planned.hosts, network_of(spec, name), spec.validator.base, spec.dns
    )
    check_spark(spec.validation.records, standpoints)
    begun = remembered.beginning(Made(planned.plan, _ports(planned)))
    brokers = DockerBrokers(
        at,
        spec,
        planned,
        wanted=wanted.plan,
        begin=partial(BegunChange, name, begun, state),
        unsettled=unsettled(name, planned, known) if remembered.proved else (),
    )
    outputs = brokers.proved(
        planned.plan.security,
        contract,
        partial(ProvedChange, name, change, begun, state),
        standpoints=standpoints,
    )
    return markers.hidden(outputs) if silent else outputs


def _silent(hosts: Iterable[DockerHost]) -> Iterator[tuple[str, int]]:
    """By the path of its input, the index of each host whose engine does not answer.

    The first preview of a cluster goes on without it, as where there is no engine in CI.
    """
    for index, host in enumerate(hosts):
        if is_marker(host.engine):
            continue
        try:
            check_engine(host)
        except EarshotError as error:
            if "does not answer" not in str(error):
                raise  # its address or its certificates are wrong
            text = f"this preview goes on without it, and compares nothing with it: {error}"
            pulumi.log.warn(text)
            yield f"hosts[{index}].engine", index


def _without(silent: Mapping[str, int], markers: Markers, spec: DockerSpec) -> DockerSpec:
    """``spec`` with markers for engines that do not answer."""
    hosts = list(spec.hosts)
    for path, index in silent.items():
        unknown = {"engine": markers.text(path), "cert_path": None}
        hosts[index] = hosts[index].model_copy(update=unknown)
    return spec.model_copy(update={"hosts": tuple(hosts)})


def with_own_names(spec: DockerSpec, full_name: str) -> DockerSpec:
    """``spec`` whose containers are not called as those of the program's other clusters.

    Raises EarshotError where a name would be too long for a host.
    """
    if is_of_stack_file(full_name):
        return spec
    # a stack's name may have characters that no host has
    prefix = re.sub(r"[^A-Za-z0-9]+", "-", full_name)
    names = {id: f"{prefix}-{spec.name_of(id)}" for id in spec.node_ids if id not in spec.names}
    for id, name in names.items():
        if len(name) > MAX_LABEL:
            raise EarshotError(
                f"names.{id}",
                observed=f"is missing, and {name} has more than {MAX_LABEL} characters",
                remedy="give the container a shorter name",
            )
    return spec.model_copy(update={"names": {**names, **spec.names}})


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

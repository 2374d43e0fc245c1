"""Deploys a cluster of placement docker: brokers, outputs, and the proof of its listeners."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import pulumi

from earshot.config.docker import DockerSpec
from earshot.config.docker_host import DockerHost
from earshot.errors import EarshotError
from earshot.placement.docker import DockerPlan, network_of, plan_docker, plan_step
from earshot.placement.standpoint import docker_standpoints
from earshot.topology.container import PublishedPort
from earshot.transition.change import Change
from earshot_pulumi.change_memory import (
    AppliedPlan,
    ChangeRecords,
    correct_memory,
    recorded_changes,
    resources,
)
from earshot_pulumi.deployment import ClusterContext, is_of_stack_file
from earshot_pulumi.docker.brokers import DockerBrokers
from earshot_pulumi.docker.container_address import check_engine
from earshot_pulumi.docker.rolling_restart import unsettled
from earshot_pulumi.docker.running import settings_of_running
from earshot_pulumi.properties import read
from earshot_pulumi.provider.kind import Properties
from earshot_pulumi.unknown_inputs import Markers, is_marker
from earshot_pulumi.validation import check_spark

MAX_LABEL: Final = 63
"""Maximum length of a host name's label (RFC 1123, section 2.1)."""


def deploy(at: ClusterContext, spec: DockerSpec) -> Properties:
    """Registers the cluster's resources and returns its outputs. Raises EarshotError."""
    name, state = at.name, at.folder
    spec = with_own_names(spec, name)
    state_resources = resources()
    recorded = recorded_changes(state, name, state_resources)
    silent_hosts = {}
    if pulumi.runtime.is_dry_run() and not recorded.running:
        silent_hosts = dict(_silent_hosts(spec.hosts))
    markers = Markers(silent_hosts)
    if silent_hosts:
        spec, at = _with_markers(silent_hosts, markers, spec), at.changed_by(markers.transformation)
    target = plan_docker(spec, name, state / "kafka")
    if recorded.proved and not any(is_marker(host.engine) for host in target.hosts):
        observed = settings_of_running(name, target.hosts)
        recorded = recorded.with_plans(correct_memory(state, target.plan, observed))
    change = Change.of(state, target.plan)
    planned = plan_step(spec, name, target, change.plan, _published(recorded.running))
    contract = at.contract_of_step(spec, planned, change)
    standpoints = docker_standpoints(
        contract, planned.hosts, network_of(spec, name), spec.validator.base, spec.dns
    )
    check_spark(spec.validation.records, standpoints)
    begun = recorded.begun_with(AppliedPlan(planned.plan, _ports(planned)))
    brokers = DockerBrokers(
        at,
        spec,
        planned,
        final_plan=target.plan,
        records=ChangeRecords(name, change, begun, state),
        unsettled=unsettled(name, planned, state_resources) if recorded.proved else (),
    )
    outputs = brokers.register_validation(
        planned.plan.security,
        contract,
        standpoints=standpoints,
    )
    return markers.hidden(outputs) if silent_hosts else outputs


def _silent_hosts(hosts: Iterable[DockerHost]) -> Iterator[tuple[str, int]]:
    """The input path and index of each host whose engine does not answer, with a warning.

    The first preview of a cluster continues without it, as CI may have no engine. Raises
    EarshotError if the engine's address or certificates are wrong.
    """
    for index, host in enumerate(hosts):
        if is_marker(host.engine):
            continue
        try:
            check_engine(host)
        except EarshotError as error:
            if "does not answer" not in str(error):
                raise
            text = f"this preview continues without it, and compares nothing with it: {error}"
            pulumi.log.warn(text)
            yield f"hosts[{index}].engine", index


def _with_markers(
    silent_hosts: Mapping[str, int], markers: Markers, spec: DockerSpec
) -> DockerSpec:
    """``spec`` with markers for engines that do not answer."""
    hosts = list(spec.hosts)
    for path, index in silent_hosts.items():
        changes = {"engine": markers.text(path), "cert_path": None}
        hosts[index] = hosts[index].model_copy(update=changes)
    return spec.model_copy(update={"hosts": tuple(hosts)})


def with_own_names(spec: DockerSpec, full_name: str) -> DockerSpec:
    """``spec`` with container names that are unique among the program's clusters.

    Raises EarshotError if a name would be too long for a host name.
    """
    if is_of_stack_file(full_name):
        return spec
    # a stack's name may have characters that host names must not have
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


def _ports(planned: DockerPlan) -> Properties:
    """The published ports by node id, which a cluster plan does not contain."""
    return {
        str(id): [
            {
                "container_port": port.container_port,
                "host_port": port.host_port,
                "host_ip": port.host_ip,
            }
            for port in container.ports
        ]
        for id, container in planned.containers.items()
    }


def _published(running: Iterable[AppliedPlan]) -> dict[int, list[PublishedPort]]:
    """The published ports of ``running`` plans, by node id.

    If plans publish a container port differently, the first plan decides. That is the proved one: a
    step keeps its listeners.
    """
    ports_by_node: dict[int, dict[int, PublishedPort]] = {}
    for applied in running:
        for id, ports in applied.own.items():
            for props in ports:
                port = read(PublishedPort, props)
                ports_by_node.setdefault(int(id), {}).setdefault(port.container_port, port)
    return {id: list(ports.values()) for id, ports in ports_by_node.items()}

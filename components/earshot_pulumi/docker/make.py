"""Steps of `make` before and after Pulumi for a stack of containers: check, repair, remove data.

The official provider reads no published ports of a container that is on no network or restarting.
The update would then replace the container and lose its log and exit status. So containers are
repaired before Pulumi refreshes its state.
"""

import time
from collections.abc import Collection
from pathlib import Path
from typing import Final

from earshot.config.docker import DockerSpec
from earshot.engine.connection import DockerObject, address_of, root_cause
from earshot.engine.failures import FAILURES
from earshot.errors import EarshotError
from earshot.jvm.broker_log import cause_of_end, without_frames
from earshot.placement import standpoint
from earshot.placement.docker import planned
from earshot.transition.memory import recall
from earshot_pulumi.docker import engine_objects, labels
from earshot_pulumi.docker.container_address import (
    ContainerAddress,
    Engines,
    check_engine,
    inspected,
    is_up,
)
from earshot_pulumi.docker.readiness import how_ended, is_intact, log_of
from earshot_pulumi.docker.readiness import repair as repair_container
from earshot_pulumi.docker.volume_data import own_id
from earshot_pulumi.driver import POLL, Say

LONG_ENOUGH: Final = 10.0
"""Seconds that a container must run before its engine restarts it without a pause."""


def check(spec: DockerSpec) -> None:
    """Check that every engine of hosts that the stack does not create answers.

    Raises EarshotError.
    """
    if spec.provisioned:
        return
    for host in spec.hosts:
        check_engine(host)


def repair(spec: DockerSpec, stack: str, state_dir: Path, say: Say) -> None:
    """Start, unpause and connect the containers of ``stack``, and stop those in a crash loop.

    A stopped container survives a refresh, and the update starts it in its turn. Containers of
    another checkout's stack with that name stay. ``say`` gets one line per repair, also if the
    repair fails: the update replaces that container or reports it again. Raises EarshotError if an
    engine fails.
    """
    if spec.provisioned:
        _check_provisioned(state_dir)  # only the update repairs containers there
        return
    plan = planned(spec, stack, state_dir)
    ids = {spec.cluster_id, own_id(stack, state_dir)} - {None}
    with Engines() as engines:
        for node in plan.plan.nodes:
            container = plan.containers[node.id]
            address = ContainerAddress.of(plan.plan, node, container, plan.hosts[container.host])
            description = engines.inspect(str(address), address, address.name)
            if description is not None and _is_own(description, stack, node.id, ids):
                _repair(engines, address, description, say)


def _check_provisioned(state_dir: Path) -> None:
    """Raises EarshotError if an engine on a host that the stack has created does not answer.

    A refresh would fail there with the provider's less helpful message.
    """
    vantages = state_dir / standpoint.FILE
    if recall(state_dir).complete is None or not vantages.exists():
        return
    engines = {
        engine
        for stored_standpoint in standpoint.read_standpoints(vantages)
        for engine in stored_standpoint.engines
    }
    for engine in sorted(engines, key=address_of):
        try:
            check_engine(engine)
        except EarshotError as error:
            raise EarshotError(
                error.object,
                observed=f"{error.observed}; it is on a host of this stack",
                remedy="look at the instance (`aws ssm start-session --target INSTANCE`, then "
                "`systemctl status docker-prepare docker` and `journalctl -u docker`), start the "
                "engine, and run the same command again; and check that this machine is in one of "
                "`deployers`",
            ) from None


def remove_data(spec: DockerSpec, stack: str, state_dir: Path, say: Say) -> None:
    """Remove the volumes with the labels of ``stack`` from its hosts. Raises EarshotError.

    Volumes of another checkout's stack with that name stay: they have another cluster's data.
    ``say`` gets one line per volume.
    """
    if spec.provisioned:
        return  # data is on the hosts' EBS volumes, which the stack handles itself
    own_ids = {spec.cluster_id, own_id(stack, state_dir)}
    hosts = {host.name: host for host in spec.hosts}
    with Engines() as engines:
        for volume in engine_objects.look(engines, spec.hosts).volumes:
            if volume.labels.get(labels.STACK) != stack:
                continue
            cluster_id = labels.cluster_id_of(volume.labels)
            if cluster_id not in own_ids:
                say(
                    f"Left volume {volume.name}: its data is of cluster {cluster_id}, of "
                    "which this checkout has no record. If it is no longer needed: "
                    f"docker volume rm {volume.name}"
                )
                continue
            try:
                engines.of(hosts[volume.host]).api.remove_volume(volume.name)
            except FAILURES as reason:
                raise EarshotError(
                    f"volume {volume.name} on Docker host {volume.host}",
                    observed=f"cannot be removed: {root_cause(reason)}",
                    remedy="remove the containers that use it, then run the same command again",
                ) from None
            say(f"Removed volume {volume.name} ...")


def _is_own(
    container: DockerObject, stack: str, node: int, cluster_ids: Collection[str | None]
) -> bool:
    config = container["Config"]
    own_labels, variables = config["Labels"] or {}, config["Env"] or ()
    owner = (own_labels.get(labels.STACK), own_labels.get(labels.NODE))
    return owner == (stack, str(node)) and any(
        f"CLUSTER_ID={id}" in variables for id in cluster_ids
    )


def _repair(
    engines: Engines,
    address: ContainerAddress,
    container: DockerObject,
    say: Say,
) -> None:
    container = _wait_until_settled(engines, address, container)
    if is_intact(container, address) and not container["State"]["Restarting"]:
        return
    say(f"{address} {_problem_and_repair(engines, address, container)} ...")
    try:
        if container["State"]["Restarting"]:
            engines.of(address).api.stop(container["Id"], timeout=0)
        else:
            repair_container(engines, address, container["Id"])
    except EarshotError as error:
        say(error.line)
    except FAILURES as reason:
        say(f"{address}: cannot be stopped: {root_cause(reason)}")


def _wait_until_settled(
    engines: Engines, address: ContainerAddress, container: DockerObject
) -> DockerObject:
    """Inspects a container that was just restarted again until it ends or has run `LONG_ENOUGH`."""
    end = time.monotonic() + LONG_ENOUGH
    while _may_end_soon(engines, address, container) and time.monotonic() < end:
        time.sleep(POLL)
        container = inspected(engines, address, container["Id"])
    return container


def _may_end_soon(engines: Engines, address: ContainerAddress, container: DockerObject) -> bool:
    state = container["State"]
    if (
        not container["RestartCount"]
        or not is_up(container)
        or state["Restarting"]
        or state["Paused"]
    ):
        return False
    return engines.seconds_up(str(address), address, container) < LONG_ENOUGH


def _problem_and_repair(
    engines: Engines, address: ContainerAddress, container: DockerObject
) -> str:
    """The problem of the container, and its repair."""
    state = container["State"]
    if state["Status"] == "created":
        return "was never started; starting it"
    if state["Restarting"] or not is_up(container):
        # the next run may have begun since
        log = log_of(engines, address, container["Id"], until=state["FinishedAt"])
        last_lines = without_frames(log)[-1:] if state["Restarting"] else ()
        cause = cause_of_end(log) or "".join(last_lines).strip()
        end_text = how_ended(state) + (f": {cause}" if cause else "")
        loop_text = "is restarted in a loop by its engine, and " if state["Restarting"] else ""
        repair_text = "stopping it until its turn" if state["Restarting"] else "starting it"
        return f"{loop_text}{end_text} (`docker logs {address.name}` has its log); {repair_text}"
    if state["Paused"]:
        return "is paused; unpausing it"
    return f"is not connected to its network {address.network}; connecting it"

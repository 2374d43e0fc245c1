"""Rolling restarts: a broker is stopped only while every other node is up.

With two brokers down at the same time, partitions may be unavailable.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from earshot.config.docker_host import DockerHost
from earshot.engine.connection import DockerObject
from earshot.errors import EarshotError
from earshot.placement.docker import DockerPlan
from earshot_pulumi.deployment import child_name
from earshot_pulumi.docker import engine_objects, labels
from earshot_pulumi.docker.container_address import (
    ContainerAddress,
    Engines,
    asking,
    incarnation,
)
from earshot_pulumi.docker.running import RunningNode, expired_ends, running
from earshot_pulumi.driver import not_stopped
from earshot_pulumi.provider.kind import Outputs
from earshot_pulumi.provider.resource import outputs_of, types_of

GRACE: Final = 60
"""Seconds for a broker to hand over its leaderships, while there is a quorum."""
NO_QUORUM_GRACE: Final = 3
"""Seconds if there is no quorum: leaderships cannot be handed over, and all data is on disk."""
SETTLED: Final = 60.0
"""Seconds after a restart until a container counts as up.

A broker that cannot work ends sooner, and the engine waits at most this long between two starts.
"""


def unsettled(stack: str, planned: DockerPlan, resources: Mapping[str, Outputs]) -> list[int]:
    """Ids of ``planned`` nodes with data that are down, crash-looping, were restarted after an
    update saw them in sync, or have a certificate that has expired.

    Nodes that are down are first: no other node is stopped before they run. ``resources`` maps
    URNs to the resources in the stack's state. Empty if an engine does not answer; the preflight
    reports that.
    """
    ids_by_volume = {container.volume: id for id, container in planned.containers.items()}
    is_own = engine_objects.of_stack(stack)
    proved_incarnations = _incarnations(stack, planned, resources)
    try:
        with Engines() as engines:
            objects = engine_objects.look(engines, planned.hosts)
            nodes = list(running(engines, planned.hosts, objects, is_own))
            expired_ids = expired_ends(engines, nodes)
            stable_ids = {
                node.id for node in nodes if _stays_up(engines, node, proved_incarnations)
            }
    except EarshotError:
        return []
    ids_with_data = {
        volume.node
        for volume in objects.volumes
        if is_own(volume.labels) and ids_by_volume.get(volume.name) == volume.node
    }
    up_ids = {node.id for node in nodes if _is_up(node.description)}
    stable_ids -= expired_ids.keys()
    return sorted(ids_with_data - stable_ids, key=lambda id: (id in up_ids, id))


def _incarnations(
    stack: str, planned: DockerPlan, resources: Mapping[str, Outputs]
) -> dict[int, str]:
    """The incarnation of each container that an update saw in sync, by node id."""
    outputs = outputs_of(resources, *types_of("DockerReadiness"))
    names = {
        node.id: child_name(stack, f"{node.roles[0]}-{node.id}") for node in planned.plan.nodes
    }
    return {
        id: str(outputs[name]["incarnation"])
        for id, name in names.items()
        if outputs.get(name, {}).get("incarnation")
    }


def _stays_up(engines: Engines, node: RunningNode, proved: Mapping[int, str]) -> bool:
    """True if a container runs as its incarnation in ``proved`` (if that has one) and its engine
    did not restart it within the last `SETTLED` seconds."""
    container, host = node.description, node.host
    if not _is_up(container):
        return False
    if incarnation(container) != proved.get(node.id, incarnation(container)):
        return False
    if not container["RestartCount"]:
        return True
    return engines.seconds_up(f"Docker host {host.name}", host, container) > SETTLED


def _is_up(container: DockerObject) -> bool:
    state = container["State"]
    return bool(state["Running"] and not state["Paused"] and not state["Restarting"])


def check_others(
    engines: Engines, hosts: Iterable[DockerHost], name: str, own_labels: Mapping[str, str]
) -> None:
    """Raises EarshotError if the container of another node of the deployment is stopped, paused
    or restarting.

    ``name`` is the container to stop, ``own_labels`` are its labels.
    """
    running_by_node: dict[str, dict[str, bool]] = {}
    deployment = own_labels.get(labels.DEPLOYMENT, "")
    filters = {"label": f"{labels.DEPLOYMENT}={deployment}"}
    for host in hosts:
        with asking(f"Docker host {host.name}", host):
            for container in engines.of(host).api.containers(all=True, filters=filters):
                other_labels = container["Labels"] or {}
                if other_labels.get(labels.DEPLOYMENT) != deployment:
                    continue  # an engine may ignore filters
                node = other_labels.get(labels.NODE, "")
                if node != own_labels.get(labels.NODE):
                    container_name = engine_objects.listed_name(container)
                    is_running = container["State"] == "running"
                    running_by_node.setdefault(node, {})[container_name] = is_running
    stopped_names = sorted(
        next(iter(running_by_name))
        for running_by_name in running_by_node.values()
        if not any(running_by_name.values())
    )
    if names := ", ".join(stopped_names):
        remedy = f"run the same command again: it starts {names} first"
        raise not_stopped(f"container {name}", "down already", f"container {names}", remedy)


def connect_others(engines: Engines, address: ContainerAddress, container: DockerObject) -> None:
    """Connects the running containers of the deployment to the network of ``address``.

    It may be another one than before, on which the new ``container`` reaches no other node.
    """
    deployment = (container["Config"]["Labels"] or {}).get(labels.DEPLOYMENT, "")
    with asking(str(address), address):
        api = engines.of(address).api
        for other in api.containers(filters={"label": f"{labels.DEPLOYMENT}={deployment}"}):
            if (other["Labels"] or {}).get(labels.DEPLOYMENT) != deployment:
                continue  # an engine may ignore filters
            if address.network not in other["NetworkSettings"]["Networks"]:
                aliases = [engine_objects.listed_name(other)]
                api.connect_container_to_network(other["Id"], address.network, aliases=aliases)

"""Rolling restarts: a broker is stopped only while every other node is up.

With two brokers down at a time, partitions may be unavailable.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from earshot.config.docker_host import DockerHost
from earshot.engine import DockerObject
from earshot.errors import EarshotError
from earshot.placement.docker import DockerPlan
from earshot_pulumi.deployment import child_name
from earshot_pulumi.docker import labels, on_engines
from earshot_pulumi.docker.container_address import Engines, asking, incarnation
from earshot_pulumi.driver import not_stopped
from earshot_pulumi.provider.internal import types_of
from earshot_pulumi.provider.kind import Outputs

GRACE: Final = 60
"""Seconds for a broker to hand over its leaderships, while there is a quorum."""
NO_QUORUM_GRACE: Final = 3
"""Seconds if there is no quorum: leaderships cannot be handed over, and all data is on disk."""
SETTLED: Final = 60.0
"""Seconds after a restart until a container counts as up.

A broker that cannot work ends sooner, and the engine waits at most this long between two starts.
"""


def unsettled(stack: str, planned: DockerPlan, resources: Mapping[str, Outputs]) -> frozenset[int]:
    """Ids of ``planned`` nodes with data that are down, crash-looping, or were restarted after an
    update saw them in sync.

    ``resources`` maps URNs to the resources in the stack's state. Empty if an engine does not
    answer; the preflight reports that.
    """
    volumes = {container.volume: id for id, container in planned.containers.items()}
    is_own = on_engines.of_stack(stack)
    proved = _incarnations(stack, planned, resources)
    try:
        with Engines() as engines:
            objects = on_engines.look(engines, planned.hosts)
            running = on_engines.described(engines, planned.hosts, objects, is_own)
            up = {
                container.node
                for container, host, description in running
                if _stays_up(engines, host, description, proved.get(container.node))
            }
    except EarshotError:
        return frozenset()
    with_data = {
        volume.node
        for volume in objects.volumes
        if is_own(volume.labels) and volumes.get(volume.name) == volume.node
    }
    return frozenset(with_data - up)


def _incarnations(
    stack: str, planned: DockerPlan, resources: Mapping[str, Outputs]
) -> dict[int, str]:
    """The incarnation of each container that an update saw in sync, by node id."""
    types = types_of("DockerReadiness")
    names = {child_name(stack, f"{node.roles[0]}-{node.id}") for node in planned.plan.nodes}
    outputs = [
        resource["outputs"]
        for urn, resource in resources.items()
        if resource["type"] in types and urn.rpartition("::")[2] in names
    ]
    return {
        int(readiness["nodes"][0]["place"]["node_id"]): str(readiness["incarnation"])
        for readiness in outputs
        if not readiness["whole"] and readiness.get("incarnation")
    }


def _stays_up(
    engines: Engines, host: DockerHost, container: DockerObject, proved: str | None
) -> bool:
    """True if a container runs as the incarnation ``proved`` (None: any) and its engine did not
    restart it within the last `SETTLED` seconds."""
    state = container["State"]
    if not state["Running"] or state["Paused"] or state["Restarting"]:
        return False
    if proved is not None and incarnation(container) != proved:
        return False
    if not container["RestartCount"]:
        return True
    return engines.seconds_up(f"Docker host {host.name}", host, container) > SETTLED


def check_others(
    engines: Engines, hosts: Iterable[DockerHost], name: str, own: Mapping[str, str]
) -> None:
    """Raises EarshotError if the container of another node of the deployment is stopped, paused
    or restarting.

    ``name`` is the container to stop, ``own`` its labels.
    """
    objects: dict[str, dict[str, bool]] = {}
    of_deployment = {"label": f"{labels.DEPLOYMENT}={own.get(labels.DEPLOYMENT, '')}"}
    for host in hosts:
        with asking(f"Docker host {host.name}", host):
            for container in engines.of(host).api.containers(all=True, filters=of_deployment):
                node = container["Labels"].get(labels.NODE, "")
                if node != own.get(labels.NODE):
                    name_on_engine = on_engines.listed_name(container)
                    objects.setdefault(node, {})[name_on_engine] = container["State"] == "running"
    gone = sorted(
        next(iter(containers)) for containers in objects.values() if not any(containers.values())
    )
    if names := ", ".join(gone):
        remedy = f"run the same command again: it starts {names} first"
        raise not_stopped(f"container {name}", "down already", f"container {names}", remedy)

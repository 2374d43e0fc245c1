"""No broker is stopped while another one is down: two at a time are too many for records."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from earshot.config.docker import DockerHost
from earshot.errors import EarshotError
from earshot.placement.docker import DockerPlan
from earshot_pulumi.deployment import child_name
from earshot_pulumi.docker import labels, on_engines
from earshot_pulumi.docker.container_address import Engines, asking, incarnation
from earshot_pulumi.driver import not_stopped
from earshot_pulumi.provider.internal import types_of

GRACE: Final = 60
"""Seconds for a broker to hand over the partitions that it leads, while there is a quorum."""
NO_QUORUM_GRACE: Final = 3
"""Seconds without a quorum: nothing can be handed over, and all data is on disk."""
SETTLED: Final = 60.0
"""Seconds after which a container that was started again counts as up: a broker that cannot work
ends sooner, and the engine waits no longer than this between two starts."""


def unsettled(
    stack: str, planned: DockerPlan, resources: Mapping[str, Mapping[str, Any]]
) -> frozenset[int]:
    """The nodes of ``planned`` with data that do not run, do not stay up, or were restarted since
    an update saw them in sync.

    ``resources`` are the stack's in its state, by URN. Empty where an engine does not answer: the
    preflight says so.
    """
    volumes = {it.volume: id for id, it in planned.containers.items()}
    is_own = on_engines.of_stack(stack)
    proved = _incarnations(stack, planned, resources)
    try:
        with Engines() as engines:
            seen = on_engines.look(engines, planned.hosts)
            found = on_engines.described(engines, planned.hosts, seen, is_own)
            up = {it.node for it, _, item in found if _stays_up(item, proved.get(it.node))}
    except EarshotError:
        return frozenset()
    held = {it.node for it in seen.volumes if is_own(it.labels) and volumes.get(it.name) == it.node}
    return frozenset(held - up)


def _incarnations(
    stack: str, planned: DockerPlan, resources: Mapping[str, Mapping[str, Any]]
) -> dict[int, str]:
    """By node id, the incarnation of its container that an update saw in sync."""
    types = types_of("DockerReadiness")
    names = {child_name(stack, f"{it.roles[0]}-{it.id}") for it in planned.plan.nodes}
    found = [
        it["outputs"]
        for urn, it in resources.items()
        if it["type"] in types and urn.rpartition("::")[2] in names
    ]
    return {
        int(it["nodes"][0]["place"]["node_id"]): str(it["incarnation"])
        for it in found
        if not it["whole"] and it.get("incarnation")
    }


def _stays_up(found: Mapping[str, Any], proved: str | None) -> bool:
    """Whether a container runs as the incarnation ``proved`` (None: any), and the engine has not
    had to start it again a moment ago."""
    state = found["State"]
    if not state["Running"] or state["Paused"] or state["Restarting"]:
        return False
    if proved is not None and incarnation(found) != proved:
        return False
    if not found["RestartCount"]:
        return True
    since = datetime.fromisoformat(state["StartedAt"])
    return (datetime.now(UTC) - since).total_seconds() > SETTLED


def check_others(
    engines: Engines, hosts: Iterable[DockerHost], name: str, own: Mapping[str, str]
) -> None:
    """Raises EarshotError where another node of the deployment has a container that does not run,
    is paused, or waits for the engine to start it again.

    ``name`` is the container that would be stopped, ``own`` are its labels.
    """
    seen: dict[str, dict[str, bool]] = {}
    of_deployment = {"label": f"{labels.DEPLOYMENT}={own.get(labels.DEPLOYMENT, '')}"}
    for host in hosts:
        with asking(f"Docker host {host.name}", host):
            containers = engines.of(host).api.containers(all=True, filters=of_deployment)
        for found in containers:
            node = found["Labels"].get(labels.NODE, "")
            if node != own.get(labels.NODE):
                up = found["State"] == "running"
                listed = found["Names"][0].lstrip("/") if found["Names"] else found["Id"][:12]
                seen.setdefault(node, {})[listed] = up
    gone = sorted(next(iter(it)) for it in seen.values() if not any(it.values()))
    if listed := ", ".join(gone):
        again = f"run the same command again: it starts {listed} first"
        raise not_stopped(f"container {name}", "down already", f"container {listed}", again)

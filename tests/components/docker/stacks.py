"""Docker stacks that tests update, and the objects of such stacks on engines."""

from dataclasses import replace
from typing import Any

from earshot_pulumi.docker import labels
from earshot_pulumi.docker.engine_objects import (
    EngineContainer,
    EngineNetwork,
    EngineObjects,
    EngineVolume,
    TargetStack,
)

from earshot.config.docker import DockerSpec
from earshot.config.document import read_spec
from earshot.placement.docker import plan_docker

MINE = "0123456789ab"
"""The id of the deployment of `target_stack`."""
OWN_ID = "5L6g3nShT-eMCtK-X86swQ"
OTHER_ID = "7QhzWcGeQ9mTn0UP4nS3Rg"


def spec_of(**settings: Any) -> DockerSpec:
    """The spec of a stack file with ``settings``."""
    spec = read_spec({"placement": "docker", **settings}, "test")
    assert isinstance(spec, DockerSpec)
    return spec


def target_stack(stack: str = "s", **settings: Any) -> TargetStack:
    """The target of an update of ``stack`` with ``settings``."""
    planned = plan_docker(spec_of(**settings), stack)
    return TargetStack(stack, MINE, OWN_ID, planned.plan, planned.containers, planned.hosts)


def container(target: TargetStack, id: int, **changes: Any) -> EngineContainer:
    """The running container of node ``id`` as this very deployment has created it."""
    planned = target.containers[id]
    own = labels.of_container(target.stack, target.deployment, target.plan, target.plan.node(id))
    on_engine = EngineContainer(
        target.host_of(id), f"id-{id}", planned.name, "sha256:1", True, own, ports=planned.ports
    )
    return replace(on_engine, **changes)


def volume(target: TargetStack, id: int, **changes: Any) -> EngineVolume:
    """The volume with the data of node ``id``."""
    own = labels.of_volume(target.stack, target.cluster_id, target.plan, target.plan.node(id))
    on_engine = EngineVolume(target.host_of(id), target.containers[id].volume, own)
    return replace(on_engine, **changes)


def everything(target: TargetStack) -> EngineObjects:
    """The objects on the engines once ``target`` is up."""
    own = labels.of_deployment(target.stack, target.deployment)
    return EngineObjects(
        tuple(container(target, id) for id in target.containers),
        tuple(volume(target, id) for id in target.containers),
        (EngineNetwork("local", "earshot-s", own),),
    )

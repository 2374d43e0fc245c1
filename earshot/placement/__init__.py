"""From a cluster's spec to its plan where it will run: what the program deploys, the CLI shows."""

from __future__ import annotations

from pathlib import Path

from earshot.config.document import Spec
from earshot.placement.aws import AwsPlan, plan_aws
from earshot.placement.docker import DockerPlan, NodeContainer, plan_docker, plan_step
from earshot.placement.local import SMALL_BROKER, LocalPlan, plan_local
from earshot.placements import PLACEMENTS

__all__ = [
    "SMALL_BROKER",
    "AwsPlan",
    "DockerPlan",
    "LocalPlan",
    "NodeContainer",
    "Planned",
    "plan_aws",
    "plan_docker",
    "plan_local",
    "plan_stack",
    "plan_step",
]


Planned = LocalPlan | DockerPlan | AwsPlan


def plan_stack(spec: Spec, stack: str, state: Path) -> Planned:
    """The plan of ``spec`` as stack ``stack``; ``state`` is where the stack's data may lie.

    On AWS no name is known yet, and markers stand for them. Raises EarshotError.
    """
    planned: Planned = PLACEMENTS[spec.placement].module(__name__).planned(spec, stack, state)
    return planned

"""Labels by which a stack knows its own on an engine, also after its state is gone."""

from __future__ import annotations

from typing import Final

from earshot.listeners.model import ClusterPlan, Node
from earshot.listeners.render import voters

STACK: Final = "earshot.stack"
DEPLOYMENT: Final = "earshot.deployment"
"""A word that one deployment of a stack made up: another checkout may use the stack's name too."""
NODE: Final = "earshot.node"
ROLES: Final = "earshot.roles"
VOTERS: Final = "earshot.voters"
"""On a container the quorum's addresses, on a volume the ids alone: those are in the data."""
KAFKA: Final = "earshot.kafka-version"
"""On a volume: the version that has formatted it; labels of a volume never change."""


def of_network(stack: str, deployment: str) -> dict[str, str]:
    return {STACK: stack, DEPLOYMENT: deployment}


def of_container(stack: str, deployment: str, plan: ClusterPlan, node: Node) -> dict[str, str]:
    return of_network(stack, deployment) | {
        NODE: str(node.id),
        ROLES: ",".join(node.roles),
        VOTERS: voters(plan),
    }


def of_volume(stack: str, plan: ClusterPlan, node: Node) -> dict[str, str]:
    return {
        STACK: stack,
        NODE: str(node.id),
        ROLES: ",".join(node.roles),
        VOTERS: voter_ids(plan),
        KAFKA: plan.kafka_version,
    }


def voter_ids(plan: ClusterPlan) -> str:
    return ",".join(str(id) for id in sorted(node.id for node in plan.controllers))

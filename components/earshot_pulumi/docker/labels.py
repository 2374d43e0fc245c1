"""Labels by which a stack recognises its objects on an engine, even without its state."""

from collections.abc import Mapping
from typing import Final

from earshot.cluster_id import of_stack_name
from earshot.listeners.model import ClusterPlan, Node
from earshot.listeners.render import voters

STACK: Final = "earshot.stack"
DEPLOYMENT: Final = "earshot.deployment"
"""A random id of one deployment: another checkout may use the stack's name too."""
NODE: Final = "earshot.node"
ROLES: Final = "earshot.roles"
VOTERS: Final = "earshot.voters"
"""On a container the voters with addresses; on a volume their ids, which are in the data."""
CLUSTER: Final = "earshot.cluster-id"
"""On a volume. Earlier releases set none: they derived the id from the stack's name."""
KAFKA: Final = "earshot.kafka-version"
"""On a volume: the version that it was made for, and that formatted it if it ever started. Labels
of a volume never change."""

CERTIFICATE: Final = "earshot.certificate"
"""On a container of a secured node: the fingerprint of the certificate that it was made with."""

PUT_BACK: Final = "earshot.put-back"
"""On a container that was made again as it was, after a change with which its node did not come up:
the id of the one that it is made after."""

THROWAWAY: Final = "earshot.throwaway"
"""On a short-lived container for one command, of no deployment."""


def of_deployment(stack: str, deployment: str) -> dict[str, str]:
    """The labels of a network, and of a volume with keys, which is made again where it is lost."""
    return {STACK: stack, DEPLOYMENT: deployment}


def of_container(
    stack: str, deployment: str, plan: ClusterPlan, node: Node, certificate: str = ""
) -> dict[str, str]:
    """``certificate`` is a fingerprint; empty for a node that has none of the stack's."""
    found = of_deployment(stack, deployment) | {
        NODE: str(node.id),
        ROLES: ",".join(node.roles),
        VOTERS: voters(plan),
    }
    return found | {CERTIFICATE: certificate} if certificate else found


def of_volume(stack: str, cluster_id: str, plan: ClusterPlan, node: Node) -> dict[str, str]:
    return {
        STACK: stack,
        CLUSTER: cluster_id,
        NODE: str(node.id),
        ROLES: ",".join(node.roles),
        VOTERS: voter_ids(plan),
        KAFKA: plan.kafka_version,
    }


def cluster_id_of(volume: Mapping[str, str]) -> str:
    """The id of the cluster whose data a volume of a stack holds, by its labels."""
    return volume.get(CLUSTER) or of_stack_name(volume.get(STACK, ""))


def voter_ids(plan: ClusterPlan) -> str:
    return ",".join(str(id) for id in sorted(node.id for node in plan.controllers))

"""The labels of a stack's objects on an engine, which identify them even without a state."""

import re
from collections.abc import Mapping
from typing import Any, Final

from earshot.listeners.cluster_id import of_stack_name
from earshot.listeners.model import ClusterPlan, Node
from earshot.listeners.render import voters

STACK: Final = "earshot.stack"
DEPLOYMENT: Final = "earshot.deployment"
"""A random id of one deployment, because another checkout may use the same stack name."""
NODE: Final = "earshot.node"
ROLES: Final = "earshot.roles"
VOTERS: Final = "earshot.voters"
"""On a container: the voters with addresses. On a volume: their ids, which are in the data."""
CLUSTER: Final = "earshot.cluster-id"
"""On a volume. Earlier releases set none, and derived the id from the stack's name."""
KAFKA: Final = "earshot.kafka-version"
"""On a volume: the Kafka version that it was created for. Labels of a volume never change."""

CERTIFICATE: Final = "earshot.certificate"
"""On a container of a secured node: the fingerprint of its certificate."""

PUT_BACK: Final = "earshot.put-back"
"""On a container that was put back after a failed change: the id of the container it replaces."""

THROWAWAY: Final = "earshot.throwaway"
"""On a short-lived container for one command, of no deployment."""


_ID: Final = re.compile(r"[0-9]{1,10}")
"""A node's id in a label, which any user of the engine may write."""


def of_deployment(stack: str, deployment: str) -> dict[str, str]:
    """The labels of a network, or of a volume with keys. Neither has data that must be kept."""
    return {STACK: stack, DEPLOYMENT: deployment}


def of_container(
    stack: str, deployment: str, plan: ClusterPlan, node: Node, certificate: str = ""
) -> dict[str, str]:
    """The labels of a node's container.

    ``certificate`` is the fingerprint of the node's certificate; empty if the stack issued none.
    """
    node_labels = of_deployment(stack, deployment) | {
        NODE: str(node.id),
        ROLES: ",".join(node.roles),
        VOTERS: voters(plan),
    }
    return node_labels | {CERTIFICATE: certificate} if certificate else node_labels


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
    """The id of the cluster whose data is in a volume with the labels ``volume``."""
    return volume.get(CLUSTER) or of_stack_name(volume.get(STACK, ""))


def of_object(listed: Any) -> Mapping[str, str]:
    """The labels of a container, network or volume of Docker's SDK.

    Lists of objects are filtered by a label; an engine that ignores the filter lists others, too.
    """
    attributes = listed.attrs or {}
    own: Mapping[str, str] = (attributes.get("Config") or attributes).get("Labels") or {}
    return own


def node_id(own: Mapping[str, str]) -> int:
    """The id of the node in the labels ``own``; -1 if they name none."""
    text = own.get(NODE, "")
    return int(text) if _ID.fullmatch(text) else -1


def ids_of_voters(own: Mapping[str, str]) -> tuple[int, ...]:
    """The ids of the voters in the labels ``own`` of a volume; empty if they name none."""
    texts = own.get(VOTERS, "").split(",")
    return tuple(map(int, texts)) if all(map(_ID.fullmatch, texts)) else ()


def voter_ids(plan: ClusterPlan) -> str:
    return ",".join(str(id) for id in sorted(node.id for node in plan.controllers))

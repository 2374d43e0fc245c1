"""The public API (`import earshot`): the plan, settings and findings of a described cluster.

A description is the value of `earshot:cluster` in a stack file, as plain data. Everything else in
the package may change without notice.
"""

from collections.abc import Mapping
from pathlib import Path

from earshot.checks.plan import check_planned
from earshot.config.document import Spec, read_spec
from earshot.doctor.doctor import examine
from earshot.errors import EarshotError
from earshot.json_object import Document
from earshot.listeners.model import ClusterPlan
from earshot.listeners.render import server_properties
from earshot.names.policy import ResolverPolicy
from earshot.placement import PlacementPlan, plan_stack
from earshot.rules.rule import Finding
from earshot.validation.contract import Contract

__all__ = ["Contract", "EarshotError", "Finding", "evaluate", "examine", "plan", "render"]


def plan(cluster: Document, stack: str = "cluster") -> ClusterPlan:
    """The listeners of every node of ``cluster``; ``stack`` is part of its containers' names.

    On AWS names are unknown before they are provisioned (`UnknownHost`). Raises EarshotError with
    every problem of the description.
    """
    _, planned = _planned(cluster, stack)
    return planned.plan


def render(plan: ClusterPlan, node_id: int) -> str:
    """The `server.properties` of one node. Raises EarshotError for a node that the plan lacks."""
    for node in plan.nodes:
        if node.id == node_id:
            return server_properties(plan, node)
    raise EarshotError(
        f"node {node_id}",
        observed="the plan has no such node",
        allowed=", ".join(str(node.id) for node in plan.nodes),
    )


def evaluate(
    cluster: Document, stack: str = "cluster", policy: ResolverPolicy | None = None
) -> tuple[Finding, ...]:
    """The findings of the rules in ``cluster``, with names looked up from here by ``policy``.

    Raises EarshotError like `plan`.
    """
    spec, planned = _planned(cluster, stack)
    return check_planned(spec, planned, policy or ResolverPolicy()).findings


def _planned(cluster: Mapping[str, object], stack: str) -> tuple[Spec, PlacementPlan]:
    spec = read_spec(cluster, stack)
    return spec, plan_stack(spec, stack, Path(".earshot", "stacks", stack).absolute())

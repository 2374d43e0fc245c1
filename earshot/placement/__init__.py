"""From a cluster's spec to its plan where it will run: what the program deploys, the CLI shows."""

from pathlib import Path

from earshot.config.document import Spec
from earshot.placement.plan import PlacementPlan
from earshot.placements import PLACEMENTS

__all__ = ["PlacementPlan", "plan_stack"]


def plan_stack(spec: Spec, stack: str, state: Path) -> PlacementPlan:
    """The plan of ``spec`` as stack ``stack``; ``state`` is where the stack's data may lie.

    On AWS no name is known yet, and markers are in their place. Raises EarshotError.
    """
    planned: PlacementPlan = PLACEMENTS[spec.placement].module(__name__).planned(spec, stack, state)
    return planned

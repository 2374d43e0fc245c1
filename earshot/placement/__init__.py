"""Plans a cluster's listeners for its placement; for the program and the CLI."""

from pathlib import Path

from earshot.config.document import Spec
from earshot.placement.plan import PlacementPlan
from earshot.placement_registry import PLACEMENTS

__all__ = ["PlacementPlan", "plan_stack"]


def plan_stack(spec: Spec, stack: str, state: Path) -> PlacementPlan:
    """The plan of ``spec`` as stack ``stack``. ``state`` is the folder of the stack's data.

    On AWS the names are unknown (`UnknownHost`). Raises EarshotError.
    """
    planned: PlacementPlan = PLACEMENTS[spec.placement].module(__name__).planned(spec, stack, state)
    return planned

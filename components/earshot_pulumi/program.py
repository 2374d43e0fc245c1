"""The program of a stack: stack file -> placement -> cluster -> outputs."""

import atexit
import gc

import pulumi

from earshot.config.document import read_spec_text
from earshot.errors import EarshotError
from earshot.extras import needed_for
from earshot.placements import PLACEMENTS
from earshot.project import CLUSTER_KEY, Project
from earshot_pulumi.passwords import check_given


def deploy() -> None:
    """Deploys the cluster that the file of the current stack describes, and exports its outputs.

    Works in a project of any name. Raises pulumi.RunError with the one message that a user sees.
    """
    # A run is short and keeps what it loads: few searches for garbage, and none at its end.
    gc.set_threshold(20_000, 20, 20)
    atexit.register(gc.freeze)
    stack = pulumi.get_stack()
    try:
        project = Project.find()
        source = f"{project.shown_file(stack)}, {CLUSTER_KEY}"
        spec = read_spec_text(pulumi.Config("earshot").get("cluster"), source, project)
        check_given(spec, project, stack)
        with needed_for(f"placement {spec.placement}"):
            placement = PLACEMENTS[spec.placement].module("earshot_pulumi", "stack")
        placement.deploy(stack, spec, project.state_dir(stack))
    except EarshotError as error:
        raise pulumi.RunError(str(error)) from None

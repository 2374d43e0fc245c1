"""The program: stack config -> placement -> cluster -> outputs."""

import atexit
import gc

import pulumi
from earshot_pulumi.passwords import check_given

from earshot.config.document import read_spec_text
from earshot.errors import EarshotError
from earshot.placements import PLACEMENTS
from earshot.project import Project


def main() -> None:
    # A run is short and keeps what it loads: few searches for garbage, and none at its end.
    gc.set_threshold(20_000, 20, 20)
    atexit.register(gc.freeze)
    stack = pulumi.get_stack()
    project = Project.find()
    source = f"{project.stack_file(stack).relative_to(project.root)}, earshot:cluster"
    spec = read_spec_text(pulumi.Config("earshot").get("cluster"), source, project)
    check_given(spec, project, stack)
    own = PLACEMENTS[spec.placement].module("earshot_pulumi", "stack")
    own.deploy(stack, spec, project.state_dir(stack))


try:
    main()
except EarshotError as error:
    raise pulumi.RunError(str(error)) from None

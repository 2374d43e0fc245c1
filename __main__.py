"""The program: stack config -> placement -> cluster -> outputs."""

from __future__ import annotations

import json

import pulumi

from components.local.cluster import LocalCluster
from components.validation import Validation
from earshot.errors import EarshotError
from earshot.listeners.spec import read_spec
from earshot.placement import plan_local
from earshot.project import Project
from earshot.validation.contract import Contract


def main() -> None:
    stack = pulumi.get_stack()
    project = Project.find()
    source = f"{project.stack_file(stack).relative_to(project.root)}, earshot:cluster"
    text = pulumi.Config("earshot").get("cluster")
    spec = read_spec(json.loads(text) if text is not None else None, source)
    state = project.state_dir(stack)

    local = plan_local(spec, state / "kafka")
    for note in local.notes:
        pulumi.log.info(note)
    contract = Contract.of(local.plan, cluster=stack, placement=spec.placement)
    for listener in contract.listeners:
        pulumi.export(f"bootstrap_{listener.name}", listener.bootstrap)
    pulumi.export("contract", contract.model_dump(mode="json"))

    cluster = LocalCluster(stack, spec, local)
    pulumi.export("incarnations", cluster.incarnations)
    Validation(
        stack,
        contract,
        cluster.incarnations,
        spec.validation,
        state,
        pulumi.ResourceOptions(depends_on=[cluster.ready]),
    )


try:
    main()
except EarshotError as error:
    raise pulumi.RunError(str(error)) from None

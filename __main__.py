"""The program: stack config -> placement -> cluster -> outputs."""

from __future__ import annotations

import json

import pulumi

from components.docker.cluster import DockerCluster
from components.local.cluster import LocalCluster
from components.validation import Validation
from earshot.errors import EarshotError
from earshot.placement import DockerPlan, LocalPlan, plan_docker, plan_local
from earshot.placement.docker import network_name
from earshot.project import Project
from earshot.spec.aws import AwsSpec
from earshot.spec.document import Spec, read_spec
from earshot.spec.local import LocalSpec
from earshot.validation.contract import Contract
from earshot.vantages.standpoint import Standpoint, docker_standpoints


def main() -> None:
    stack = pulumi.get_stack()
    project = Project.find()
    source = f"{project.stack_file(stack).relative_to(project.root)}, earshot:cluster"
    text = pulumi.Config("earshot").get("cluster")
    spec = read_spec(json.loads(text) if text is not None else None, source)
    state = project.state_dir(stack)

    if isinstance(spec, AwsSpec):
        from components.aws.stack import deploy  # pulumi-aws is slow to import

        deploy(stack, spec, state)
        return
    cluster: LocalCluster | DockerCluster
    standpoints: tuple[Standpoint, ...] = ()
    if isinstance(spec, LocalSpec):
        local = plan_local(spec, state / "kafka")
        contract = export(stack, spec, local)
        cluster = LocalCluster(stack, spec, local)
    else:
        docker = plan_docker(spec, stack)
        contract = export(stack, spec, docker)
        cluster = DockerCluster(stack, spec, docker)
        standpoints = docker_standpoints(
            contract, docker.hosts, network_name(stack), spec.validator.base, spec.dns
        )
    pulumi.export("incarnations", cluster.incarnations)
    Validation(
        stack,
        contract,
        cluster.incarnations,
        spec.validation,
        state,
        pulumi.ResourceOptions(depends_on=[cluster.ready]),
        vantages=standpoints,
    )


def export(stack: str, spec: Spec, planned: LocalPlan | DockerPlan) -> Contract:
    """The outputs that are known before any broker is: what clients should see."""
    for note in planned.notes:
        pulumi.log.info(note)
    contract = Contract.of(planned.plan, cluster=stack, placement=spec.placement)
    for listener in contract.listeners:
        pulumi.export(f"bootstrap_{listener.name}", listener.bootstrap)
    pulumi.export("contract", contract.model_dump(mode="json"))
    return contract


try:
    main()
except EarshotError as error:
    raise pulumi.RunError(str(error)) from None

"""A stack of placement aws: the cluster, what it exports, and the proof of its listeners.

Outputs: `contract` is all that clients need to know; `bootstrap_LISTENER` the addresses to connect
to first; `names` what each node is called inside and beyond the VPC; `ids` the instance, volume,
interface and, where it has one, Elastic IP of each node; `incarnations` what changes when a node's
instance does; `vpc` the network's id; `reports`, with a validator, the URL of its latest report.
"""

from __future__ import annotations

from pathlib import Path

import pulumi

from components.aws.cluster import AwsCluster
from components.aws.validation import AwsValidation
from components.aws.validator import Validator
from earshot.listeners.model import Scope
from earshot.placement.aws import VALIDATOR, AwsPlan, plan_aws
from earshot.placement.aws_standpoints import aws_standpoints
from earshot.spec.aws import AwsSpec
from earshot.validation.contract import Contract
from earshot.vantages.bundle import bundle


def deploy(stack: str, spec: AwsSpec, state: Path) -> AwsCluster:
    """Registers the stack's resources and outputs; ``state`` is where reports are kept.

    Raises EarshotError.
    """
    for note in plan_aws(spec, stack).notes:
        pulumi.log.info(note)
    cluster = AwsCluster(stack, spec)
    contract = cluster.plan.apply(
        lambda made: Contract.of(made.plan, cluster=stack, placement=spec.placement)
    )
    for item in spec.listeners:
        pulumi.export(f"bootstrap_{item.name}", _bootstrap(contract, item.name))
    pulumi.export("contract", contract.apply(lambda known: known.model_dump(mode="json")))
    pulumi.export("names", cluster.plan.apply(_names))
    pulumi.export("ids", _ids(cluster))
    pulumi.export("vpc", cluster.vpc_id)
    pulumi.export("incarnations", cluster.incarnations)
    validator = None
    if spec.validator is not None:
        validator = Validator(
            cluster.around,
            spec.validator,
            cluster.network,
            cluster.groups[VALIDATOR],
            bundle(state),
        )
        pulumi.export("reports", validator.reports)
    _prove(stack, spec, contract, cluster, validator, state)
    return cluster


def _bootstrap(contract: pulumi.Output[Contract], name: str) -> pulumi.Output[str]:
    return contract.apply(lambda known: known.listener(name).bootstrap)


def _names(made: AwsPlan) -> dict[str, dict[str, str]]:
    client = (Scope.INTERNAL, Scope.EXTERNAL)
    return {
        str(id): {str(scope): str(own.hosts[scope]) for scope in client if scope in own.hosts}
        for id, own in made.names.items()
    }


def _ids(cluster: AwsCluster) -> dict[str, dict[str, pulumi.Input[str]]]:
    found: dict[str, dict[str, pulumi.Input[str]]] = {}
    for id, node in cluster.nodes.items():
        own: dict[str, pulumi.Input[str]] = {
            "instance": node.instance.id,
            "volume": node.volume_id,
            "interface": cluster.names.interfaces[id].id,
        }
        if id in cluster.names.addresses:
            own["address"] = cluster.names.addresses[id].id
        found[str(id)] = own
    return found


def _prove(
    stack: str,
    spec: AwsSpec,
    contract: pulumi.Output[Contract],
    cluster: AwsCluster,
    validator: Validator | None,
    state: Path,
) -> None:
    """From each scope's own vantage; where nobody stands, the report says so and does not pass."""
    bucket, instance = (validator.bucket, validator.instance.id) if validator else ("", "")
    places = pulumi.Output.all(bucket, instance).apply(lambda found: aws_standpoints(spec, *found))
    for place in aws_standpoints(spec):
        for item in spec.listeners:
            if place.scope in item.scopes and (why := place.leaves_out(item.name)):
                pulumi.log.warn(f"{item.name} for scope {place.scope}: {why}")
    AwsValidation(
        stack,
        contract,
        cluster.incarnations,
        spec.validation,
        state,
        pulumi.ResourceOptions(depends_on=[cluster.ready, *(validator.ready if validator else ())]),
        vantages=places,
    )

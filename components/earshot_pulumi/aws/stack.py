"""A stack of placement aws: the cluster, its outputs, and the validation of its listeners.

Outputs: `contract` is all that clients need to know; `bootstrap_LISTENER` the addresses to connect
to first; `names` what each node is called inside and beyond the VPC; `ids` the instance, volume,
interface and, where it has one, Elastic IP of each node; `incarnations` what changes when a node's
instance does; `certificates_expire`, with `security`, when the first certificate ends; `vpc` the
network's id; `reports`, with a validator, the URL of its latest report.
"""

from functools import partial
from pathlib import Path

import pulumi

from earshot.config.aws import AwsSpec
from earshot.errors import EarshotError
from earshot.listeners.terms import Scope
from earshot.placement.aws import VALIDATOR, AwsPlan, plan_aws, report_parameter
from earshot.placement.aws_standpoints import aws_standpoints
from earshot.placement.aws_step import spec_at, written
from earshot.remote.image import bundle
from earshot.transition.change import Change
from earshot.transition.steps import leaving
from earshot.validation.contract import Contract
from earshot_pulumi.announced import gate_policy, log_notes, prove
from earshot_pulumi.aws import clients
from earshot_pulumi.aws.cluster import AwsStackCluster
from earshot_pulumi.aws.credentials import client, reader
from earshot_pulumi.aws.remembered import Remembered, check_attached, placed
from earshot_pulumi.aws.validator import Validator
from earshot_pulumi.aws_settings import StackSettings
from earshot_pulumi.change_memory import (
    BegunChange,
    HeldChanges,
    Made,
    ProvedChange,
    recalled,
    resources,
)
from earshot_pulumi.client_output import announce_clients
from earshot_pulumi.leaving import matters


def deploy(stack: str, spec: AwsSpec, state: Path) -> AwsStackCluster:
    """Registers the stack's resources and outputs; ``state`` is where reports are kept.

    Raises EarshotError.
    """
    known = resources()
    held, remembered = recalled(state, known), Remembered.read(stack, known)
    spec = placed(spec, remembered)
    if held.proved:
        check_attached(stack, known, client(StackSettings(), spec.region, "ec2"))
    root = state / "kafka"
    change = Change.of(state, plan_aws(spec, stack, root=root).plan)
    _check_unused(stack, spec, held, change)
    spec = spec_at(spec, stack, change.plan, [item.own for item in held.running], root)
    planned = plan_aws(spec, stack, root=root)
    log_notes(planned, change)
    begun = held.beginning(Made(change.plan, written(spec)))
    begin = partial(BegunChange, stack, begun, state)
    cluster = AwsStackCluster(
        stack, spec, gate_policy(spec, stack), root, begin, change.leaving, remembered
    )
    contract = pulumi.Output.all(cluster.plan, cluster.cluster_id).apply(
        lambda it: Contract.of(it[0].plan, stack, spec.placement, it[1], leaving=change.leaving)
    )
    expires = cluster.secured.certificates.expires if cluster.secured else None
    client_config = announce_clients(spec, planned.plan.security, contract, root, expires)
    for item in spec.listeners:
        pulumi.export(f"bootstrap_{item.name}", _bootstrap(contract, item.name))
    pulumi.export("names", cluster.plan.apply(_names))
    pulumi.export("ids", _ids(cluster))
    pulumi.export("vpc", cluster.vpc_id)
    validator = None
    if spec.validator is not None:
        validator = Validator(
            cluster.shared,
            spec.validator,
            cluster.network,
            cluster.groups[VALIDATOR],
            bundle(state),
            cluster.secured,
        )
        pulumi.export("reports", validator.reports)
    proof = _prove(stack, spec, contract, cluster, validator, state, client_config)
    ProvedChange(stack, change, begun, state, pulumi.ResourceOptions(depends_on=[proof]))
    return cluster


def _check_unused(stack: str, spec: AwsSpec, held: HeldChanges, change: Change) -> None:
    """Raises EarshotError where a listener goes that clients use, or may use, and nobody says that
    it may."""
    going = sorted(leaving(held.proved.plan, change.plan)) if held.proved else []
    if held.proved is None or not going or not matters(spec.remove):
        return
    staying = {it.id for it in held.proved.plan.brokers} & {it.id for it in change.plan.brokers}
    parameters = {id: report_parameter(stack, spec.name_of(id)) for id in sorted(staying)}
    found = clients.problems(
        going,
        parameters,
        reader(StackSettings(), spec.region),
        gone=change.plan in [it.plan for it in held.open],
        progress=pulumi.log.info,
    )
    if reasons := "; ".join(found):
        raise EarshotError(
            f"nothing was touched: {change.note}" if change.note else "nothing was touched",
            observed=reasons,
        )


def _bootstrap(contract: pulumi.Output[Contract], name: str) -> pulumi.Output[str]:
    return contract.apply(lambda known: known.listener(name).bootstrap)


def _names(made: AwsPlan) -> dict[str, dict[str, str]]:
    client = (Scope.INTERNAL, Scope.EXTERNAL)
    return {
        str(id): {str(scope): str(names.hosts[scope]) for scope in client if scope in names.hosts}
        for id, names in made.names.items()
    }


def _ids(cluster: AwsStackCluster) -> dict[str, dict[str, pulumi.Input[str]]]:
    names = cluster.names
    return {
        str(id): {
            "instance": node.instance.id,
            "volume": node.volume_id,
            "interface": names.interfaces[id].id,
            **({"address": names.addresses[id].id} if id in names.addresses else {}),
        }
        for id, node in cluster.nodes.items()
    }


def _prove(
    stack: str,
    spec: AwsSpec,
    contract: pulumi.Output[Contract],
    cluster: AwsStackCluster,
    validator: Validator | None,
    state: Path,
    client_config: Path | None,
) -> pulumi.Resource:
    """Validates each scope from its own vantage; without one, the report does not pass."""
    bucket, instance = (validator.bucket, validator.instance.id) if validator else ("", "")
    standpoints = pulumi.Output.all(bucket, instance).apply(
        lambda found: aws_standpoints(spec, *found)
    )
    for standpoint in aws_standpoints(spec):
        for item in spec.listeners:
            if standpoint.scope in item.scopes and (why := standpoint.leaves_out(item.name)):
                pulumi.log.warn(f"{item.name} for scope {standpoint.scope}: {why}")
    now, ready = cluster.incarnations, [cluster.ready, *(validator.ready if validator else ())]
    return prove(stack, spec, contract, now, ready, state, standpoints, client_config)

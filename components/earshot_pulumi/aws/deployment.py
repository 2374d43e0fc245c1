"""Deploys a cluster of placement aws: brokers, outputs, and the proof of its listeners."""

from collections.abc import Sequence
from dataclasses import replace

import pulumi

from earshot.config.aws import AwsSpec
from earshot.errors import EarshotError
from earshot.listeners.terms import Scope
from earshot.placement.aws import VALIDATOR, AwsPlan, plan_aws, report_parameter
from earshot.placement.aws_standpoints import aws_standpoints
from earshot.placement.aws_step import spec_at, written
from earshot.placement.standpoint import Kind, Standpoint
from earshot.remote.image import bundle
from earshot.transition.change import Change
from earshot.transition.steps import leaving
from earshot.validation.contract import Contract
from earshot_pulumi.aws import clients
from earshot_pulumi.aws.brokers import AwsBrokers
from earshot_pulumi.aws.credentials import client, reader
from earshot_pulumi.aws.last_run import LastRun, check_attached, check_volumes, placed
from earshot_pulumi.aws.turns import deployed, nodes_down
from earshot_pulumi.aws.validator import Validator
from earshot_pulumi.change_memory import (
    AppliedPlan,
    ChangeRecords,
    RecordedChanges,
    recorded_changes,
    resources,
)
from earshot_pulumi.deployment import ClusterContext
from earshot_pulumi.listener_removal import clients_block
from earshot_pulumi.provider.kind import Properties
from earshot_pulumi.validation import check_spark


def deploy(at: ClusterContext, spec: AwsSpec) -> Properties:
    """Registers the cluster's resources and returns its outputs. Raises EarshotError."""
    check_spark(spec.validation.records, _used_standpoints(spec))
    name, state = at.name, at.folder
    state_resources = resources()
    recorded = recorded_changes(state, name, state_resources)
    remembered = LastRun.read(name, state_resources)
    spec = placed(spec, remembered)
    check_volumes(spec, remembered)
    nodes = deployed(name, spec, remembered.nodes)
    down = nodes_down(at.aws, spec.region, name, nodes) if nodes else {}
    if not remembered.served and remembered.nodes and not down:
        # the update that created the nodes was interrupted before it saw them in sync
        remembered = replace(remembered, served=True)
    # the turns refuse a change while more are down
    if remembered.served and spec.in_turn and len(down) == 1:
        ((id, reason),) = down.items()
        text = f"node {id} is down: {reason}. It comes first, and the others wait until it serves"
        pulumi.log.warn(text)
    if recorded.proved:
        check_attached(name, state_resources, client(at.aws, spec.region, "ec2"))
    root = state / "kafka"
    change = Change.of(state, plan_aws(spec, root=root).plan)
    _check_unused(at, spec, recorded, change)
    spec = spec_at(spec, change.plan, [applied.own for applied in recorded.running], root)
    planned = plan_aws(spec, root=root)
    at.log_notes(planned, change)
    begun = recorded.begun_with(AppliedPlan(change.plan, written(spec)))
    brokers = AwsBrokers(
        at,
        spec,
        records=ChangeRecords(name, change, begun, state),
        leaving=change.leaving,
        remembered=remembered,
        down=down if remembered.served else (),
    )
    contract = pulumi.Output.all(brokers.plan, brokers.cluster_id).apply(
        lambda values: Contract.of(
            values[0].plan, name, spec.placement, values[1], leaving=change.leaving
        )
    )
    validator = None
    if spec.validator is not None:
        validator = Validator(
            brokers.shared,
            spec.validator,
            brokers.network,
            brokers.groups[VALIDATOR],
            bundle(state),
            brokers.secured,
        )
    outputs = brokers.register_validation(
        planned.plan.security,
        contract,
        after=validator.ready if validator else (),
        standpoints=_standpoints(spec, validator),
    )
    ids = _ids(brokers)
    return {
        **outputs,
        "vpc_id": brokers.vpc_id,
        "names": brokers.plan.apply(_names),
        "ids": ids,
        "instances": {id: node_ids["instance"] for id, node_ids in ids.items()},
        "reports": validator.reports if validator else None,
        "endpoint_service": brokers.endpoint_service.facts if brokers.endpoint_service else None,
    }


def _check_unused(
    at: ClusterContext, spec: AwsSpec, recorded: RecordedChanges, change: Change
) -> None:
    """Raises EarshotError if a change removes a listener that clients may use, and `remove` forbids
    that."""
    removed_names = sorted(leaving(recorded.proved.plan, change.plan)) if recorded.proved else []
    if recorded.proved is None or not removed_names or not clients_block(spec.remove):
        return
    proved_ids = {broker.id for broker in recorded.proved.plan.brokers}
    common_ids = sorted(proved_ids & {broker.id for broker in change.plan.brokers})
    parameters = {id: report_parameter(at.name, spec.name_of(id)) for id in common_ids}
    problems = clients.problems(
        removed_names,
        parameters,
        reader(at.aws, spec.region),
        may_be_removed=change.plan in [applied.plan for applied in recorded.open],
        progress=pulumi.log.info,
    )
    if reasons := "; ".join(problems):
        raise EarshotError(
            f"nothing was changed: {change.note}" if change.note else "nothing was changed",
            observed=reasons,
        )


def _names(planned: AwsPlan) -> dict[str, dict[str, str]]:
    scopes = (Scope.INTERNAL, Scope.EXTERNAL)
    return {
        str(id): {str(scope): str(names.hosts[scope]) for scope in scopes if scope in names.hosts}
        for id, names in planned.names.items()
    }


def _ids(brokers: AwsBrokers) -> dict[str, dict[str, pulumi.Input[str]]]:
    names = brokers.names
    return {
        str(id): {
            "instance": node.instance.id,
            "volume": node.volume_id,
            "interface": names.interfaces[id].id,
            **({"address": names.addresses[id].id} if id in names.addresses else {}),
        }
        for id, node in brokers.nodes.items()
    }


def _used_standpoints(spec: AwsSpec) -> list[Standpoint]:
    """The standpoints from which a listener is validated; all of them except unused ones here."""
    return [
        standpoint
        for standpoint in aws_standpoints(spec)
        if standpoint.kind is not Kind.HERE
        or any(
            standpoint.scope in listener.scopes and not standpoint.leaves_out(listener.name)
            for listener in spec.listeners
        )
    ]


def _standpoints(spec: AwsSpec, validator: Validator | None) -> pulumi.Output[Sequence[Standpoint]]:
    """The standpoints of all scopes. Warns of listeners that no standpoint proves."""
    bucket, instance = (validator.bucket, validator.instance.id) if validator else ("", "")
    for standpoint in aws_standpoints(spec):
        for listener in spec.listeners:
            if standpoint.scope in listener.scopes and (
                reason := standpoint.leaves_out(listener.name)
            ):
                pulumi.log.warn(f"{listener.name} for scope {standpoint.scope}: {reason}")
    return pulumi.Output.all(bucket, instance).apply(lambda values: aws_standpoints(spec, *values))

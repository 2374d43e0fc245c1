"""Deploys a cluster of placement local: brokers, outputs, and the proof of its listeners."""

from dataclasses import replace

from earshot.config.local import LocalSpec
from earshot.extras import folder_of
from earshot.placement.local import plan_local
from earshot.project import Project
from earshot.transition.change import Change
from earshot_pulumi.change_memory import (
    AppliedPlan,
    ChangeRecords,
    check_renamed,
    correct_memory,
    resources,
)
from earshot_pulumi.deployment import ClusterContext
from earshot_pulumi.local.brokers import LocalBrokers
from earshot_pulumi.local.cluster_memory import recall
from earshot_pulumi.local.preflight import settings_of_running
from earshot_pulumi.provider.kind import Properties
from earshot_pulumi.validation import check_spark


def deploy(at: ClusterContext, spec: LocalSpec) -> Properties:
    """Registers the cluster's resources and returns its outputs. Raises EarshotError."""
    folder_of("pyspark", "placement local")  # fetches Kafka and checks settings with it
    check_spark(spec.validation.records)
    name, state = at.name, at.folder
    target = plan_local(spec, state / "kafka")
    cluster = recall(target.root)
    if cluster is None:
        check_renamed(name, resources())
    change = Change(target.plan)
    if runs := settings_of_running(target.root):
        correct_memory(state, target.plan, runs, cluster is not None and cluster.has_served)
        change = Change.of(state, target.plan)
    planned = replace(target, plan=change.plan)
    contract = at.contract_of_step(spec, planned, change)
    file = spec.client_config
    client_config = Project.of_program().root / file if file else None
    begun = (AppliedPlan(planned.plan, {}),)
    brokers = LocalBrokers(
        at,
        spec,
        planned,
        final_plan=target.plan,
        records=ChangeRecords(name, change, begun, state),
        client_config=client_config,
    )
    return brokers.register_validation(
        planned.plan.security,
        contract,
        client_config=client_config,
    )

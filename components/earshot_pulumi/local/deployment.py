"""A cluster of placement local: its brokers, its outputs, and the proof of its listeners."""

from dataclasses import replace
from functools import partial
from typing import Any

from earshot.config.local import LocalSpec
from earshot.extras import folder_of
from earshot.placement.local import plan_local
from earshot.project import Project
from earshot.transition.change import Change
from earshot_pulumi.change_memory import BegunChange, Made, ProvedChange, as_it_runs
from earshot_pulumi.deployment import ClusterContext
from earshot_pulumi.local.brokers import LocalBrokers
from earshot_pulumi.local.changes import settings_of_running
from earshot_pulumi.validation import check_spark


def deploy(at: ClusterContext, spec: LocalSpec) -> dict[str, Any]:
    """The outputs of the cluster, whose resources it registers. Raises EarshotError."""
    folder_of("pyspark", "placement local")  # it fetches Kafka, and asks it about settings
    check_spark(spec.validation.records)
    name, state = at.name, at.folder
    wanted = plan_local(spec, state / "kafka")
    change = Change(wanted.plan)
    if runs := settings_of_running(wanted.root):
        as_it_runs(state, wanted.plan, runs)
        change = Change.of(state, wanted.plan)
    planned = replace(wanted, plan=change.plan)
    contract = at.announced(spec, planned, change)
    named = spec.client_config
    client_config = Project.find().root / named if named else None
    begun = (Made(planned.plan, {}),)
    brokers = LocalBrokers(
        at,
        spec,
        planned,
        wanted=wanted.plan,
        begin=partial(BegunChange, name, begun, state),
        client_config=client_config,
    )
    return brokers.proved(
        planned.plan.security,
        contract,
        partial(ProvedChange, name, change, begun, state),
        client_config=client_config,
    )

"""A cluster of placement local: its brokers, its outputs, and the proof of its listeners."""

from dataclasses import replace
from typing import Any

from earshot.config.local import LocalSpec
from earshot.placement.local import plan_local
from earshot.project import Project
from earshot.transition.change import Change
from earshot_pulumi.change_memory import CompleteChange, as_it_runs
from earshot_pulumi.client_output import client_outputs
from earshot_pulumi.deployment import Deployment
from earshot_pulumi.local.brokers import LocalBrokers
from earshot_pulumi.local.changes import settings_of_running


def deploy(at: Deployment, spec: LocalSpec) -> dict[str, Any]:
    """The outputs of the cluster, whose resources it registers. Raises EarshotError."""
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
    brokers = LocalBrokers(
        name,
        spec,
        planned,
        at.options(),
        policy=at.policy(spec),
        wanted=wanted.plan,
        client_config=client_config,
    )
    access = client_outputs(spec, planned.plan.security, contract, planned.root, brokers.expires)
    proof = at.proved(
        spec,
        brokers.cluster_id.apply(contract.identified),
        brokers.incarnations,
        [brokers.ready],
        client_config=access.file or client_config,
    )
    CompleteChange(name, change, state, at.options(depends_on=[proof]))
    listeners = [item.name for item in contract.listeners]
    return {**at.outputs(contract, listeners, brokers, proof), **access.outputs}

"""A stack of placement local: the cluster, what it exports, and the proof of its listeners."""

from dataclasses import replace
from pathlib import Path

import pulumi

from earshot.config.local import LocalSpec
from earshot.placement.local import plan_local
from earshot.project import Project
from earshot.transition.change import Change
from earshot_pulumi.announced import announce, gate_policy, prove
from earshot_pulumi.change_memory import CompleteChange, as_it_runs
from earshot_pulumi.client_output import announce_clients
from earshot_pulumi.local.changes import settings_of_running
from earshot_pulumi.local.cluster import LocalCluster


def deploy(stack: str, spec: LocalSpec, state: Path) -> None:
    """Registers the stack's resources and outputs. Raises EarshotError."""
    wanted = plan_local(spec, state / "kafka")
    change = Change(wanted.plan)
    if runs := settings_of_running(wanted.root):
        as_it_runs(state, wanted.plan, runs)
        change = Change.of(state, wanted.plan)
    planned = replace(wanted, plan=change.plan)
    contract = announce(stack, spec, planned, change)
    named = spec.client_config
    client_config = Project.find().root / named if named else None
    cluster = LocalCluster(
        stack,
        spec,
        planned,
        policy=gate_policy(spec, stack),
        wanted=wanted.plan,
        client_config=client_config,
    )
    security, root = planned.plan.security, planned.root
    made = announce_clients(spec, security, contract, root, cluster.expires)
    identified = cluster.cluster_id.apply(contract.identified)
    now, ready = cluster.incarnations, [cluster.ready]
    proof = prove(stack, spec, identified, now, ready, state, client_config=made or client_config)
    CompleteChange(stack, change, state, pulumi.ResourceOptions(depends_on=[proof]))

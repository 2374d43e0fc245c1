"""The gate: a whole cluster's plan, judged before any of its brokers is touched."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any

from components.gate import digest
from earshot.listeners.model import ClusterPlan
from earshot.names.evidence import gather
from earshot.names.machine import own_addresses
from earshot.names.policy import ResolverPolicy
from earshot.rules import RULES, Facts, judge, kl012_same_broker
from earshot.rules.cloud import Cloud
from earshot.rules.container_inputs import read_container
from earshot.rules.container_names import evidence
from earshot.rules.container_run import NEEDS_LOOKUPS
from earshot.rules.judge import remarks
from policies.judgement import Judgement, part, plain


def judge_gate(props: Any, policy: ResolverPolicy) -> Judgement:
    """The gate with the inputs ``props``: read it back, look its names up, apply the rules."""
    document = plain(props)
    plan = ClusterPlan.model_validate(document["plan"])
    placement = str(document["placement"])
    addresses = {int(id): tuple(own) for id, own in document["addresses"].items()}
    if placement == "local":
        addresses = dict.fromkeys((node.id for node in plan.nodes), own_addresses())
    inputs = part(props, "containers", None)
    containers = {int(id): read_container(item) for id, item in (inputs or {}).items()}
    cloud = Cloud.read(document["cloud"]) if "cloud" in document else None
    facts = Facts.of(
        plan,
        placement,
        addresses=addresses,
        waivers=policy.waived,
        containers=containers,
        instances=cloud.instances if cloud else None,
        clients=cloud.clients if cloud else None,
    )
    found = gather(plan, policy, placement, cloud.declared) if cloud else evidence(facts, policy)
    facts = replace(facts, evidence=found)
    silent: Collection[str] = ()
    if inputs is None or any(item.unknown for item in containers.values()):
        silent = NEEDS_LOOKUPS  # which names their networks hold is not known yet: KL006 says so
    elif placement == "docker" and not any(addresses.values()):
        silent = {kl012_same_broker.RULE.id}  # nobody knows the addresses of Docker hosts here
    rules = [rule for rule in RULES if rule.id not in silent]
    return Judgement(judge(facts, rules), remarks(facts), digest(plan), plan)

"""The gate: a whole cluster's plan, judged before any of its brokers is touched."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from components.gate import digest
from earshot.listeners.model import ClusterPlan
from earshot.names.machine import own_addresses
from earshot.names.policy import ResolverPolicy
from earshot.rules import RULES, Facts, Rule, judge, kl012_same_broker
from earshot.rules.container_inputs import read_container
from earshot.rules.container_names import evidence
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
    containers = part(props, "containers", None) or {}
    facts = Facts.of(
        plan,
        placement,
        addresses=addresses,
        waivers=policy.waived,
        containers={int(id): read_container(inputs) for id, inputs in containers.items()},
    )
    facts = replace(facts, evidence=evidence(facts, policy))
    return Judgement(judge(facts, _rules(placement, addresses)), remarks(facts), digest(plan))


def _rules(placement: str, addresses: Mapping[int, tuple[str, ...]]) -> tuple[Rule, ...]:
    """On Docker hosts whose addresses nobody knows, KL012 has nothing to compare names with."""
    if placement != "docker" or any(addresses.values()):
        return RULES
    return tuple(rule for rule in RULES if rule is not kl012_same_broker.RULE)

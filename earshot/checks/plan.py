"""A whole cluster's plan: what the pack evaluates at the gate, and `earshot plan --check` too."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import UTC, datetime

from earshot.certificates.shown import ShownCertificate
from earshot.checks.containers import evidence
from earshot.config.document import Spec
from earshot.facts.cloud import Cloud
from earshot.facts.cluster import ClusterFacts
from earshot.facts.container import Container
from earshot.listeners.model import ClusterPlan
from earshot.names.evidence import gather
from earshot.names.machine import own_addresses
from earshot.names.policy import ResolverPolicy
from earshot.placement import Planned
from earshot.placements import in_containers, on_this_machine
from earshot.rules import kl012_same_broker
from earshot.rules.evaluate import RULES, Checked, evaluate, remarks
from earshot.sources.docker_container import read_container

NEEDS_LOOKUPS = frozenset({"KL011", "KL012"})
_ANY_ID = "-"
"""No rule looks at the cluster's id."""


def check_plan(
    plan: ClusterPlan,
    placement: str,
    policy: ResolverPolicy,
    *,
    addresses: Mapping[int, tuple[str, ...]] | None = None,
    containers: Mapping[int, Container] | None = None,
    cloud: Cloud | None = None,
    certificates: Mapping[int, ShownCertificate] | None = None,
) -> Checked:
    """Looks the plan's names up as ``policy`` says, and applies every rule that can be applied.

    ``addresses`` are each node's own; those of this machine are found here. ``containers`` is None
    where they are not known yet; ``cloud`` what surrounds instances on AWS; ``certificates`` what
    nodes show, where others have made it.
    """
    if on_this_machine(placement):
        addresses = dict.fromkeys((node.id for node in plan.nodes), own_addresses())
    known = dict(addresses or {})
    facts = replace(
        ClusterFacts.of(plan, placement),
        addresses=known,
        waivers=policy.waived,
        containers=containers or {},
        instances=cloud.instances if cloud else {},
        clients=cloud.clients if cloud else None,
        certificates=certificates or {},
        now=datetime.now(UTC),
    )
    declared = cloud.declared if cloud else None
    found = (
        evidence(facts, policy, declared=declared)
        if in_containers(placement)
        else gather(plan, policy, placement, declared)
    )
    facts = replace(facts, evidence=found)
    silent: Collection[str] = ()
    if containers is None or any(item.unknown for item in containers.values()):
        silent = NEEDS_LOOKUPS  # which names their networks hold is not known yet: KL006 says so
    elif in_containers(placement) and not any(known.values()):
        silent = {kl012_same_broker.RULE.id}  # nobody knows the addresses of the hosts here
    rules = [rule for rule in RULES if rule.id not in silent]
    return Checked(evaluate(facts, rules), remarks(facts))


def check_planned(spec: Spec, planned: Planned, policy: ResolverPolicy) -> Checked:
    """The check of what ``spec`` comes to, with what its placement adds to the plan."""
    held = planned.containers.items()
    return check_plan(
        planned.plan,
        spec.placement,
        policy,
        addresses=planned.addresses,
        containers={id: read_container(item.inputs(_ANY_ID)) for id, item in held},
        cloud=planned.cloud,
        certificates=planned.certificates,
    )

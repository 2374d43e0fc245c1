"""Evaluates brokers in containers of any program, each as it is registered."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

from pulumi_policy import PolicyProviderResource, ResourceValidationArgs

from components.gate import GATE_TYPE
from earshot import engine
from earshot.checks.container_names import evidence
from earshot.checks.containers import ContainerRun, skipped_rules
from earshot.facts.cluster import ClusterFacts
from earshot.facts.container import Container
from earshot.listeners.images import Family, family_told, is_broker, is_unnamed
from earshot.names.machine import own_addresses
from earshot.names.policy import ResolverPolicy
from earshot.rules import kl014_image
from earshot.rules.evaluate import remarks
from earshot.rules.finding import Finding, FindingState
from earshot.sources.container import facts_of
from earshot.sources.docker_container import read_container, words
from policies.evaluation import Evaluation, plain

CONTAINER_TYPE = "docker:index/container:Container"


class Containers:
    """The containers of one run, with the host ports and addresses that they take."""

    def __init__(self) -> None:
        self._run = ContainerRun()

    def evaluate(self, args: ResourceValidationArgs, policy: ResolverPolicy) -> Evaluation:
        """The evaluation of the container in ``args``; empty if it runs no node of Kafka."""
        inputs: dict[str, Any] = plain(args.props, None)
        container = read_container(inputs, args.name)
        behind_gate = f"{GATE_TYPE}$" in args.urn
        if not is_broker(container.image, container.env, words(inputs)):
            return Evaluation(() if behind_gate else _undecided(container))
        where = _engine(args.provider)
        facts = _with_names(facts_of(container), policy, engine.is_here(where))
        found = self._run.evaluate(args.urn, facts, where)
        if behind_gate:  # the gate has reported the advice already
            return Evaluation(tuple(item for item in found if item.is_certain_error))
        return Evaluation(found, _remarks(facts, container))


def _with_names(facts: ClusterFacts, policy: ResolverPolicy, is_here: bool) -> ClusterFacts:
    here = own_addresses() if is_here and facts.plan is not None else ()
    return replace(
        facts,
        evidence=evidence(facts, policy),
        waivers=policy.waived,
        addresses={id: (*here, *item.addresses) for id, item in facts.containers.items() if here},
    )


def _remarks(facts: ClusterFacts, container: Container) -> tuple[str, ...]:
    skipped = skipped_rules(facts)
    reason = skipped.get("KL002", "") if not container.unknown else ""
    not_judged = f"container {container.name}: KL002 is not judged: {reason}"
    return (*((not_judged,) if reason else ()), *remarks(facts))


def _undecided(container: Container) -> tuple[Finding, ...]:
    """A finding where unknown variables may make the container a broker; else none."""
    family = family_told(container.image, container.env)
    may_be_kafka = family is not Family.UNKNOWN or is_unnamed(container.image)
    hidden = [what for what in container.unknown if "variable" in what]
    if not hidden or not may_be_kafka:
        return ()
    found = kl014_image.RULE.finding(
        f"{', '.join(hidden)}: not known yet, so that it cannot be told whether a broker runs here",
        "the container's variables, judged again with their values",
        state=FindingState.UNKNOWN,
        remedy="nothing yet: the update judges it",
        container=container.name,
    )
    return (found,)


def _engine(provider: PolicyProviderResource | None) -> str:
    """What identifies a provider's engine: its context or address."""
    props = plain(provider.props, None) if provider is not None else {}
    if provider is not None and None in (props.get("context", ""), props.get("host", "")):
        return provider.urn  # not known yet
    given = props.get("context") or props.get("host")
    return str(given or os.environ.get(engine.VARIABLE) or engine.DEFAULT)

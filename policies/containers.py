"""Brokers in containers of any program: judged one by one as they are registered."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

from pulumi_policy import PolicyProviderResource, ResourceValidationArgs

from components.gate import GATE_TYPE
from earshot import engine
from earshot.listeners.images import Family, family_told, is_broker, is_unnamed
from earshot.names.machine import own_addresses
from earshot.names.policy import ResolverPolicy
from earshot.rules import Facts, Finding, Severity, State, kl014_image
from earshot.rules.container import Container
from earshot.rules.container_facts import facts_of
from earshot.rules.container_inputs import read_container, words
from earshot.rules.container_names import evidence
from earshot.rules.container_run import ContainerRun, left_out
from earshot.rules.judge import remarks
from policies.judgement import Judgement, plain

CONTAINER_TYPE = "docker:index/container:Container"


class Containers:
    """The containers of one run; which host ports and addresses are taken is remembered."""

    def __init__(self) -> None:
        self._run = ContainerRun()

    def judge(self, args: ResourceValidationArgs, policy: ResolverPolicy) -> Judgement:
        """The container that ``args`` register, where a broker or a controller runs in it."""
        inputs: dict[str, Any] = plain(args.props, None)
        container = read_container(inputs, args.name)
        if not is_broker(container.image, container.env, words(inputs)):
            return Judgement(_undecided(container))
        where = _engine(args.provider)
        facts = _with_names(facts_of(container), policy, engine.is_here(where))
        found = self._run.judge(args.urn, facts, where)
        if f"{GATE_TYPE}$" in args.urn:  # all that is mere advice the gate before it has had
            return Judgement(tuple(item for item in found if _is_grave(item)))
        return Judgement(found, _remarks(facts, container))


def _with_names(facts: Facts, policy: ResolverPolicy, is_here: bool) -> Facts:
    own = own_addresses() if is_here and facts.plan is not None else ()
    return replace(
        facts,
        evidence=evidence(facts, policy),
        waivers=policy.waived,
        addresses={id: (*own, *item.addresses) for id, item in facts.containers.items() if own},
    )


def _is_grave(finding: Finding) -> bool:
    return finding.severity is Severity.ERROR and finding.state is State.VIOLATED


def _remarks(facts: Facts, container: Container) -> tuple[str, ...]:
    silent = left_out(facts)
    reason = silent.get("KL002", "") if not container.unknown else ""
    not_judged = f"container {container.name}: KL002 is not judged: {reason}"
    return (*((not_judged,) if reason else ()), *remarks(facts))


def _undecided(container: Container) -> tuple[Finding, ...]:
    """Nothing that is known says broker, and not everything is known."""
    family = family_told(container.image, container.env)
    may_be_kafka = family is not Family.UNKNOWN or is_unnamed(container.image)
    hidden = [what for what in container.unknown if "variable" in what]
    if not hidden or not may_be_kafka:
        return ()
    found = kl014_image.RULE.finding(
        f"{', '.join(hidden)}: not known yet, so that it cannot be told whether a broker runs here",
        "the container's variables, judged again with their values",
        state=State.UNKNOWN,
        remedy="nothing yet: the update judges it",
        container=container.name,
    )
    return (found,)


def _engine(provider: PolicyProviderResource | None) -> str:
    """What tells the engine of a provider from others: its address, or its context."""
    props = plain(provider.props, None) if provider is not None else {}
    if provider is not None and None in (props.get("context", ""), props.get("host", "")):
        return provider.urn  # not known yet
    given = props.get("context") or props.get("host")
    return str(given or os.environ.get(engine.VARIABLE) or engine.DEFAULT)

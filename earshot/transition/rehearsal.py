"""The effects of each step: restarted nodes, and listeners during and after it."""

from collections.abc import Collection
from dataclasses import dataclass

from earshot.listeners.model import ClusterPlan
from earshot.listeners.terms import CLIENT_SCOPES, Scope
from earshot.transition.reach import of_brokers
from earshot.transition.steps import Step


@dataclass(frozen=True)
class RehearsedStep:
    """One step and its effects on clients and nodes."""

    text: str
    restarts: tuple[int, ...]
    through: str
    """The inter-broker listener after the step."""
    meanwhile: dict[Scope, tuple[str, ...]]
    """By scope, the listeners that every broker offers before, during and after the step."""
    after: dict[Scope, tuple[str, ...]]
    """By scope, the listeners that every broker offers after the step."""
    offers: dict[int, tuple[str, ...]]
    """By broker id, its listeners with their advertised addresses after the step."""


def rehearsed_steps(current: ClusterPlan, steps: Collection[Step]) -> tuple[RehearsedStep, ...]:
    """The effects of the ``steps`` from ``current``, in order."""
    plans = [current, *(step.plan for step in steps)]
    return tuple(
        RehearsedStep(
            step.text,
            step.restarts,
            step.plan.inter_broker,
            by_scope(step.plan, before),
            by_scope(step.plan),
            {
                node.id: tuple(
                    str(listener)
                    for listener in node.listeners
                    if listener.name != step.plan.controller
                )
                for node in step.plan.brokers
            },
        )
        for before, step in zip(plans, steps, strict=False)
    )


def by_scope(plan: ClusterPlan, *other_plans: ClusterPlan) -> dict[Scope, tuple[str, ...]]:
    """The listeners of ``plan`` that all plans have with one protocol, by their clients' scope."""
    common = set.intersection(
        *(
            {(listener.name, listener.protocol) for listener in of_brokers(each_plan)}
            for each_plan in (plan, *other_plans)
        )
    )
    hosts: dict[Scope, tuple[str, ...]] = {}
    for scope in CLIENT_SCOPES:
        listeners = [listener for listener in of_brokers(plan) if scope in listener.scopes]
        if listeners:
            names = (
                listener.name
                for listener in listeners
                if (listener.name, listener.protocol) in common
            )
            hosts[scope] = tuple(dict.fromkeys(names))
    return hosts

"""Brokers without a gate: only runs with this pack refuse a bad name."""

from collections.abc import Iterable, Sequence

from earshot_pulumi.gate import GATE_TYPE, PROVIDER_TYPE
from pulumi_policy import PolicyResource

from earshot.listeners.listed import several
from earshot_policies.evaluation import has


def ungated(brokers: Iterable[str], resources: Sequence[PolicyResource]) -> list[str]:
    """The ``brokers`` (URNs) that are not below a gate and do not depend on one, also indirectly.

    `AdvertisedListeners` without a gate below it belongs to a stack with `gate: off`.
    """
    by_urn = {resource.urn: resource for resource in resources}
    gates = {
        resource.urn
        for resource in resources
        if resource.resource_type == PROVIDER_TYPE and has(resource.props, "plan")
    }
    gate_parents = [by_urn[urn].parent for urn in gates]
    # the parent of a gate that a program registers without a component may be the stack
    gated_urns = gates | {
        resource.urn
        for resource in gate_parents
        if resource and resource.resource_type.startswith("earshot:")
    }
    return [urn for urn in brokers if not _reaches(urn, gated_urns, by_urn)]


def report(urns: Sequence[str]) -> str:
    """The message about ``urns``."""
    names = several("broker", [urn.rsplit("::", 1)[-1] for urn in urns])
    broker_text = "it advertises" if len(urns) == 1 else "they advertise"
    is_gate_off = any(f"{GATE_TYPE}$" in urn for urn in urns)
    fix = (
        "set `gate: required`"
        if is_gate_off
        else "take the settings from `Listeners` (docs/module.md)"
    )
    return (
        f"{names}: no gate checks what {broker_text} in a run without this pack\n"
        f'  fix: {fix}, or accept it with "no-gate": "disabled" in the pack\'s configuration'
    )


def _reaches(urn: str, targets: set[str], by_urn: dict[str, PolicyResource]) -> bool:
    visited: set[str] = set()
    pending = [urn]
    while pending:
        resource = by_urn.get(pending.pop())
        if resource is None or resource.urn in visited:
            continue
        if resource.urn in targets:
            return True
        visited.add(resource.urn)
        dependencies = (resource.dependencies, *resource.property_dependencies.values())
        pending += [dependency.urn for group in dependencies for dependency in group]
        pending += [resource.parent.urn] if resource.parent else []
    return False

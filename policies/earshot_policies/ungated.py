"""Brokers without a gate: only runs with this pack refuse a bad name, or no run, if no check reads
the resource that sets their listeners."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from earshot_pulumi.gate import GATE_TYPE, PROVIDER_TYPE
from pulumi_policy import PolicyResource

from earshot.checks.instance_stack import StackEvaluation
from earshot.listeners.listed import several
from earshot.sources.user_data import decode_user_data, speaks_of_brokers
from earshot_policies import workloads
from earshot_policies.evaluation import has

CONTAINER_TYPE = "docker:index/container:Container"
_OWN = ("earshot:", "pulumi:", "pulumi-python:")
"""Prefixes of types of earshot and of Pulumi itself."""
_OF_CHARTS = "advertisedListeners"
"""A key in the values of Helm charts."""


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


def is_other(type: str) -> bool:
    """Whether resources of ``type``, which no rule evaluates, are nevertheless of interest."""
    return not (type.startswith(_OWN) or workloads.is_workload(type))


def sets_listeners(value: Any) -> bool:
    """Whether a key or a text in ``value`` mentions a setting with advertised addresses."""
    if isinstance(value, str):
        return value == _OF_CHARTS or speaks_of_brokers(value) or speaks_of_brokers(_decoded(value))
    if isinstance(value, Mapping):
        return any(map(sets_listeners, (*value, *value.values())))
    return isinstance(value, list) and any(map(sets_listeners, value))


def _decoded(text: str) -> str:
    """``text`` if it is base64, as in a Secret of Kubernetes, decoded; otherwise empty."""
    try:
        return decode_user_data(text)
    except ValueError:
        return ""


def evaluate_stack(urns: Iterable[str], resources: Sequence[PolicyResource]) -> StackEvaluation:
    """A remark on each of ``urns``, which set listeners, without one that a gate has checked."""
    return StackEvaluation(remarks=tuple((urn, _remark(urn)) for urn in ungated(urns, resources)))


def _remark(urn: str) -> str:
    type = urn.split("::")[2].rpartition("$")[2]
    place = "this command or file" if type == CONTAINER_TYPE else type
    return (
        f"advertised addresses are set here, and the pack does not read {place}; not checked\n"
        "  fix: take them from `Listeners` (docs/module.md), or prove them with `earshot doctor`"
    )

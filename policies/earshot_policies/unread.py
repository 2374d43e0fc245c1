"""Resources of types that no check reads, which nevertheless set the listeners of a broker."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pulumi_policy import PolicyResource

from earshot.checks.instance_stack import StackEvaluation
from earshot.sources.user_data import speaks_of_brokers
from earshot_policies import workloads
from earshot_policies.ungated import ungated

_OWN = ("earshot:", "pulumi:", "pulumi-python:")
"""Prefixes of types of earshot and of Pulumi itself."""


def is_other(type: str) -> bool:
    """Whether resources of ``type``, which no rule evaluates, are nevertheless of interest."""
    return not (type.startswith(_OWN) or workloads.is_workload(type))


def sets_listeners(value: Any) -> bool:
    """Whether a key or a text in ``value`` mentions a setting with advertised addresses."""
    if isinstance(value, str):
        return speaks_of_brokers(value)
    if isinstance(value, Mapping):
        return any(map(sets_listeners, (*value, *value.values())))
    return isinstance(value, list) and any(map(sets_listeners, value))


def evaluate_stack(urns: Iterable[str], resources: Sequence[PolicyResource]) -> StackEvaluation:
    """A remark on each of ``urns``, which set listeners, without one that a gate has checked."""
    return StackEvaluation(remarks=tuple((urn, _remark(urn)) for urn in ungated(urns, resources)))


def _remark(urn: str) -> str:
    type = urn.split("::")[2].rpartition("$")[2]
    return (
        f"advertised addresses are set here, and the pack does not read {type}; not checked\n"
        "  fix: take them from `Listeners` (docs/module.md), or prove them with `earshot doctor`"
    )

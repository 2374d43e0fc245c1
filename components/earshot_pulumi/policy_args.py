"""The inputs of components for their gate, as annotations for Pulumi's schema."""

from collections.abc import Iterator, Mapping
from typing import Any, NotRequired, TypedDict

import pulumi

from earshot.listeners.problems import shown

KEYS = ("names", "levels")


class NameArgs(TypedDict):
    """The lookup of advertised names."""

    resolvers: NotRequired[dict[str, list[str]]]
    """DNS servers (`ip` or `ip:port`) by scope, or `system` for this machine's own lookup."""
    timeout: NotRequired[float]
    """Seconds for all lookups. Default: 5."""
    retry: NotRequired[float]
    """Seconds during which a name that does not resolve is looked up again. Default: 0."""
    waived: NotRequired[dict[str, Any]]  # Pulumi's analyzer of annotations has no unions
    """Names that need not resolve, each with the reason, or with a map of `reason` and `until`, the
    last day of the waiver, such as 2027-01-31."""


class PolicyArgs(TypedDict):
    """The configuration of the gate."""

    names: NotRequired[NameArgs]
    """The lookup of advertised names."""
    levels: NotRequired[dict[str, str]]
    """By rule id, such as KL011, or `all`: mandatory, advisory or disabled. Default: errors are
    mandatory, warnings advisory."""


def policy_problems(args: Mapping[str, Any]) -> Iterator[str]:
    """The problems of the input `policy`, except that it is an output."""
    policy: object = args.get("policy") or {}
    if isinstance(policy, pulumi.Output):
        return
    if not isinstance(policy, Mapping):
        yield f"policy: found {shown(policy)}; allowed: a map with {' and '.join(KEYS)}"
        return
    for key, value in policy.items():
        if key not in KEYS:
            yield f"policy: {key}: is no key that earshot knows; allowed: {', '.join(KEYS)}"
        elif isinstance(value, pulumi.Output):
            yield f"policy: {key}: found an output; allowed: a map, whose values may be outputs"
        elif value is not None and not isinstance(value, Mapping):
            yield f"policy: {key}: found {shown(value)}; allowed: a map"


def policy_document(args: Mapping[str, Any]) -> dict[str, Any]:
    """The input `policy`, which has no `policy_problems`, in the form of policies/config."""
    policy: Mapping[str, Any] = args.get("policy") or {}
    names = {"names": dict(policy["names"])} if policy.get("names") else {}
    return {**(policy.get("levels") or {}), **names}

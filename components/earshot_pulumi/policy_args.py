"""The inputs of components for their gate, as annotations for Pulumi's schema."""

from collections.abc import Iterator, Mapping
from typing import Any, NotRequired, TypedDict

import pulumi

from earshot.errors import SpecError
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


def _problems(policy: object) -> Iterator[str]:
    if not isinstance(policy, Mapping):
        yield f"found {shown(policy)}; allowed: a map with {' and '.join(KEYS)}"
        return
    for key, value in policy.items():
        if key not in KEYS:
            yield f"{key}: is no key that earshot knows; allowed: {', '.join(KEYS)}"
        elif isinstance(value, pulumi.Output):
            yield f"{key}: found an output; allowed: a map, whose values may be outputs"
        elif value is not None and not isinstance(value, Mapping):
            yield f"{key}: found {shown(value)}; allowed: a map"


def policy_document(args: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The input `policy` of the component ``name``, in the form of a file in policies/config.

    Raises SpecError.
    """
    policy: Mapping[str, Any] = args.get("policy") or {}
    if problems := list(_problems(policy)):
        raise SpecError.of(f"{name}: policy", problems)
    names = {"names": dict(policy["names"])} if policy.get("names") else {}
    return {**(policy.get("levels") or {}), **names}

"""What the rules say about one resource, and how what the engine hands over is read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from earshot.listeners.model import ClusterPlan, UnknownHost
from earshot.listeners.problems import describe
from earshot.names.policy import ResolverPolicy
from earshot.rules import Finding

PREVIEW_UNKNOWN = UnknownHost(what="a value of a resource that is still to be made").model_dump()


@dataclass(frozen=True)
class Judgement:
    """What the rules say about one gate, or about one broker's container."""

    findings: tuple[Finding, ...] = ()
    remarks: tuple[str, ...] = ()
    digest: str = ""
    """Of a gate's plan."""
    plan: ClusterPlan | None = None
    """A gate's, for what starts behind it to be held against."""
    disagreements: tuple[str, ...] = ()
    """Where what starts behind a gate has other listeners than the gate's plan."""


def plain(value: Any, unknown: Any = PREVIEW_UNKNOWN) -> Any:
    """``value`` out of the engine's proxies; what a preview cannot know becomes ``unknown``.

    A key without a value is left out, so that None can stand for what is not known.
    """
    if isinstance(value, Mapping) or hasattr(value, "items"):
        items = {str(key): _item(value, key, unknown) for key in list(value)}
        return {key: item for key, item in items.items() if item is not _MISSING}
    if isinstance(value, Sequence) and not isinstance(value, str):
        found = [_item(value, index, unknown) for index in range(len(value))]
        return [item for item in found if item is not _MISSING]
    return value


def part(holder: Any, key: str, unknown: Any = PREVIEW_UNKNOWN) -> Any:
    """What stands at ``key``, as `plain` reads it; an empty map where nothing does."""
    found = _item(holder, key, unknown)
    return {} if found is _MISSING else found


_MISSING = object()


def _item(holder: Any, key: Any, unknown: Any) -> Any:
    from pulumi_policy.proxy import UnknownValueError  # the proxy's own module

    try:
        item = holder[key]
    except UnknownValueError:
        return unknown
    except KeyError:
        return _MISSING
    return _MISSING if item is None else plain(item, unknown)


def read_policy(config: Mapping[str, Any]) -> ResolverPolicy:
    """The resolvers that a pack configuration names. Raises ValueError with every problem."""
    document = plain(config)
    try:
        return ResolverPolicy.model_validate(document)
    except ValidationError as error:
        raise ValueError("; ".join(describe(error, ResolverPolicy, document))) from None

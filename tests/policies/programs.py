"""Programs on plain pulumi-aws as the engine shows them to the pack: in a preview, in an update."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pulumi_policy import PolicyResource, PolicyResourceOptions
from pulumi_policy.proxy import unknown_checking_proxy

from tests.policies.calls import UNKNOWN, Pack, floats


@dataclass(frozen=True)
class Declared:
    """One resource: what the program says, and what AWS makes of it."""

    type: str
    name: str
    inputs: Mapping[str, Any]
    outputs: Mapping[str, Any] = field(default_factory=dict)
    parents: str = ""
    """Types of what it is below, each with a `$`, as a URN has them."""

    @property
    def urn(self) -> str:
        return f"urn:pulumi:s::p::{self.parents}{self.type}::{self.name}"

    def __getitem__(self, key: str) -> Ref:
        return Ref(self, key)


@dataclass(frozen=True)
class Ref:
    """An output that another resource is given."""

    holder: Declared
    key: str


@dataclass(frozen=True)
class Text:
    """A text with outputs in it: unknown as a whole as long as one of them is."""

    pattern: str
    refs: tuple[Ref, ...]


class Program:
    """Resources in the order in which they are registered."""

    def __init__(self) -> None:
        self.resources: list[Declared] = []
        self.parents: dict[str, str] = {}
        """By type of a resource, what those that are added from now on are below."""

    def add(self, type: str, name: str, inputs: Mapping[str, Any], **outputs: Any) -> Declared:
        made = Declared(type, name, inputs, outputs, self.parents.get(type, ""))
        self.resources.append(made)
        return made

    def run(self, pack: Pack, preview: bool) -> tuple[dict[str, dict[str, list[str]]], Any]:
        """By resource what is said before it exists, and what is said at the end."""
        before = {}
        for item in self.resources:
            values = _values(item.inputs, preview)
            if found := pack.analyze(item.type, values, name=item.name, parents=item.parents):
                before[item.name] = found
        return before, pack.analyze_stack(self._at_the_end(preview))

    def _at_the_end(self, preview: bool) -> list[PolicyResource]:
        options = PolicyResourceOptions(False, [], None, [], None, [])  # type: ignore[arg-type]
        made: dict[str, PolicyResource] = {}
        for item in self.resources:
            later = dict.fromkeys(item.outputs, UNKNOWN) if preview else item.outputs
            props = unknown_checking_proxy(floats({**_values(item.inputs, preview), **later}))
            depends = {
                key: [made[ref.holder.urn] for ref in refs]
                for key, value in item.inputs.items()
                if (refs := list(_refs(value)))
            }
            made[item.urn] = PolicyResource(
                item.type, props, item.urn, item.name, options, None, None, [], depends
            )
        return list(made.values())


def _values(value: Any, preview: bool) -> Any:
    if isinstance(value, Ref):
        return UNKNOWN if preview else value.holder.outputs[value.key]
    if isinstance(value, Text):
        known = [_values(ref, preview) for ref in value.refs]
        return UNKNOWN if UNKNOWN in known else value.pattern % tuple(known)
    if isinstance(value, Mapping):
        return {key: _values(item, preview) for key, item in value.items()}
    if isinstance(value, list):
        return [_values(item, preview) for item in value]
    return value


def _refs(value: Any) -> list[Ref]:
    if isinstance(value, Ref):
        return [value]
    if isinstance(value, Text):
        return list(value.refs)
    listed = value.values() if isinstance(value, Mapping) else value
    if isinstance(listed, str) or not hasattr(listed, "__iter__"):
        return []
    return [ref for item in listed for ref in _refs(item)]

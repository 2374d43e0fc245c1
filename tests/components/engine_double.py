"""A double of Pulumi's engine, which keeps the registrations of a component."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pulumi
from earshot_pulumi.gate import PROVIDER_TYPE
from earshot_pulumi.provider.kind import UNKNOWN
from pulumi.runtime import mocks

from tests.components.plain_inputs import plain_inputs


@dataclass
class Registered:
    """A resource that a program registered, and the request for it."""

    type: str
    name: str
    inputs: dict[str, Any]
    request: Any

    @property
    def urn(self) -> str:
        return f"{self.type}::{self.name}"

    def is_below(self, other: Registered) -> bool:
        return str(self.request.parent).endswith(other.urn)

    def depends_on(self, other: Registered) -> bool:
        return any(urn.endswith(other.urn) for urn in self.request.dependencies)


class Engine(mocks.MockMonitor):
    """Keeps every registration, in order."""

    def __init__(self, answers: mocks.Mocks) -> None:
        super().__init__(answers)
        self.seen: list[Registered] = []

    def RegisterResource(self, request: Any) -> Any:
        inputs = plain_inputs(request, keep_unknowns=True)
        self.seen.append(Registered(request.type, request.name, inputs, request))
        return super().RegisterResource(request)  # type: ignore[no-untyped-call]

    def of(self, type: str) -> dict[str, Registered]:
        """By name, in the order of registration."""
        return {it.name: it for it in self.seen if it.type == type}

    def one(self, type: str) -> Registered:
        (found,) = self.of(type).values()
        return found

    def before(self, first: Registered, second: Registered) -> bool:
        return self.seen.index(first) < self.seen.index(second)

    @property
    def gate(self) -> dict[str, Any]:
        """The inputs of the one gate, as its check gets them."""
        return {key: _checked(value) for key, value in self.one(PROVIDER_TYPE).inputs.items()}


def _checked(value: Any) -> Any:
    """``value`` with each unknown as the plugin reads it."""
    if isinstance(value, dict):
        return {key: _checked(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_checked(part) for part in value]
    return UNKNOWN if isinstance(value, pulumi.output.Unknown) else value

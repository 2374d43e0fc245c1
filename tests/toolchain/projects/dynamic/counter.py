"""A dynamic provider in a module of the project: pickled by reference, found from the cwd."""

from typing import Any

import pulumi
from pulumi.dynamic import CreateResult, Resource, ResourceProvider


class CounterProvider(ResourceProvider):
    """Adds one."""

    def create(self, props: dict[str, Any]) -> CreateResult:
        return CreateResult("counter", {**props, "next": props["number"] + 1})


class Counter(Resource, module="test", name="Counter"):
    """A number and the next one."""

    next: pulumi.Output[float]

    def __init__(self, name: str, number: int) -> None:
        super().__init__(CounterProvider(), name, {"number": number, "next": None})

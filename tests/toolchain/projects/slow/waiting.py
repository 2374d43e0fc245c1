"""A dynamic provider whose resource takes as long as the test lets it."""

import time
from pathlib import Path
from typing import Any

import pulumi
from pulumi.dynamic import CreateResult, Resource, ResourceProvider


class WaitingProvider(ResourceProvider):
    """Says that it has begun, in a file, and then waits."""

    def create(self, props: dict[str, Any]) -> CreateResult:
        Path(props["begun"]).touch()
        time.sleep(props["seconds"])
        return CreateResult("waited", props)


class Waiting(Resource, module="test", name="Waiting"):
    """``seconds`` of nothing."""

    def __init__(
        self, name: str, begun: str, seconds: float, options: pulumi.ResourceOptions
    ) -> None:
        super().__init__(WaitingProvider(), name, {"begun": begun, "seconds": seconds}, options)

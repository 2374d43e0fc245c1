"""Every kind of process at once: a program that sleeps, and a provider plugin."""

import time
from pathlib import Path

import pulumi


class Thing(pulumi.CustomResource):
    """A resource of the provider in ``../plugin``."""

    echo: pulumi.Output[str]

    def __init__(self, name: str) -> None:
        options = pulumi.ResourceOptions(version="1.0.0")
        super().__init__("thing:index:Thing", name, {"word": "w", "echo": None}, options)


def wait(_: str) -> None:
    """Keep the program busy once the plugin has done its part."""
    Path("program-begun").touch()
    time.sleep(120)


slow_thing = Thing("one")
slow_thing.echo.apply(wait)

"""Every kind of process at once: a program that sleeps, a provider plugin, a dynamic provider."""

import time
from pathlib import Path

import pulumi
from waiting import Waiting


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


thing = Thing("one")
if pulumi.Config().get_bool("resource"):
    begun = str(Path("resource-begun").absolute())
    Waiting("long", begun, 120, pulumi.ResourceOptions(depends_on=[thing]))
else:
    thing.echo.apply(wait)

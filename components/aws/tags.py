"""Names and tags of all that a stack makes on AWS."""

from __future__ import annotations

from typing import Any, Final

import pulumi

STACK: Final = "earshot:stack"


def tags(stack: str, name: str) -> dict[str, str]:
    return {"Name": name, STACK: stack}


class TaggedComponent(pulumi.ComponentResource):
    """A component whose own name, the stack's, begins those of its resources."""

    def _named(self, suffix: str = "", **options: Any) -> dict[str, Any]:
        """The name, tags and options of the resource that ``suffix`` tells from the others."""
        name = f"{self._name}-{suffix}" if suffix else self._name
        opts = pulumi.ResourceOptions(parent=self, **options)
        return {"resource_name": name, "tags": tags(self._name, name), "opts": opts}

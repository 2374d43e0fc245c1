"""Tags of all that a stack makes on AWS."""

from __future__ import annotations

from typing import Final

STACK: Final = "earshot:stack"


def tags(stack: str, name: str) -> dict[str, str]:
    return {"Name": name, STACK: stack}

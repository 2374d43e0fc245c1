"""What everything that a stack makes on AWS is marked with."""

from __future__ import annotations


def tags(stack: str, name: str) -> dict[str, str]:
    return {"Name": name, "earshot:stack": stack}

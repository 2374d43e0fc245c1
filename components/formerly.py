"""Names that types of dynamic resources had in states of earlier releases."""

from __future__ import annotations

import pulumi


def formerly(name: str, opts: pulumi.ResourceOptions) -> pulumi.ResourceOptions:
    """``opts`` of a resource whose type was called ``name``: it is that one, and not a new one."""
    known = pulumi.Alias(type_=f"pulumi-python:dynamic/earshot:{name}")
    return pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(aliases=[known]))

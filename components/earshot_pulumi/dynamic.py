"""What the program registers of the gate's approval; the plugin makes it (`provider/former.py`)."""

from __future__ import annotations

from typing import Any

import pulumi
from pulumi.dynamic import CreateResult, DiffResult, ResourceProvider, UpdateResult

from earshot_pulumi import owner

Props = dict[str, Any]


class Provider(ResourceProvider):
    """A dynamic provider that ends with its engine; none of its inputs is a secret."""

    serialize_as_secret_always = False
    ID = ""
    """The id of its resource."""
    DECISIVE: tuple[str, ...] = ()
    """The inputs that change its resource."""

    def configure(self, req: Any) -> None:
        owner.exit_with_parent()

    def diff(self, _id: str, olds: Props, news: Props) -> DiffResult:
        return DiffResult(changes=any(olds.get(key) != news.get(key) for key in self.DECISIVE))

    def create(self, props: Props) -> CreateResult:
        return CreateResult(self.ID, props)

    def update(self, _id: str, olds: Props, news: Props) -> UpdateResult:
        return UpdateResult(news)


def formerly(name: str, opts: pulumi.ResourceOptions) -> pulumi.ResourceOptions:
    """``opts`` of a resource whose type release 0.1.0 called ``name``: it is not a new one."""
    known = pulumi.Alias(type_=f"pulumi-python:dynamic/earshot:{name}")
    return pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(aliases=[known]))

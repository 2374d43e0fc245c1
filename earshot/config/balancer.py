"""The balancer that a stack on AWS makes in front of its brokers."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from earshot.config.aws_parts import VpcSpec
from earshot.config.cluster import Whole
from earshot.listeners.model import BindHost, ForwardingPath, Frozen
from earshot.listeners.problems import shown

MOST_LISTENERS = 50
"""Listeners of one Network Load Balancer:
https://docs.aws.amazon.com/elasticloadbalancing/latest/network/load-balancer-limits.html"""


class BalancerSpec(Frozen):
    """A Network Load Balancer for the listeners with address strategy port and no host."""

    kind: Literal["nlb"] = "nlb"
    """nlb: a Network Load Balancer, which forwards TCP unchanged, a port per broker."""
    scheme: Literal["internal", "internet"] = "internal"
    """internal: addresses of the VPC; internet: public ones, in public subnets."""
    record: BindHost = "kafka"
    """With naming zone: the balancer's name below `zone.name`. Otherwise AWS gives it one."""
    keep_client_address: bool = True
    """Whether brokers see the clients' addresses. Then no process on a broker's instance reaches
    that broker through the balancer."""
    idle_seconds: Whole = Field(default=660, ge=60, le=6000)
    """Seconds after which a connection without traffic is dropped. The default is longer than
    Kafka's own `connections.max.idle.ms`."""
    drain_seconds: Whole = Field(default=60, ge=0, le=3600)
    """Seconds for which a target that leaves keeps its connections."""

    @property
    def path(self) -> ForwardingPath:
        """What the balancer does with connections."""
        return ForwardingPath(
            keeps_client_address=self.keep_client_address,
            hairpins=not self.keep_client_address,
            idle_seconds=self.idle_seconds,
        )

    @property
    def public(self) -> bool:
        """Whether the balancer is in the public subnets."""
        return self.scheme == "internet"

    def problems(self, balanced: Collection[str], brokers: int, vpc: VpcSpec) -> Iterator[str]:
        """The problems of a balancer for these listeners of this number of brokers."""
        key = "public_subnets" if self.public else "private_subnets"
        if vpc.id is not None and not vpc.subnets[key]:
            yield f"vpc.{key}: is missing; the balancer would be there (scheme {self.scheme})"
        if not balanced:
            yield (
                "expose: found a balancer, and no listener for it; allowed: with a listener of "
                "address strategy port without a `host`"
            )
        needed = len(balanced) * (brokers + 1)
        if needed > MOST_LISTENERS:
            most = MOST_LISTENERS // len(balanced) - 1
            yield (
                f"expose: found {brokers} brokers behind {', '.join(balanced)}, which take "
                f"{needed} listeners of the balancer; allowed: {MOST_LISTENERS}, so up to {most} "
                "brokers, each with a port per listener, and one for the bootstrap"
            )


def _expose(value: Any) -> Any:
    """`expose: nlb` is a balancer with every default."""
    if value == "nlb":
        return {}
    if value is None or isinstance(value, (Mapping, BalancerSpec)):
        return value
    raise ValueError(f"found {shown(value)}; allowed: nlb, or a map of settings")


Expose = Annotated[
    BalancerSpec | None,
    BeforeValidator(_expose, json_schema_input_type=BalancerSpec | Literal["nlb"] | None),
]

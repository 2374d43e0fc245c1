"""The load balancer that a stack on AWS creates in front of its brokers."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from earshot.config.aws_sections import VpcSpec, ZoneSpec
from earshot.config.cluster import Whole
from earshot.listeners.model import BindHost, ForwardingPath, Frozen, matching
from earshot.listeners.problems import shown
from earshot.names.kinds import ip_of

MAX_LISTENERS = 50
"""Listeners of one Network Load Balancer:
https://docs.aws.amazon.com/elasticloadbalancing/latest/network/load-balancer-limits.html"""
EVERYONE = "*"
"""The principal for every AWS account."""
_PRINCIPAL = re.compile(
    r"\*|arn:aws[a-z-]*:iam::[0-9]{12}:(root|(user|role)/[A-Za-z0-9+=,.@_/-]+)", re.ASCII
)
Principal = Annotated[
    str, matching(_PRINCIPAL, "an ARN such as arn:aws:iam::111122223333:root, or *")
]


class BalancerSpec(Frozen):
    """A Network Load Balancer for the listeners with address strategy port and no host."""

    kind: Literal["nlb", "privatelink"] = "nlb"
    """nlb: a Network Load Balancer, which forwards TCP unchanged, a port per broker; privatelink:
    the same with an endpoint service, for clients in other VPCs and accounts."""
    scheme: Literal["internal", "internet"] = "internal"
    """internal: addresses of the VPC; internet: public ones, in public subnets."""
    record: BindHost = "kafka"
    """With naming zone: the balancer's name below `zone.name`. Otherwise AWS gives it one."""
    keep_client_address: bool | None = None
    """Whether brokers see the clients' addresses. Then no process on a broker's instance reaches
    that broker through the balancer. Default: true with nlb; AWS allows only false with
    privatelink."""
    idle_seconds: Whole = Field(default=660, ge=60, le=6000)
    """Seconds after which a connection without traffic is dropped. The default is longer than
    Kafka's own `connections.max.idle.ms`."""
    drain_seconds: Whole = Field(default=60, ge=0, le=3600)
    """Seconds for which a removed target keeps its connections."""
    name: BindHost | None = None
    """With privatelink, and required with naming aws: the name that brokers advertise. Each
    consumer's private zone has it. With naming zone it is `record` below `zone.name`."""
    principals: dict[str, Principal] = Field(default_factory=dict)
    """With privatelink: by a name of your choice, ARNs of the accounts, users or roles that may
    connect an endpoint. Default: the stack's own account."""
    acceptance: Literal["required", "automatic"] = "required"
    """With privatelink: whether each endpoint waits until it is accepted in the stack's account
    (`aws ec2 accept-vpc-endpoint-connections`)."""
    private_dns: bool = False
    """With privatelink: whether the endpoint service has the advertised name as its private DNS
    name. You must own its domain; the output `endpoint_service` has the TXT record that proves
    it."""

    @property
    def keeps_client_address(self) -> bool:
        """`keep_client_address`, or its default."""
        return not self.private_link and self.keep_client_address is not False

    @property
    def private_link(self) -> bool:
        """True if clients connect through endpoints in their own VPCs."""
        return self.kind == "privatelink"

    @property
    def path(self) -> ForwardingPath:
        """How the balancer forwards connections."""
        return ForwardingPath(
            keeps_client_address=self.keeps_client_address,
            hairpins=not self.keeps_client_address,
            idle_seconds=self.idle_seconds,
        )

    def consumers_name(self, zone: ZoneSpec | None) -> str | None:
        """With privatelink, the name that brokers advertise; otherwise AWS or a record gives it."""
        if not self.private_link:
            return None
        return self.name or (f"{self.record}.{zone.name}" if zone is not None else None)

    @property
    def public(self) -> bool:
        """True if the balancer is in the public subnets."""
        return self.scheme == "internet"

    def problems(
        self, balanced: Collection[str], brokers: int, vpc: VpcSpec, zone: ZoneSpec | None
    ) -> Iterator[str]:
        """The problems of a balancer for these listeners of this number of brokers."""
        yield from self._link_problems(zone)
        key = "public_subnets" if self.public else "private_subnets"
        if vpc.id is not None and not vpc.subnets[key]:
            yield f"vpc.{key}: is missing; the balancer would be there (scheme {self.scheme})"
        if not balanced:
            yield (
                "expose: found a balancer, and no listener for it; allowed: with a listener of "
                "address strategy port without a `host`"
            )
        listener_count = len(balanced) * (brokers + 1)
        if listener_count > MAX_LISTENERS:
            max_brokers = MAX_LISTENERS // len(balanced) - 1
            yield (
                f"expose: found {brokers} brokers behind {', '.join(balanced)}, which take "
                f"{listener_count} listeners of the balancer; allowed: {MAX_LISTENERS}, so up to "
                f"{max_brokers} "
                "brokers, each with a port per listener, and one for the bootstrap; more brokers "
                "take address strategy sni, where one port of a gateway serves all of them"
            )

    def _link_problems(self, zone: ZoneSpec | None) -> Iterator[str]:
        if not self.private_link:
            keys = [key for key in ("name", "principals", "private_dns") if getattr(self, key)]
            for key in [*keys, *(["acceptance"] if self.acceptance != "required" else [])]:
                yield f"expose.{key}: found with kind nlb; allowed: with kind privatelink"
            return
        if self.public:
            yield (
                "expose.scheme: found internet with kind privatelink; allowed: internal, for "
                "clients connect through endpoints"
            )
        if self.keep_client_address:
            yield (
                "expose.keep_client_address: found true with kind privatelink, where brokers see "
                "the balancer's addresses; allowed: false"
            )
        if zone is None and self.name is None:
            yield (
                "expose.name: is missing; brokers advertise it, and the private zones of consumers "
                "have it, as in kafka.example.com"
            )
        if zone is not None and self.name is not None:
            yield (
                f"expose.name: found {self.name} with naming zone; allowed: `expose.record`, "
                f"below {zone.name}"
            )
        if self.name is not None and ("." not in self.name or ip_of(self.name) is not None):
            yield f"expose.name: found {self.name}; allowed: a name such as kafka.example.com"
        for label, principal in self.principals.items():
            if principal == EVERYONE and self.acceptance == "automatic":
                yield (
                    f"expose.principals.{label}: found {EVERYONE} with acceptance automatic, so "
                    "that every account of AWS could connect; allowed: ARNs, or acceptance required"
                )


def _expose(value: object) -> object:
    """The balancer for a text such as `expose: nlb`, with all defaults."""
    if value in ("nlb", "privatelink"):
        return {"kind": value}
    if value is None or isinstance(value, (Mapping, BalancerSpec)):
        return value
    raise ValueError(f"found {shown(value)}; allowed: nlb, privatelink, or a map of settings")


Expose = Annotated[
    BalancerSpec | None,
    BeforeValidator(
        _expose, json_schema_input_type=BalancerSpec | Literal["nlb", "privatelink"] | None
    ),
]

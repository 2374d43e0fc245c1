"""Other VPCs, connected by peering or a Transit Gateway, whose clients use internal listeners."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from ipaddress import IPv4Network, ip_network
from typing import Annotated, Self

from pydantic import Field, field_validator, model_validator

from earshot.config.aws_docker_hosts import ClosedRange
from earshot.config.aws_sections import VpcId, VpcSpec
from earshot.listeners.model import Frozen, matching
from earshot.listeners.problems import refuse, reraised
from earshot.listeners.terms import Scope
from earshot.names.aws import check_region
from earshot.names.resolvers import parse_server

_SCOPES = "|".join(Scope)
VpcName = Annotated[
    str,
    matching(
        re.compile(rf"(?!(?:{_SCOPES})\Z)[a-z0-9][a-z0-9-]{{0,29}}", re.ASCII),
        "up to 30 small letters, digits and hyphens, but not the name of a scope",
    ),
]
"""The name of a connected VPC, and of the vantage there."""
PeeringId = Annotated[
    str,
    matching(re.compile(r"pcx-[0-9a-f]{8,17}", re.ASCII), "an id such as pcx-0123456789abcdef0"),
]
TransitGatewayId = Annotated[
    str,
    matching(re.compile(r"tgw-[0-9a-f]{8,17}", re.ASCII), "an id such as tgw-0123456789abcdef0"),
]


class ConnectedVpcSpec(Frozen):
    """Another VPC, whose clients use the listeners of scope internal."""

    id: VpcId
    """The id of the VPC."""
    cidr: ClosedRange
    """The VPC's CIDR block, which security groups admit. It overlaps no other one."""
    peering: PeeringId | None = None
    """The id of the active peering connection between both VPCs."""
    transit_gateway: TransitGatewayId | None = None
    """The id of the Transit Gateway that both VPCs are attached to."""
    region: str | None = None
    """The VPC's region. Default: that of the stack."""
    associate: bool = True
    """With naming zone: whether the stack associates its private zone with the VPC, which needs
    credentials for both. Otherwise the names do not resolve there."""
    routed: bool | None = None
    """Whether the subnets of both VPCs have routes to each other, apart from those that the stack
    creates from its own VPC. Default: not known."""
    resolver: tuple[str, ...] = Field(default=(), max_length=8)
    """DNS servers (`ip` or `ip:port`) with the answers of the VPC's resolver, which this machine
    reaches: the gate looks up the names there. Default: none."""

    @field_validator("region")
    @classmethod
    def _known(cls, value: str | None) -> str | None:
        return None if value is None else reraised(check_region, value)

    @field_validator("resolver")
    @classmethod
    def _servers(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for text in value:
            reraised(parse_server, text)
        return value

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        links = [key for key in ("peering", "transit_gateway") if getattr(self, key) is not None]
        if len(links) != 1:
            links_text = " and ".join(links) or "neither peering nor transit_gateway"
            refuse([f"peering: found {links_text}; allowed: one of peering, transit_gateway"])
        if ip_network(self.cidr).version != 4:
            refuse([f"cidr: found {self.cidr}; allowed: an IPv4 range"])
        return self

    @property
    def range(self) -> IPv4Network:
        """`cidr` as a range."""
        return IPv4Network(self.cidr)


def connection_problems(
    connected: Mapping[str, ConnectedVpcSpec], vpc: VpcSpec, naming: str
) -> Iterator[str]:
    """The problems of ``connected`` VPCs by name, with the brokers' own ``vpc``."""
    ranges = {"the brokers' VPC": IPv4Network(vpc.cidr)}
    ids = {vpc.id: "the brokers' VPC"} if vpc.id is not None else {}
    for name, connected_vpc in connected.items():
        if (holder := ids.setdefault(connected_vpc.id, name)) != name:
            yield (
                f"connected.{name}.id: found {connected_vpc.id}, which is {holder}; allowed: each "
                "other VPC once"
            )
            continue
        for holder, range_taken in ranges.items():
            if connected_vpc.range.overlaps(range_taken):
                yield (
                    f"connected.{name}.cidr: found {connected_vpc.cidr}, which overlaps "
                    f"{range_taken} of {holder}, so that no route leads there; allowed: another "
                    "range, or clients that connect through an endpoint (`expose: privatelink`)"
                )
                break
        ranges[name] = connected_vpc.range
        if naming == "aws" and not connected_vpc.associate:
            yield (
                f"connected.{name}.associate: found false with naming aws, which has no zone; "
                "leave it out, or set `naming: zone`"
            )

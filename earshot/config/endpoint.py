"""The inputs of an endpoint through which clients of another VPC reach a cluster."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Self

from pydantic import Field, model_validator

from earshot.config.aws_docker_hosts import ClosedRange
from earshot.config.aws_sections import GroupId, SubnetId, VpcId
from earshot.listeners.model import BindHost, Frozen, ListenerName
from earshot.listeners.problems import refuse


class EndpointNetwork(Frozen):
    """The endpoint service, and the place of the endpoint in the clients' VPC."""

    service_name: str
    vpc_id: VpcId
    subnets: tuple[SubnetId, ...] = Field(min_length=1)
    zone_ids: tuple[str, ...] = ()


class EndpointSpec(Frozen):
    """An interface endpoint, and the private zone with the names that brokers advertise."""

    listeners: tuple[ListenerName, ...] = ()
    """Listeners of the contract behind the endpoint service. Default: each external one with one
    name for all brokers and a separate port for the bootstrap."""
    zone: BindHost | None = None
    """The private zone to create: the advertised name, or a domain above it. Default: the name."""
    clients: dict[str, ClosedRange] = Field(default_factory=dict)
    """By a name of your choice, CIDR blocks of the clients."""
    groups: dict[str, GroupId] = Field(default_factory=dict)
    """By a name of your choice, ids of the clients' security groups."""
    private_dns: bool = False
    """Whether AWS resolves the service's private DNS name in the VPC; then there is no zone."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        refuse(self._problems())
        return self

    def _problems(self) -> Iterator[str]:
        if not self.clients and not self.groups:
            yield "clients: is missing; no client could connect (or name their `groups`)"
        if self.private_dns and self.zone is not None:
            yield "zone: found one with private_dns; allowed: one of them"

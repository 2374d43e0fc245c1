"""The component `AwsNetwork`: a network for brokers on AWS, for any program.

Pulumi reads the schema from the annotations and docstrings below. They must not be strings, so this
module does not postpone annotations.
"""

from typing import TYPE_CHECKING, Annotated, Any, NotRequired, TypedDict

import pulumi
from pydantic import AfterValidator

from earshot.aws.subnets import Nat, check_vpc, check_zones, lay_out
from earshot.listeners.model import Frozen
from earshot.listeners.problems import read_model, reraised
from earshot_pulumi.provider.kind import Inputs, Properties
from earshot_pulumi.shaped import ShapedComponent

if TYPE_CHECKING:
    from earshot_pulumi.aws.network import NetworkFacts


def _zones(value: tuple[str, ...]) -> tuple[str, ...]:
    reraised(check_zones, value)
    return value


def _cidr(value: str) -> str:
    reraised(check_vpc, value)
    return value


class _NetworkSpec(Frozen):
    zones: Annotated[tuple[str, ...], AfterValidator(_zones)]
    cidr: Annotated[str, AfterValidator(_cidr)] = "10.0.0.0/16"
    nat: Nat = "one"
    flow_logs: bool = False
    deletion_protection: bool = True


class AwsNetworkArgs(TypedDict):
    """The inputs of `AwsNetwork`."""

    zones: pulumi.Input[list[pulumi.Input[str]]]
    """Two or three availability zones of one region, as in us-east-1a."""
    cidr: NotRequired[pulumi.Input[str]]
    """The VPC's CIDR block, private, from /16 to /24. Default: 10.0.0.0/16."""
    nat: NotRequired[pulumi.Input[str]]
    """NAT gateways for the private subnets: none, one or per-zone. Default: one."""
    flow_logs: NotRequired[pulumi.Input[bool]]
    """true: the VPC's traffic is logged in a bucket. Default: false."""
    deletion_protection: NotRequired[pulumi.Input[bool]]
    """true: resources with data or addresses cannot be deleted. Default: true."""


class AwsNetwork(ShapedComponent):
    """A VPC in which AWS gives instances names, with a public and a private subnet per zone."""

    vpc_id: pulumi.Output[str]
    """The id of the VPC."""
    public_subnets: pulumi.Output[dict[str, str]]
    """By zone, the id of the subnet with a route to the internet gateway."""
    private_subnets: pulumi.Output[dict[str, str]]
    """By zone, the id of the subnet without such a route."""

    _module = "aws.network"

    def __init__(
        self, name: str, args: AwsNetworkArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        """Raises pulumi.RunError for invalid zones or ranges, for zones outside the provider's
        region, and without the extra `aws`."""
        super().__init__(name, args, opts)

    def _create_resources(self, module: Any, name: str, args: Inputs) -> Properties:
        spec = self._read(name, args)
        network_args = module.NetworkArgs(
            region=check_zones(spec.zones),
            cidr=spec.cidr,
            subnets=lay_out(spec.cidr, spec.zones),
            nat_gateways=spec.nat,
            flow_logs=spec.flow_logs,
            deletion_protection=spec.deletion_protection,
        )
        module.check_region(network_args.region, self)
        opts = pulumi.ResourceOptions(parent=self)
        facts: NetworkFacts = module.Network(name, network_args, opts).facts
        subnets = {
            key: {
                zone: id for (zone, is_public), id in facts.subnets.items() if is_public is public
            }
            for key, public in (("public_subnets", True), ("private_subnets", False))
        }
        return {"vpc_id": facts.vpc_id, **subnets}

    def _read(self, name: str, args: Inputs) -> _NetworkSpec:
        return read_model(_NetworkSpec, args, f"AwsNetwork {name}")

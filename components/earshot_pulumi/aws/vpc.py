"""A network for brokers on AWS, as any program can ask for it.

The package's schema is read from the annotations below and the docstrings beneath them, so they are
no strings here: this module does without postponed annotations.
"""

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NotRequired, TypedDict

import pulumi
from pydantic import ValidationError

from earshot.aws.subnets import Nat, check_zones, lay_out
from earshot.errors import SpecError
from earshot.extras import needed_for
from earshot.listeners.model import Frozen
from earshot.listeners.problems import describe
from earshot_pulumi.outputs import made_from, read_inputs, with_run_errors

if TYPE_CHECKING:
    from earshot_pulumi.aws.network import NetworkFacts

OUTPUTS: Final = ("vpc_id", "public_subnets", "private_subnets")


class _NetworkSpec(Frozen):
    zones: tuple[str, ...]
    cidr: str = "10.0.0.0/16"
    nat: Nat = "one"
    flow_logs: bool = False
    deletion_protection: bool = True


class AwsNetworkArgs(TypedDict):
    """What a network is made from."""

    zones: pulumi.Input[list[pulumi.Input[str]]]
    """Two or three availability zones of one region, as in us-east-1a."""
    cidr: NotRequired[pulumi.Input[str]]
    """The VPC's CIDR block, private, from /16 to /24. Default: 10.0.0.0/16."""
    nat: NotRequired[pulumi.Input[str]]
    """NAT gateways for the private subnets: none, one or per-zone. Default: one."""
    flow_logs: NotRequired[pulumi.Input[bool]]
    """Whether the VPC's traffic is recorded in a bucket. Default: false."""
    deletion_protection: NotRequired[pulumi.Input[bool]]
    """Whether what holds data or addresses is protected from deletion. Default: true."""


class AwsNetwork(pulumi.ComponentResource):
    """A VPC in which AWS gives instances names, with a public and a private subnet per zone."""

    vpc_id: pulumi.Output[str]
    """The id of the VPC."""
    public_subnets: pulumi.Output[dict[str, str]]
    """By zone, the id of the subnet that is routed to the internet gateway."""
    private_subnets: pulumi.Output[dict[str, str]]
    """By zone, the id of the subnet that is not."""

    def __init__(
        self, name: str, args: AwsNetworkArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        """Raises pulumi.RunError for invalid zones or ranges, for zones of another region than the
        provider's, and without the extra `aws`."""
        module = with_run_errors(_network_module)()
        given = read_inputs(args, name)
        super().__init__("earshot:index:AwsNetwork", name, given, opts)
        made = made_from(self, given, partial(self._network, module, name), OUTPUTS)
        self.vpc_id, self.public_subnets, self.private_subnets = (
            pulumi.Output.from_input(made[output]) for output in OUTPUTS
        )
        self.register_outputs({output: getattr(self, output) for output in OUTPUTS})

    def _network(self, module: Any, name: str, args: Mapping[str, Any]) -> dict[str, Any]:
        """The outputs, once all resources of the network are registered."""
        spec = _read(name, args)
        wanted = module.NetworkArgs(
            region=check_zones(spec.zones),
            cidr=spec.cidr,
            subnets=lay_out(spec.cidr, spec.zones),
            nat_gateways=spec.nat,
            flow_logs=spec.flow_logs,
            deletion_protection=spec.deletion_protection,
        )
        module.check_region(wanted.region, self)
        own = pulumi.ResourceOptions(parent=self)
        facts: NetworkFacts = module.Network(name, wanted, own).facts
        subnets = {
            key: {zone: id for (zone, beyond), id in facts.subnets.items() if beyond is public}
            for key, public in (("public_subnets", True), ("private_subnets", False))
        }
        return {"vpc_id": facts.vpc_id, **subnets}


def _network_module() -> Any:
    with needed_for("AwsNetwork"):
        from earshot_pulumi.aws import network
    return network


def _read(name: str, args: Mapping[str, Any]) -> _NetworkSpec:
    """The network that ``args`` describe. Raises SpecError with every problem."""
    given = {key: value for key, value in args.items() if value is not None}
    try:
        return _NetworkSpec.model_validate(given)
    except ValidationError as error:
        raise SpecError.of(f"AwsNetwork {name}", describe(error, _NetworkSpec, given)) from None

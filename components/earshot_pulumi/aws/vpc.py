"""The component `AwsNetwork`: a network for brokers on AWS, for any program.

Pulumi reads the schema from the annotations and docstrings below. They must not be strings, so this
module does not postpone annotations.
"""

from typing import TYPE_CHECKING, Any

import pulumi

from earshot.aws.subnets import check_zones, lay_out
from earshot.config.aws_sections import NetworkSpec
from earshot.listeners.problems import read_model
from earshot_pulumi.cluster_args import AwsNetworkArgs
from earshot_pulumi.deferred_component import DeferredComponent
from earshot_pulumi.provider.kind import Inputs, Properties

if TYPE_CHECKING:
    from earshot_pulumi.aws.network import NetworkFacts


class AwsNetwork(DeferredComponent):
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

    def _read(self, name: str, args: Inputs) -> NetworkSpec:
        return read_model(NetworkSpec, args, f"AwsNetwork {name}")

"""The component `DockerHosts`: Docker hosts on EC2 for any program.

Pulumi reads the schema from the annotations and docstrings below. They must not be strings, so this
module does not postpone annotations.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pulumi

from earshot.config.aws_docker_hosts import DockerHostsSpec
from earshot.listeners.problems import read_model
from earshot_pulumi.cluster_args import DockerHostArgs, DockerHostsArgs
from earshot_pulumi.deferred_component import DeferredComponent
from earshot_pulumi.deployment import full_name_of, state_folder
from earshot_pulumi.provider.kind import Inputs, Outputs

if TYPE_CHECKING:
    from earshot_pulumi.aws.network import NetworkFacts

VPC_MARK, SUBNET_MARK = "vpc-00000000", "subnet-00000000"
"""Substitutes for ids that may be outputs, while the other inputs are checked."""


class DockerHosts(DeferredComponent):
    """EC2 instances, each with a Docker engine that only clients with a certificate reach."""

    hosts: pulumi.Output[list[pulumi.Input[DockerHostArgs]]]
    """The input `hosts` of a `DockerCluster`. A resource that uses it waits for the engines."""
    vpc_id: pulumi.Output[str]
    """The id of the VPC."""
    instance_ids: pulumi.Output[dict[str, str]]
    """The instance's id by host."""
    names: pulumi.Output[dict[str, str]]
    """By host, the name of its address, which does not change when the instance is replaced."""
    engine_ids: pulumi.Output[dict[str, str]]
    """The engine's id by host."""
    versions: pulumi.Output[dict[str, str]]
    """The engine's version by host."""

    _module = "docker_hosts.resources"
    _late_inputs = ("vpc_id", "subnets")
    _partly_known = ("hosts",)

    def __init__(
        self, name: str, args: DockerHostsArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        """Raises pulumi.RunError with every problem of the inputs, for zones outside the
        provider's region, and without the extras `aws` and `docker`."""
        super().__init__(name, args, opts)

    def _read(self, name: str, args: Inputs) -> DockerHostsSpec:
        return read_hosts(name, args)

    def _create_resources(self, module: Any, name: str, args: Inputs) -> Outputs:
        from earshot_pulumi.aws.instances import newest_images
        from earshot_pulumi.aws.network import check_region

        spec = read_hosts(name, args)
        full_name = full_name_of(name)
        check_region(spec.region, self)
        network = self._network(full_name, spec, args)
        images = newest_images(map(spec.instance_of, spec.host_zones), self)
        folder = state_folder() / "docker-hosts" / full_name
        group = module.DockerHostGroup(
            module.HostInputs(
                full_name, spec, folder, network, images, self, module.answered(full_name)
            )
        )
        return {
            "hosts": group.hosts,
            "vpc_id": network.vpc_id,
            "instance_ids": group.instance_ids,
            "names": {
                host: interface.private_dns_name for host, interface in group.interfaces.items()
            },
            "engine_ids": {host: ready.engine_id for host, ready in group.ready.items()},
            "versions": {host: ready.version for host, ready in group.ready.items()},
        }

    def _network(self, full_name: str, spec: DockerHostsSpec, args: Inputs) -> "NetworkFacts":
        from earshot.names.aws import VpcDns
        from earshot_pulumi.aws.network import Network, NetworkArgs, NetworkFacts

        if spec.vpc_id is None:
            network_args = NetworkArgs(
                region=spec.region,
                cidr=spec.cidr,
                subnets=spec.subnet_layout,
                nat_gateways=spec.nat or "one",
                flow_logs=False,
                deletion_protection=spec.deletion_protection,
            )
            return Network(full_name, network_args, pulumi.ResourceOptions(parent=self)).facts
        subnets: pulumi.Output[Mapping[str, str]] = pulumi.Output.from_input(args["subnets"])
        return NetworkFacts(
            vpc_id=args["vpc_id"],
            dns=VpcDns(support=True, hostnames=True),
            subnets={(zone, False): subnets[zone] for zone in spec.host_zones.values()},
        )


def read_hosts(name: str, args: Inputs) -> DockerHostsSpec:
    """The Docker hosts that ``args`` describe. Raises SpecError with every problem."""
    inputs = dict(args)
    if isinstance(inputs.get("vpc_id"), pulumi.Output):
        inputs["vpc_id"] = VPC_MARK
    subnets = inputs.get("subnets")
    if isinstance(subnets, pulumi.Output):
        zones = inputs.get("host_zones")
        inputs["subnets"] = dict.fromkeys(
            zones.values() if isinstance(zones, dict) else (), SUBNET_MARK
        )
    elif isinstance(subnets, Mapping):
        inputs["subnets"] = {
            zone: SUBNET_MARK if isinstance(subnet, pulumi.Output) else subnet
            for zone, subnet in subnets.items()
        }
    return read_model(DockerHostsSpec, inputs, f"DockerHosts {name}")

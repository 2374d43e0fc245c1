"""The nodes' network: a VPC that the stack makes, or an existing one, and security groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import IPv4Network
from typing import Any

import pulumi
import pulumi_aws as aws

from earshot.aws.subnets import Nat, Subnet
from earshot.config.aws import AwsSpec
from earshot.config.connected import ConnectedVpcSpec
from earshot.errors import EarshotError
from earshot.facts.security_groups import Ingress, Members, SecurityGroup
from earshot.names.aws import VpcDns
from earshot_pulumi.aws.tags import TaggedComponent, without_public_access
from earshot_pulumi.provider.kind import Properties
from earshot_pulumi.unknown_inputs import is_marker

ANYWHERE = "0.0.0.0/0"


@dataclass(frozen=True)
class NetworkArgs:
    """The inputs of a new network."""

    region: str
    cidr: str
    subnets: tuple[Subnet, ...]
    nat_gateways: Nat
    flow_logs: bool
    deletion_protection: bool
    connected: Mapping[str, ConnectedVpcSpec] = field(default_factory=dict)
    """Other VPCs, to which every subnet gets a route."""

    @classmethod
    def of(cls, spec: AwsSpec) -> NetworkArgs:
        return cls(
            region=spec.region,
            cidr=spec.vpc.cidr,
            subnets=spec.subnets,
            nat_gateways=spec.nat_gateways,
            flow_logs=spec.flow_logs,
            deletion_protection=spec.deletion_protection,
            connected=spec.connected,
        )


@dataclass(frozen=True)
class NetworkFacts:
    """The parts of a network that a node's interface needs."""

    vpc_id: pulumi.Input[str]
    dns: VpcDns
    subnets: Mapping[tuple[str, bool], pulumi.Input[str]]
    """The id by zone, and true for a public subnet."""
    routes: tuple[pulumi.Resource, ...] = ()
    """Routes and associations, which an instance needs to reach hosts outside its subnet."""


class Network(TaggedComponent):
    """A VPC over two or three zones, each with a public and a private subnet."""

    facts: NetworkFacts

    def __init__(
        self, name: str, args: NetworkArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__("Network", name, opts)
        self._network_args = args
        self.vpc = aws.ec2.Vpc(
            **self._common_args(protect=args.deletion_protection or None),
            cidr_block=args.cidr,
            # without both, EC2 gives no public names, and private zones do not resolve
            enable_dns_support=True,
            enable_dns_hostnames=True,
        )
        self._gateway = aws.ec2.InternetGateway(**self._common_args(), vpc_id=self.vpc.id)
        self._routes: list[pulumi.Resource] = []
        self._subnets = {layout: self._subnet(layout) for layout in args.subnets}
        tables = self._route()
        aws.ec2.VpcEndpoint(
            **self._common_args("s3"),  # Amazon Linux has its packages in S3
            vpc_id=self.vpc.id,
            service_name=f"com.amazonaws.{args.region}.s3",
            vpc_endpoint_type="Gateway",
            route_table_ids=[table.id for table in tables],
        )
        if args.flow_logs:
            self._log()
        self.facts = NetworkFacts(
            vpc_id=self.vpc.id,
            dns=VpcDns(support=True, hostnames=True),
            subnets={
                (layout.zone, layout.public): subnet.id for layout, subnet in self._subnets.items()
            },
            routes=tuple(self._routes),
        )
        self.register_outputs({"vpc_id": self.vpc.id})

    def _subnet(self, subnet: Subnet) -> aws.ec2.Subnet:
        return aws.ec2.Subnet(
            **self._common_args(subnet.name),
            vpc_id=self.vpc.id,
            cidr_block=str(subnet.cidr),
            availability_zone=subnet.zone,
            map_public_ip_on_launch=False,  # a stopped instance loses such an address
        )

    def _route(self) -> list[aws.ec2.RouteTable]:
        """One table for the public subnets, and one per zone for the private ones."""
        public_table = aws.ec2.RouteTable(**self._common_args("public"), vpc_id=self.vpc.id)
        self._add_route("public", public_table, gateway_id=self._gateway.id)
        self._connect("public", public_table)
        tables = [public_table]
        nat_gateway: aws.ec2.NatGateway | None = None
        for subnet, resource in self._subnets.items():
            table = public_table
            if not subnet.public:
                table = aws.ec2.RouteTable(**self._common_args(subnet.name), vpc_id=self.vpc.id)
                tables.append(table)
                self._connect(subnet.name, table)
                if self._network_args.nat_gateways == "per-zone" or (
                    self._network_args.nat_gateways == "one" and nat_gateway is None
                ):
                    nat_gateway = self._nat(subnet.zone)
                if nat_gateway is not None:
                    self._add_route(subnet.name, table, nat_gateway_id=nat_gateway.id)
            self._routes.append(
                aws.ec2.RouteTableAssociation(
                    **self._args(subnet.name),
                    subnet_id=resource.id,
                    route_table_id=table.id,
                )
            )
        return tables

    def _add_route(self, suffix: str, table: aws.ec2.RouteTable, **target: Any) -> None:
        self._routes.append(
            aws.ec2.Route(
                **self._args(suffix),
                route_table_id=table.id,
                destination_cidr_block=ANYWHERE,
                **target,
            )
        )

    def _connect(self, suffix: str, table: aws.ec2.RouteTable) -> None:
        for name, vpc in self._network_args.connected.items():
            aws.ec2.Route(
                **self._args(f"{suffix}-{name}"),
                route_table_id=table.id,
                destination_cidr_block=vpc.cidr,
                vpc_peering_connection_id=vpc.peering,
                transit_gateway_id=vpc.transit_gateway,
            )

    def _nat(self, zone: str) -> aws.ec2.NatGateway:
        suffix = f"nat-{zone[-1]}"
        public_subnet = next(
            resource
            for subnet, resource in self._subnets.items()
            if subnet.public and subnet.zone == zone
        )
        address = aws.ec2.Eip(**self._common_args(suffix), domain="vpc")
        return aws.ec2.NatGateway(
            **self._common_args(suffix, depends_on=[self._gateway]),
            allocation_id=address.allocation_id,
            subnet_id=public_subnet.id,
        )

    def _log(self) -> None:
        suffix = "flow-logs"
        bucket = aws.s3.Bucket(
            **self._common_args(suffix), force_destroy=not self._network_args.deletion_protection
        )
        child = pulumi.ResourceOptions(parent=self)
        access_block = without_public_access(f"{self._name}-{suffix}", bucket, child)
        aws.ec2.FlowLog(
            **self._common_args(suffix, depends_on=[access_block]),
            vpc_id=self.vpc.id,
            traffic_type="ALL",
            log_destination_type="s3",
            log_destination=bucket.arn,
        )


def existing(spec: AwsSpec, parent: pulumi.Resource) -> NetworkFacts:
    """The existing VPC of ``spec``. Raises EarshotError if it differs from the spec.

    If a preview does not know the VPC, the update compares it.
    """
    if spec.vpc.id and is_marker(spec.vpc.id):
        return _facts(spec, spec.vpc.id, VpcDns(support=True, hostnames=True))
    vpc = aws.ec2.get_vpc(id=spec.vpc.id, opts=pulumi.InvokeOptions(parent=parent))
    if vpc.cidr_block != spec.vpc.cidr:
        raise EarshotError(
            f"vpc.cidr: {spec.vpc.cidr}",
            observed=f"the range of {spec.vpc.id} is {vpc.cidr_block}",
            remedy=f"write vpc.cidr: {vpc.cidr_block}",
        )
    dns = VpcDns(support=vpc.enable_dns_support, hostnames=vpc.enable_dns_hostnames)
    return _facts(spec, vpc.id, dns)


def _facts(spec: AwsSpec, vpc_id: str, dns: VpcDns) -> NetworkFacts:
    return NetworkFacts(
        vpc_id=vpc_id,
        dns=dns,
        subnets={
            (zone, key == "public_subnets"): id
            for key, subnets in spec.vpc.subnets.items()
            for zone, id in subnets.items()
        },
    )


def check_region(region: str, parent: pulumi.Resource) -> None:
    """Raises EarshotError if Pulumi's provider is for another region."""
    provider_region = aws.get_region(opts=pulumi.InvokeOptions(parent=parent)).region
    if provider_region != region:
        raise EarshotError(
            f"region: {region}",
            observed=f"the region of the AWS provider is {provider_region}",
            remedy=f"give the provider the region {region} (aws:region in the stack's file, or "
            f"`region` of an aws.Provider), or use {provider_region} here",
        )


class SecurityGroups(TaggedComponent):
    """One group per role of a node."""

    ids: Mapping[str, pulumi.Output[str]]
    """The id by the group's name in the plan."""

    def __init__(
        self,
        name: str,
        groups: Sequence[SecurityGroup],
        vpc_id: pulumi.Input[str],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__("SecurityGroups", name, opts)
        self.ids = {
            group.name: aws.ec2.SecurityGroup(
                **self._common_args(group.name),
                description=f"Kafka {group.name} of {name}",
                vpc_id=vpc_id,
            ).id
            for group in groups
        }
        for group in groups:
            for rule in group.ingress:
                self._add_ingress(group, rule)
            aws.vpc.SecurityGroupEgressRule(
                **self._args(group.name),
                security_group_id=self.ids[group.name],
                ip_protocol="-1",
                cidr_ipv4="0.0.0.0/0",
                description="Packages, Kafka itself, AWS services, other nodes",
            )
        self.register_outputs({"ids": self.ids})

    def _add_ingress(self, group: SecurityGroup, rule: Ingress) -> None:
        source: Properties
        if isinstance(rule.source, Members):
            label = rule.source.group
            source = {"referenced_security_group_id": self.ids.get(label, label)}
        else:
            label = str(rule.source)
            kind = "cidr_ipv4" if isinstance(rule.source, IPv4Network) else "cidr_ipv6"
            source = {kind: label}
        aws.vpc.SecurityGroupIngressRule(
            **self._args(f"{group.name}-{rule.first}-{label}"),
            security_group_id=self.ids[group.name],
            ip_protocol="tcp",
            from_port=rule.first,
            to_port=rule.last,
            description=rule.why,
            **source,
        )

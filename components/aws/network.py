"""The network that nodes stand in: a VPC of the stack's own, or one that is there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from components.aws.tags import tags
from earshot.aws.costs import Nat
from earshot.aws.subnets import Subnet
from earshot.errors import EarshotError
from earshot.names.aws import VpcDns
from earshot.spec.aws import AwsSpec

ANYWHERE = "0.0.0.0/0"


@dataclass(frozen=True)
class Plot:
    """What a new network is to be like."""

    region: str
    cidr: str
    subnets: tuple[Subnet, ...]
    nat_gateways: Nat
    flow_logs: bool
    deletion_protection: bool

    @classmethod
    def of(cls, spec: AwsSpec) -> Plot:
        return cls(
            region=spec.region,
            cidr=spec.vpc.cidr,
            subnets=spec.subnets,
            nat_gateways=spec.nat_gateways,
            flow_logs=spec.flow_logs,
            deletion_protection=spec.deletion_protection,
        )


@dataclass(frozen=True)
class Ground:
    """What a node's interface needs of a network."""

    vpc_id: pulumi.Input[str]
    dns: VpcDns
    subnets: Mapping[tuple[str, bool], pulumi.Input[str]]
    """Ids by zone, and by whether the subnet is public."""
    ways: tuple[pulumi.Resource, ...] = ()
    """What must be there before an instance reaches anything beyond its subnet."""


class Network(pulumi.ComponentResource):
    """A VPC over two or three zones, each with a public and a private subnet."""

    ground: Ground

    def __init__(self, name: str, plot: Plot, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("earshot:aws:Network", name, {}, opts)
        self._name, self._plot = name, plot
        self.vpc = aws.ec2.Vpc(
            name,
            cidr_block=plot.cidr,
            # without both, EC2 gives no public names, and a private zone answers to nobody
            enable_dns_support=True,
            enable_dns_hostnames=True,
            tags=tags(name, name),
            opts=self._opts(protect=plot.deletion_protection),
        )
        self._gateway = aws.ec2.InternetGateway(
            name, vpc_id=self.vpc.id, tags=tags(name, name), opts=self._opts()
        )
        self._ways: list[pulumi.Resource] = []
        self._subnets = {item: self._subnet(item) for item in plot.subnets}
        tables = self._route()
        aws.ec2.VpcEndpoint(
            f"{name}-s3",  # Amazon Linux has its packages in S3
            vpc_id=self.vpc.id,
            service_name=f"com.amazonaws.{plot.region}.s3",
            vpc_endpoint_type="Gateway",
            route_table_ids=[table.id for table in tables],
            tags=tags(name, f"{name}-s3"),
            opts=self._opts(),
        )
        if plot.flow_logs:
            self._log()
        self.ground = Ground(
            vpc_id=self.vpc.id,
            dns=VpcDns(support=True, hostnames=True),
            subnets={(item.zone, item.public): own.id for item, own in self._subnets.items()},
            ways=tuple(self._ways),
        )
        self.register_outputs({"vpc_id": self.vpc.id})

    def _subnet(self, subnet: Subnet) -> aws.ec2.Subnet:
        name = f"{self._name}-{subnet.name}"
        return aws.ec2.Subnet(
            name,
            vpc_id=self.vpc.id,
            cidr_block=str(subnet.cidr),
            availability_zone=subnet.zone,
            map_public_ip_on_launch=False,  # an address that AWS lends ends with a stop
            tags=tags(self._name, name),
            opts=self._opts(),
        )

    def _route(self) -> list[aws.ec2.RouteTable]:
        """One table for the public subnets, and one per zone for the private ones."""
        public = self._table("public")
        self._way("public", public, gateway_id=self._gateway.id)
        tables = [public]
        shared: aws.ec2.NatGateway | None = None
        for subnet, own in self._subnets.items():
            table = public
            if not subnet.public:
                table = self._table(subnet.name)
                tables.append(table)
                if self._plot.nat_gateways == "per-zone" or (
                    self._plot.nat_gateways == "one" and shared is None
                ):
                    shared = self._nat(subnet.zone)
                if shared is not None:
                    self._way(subnet.name, table, nat_gateway_id=shared.id)
            self._ways.append(
                aws.ec2.RouteTableAssociation(
                    f"{self._name}-{subnet.name}",
                    subnet_id=own.id,
                    route_table_id=table.id,
                    opts=self._opts(),
                )
            )
        return tables

    def _table(self, suffix: str) -> aws.ec2.RouteTable:
        name = f"{self._name}-{suffix}"
        return aws.ec2.RouteTable(
            name, vpc_id=self.vpc.id, tags=tags(self._name, name), opts=self._opts()
        )

    def _way(self, suffix: str, table: aws.ec2.RouteTable, **target: pulumi.Input[str]) -> None:
        self._ways.append(
            aws.ec2.Route(
                f"{self._name}-{suffix}",
                route_table_id=table.id,
                destination_cidr_block=ANYWHERE,
                opts=self._opts(),
                **target,
            )
        )

    def _nat(self, zone: str) -> aws.ec2.NatGateway:
        name = f"{self._name}-nat-{zone[-1]}"
        public = next(own for at, own in self._subnets.items() if at.public and at.zone == zone)
        address = aws.ec2.Eip(name, domain="vpc", tags=tags(self._name, name), opts=self._opts())
        return aws.ec2.NatGateway(
            name,
            allocation_id=address.allocation_id,
            subnet_id=public.id,
            tags=tags(self._name, name),
            opts=self._opts(depends_on=[self._gateway]),
        )

    def _log(self) -> None:
        name = f"{self._name}-flow-logs"
        bucket = aws.s3.Bucket(
            name,
            force_destroy=not self._plot.deletion_protection,
            tags=tags(self._name, name),
            opts=self._opts(),
        )
        closed = aws.s3.BucketPublicAccessBlock(
            name,
            bucket=bucket.bucket,
            block_public_acls=True,
            block_public_policy=True,
            ignore_public_acls=True,
            restrict_public_buckets=True,
            opts=self._opts(),
        )
        aws.ec2.FlowLog(
            name,
            vpc_id=self.vpc.id,
            traffic_type="ALL",
            log_destination_type="s3",
            log_destination=bucket.arn,
            tags=tags(self._name, name),
            opts=self._opts(depends_on=[closed]),
        )

    def _opts(self, **options: object) -> pulumi.ResourceOptions:
        return pulumi.ResourceOptions(parent=self, **options)  # type: ignore[arg-type]


def existing(spec: AwsSpec, parent: pulumi.Resource) -> Ground:
    """The VPC that ``spec`` names by id. Raises EarshotError where it is not as the spec says."""
    found = aws.ec2.get_vpc(id=spec.vpc.id, opts=pulumi.InvokeOptions(parent=parent))
    if found.cidr_block != spec.vpc.cidr:
        raise EarshotError(
            f"vpc.cidr: {spec.vpc.cidr}",
            observed=f"the range of {spec.vpc.id} is {found.cidr_block}",
            remedy=f"write vpc.cidr: {found.cidr_block}",
        )
    return Ground(
        vpc_id=found.id,
        dns=VpcDns(support=found.enable_dns_support, hostnames=found.enable_dns_hostnames),
        subnets={
            (zone, key == "public_subnets"): id
            for key, subnets in spec.vpc.subnets.items()
            for zone, id in subnets.items()
        },
    )

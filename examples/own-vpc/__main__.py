"""Kafka brokers in a VPC that this program makes.

Cost: three m7g.large instances, three times 116 GiB of gp3 and a NAT gateway, at the prices of your
region. Removal: `pulumi config set protected false`, `pulumi up`, `pulumi destroy`.
"""

import pulumi
import pulumi_aws as aws
from earshot_pulumi import AwsCluster

config = pulumi.Config()
region = config.require("region")
zones = [f"{region}{letter}" for letter in "abc"]
protected = config.get_bool("protected") is not False

vpc = aws.ec2.Vpc(
    "shop", cidr_block="10.40.0.0/16", enable_dns_support=True, enable_dns_hostnames=True
)
gateway = aws.ec2.InternetGateway("shop", vpc_id=vpc.id)
public = aws.ec2.Subnet(
    "public", vpc_id=vpc.id, cidr_block="10.40.0.0/24", availability_zone=zones[0]
)
out = aws.ec2.RouteTable(
    "public",
    vpc_id=vpc.id,
    routes=[aws.ec2.RouteTableRouteArgs(cidr_block="0.0.0.0/0", gateway_id=gateway.id)],
)
aws.ec2.RouteTableAssociation("public", subnet_id=public.id, route_table_id=out.id)
address = aws.ec2.Eip("nat", domain="vpc")
nat = aws.ec2.NatGateway("nat", allocation_id=address.allocation_id, subnet_id=public.id)
through_nat = aws.ec2.RouteTable(
    "private",
    vpc_id=vpc.id,
    routes=[aws.ec2.RouteTableRouteArgs(cidr_block="0.0.0.0/0", nat_gateway_id=nat.id)],
)
private: dict[str, pulumi.Input[str]] = {}
routes = []
for number, zone in enumerate(zones, start=1):
    subnet = aws.ec2.Subnet(
        zone, vpc_id=vpc.id, cidr_block=f"10.40.{number}.0/24", availability_zone=zone
    )
    private[zone] = subnet.id
    routes.append(
        aws.ec2.RouteTableAssociation(zone, subnet_id=subnet.id, route_table_id=through_nat.id)
    )

kafka = AwsCluster(
    "kafka",
    {
        "region": region,
        "vpc": {"id": vpc.id, "cidr": vpc.cidr_block, "zones": zones, "private_subnets": private},
        "archive": {
            "url": config.require("archive"),
            "sha512": config.require("sha512"),
        },
        "data": config.get("data") or "keep",
        "deletion_protection": protected,
        "policy": config.get_object("policy") or {},
    },
    pulumi.ResourceOptions(depends_on=routes),
)

pulumi.export("vpc", vpc.id)
pulumi.export("bootstrap", kafka.bootstrap)
pulumi.export("instances", kafka.instances)
pulumi.export("proof", kafka.proof)

"""A VPC whose clients reach the brokers of another stack through an endpoint.

Cost: README.md of examples/privatelink. Removal: `pulumi destroy`.
"""

import pulumi
import pulumi_aws as aws
from earshot_pulumi import AwsEndpoint

config = pulumi.Config()
region = config.require("region")
kafka = pulumi.StackReference(config.require("kafka"))
service = kafka.require_output("endpoint_service")

vpc = aws.ec2.Vpc(
    "apps", cidr_block="10.60.0.0/16", enable_dns_support=True, enable_dns_hostnames=True
)
subnets = [
    aws.ec2.Subnet(zone, vpc_id=vpc.id, cidr_block=f"10.60.{number}.0/24", availability_zone=zone)
    for number, zone in enumerate((f"{region}a", f"{region}b"))
]
endpoint = AwsEndpoint(
    "kafka",
    {
        "service_name": service["service_name"],
        "zone_ids": service["zone_ids"],
        "contract": kafka.require_output("contract"),
        "vpc_id": vpc.id,
        "subnets": [subnet.id for subnet in subnets],
        "clients": {"apps": "10.60.0.0/16"},
        "zone": config.get("zone"),
    },
)

pulumi.export("bootstrap", endpoint.bootstrap)
pulumi.export("state", endpoint.state)
pulumi.export("endpoint", endpoint.endpoint_id)
pulumi.export("vpc", vpc.id)

"""Doubles of aws:ec2 Vpc, Subnet and InternetGateway."""

from tests.doubles.aws.cloud import Cloud
from tests.doubles.aws.kind import (
    Ec2Kind,
    arguments,
    aws_name,
    constant,
    filters,
    outputs_of,
    shape,
)
from tests.doubles.plugin.kind import ProviderError
from tests.doubles.plugin.values import Plain

DNS_ATTRIBUTES = ("enableDnsSupport", "enableDnsHostnames")


class Vpc(Ec2Kind):
    """The attributes for DNS are set one by one after creation, as AWS requires."""

    kind_of_arn = "vpc"
    shape = shape("cidrBlock", *DNS_ATTRIBUTES, "tags", "region")
    defaults = constant(enableDnsSupport=True, enableDnsHostnames=False)
    in_place = frozenset(DNS_ATTRIBUTES)
    computed_later = frozenset({"cidrBlock"})
    outputs = frozenset({"arn"})

    def make(self, cloud: Cloud, inputs: Plain) -> str:
        answer = cloud.client("ec2", inputs).create_vpc(**arguments(inputs, "cidrBlock"))
        return str(answer["Vpc"]["VpcId"])

    def find(self, cloud: Cloud, id: str, state: Plain) -> Plain:
        vpc = cloud.client("ec2", state).describe_vpcs(VpcIds=[id])["Vpcs"][0]
        attributes = outputs_of(vpc, "cidrBlock") | dns_attributes(cloud, id, state)
        return self.common(cloud, id, state, vpc) | attributes

    def adjust(self, cloud: Cloud, id: str, current: Plain, inputs: Plain) -> None:
        for name in DNS_ATTRIBUTES:
            wanted_value = inputs.get(name, self.defaults[name])
            if current[name] != wanted_value:
                change = {aws_name(name): {"Value": wanted_value}}
                cloud.client("ec2", inputs).modify_vpc_attribute(VpcId=id, **change)

    def remove(self, cloud: Cloud, id: str, state: Plain) -> None:
        cloud.client("ec2", state).delete_vpc(VpcId=id)


def dns_attributes(cloud: Cloud, vpc: str, state: Plain) -> dict[str, bool]:
    """`enableDnsSupport` and `enableDnsHostnames` of a VPC."""
    ec2 = cloud.client("ec2", state)
    return {
        name: ec2.describe_vpc_attribute(VpcId=vpc, Attribute=name)[aws_name(name)]["Value"]
        for name in DNS_ATTRIBUTES
    }


class Subnet(Ec2Kind):
    kind_of_arn = "subnet"
    shape = shape(
        "vpcId", "cidrBlock", "availabilityZone", "availabilityZoneId", "mapPublicIpOnLaunch",
        "tags", "region",
    )  # fmt: skip
    defaults = constant(mapPublicIpOnLaunch=False)
    in_place = frozenset({"mapPublicIpOnLaunch"})
    computed_later = frozenset({"availabilityZone", "availabilityZoneId"})
    outputs = frozenset({"arn"})

    def make(self, cloud: Cloud, inputs: Plain) -> str:
        answer = cloud.client("ec2", inputs).create_subnet(
            **arguments(inputs, "vpcId", "cidrBlock", "availabilityZone", "availabilityZoneId")
        )
        return str(answer["Subnet"]["SubnetId"])

    def find(self, cloud: Cloud, id: str, state: Plain) -> Plain:
        subnet = cloud.client("ec2", state).describe_subnets(SubnetIds=[id])["Subnets"][0]
        names = self.shape.keys() - {"tags", "region"}
        return self.common(cloud, id, state, subnet) | outputs_of(subnet, *names)

    def adjust(self, cloud: Cloud, id: str, current: Plain, inputs: Plain) -> None:
        wanted_value = inputs.get("mapPublicIpOnLaunch", False)
        if current["mapPublicIpOnLaunch"] != wanted_value:
            cloud.client("ec2", inputs).modify_subnet_attribute(
                SubnetId=id, MapPublicIpOnLaunch={"Value": wanted_value}
            )

    def remove(self, cloud: Cloud, id: str, state: Plain) -> None:
        cloud.client("ec2", state).delete_subnet(SubnetId=id)


class InternetGateway(Ec2Kind):
    kind_of_arn = "internet-gateway"
    shape = shape("vpcId", "tags", "region")
    in_place = frozenset({"vpcId"})
    computed_later = frozenset({"vpcId"})
    outputs = frozenset({"arn"})

    def make(self, cloud: Cloud, inputs: Plain) -> str:
        answer = cloud.client("ec2", inputs).create_internet_gateway()
        return str(answer["InternetGateway"]["InternetGatewayId"])

    def find(self, cloud: Cloud, id: str, state: Plain) -> Plain:
        answer = cloud.client("ec2", state).describe_internet_gateways(InternetGatewayIds=[id])
        gateway = answer["InternetGateways"][0]
        attachments = gateway["Attachments"]
        vpc = attachments[0]["VpcId"] if attachments else None
        return self.common(cloud, id, state, gateway) | {"vpcId": vpc}

    def adjust(self, cloud: Cloud, id: str, current: Plain, inputs: Plain) -> None:
        ec2 = cloud.client("ec2", inputs)
        vpc = inputs.get("vpcId", current["vpcId"])
        if current["vpcId"] == vpc:
            return
        if current["vpcId"]:
            ec2.detach_internet_gateway(InternetGatewayId=id, VpcId=current["vpcId"])
        ec2.attach_internet_gateway(InternetGatewayId=id, VpcId=vpc)

    def remove(self, cloud: Cloud, id: str, state: Plain) -> None:
        ec2 = cloud.client("ec2", state)
        if vpc := self.find(cloud, id, state)["vpcId"]:
            ec2.detach_internet_gateway(InternetGatewayId=id, VpcId=vpc)
        ec2.delete_internet_gateway(InternetGatewayId=id)


def needs_gateway(cloud: Cloud, vpc: str, values: Plain, call: str) -> None:
    """Raises ProviderError, as EC2 does, for a public address in a VPC without internet gateway."""
    attachment_filters = filters({"attachment.vpc-id": vpc})
    answer = cloud.client("ec2", values).describe_internet_gateways(Filters=attachment_filters)
    if not answer["InternetGateways"]:
        raise ProviderError(
            f"{call}: Gateway.NotAttached: network {vpc} is not attached to any internet gateway"
        )

"""Doubles of aws:ec2 Vpc, Subnet and InternetGateway."""

from tests.doubles.aws.cloud import Cloud
from tests.doubles.aws.kind import Ec2Kind, constant, given, shape
from tests.doubles.plugin.kind import ProviderError
from tests.doubles.plugin.values import Plain

DNS_ATTRIBUTES = {
    "enableDnsSupport": "EnableDnsSupport",
    "enableDnsHostnames": "EnableDnsHostnames",
}


class Vpc(Ec2Kind):
    """The attributes for DNS are set one by one after creation, as AWS wants it."""

    kind_of_arn = "vpc"
    shape = shape("cidrBlock", *DNS_ATTRIBUTES, "tags", "region")
    defaults = constant(enableDnsSupport=True, enableDnsHostnames=False)
    in_place = frozenset(DNS_ATTRIBUTES)
    settled_later = frozenset({"cidrBlock", "region"})
    outputs = frozenset(
        {"arn", "ownerId", "tagsAll", "defaultNetworkAclId", "defaultRouteTableId",
         "defaultSecurityGroupId", "dhcpOptionsId", "mainRouteTableId"}
    )  # fmt: skip
    absent = frozenset({"ipv6AssociationId"})

    def make(self, cloud: Cloud, inputs: Plain) -> str:
        arguments = given(inputs, CidrBlock="cidrBlock")
        return str(cloud.client("ec2", inputs).create_vpc(**arguments)["Vpc"]["VpcId"])

    def find(self, cloud: Cloud, id: str, state: Plain) -> Plain:
        ec2 = cloud.client("ec2", state)
        found = ec2.describe_vpcs(VpcIds=[id])["Vpcs"][0]
        of_vpc = [{"Name": "vpc-id", "Values": [id]}]
        default = [{"Name": "default", "Values": ["true"]}]
        named_default = [{"Name": "group-name", "Values": ["default"]}]
        main = [{"Name": "association.main", "Values": ["true"]}]
        acls = ec2.describe_network_acls(Filters=of_vpc + default)["NetworkAcls"]
        groups = ec2.describe_security_groups(Filters=of_vpc + named_default)["SecurityGroups"]
        tables = ec2.describe_route_tables(Filters=of_vpc + main)["RouteTables"]
        return self.common(cloud, id, state, found) | {
            "cidrBlock": found["CidrBlock"],
            "dhcpOptionsId": found.get("DhcpOptionsId"),
            "defaultNetworkAclId": acls[0]["NetworkAclId"] if acls else None,
            "defaultSecurityGroupId": groups[0]["GroupId"] if groups else None,
            "defaultRouteTableId": tables[0]["RouteTableId"] if tables else None,
            "mainRouteTableId": tables[0]["RouteTableId"] if tables else None,
            **dns_attributes(cloud, id, state),
        }

    def adjust(self, cloud: Cloud, id: str, found: Plain, inputs: Plain) -> None:
        for name, attribute in DNS_ATTRIBUTES.items():
            wanted = inputs.get(name, self.defaults[name])
            if found[name] != wanted:
                change = {attribute: {"Value": wanted}}
                cloud.client("ec2", inputs).modify_vpc_attribute(VpcId=id, **change)

    def remove(self, cloud: Cloud, id: str, state: Plain) -> None:
        cloud.client("ec2", state).delete_vpc(VpcId=id)


def dns_attributes(cloud: Cloud, vpc: str, state: Plain) -> dict[str, bool]:
    """`enableDnsSupport` and `enableDnsHostnames` of a VPC as they are now."""
    ec2 = cloud.client("ec2", state)
    return {
        name: ec2.describe_vpc_attribute(VpcId=vpc, Attribute=name)[attribute]["Value"]
        for name, attribute in DNS_ATTRIBUTES.items()
    }


class Subnet(Ec2Kind):
    kind_of_arn = "subnet"
    shape = shape(
        "vpcId", "cidrBlock", "availabilityZone", "availabilityZoneId", "mapPublicIpOnLaunch",
        "tags", "region",
    )  # fmt: skip
    defaults = constant(mapPublicIpOnLaunch=False)
    in_place = frozenset({"mapPublicIpOnLaunch"})
    settled_later = frozenset({"availabilityZone", "availabilityZoneId", "region"})
    outputs = frozenset({"arn", "ownerId", "tagsAll"})
    absent = frozenset({"ipv6CidrBlockAssociationId"})

    def make(self, cloud: Cloud, inputs: Plain) -> str:
        arguments = given(
            inputs,
            VpcId="vpcId",
            CidrBlock="cidrBlock",
            AvailabilityZone="availabilityZone",
            AvailabilityZoneId="availabilityZoneId",
        )
        return str(cloud.client("ec2", inputs).create_subnet(**arguments)["Subnet"]["SubnetId"])

    def find(self, cloud: Cloud, id: str, state: Plain) -> Plain:
        found = cloud.client("ec2", state).describe_subnets(SubnetIds=[id])["Subnets"][0]
        return self.common(cloud, id, state, found) | {
            "vpcId": found["VpcId"],
            "cidrBlock": found["CidrBlock"],
            "availabilityZone": found["AvailabilityZone"],
            "availabilityZoneId": found["AvailabilityZoneId"],
            "mapPublicIpOnLaunch": found["MapPublicIpOnLaunch"],
        }

    def adjust(self, cloud: Cloud, id: str, found: Plain, inputs: Plain) -> None:
        wanted = inputs.get("mapPublicIpOnLaunch", False)
        if found["mapPublicIpOnLaunch"] != wanted:
            cloud.client("ec2", inputs).modify_subnet_attribute(
                SubnetId=id, MapPublicIpOnLaunch={"Value": wanted}
            )

    def remove(self, cloud: Cloud, id: str, state: Plain) -> None:
        cloud.client("ec2", state).delete_subnet(SubnetId=id)


class InternetGateway(Ec2Kind):
    kind_of_arn = "internet-gateway"
    shape = shape("vpcId", "tags", "region")
    in_place = frozenset({"vpcId"})
    settled_later = frozenset({"vpcId", "region"})
    outputs = frozenset({"arn", "ownerId", "tagsAll"})

    def make(self, cloud: Cloud, inputs: Plain) -> str:
        made = cloud.client("ec2", inputs).create_internet_gateway()
        return str(made["InternetGateway"]["InternetGatewayId"])

    def find(self, cloud: Cloud, id: str, state: Plain) -> Plain:
        ec2 = cloud.client("ec2", state)
        found = ec2.describe_internet_gateways(InternetGatewayIds=[id])["InternetGateways"][0]
        attached = found["Attachments"]
        return self.common(cloud, id, state, found) | {
            "vpcId": attached[0]["VpcId"] if attached else None
        }

    def adjust(self, cloud: Cloud, id: str, found: Plain, inputs: Plain) -> None:
        ec2 = cloud.client("ec2", inputs)
        wanted = inputs.get("vpcId", found["vpcId"])
        if found["vpcId"] == wanted:
            return
        if found["vpcId"]:
            ec2.detach_internet_gateway(InternetGatewayId=id, VpcId=found["vpcId"])
        ec2.attach_internet_gateway(InternetGatewayId=id, VpcId=wanted)

    def remove(self, cloud: Cloud, id: str, state: Plain) -> None:
        ec2 = cloud.client("ec2", state)
        if vpc := self.find(cloud, id, state)["vpcId"]:
            ec2.detach_internet_gateway(InternetGatewayId=id, VpcId=vpc)
        ec2.delete_internet_gateway(InternetGatewayId=id)


def needs_gateway(cloud: Cloud, vpc: str, values: Plain, call: str) -> None:
    """As EC2 has it, a VPC takes public addresses once it has a way to the internet."""
    attached = [{"Name": "attachment.vpc-id", "Values": [vpc]}]
    listed = cloud.client("ec2", values).describe_internet_gateways(Filters=attached)
    if not listed["InternetGateways"]:
        raise ProviderError(
            f"{call}: Gateway.NotAttached: network {vpc} is not attached to any internet gateway"
        )

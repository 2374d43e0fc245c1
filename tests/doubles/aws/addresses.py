"""Doubles of aws:ec2 Eip and EipAssociation.

The public name of an Elastic IP is the official plugin's own: made from address and region,
whatever the VPC's attributes say. Only an instance's public name depends on them.
"""

import ipaddress
import os
import threading
from collections.abc import Iterator

from tests.doubles.aws.cloud import Cloud
from tests.doubles.aws.interfaces import described
from tests.doubles.aws.kind import AwsKind, Ec2Kind, given, shape
from tests.doubles.aws.names import private_name, public_name
from tests.doubles.aws.network import needs_gateway
from tests.doubles.plugin.kind import ProviderError
from tests.doubles.plugin.values import Plain

POOL_VARIABLE = "AWS_DOUBLE_ELASTIC_IPS"
"""A range, as 203.0.113.0/24, from which Elastic IPs are given; else they are moto's 127.x.y.z."""
_allocating = threading.Lock()


class Eip(Ec2Kind):
    kind_of_arn = "elastic-ip"
    shape = shape(
        "domain", "address", "instance", "networkInterface", "tags",
        "region",
    )  # fmt: skip
    in_place = frozenset({"instance", "networkInterface"})
    settled_later = frozenset({"domain", "address", "instance", "networkInterface", "region"})
    outputs = frozenset(
        {"allocationId", "arn", "associationId", "privateDns", "privateIp", "publicDns",
         "publicIp", "tagsAll"}
    )  # fmt: skip
    absent = frozenset({"carrierIp", "customerOwnedIp", "ptrRecord"})

    def objections(self, inputs: Plain) -> Iterator[tuple[str, str]]:
        if inputs.get("domain", "vpc") != "vpc":
            yield "domain", "this test double of the AWS provider knows only vpc"

    def make(self, cloud: Cloud, inputs: Plain) -> str:
        ec2 = cloud.client("ec2", inputs)
        with _allocating:
            arguments = given(inputs, Address="address")
            if not arguments and (pool := os.environ.get(POOL_VARIABLE)):
                arguments["Address"] = _first_free(cloud, inputs, pool)
            return str(ec2.allocate_address(Domain="vpc", **arguments)["AllocationId"])

    def find(self, cloud: Cloud, id: str, state: Plain) -> Plain:
        found = cloud.client("ec2", state).describe_addresses(AllocationIds=[id])["Addresses"][0]
        region = cloud.region_of(state)
        private = found.get("PrivateIpAddress")
        return self.common(cloud, id, state, found) | {
            "allocationId": id,
            "domain": found["Domain"],
            "publicIp": found["PublicIp"],
            "publicDns": public_name(found["PublicIp"], region),
            "privateIp": private,
            "privateDns": private_name(private, region) if private else None,
            "associationId": found.get("AssociationId"),
            "instance": found.get("InstanceId") or None,
            "networkInterface": found.get("NetworkInterfaceId") or None,
        }

    def adjust(self, cloud: Cloud, id: str, found: Plain, inputs: Plain) -> None:
        names = {"instance": "InstanceId", "networkInterface": "NetworkInterfaceId"}
        if all(inputs.get(name) in (None, found[name]) for name in names):
            return
        _bind(
            cloud, inputs, id, given(inputs, **{argument: name for name, argument in names.items()})
        )

    def remove(self, cloud: Cloud, id: str, state: Plain) -> None:
        ec2 = cloud.client("ec2", state)
        if association := self.find(cloud, id, state)["associationId"]:
            ec2.disassociate_address(AssociationId=association)
        ec2.release_address(AllocationId=id)


class EipAssociation(AwsKind):
    shape = shape("allocationId", "networkInterfaceId", "instanceId", "region")
    settled_later = frozenset({"networkInterfaceId", "instanceId", "region"})
    outputs = frozenset({"privateIpAddress", "publicIp"})

    def make(self, cloud: Cloud, inputs: Plain) -> str:
        to = given(inputs, NetworkInterfaceId="networkInterfaceId", InstanceId="instanceId")
        return _bind(cloud, inputs, inputs["allocationId"], to)

    def find(self, cloud: Cloud, id: str, state: Plain) -> Plain | None:
        of_this = [{"Name": "association-id", "Values": [id]}]
        found = cloud.client("ec2", state).describe_addresses(Filters=of_this)["Addresses"]
        if not found:
            return None
        return {
            "allocationId": found[0]["AllocationId"],
            "networkInterfaceId": found[0].get("NetworkInterfaceId") or None,
            "instanceId": found[0].get("InstanceId") or None,
            "privateIpAddress": found[0].get("PrivateIpAddress"),
            "publicIp": found[0]["PublicIp"],
        }

    def remove(self, cloud: Cloud, id: str, state: Plain) -> None:
        cloud.client("ec2", state).disassociate_address(AssociationId=id)


def _bind(cloud: Cloud, inputs: Plain, allocation: str, to: dict[str, str]) -> str:
    """The id of the new association."""
    ec2 = cloud.client("ec2", inputs)
    if "NetworkInterfaceId" in to:
        vpc = described(cloud, to["NetworkInterfaceId"], inputs)["VpcId"]
    else:
        listed = ec2.describe_instances(InstanceIds=[to["InstanceId"]])
        vpc = listed["Reservations"][0]["Instances"][0]["VpcId"]
    needs_gateway(cloud, vpc, inputs, "AssociateAddress")
    made = ec2.associate_address(AllocationId=allocation, AllowReassociation=True, **to)
    return str(made["AssociationId"])


def _first_free(cloud: Cloud, inputs: Plain, pool: str) -> str:
    taken = {
        item["PublicIp"] for item in cloud.client("ec2", inputs).describe_addresses()["Addresses"]
    }
    for address in ipaddress.ip_network(pool).hosts():
        if str(address) not in taken:
            return str(address)
    raise ProviderError(f"AllocateAddress: AddressLimitExceeded: every address of {pool} is taken")

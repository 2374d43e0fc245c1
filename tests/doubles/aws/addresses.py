"""Doubles of aws:ec2 Eip and EipAssociation.

The official plugin computes the public name of an Elastic IP from its address and region, not from
the VPC's attributes. Only an instance's public name depends on them.
"""

import ipaddress
import os
import threading
from collections.abc import Iterator

from tests.doubles.aws.cloud import Cloud
from tests.doubles.aws.interfaces import interface_of
from tests.doubles.aws.kind import AwsKind, Ec2Kind, arguments, filters, outputs_of, shape
from tests.doubles.aws.names import private_name, public_name
from tests.doubles.aws.network import needs_gateway
from tests.doubles.plugin.kind import ProviderError
from tests.doubles.plugin.values import Plain

POOL_VARIABLE = "AWS_DOUBLE_ELASTIC_IPS"
"""A range of Elastic IPs, such as 203.0.113.0/24. Without it they are moto's 127.x.y.z."""
_allocating = threading.Lock()


class Eip(Ec2Kind):
    kind_of_arn = "elastic-ip"
    shape = shape("domain", "tags", "region")
    computed_later = frozenset({"domain"})
    outputs = frozenset(
        {"allocationId", "arn", "associationId", "privateDns", "privateIp", "publicDns",
         "publicIp"}
    )  # fmt: skip

    def objections(self, inputs: Plain) -> Iterator[tuple[str, str]]:
        if inputs.get("domain", "vpc") != "vpc":
            yield "domain", "this test double of the AWS provider knows only vpc"

    def make(self, cloud: Cloud, inputs: Plain) -> str:
        ec2 = cloud.client("ec2", inputs)
        with _allocating:
            pool = os.environ.get(POOL_VARIABLE)
            address = {"Address": _first_free(cloud, inputs, pool)} if pool else {}
            return str(ec2.allocate_address(Domain="vpc", **address)["AllocationId"])

    def find(self, cloud: Cloud, id: str, state: Plain) -> Plain:
        address = cloud.client("ec2", state).describe_addresses(AllocationIds=[id])["Addresses"][0]
        region = cloud.region_of(state)
        private = address.get("PrivateIpAddress")
        return self.common(cloud, id, state, address) | {
            **outputs_of(address, "domain", "publicIp", "associationId"),
            "allocationId": id,
            "publicDns": public_name(address["PublicIp"], region),
            "privateIp": private,
            "privateDns": private_name(private, region) if private else None,
        }

    def remove(self, cloud: Cloud, id: str, state: Plain) -> None:
        ec2 = cloud.client("ec2", state)
        if association := self.find(cloud, id, state)["associationId"]:
            ec2.disassociate_address(AssociationId=association)
        ec2.release_address(AllocationId=id)


class EipAssociation(AwsKind):
    shape = shape("allocationId", "networkInterfaceId", "instanceId", "region")
    computed_later = frozenset({"networkInterfaceId", "instanceId"})
    outputs = frozenset({"publicIp"})

    def make(self, cloud: Cloud, inputs: Plain) -> str:
        ec2, target = cloud.client("ec2", inputs), arguments(inputs, *self.computed_later)
        if "NetworkInterfaceId" in target:
            vpc = interface_of(cloud, target["NetworkInterfaceId"], inputs)["VpcId"]
        else:
            answer = ec2.describe_instances(InstanceIds=[target["InstanceId"]])
            vpc = answer["Reservations"][0]["Instances"][0]["VpcId"]
        needs_gateway(cloud, vpc, inputs, "AssociateAddress")
        allocation = {"AllocationId": inputs["allocationId"], "AllowReassociation": True}
        return str(ec2.associate_address(**allocation, **target)["AssociationId"])

    def find(self, cloud: Cloud, id: str, state: Plain) -> Plain | None:
        association = filters({"association-id": id})
        ec2 = cloud.client("ec2", state)
        for address in ec2.describe_addresses(Filters=association)["Addresses"]:
            return outputs_of(address, "allocationId", "publicIp") | {
                "networkInterfaceId": address.get("NetworkInterfaceId") or None,
                "instanceId": address.get("InstanceId") or None,
            }
        return None

    def remove(self, cloud: Cloud, id: str, state: Plain) -> None:
        cloud.client("ec2", state).disassociate_address(AssociationId=id)


def _first_free(cloud: Cloud, inputs: Plain, pool: str) -> str:
    addresses = cloud.client("ec2", inputs).describe_addresses()["Addresses"]
    allocated = {address["PublicIp"] for address in addresses}
    for address in map(str, ipaddress.ip_network(pool).hosts()):
        if address not in allocated:
            return address
    raise ProviderError(f"AllocateAddress: AddressLimitExceeded: every address of {pool} is taken")

"""Double of aws:ec2 NetworkInterface.

Its private name is said as AWS says it: in the region's own form, and only while the VPC has both
of its attributes for DNS. moto knows it in one form, as it was when the interface was made.
"""

from tests.doubles.aws.cloud import Cloud
from tests.doubles.aws.kind import Ec2Kind, given, shape
from tests.doubles.aws.names import private_name
from tests.doubles.aws.network import dns_attributes
from tests.doubles.plugin.kind import ProviderError
from tests.doubles.plugin.values import Plain


class NetworkInterface(Ec2Kind):
    kind_of_arn = "network-interface"
    shape = shape(
        "subnetId", "privateIps", "privateIp", "securityGroups", "description", "tags", "region",
    )  # fmt: skip
    in_place = frozenset({"securityGroups", "description"})
    unordered = frozenset({"securityGroups", "privateIps"})
    settled_later = frozenset({"privateIps", "privateIp", "securityGroups", "region"})
    outputs = frozenset({"arn", "ownerId", "tagsAll", "macAddress", "privateDnsName"})
    absent = frozenset({"outpostArn"})

    def make(self, cloud: Cloud, inputs: Plain) -> str:
        addresses = inputs.get("privateIps") or [inputs.get("privateIp")]
        wanted = [address for address in addresses if address]
        self._none_taken(cloud, inputs, wanted)
        arguments = given(
            inputs, SubnetId="subnetId", Description="description", Groups="securityGroups"
        )
        if wanted:
            arguments["PrivateIpAddresses"] = [
                {"PrivateIpAddress": address, "Primary": address == wanted[0]} for address in wanted
            ]
        made = cloud.client("ec2", inputs).create_network_interface(**arguments)
        return str(made["NetworkInterface"]["NetworkInterfaceId"])

    def find(self, cloud: Cloud, id: str, state: Plain) -> Plain:
        found = described(cloud, id, state)
        attributes = dns_attributes(cloud, found["VpcId"], state)
        address = found["PrivateIpAddress"]
        region = cloud.region_of(state)
        return self.common(cloud, id, state, found) | {
            "subnetId": found["SubnetId"],
            "privateIp": address,
            "privateIps": [item["PrivateIpAddress"] for item in found["PrivateIpAddresses"]],
            "privateDnsName": private_name(address, region) if all(attributes.values()) else "",
            "macAddress": found["MacAddress"],
            "securityGroups": [group["GroupId"] for group in found["Groups"]],
            "description": found["Description"],
        }

    def adjust(self, cloud: Cloud, id: str, found: Plain, inputs: Plain) -> None:
        ec2 = cloud.client("ec2", inputs)
        groups: list[str] = inputs.get("securityGroups") or found["securityGroups"]
        if sorted(groups) != sorted(found["securityGroups"]):
            ec2.modify_network_interface_attribute(NetworkInterfaceId=id, Groups=groups)
        description = inputs.get("description", "")
        if description != found["description"]:
            ec2.modify_network_interface_attribute(
                NetworkInterfaceId=id, Description={"Value": description}
            )

    def remove(self, cloud: Cloud, id: str, state: Plain) -> None:
        if taken := holder(cloud, described(cloud, id, state), state):
            raise ProviderError(
                f"DeleteNetworkInterface: InvalidNetworkInterface.InUse: {id} is attached to"
                f" {taken}"
            )
        cloud.client("ec2", state).delete_network_interface(NetworkInterfaceId=id)

    def _none_taken(self, cloud: Cloud, inputs: Plain, wanted: list[str]) -> None:
        """As EC2 has it: an address of a subnet has one owner. moto gives it twice."""
        of_subnet = [{"Name": "subnet-id", "Values": [inputs["subnetId"]]}]
        ec2 = cloud.client("ec2", inputs)
        for other in ec2.describe_network_interfaces(Filters=of_subnet)["NetworkInterfaces"]:
            for item in other["PrivateIpAddresses"]:
                if item["PrivateIpAddress"] in wanted:
                    raise ProviderError(
                        f"CreateNetworkInterface: InvalidIPAddress.InUse: the address"
                        f" {item['PrivateIpAddress']} is in use by {other['NetworkInterfaceId']}"
                    )


def described(cloud: Cloud, id: str, state: Plain) -> Plain:
    """What EC2 says of a network interface."""
    found = cloud.client("ec2", state).describe_network_interfaces(NetworkInterfaceIds=[id])
    interface: Plain = found["NetworkInterfaces"][0]
    return interface


def holder(cloud: Cloud, interface: Plain, values: Plain) -> str | None:
    """The instance that has the interface; moto forgets to take it off one that was terminated."""
    id: str | None = interface.get("Attachment", {}).get("InstanceId")
    if id is None:
        return None
    found = cloud.client("ec2", values).describe_instances(InstanceIds=[id])
    state = found["Reservations"][0]["Instances"][0]["State"]["Name"]
    return None if state == "terminated" else id

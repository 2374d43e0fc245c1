"""Double of aws:ec2 NetworkInterface.

Its private name is AWS's: in the region's own form, and only while both attributes for DNS of the
VPC are on. moto has one form, and keeps the name from the creation.
"""

from tests.doubles.aws.cloud import Cloud
from tests.doubles.aws.kind import Ec2Kind, arguments, outputs_of, shape
from tests.doubles.aws.names import private_name
from tests.doubles.aws.network import dns_attributes
from tests.doubles.plugin.kind import ProviderError
from tests.doubles.plugin.values import Plain


class NetworkInterface(Ec2Kind):
    kind_of_arn = "network-interface"
    shape = shape("subnetId", "securityGroups", "description", "tags", "region")
    in_place = frozenset({"securityGroups", "description"})
    unordered = computed_later = frozenset({"securityGroups"})
    outputs = frozenset({"arn", "privateIp", "privateDnsName"})

    def make(self, cloud: Cloud, inputs: Plain) -> str:
        answer = cloud.client("ec2", inputs).create_network_interface(
            **arguments(inputs, "subnetId", "description", Groups="securityGroups")
        )
        return str(answer["NetworkInterface"]["NetworkInterfaceId"])

    def find(self, cloud: Cloud, id: str, state: Plain) -> Plain:
        interface = interface_of(cloud, id, state)
        has_name = all(dns_attributes(cloud, interface["VpcId"], state).values())
        address = interface["PrivateIpAddress"]
        name = private_name(address, cloud.region_of(state))
        return self.common(cloud, id, state, interface) | {
            **outputs_of(interface, "subnetId", "description"),
            "privateIp": address,
            "privateDnsName": name if has_name else "",
            "securityGroups": [group["GroupId"] for group in interface["Groups"]],
        }

    def adjust(self, cloud: Cloud, id: str, current: Plain, inputs: Plain) -> None:
        ec2 = cloud.client("ec2", inputs)
        groups: list[str] = inputs.get("securityGroups") or current["securityGroups"]
        if sorted(groups) != sorted(current["securityGroups"]):
            ec2.modify_network_interface_attribute(NetworkInterfaceId=id, Groups=groups)
        text = inputs.get("description", "")
        if text != current["description"]:
            description = {"Value": text}
            ec2.modify_network_interface_attribute(NetworkInterfaceId=id, Description=description)

    def remove(self, cloud: Cloud, id: str, state: Plain) -> None:
        if instance := holder(cloud, interface_of(cloud, id, state), state):
            raise ProviderError(
                f"DeleteNetworkInterface: InvalidNetworkInterface.InUse: {id} is attached to"
                f" {instance}"
            )
        cloud.client("ec2", state).delete_network_interface(NetworkInterfaceId=id)


def interface_of(cloud: Cloud, id: str, state: Plain) -> Plain:
    """EC2's description of a network interface."""
    answer = cloud.client("ec2", state).describe_network_interfaces(NetworkInterfaceIds=[id])
    interface: Plain = answer["NetworkInterfaces"][0]
    return interface


def holder(cloud: Cloud, interface: Plain, values: Plain) -> str | None:
    """The instance with the interface. moto does not detach it from a terminated one."""
    id: str | None = interface.get("Attachment", {}).get("InstanceId")
    if id is None:
        return None
    answer = cloud.client("ec2", values).describe_instances(InstanceIds=[id])
    state = answer["Reservations"][0]["Instances"][0]["State"]["Name"]
    return None if state == "terminated" else id

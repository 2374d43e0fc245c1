"""Double of aws:ec2:Instance, after what EC2 and the official plugin are known to do:

- an interface that is given is attached to one instance at a time, and outlives it;
- changed user data stop and start the instance, or replace it with `userDataReplaceOnChange`;
- a public name only while the VPC has both of its attributes for DNS;
- an unknown image, one of another architecture and too much user data are refused.

User data that are taken away are a replacement here, where the official plugin updates: moto cannot
change them so on a running instance.
"""

import base64
from collections.abc import Iterator
from typing import Any

from tests.doubles.aws.cloud import Cloud
from tests.doubles.aws.instance_options import (
    METADATA,
    ROOT,
    arguments,
    encoded_user_data,
    metadata_found,
    raw_user_data,
)
from tests.doubles.aws.instance_parts import (
    adjust_groups,
    adjust_profile,
    adjust_root,
    release,
    root_found,
    stopped,
)
from tests.doubles.aws.interfaces import described, holder
from tests.doubles.aws.kind import Ec2Kind, constant, pairs, shape
from tests.doubles.aws.names import public_name
from tests.doubles.aws.network import dns_attributes
from tests.doubles.plugin.kind import ProviderError
from tests.doubles.plugin.values import Plain

USER_DATA_BYTES = 16 * 1024
# Attributes that EC2 changes by themselves: the input, EC2's name, whether the instance must stop.
ATTRIBUTES = {
    "instanceType": ("InstanceType", True),
    "disableApiTermination": ("DisableApiTermination", False),
}


class Instance(Ec2Kind):
    kind_of_arn = "instance"
    shape = shape(
        "ami", "availabilityZone", "subnetId", "vpcSecurityGroupIds", "privateIp",
        "iamInstanceProfile", "userData", "userDataBase64", "userDataReplaceOnChange",
        "forceDestroy", *ATTRIBUTES, "tags", "region",
        metadataOptions=METADATA,
        primaryNetworkInterface=shape("networkInterfaceId"),
        rootBlockDevice=ROOT,
    )  # fmt: skip
    defaults = constant(
        userDataReplaceOnChange=False, forceDestroy=False, disableApiTermination=False
    )
    in_place = frozenset(
        {*ATTRIBUTES, "vpcSecurityGroupIds", "iamInstanceProfile", "userData", "userDataBase64",
         "userDataReplaceOnChange", "forceDestroy", "metadataOptions", "rootBlockDevice"}
    )  # fmt: skip
    unordered = frozenset({"vpcSecurityGroupIds"})
    settled_later = frozenset(
        {"availabilityZone", "subnetId", "vpcSecurityGroupIds", "privateIp",
         "metadataOptions", "rootBlockDevice", "primaryNetworkInterface", "region"}
    )  # fmt: skip
    outputs = frozenset(
        {"arn", "instanceState", "primaryNetworkInterfaceId", "privateDns", "publicDns", "publicIp",
         "tagsAll"}
    )  # fmt: skip
    absent = frozenset({"instanceLifecycle", "outpostArn", "passwordData", "spotInstanceRequestId"})

    def objections(self, inputs: Plain) -> Iterator[tuple[str, str]]:
        beside = {"subnetId", "vpcSecurityGroupIds", "privateIp"}
        if "primaryNetworkInterface" in inputs:
            for name in sorted(beside & inputs.keys()):
                yield name, "conflicts with primaryNetworkInterface, whose own counts"
        if "userData" in inputs and "userDataBase64" in inputs:
            yield "userDataBase64", "conflicts with userData"

    def needs_replacement(self, name: str, state: Plain, inputs: Plain) -> bool:
        if name in ("userData", "userDataBase64"):
            left = inputs.get("userData") or inputs.get("userDataBase64")
            return bool(inputs.get("userDataReplaceOnChange") or not left)
        if name == "rootBlockDevice":
            old, new = state.get(name, {}), inputs.get(name, {})
            return "encrypted" in new and new["encrypted"] != old.get("encrypted")
        return super().needs_replacement(name, state, inputs)

    def make(self, cloud: Cloud, inputs: Plain) -> str:
        ec2 = cloud.client("ec2", inputs)
        image = self._image(ec2, inputs)
        _within_limit(raw_user_data(inputs))
        if given := inputs.get("primaryNetworkInterface"):
            id = given["networkInterfaceId"]
            if taken := holder(cloud, described(cloud, id, inputs), inputs):
                raise ProviderError(
                    f"RunInstances: InvalidNetworkInterface.InUse: interface {id} is in use by"
                    f" {taken}"
                )
        # from its first moment, as the official plugin has it
        tags = pairs(inputs.get("tagsAll", {}))
        tagged = [{"ResourceType": "instance", "Tags": tags}] if tags else []
        made = ec2.run_instances(
            MinCount=1, MaxCount=1, TagSpecifications=tagged, **arguments(inputs, image)
        )
        return str(made["Instances"][0]["InstanceId"])

    def find(self, cloud: Cloud, id: str, state: Plain) -> Plain | None:
        ec2 = cloud.client("ec2", state)
        reservation = ec2.describe_instances(InstanceIds=[id])["Reservations"][0]
        found = reservation["Instances"][0]
        if found["State"]["Name"] in ("terminated", "shutting-down"):
            return None
        primary = found["NetworkInterfaces"][0]
        address = found.get("PublicIpAddress")
        named = address and all(dns_attributes(cloud, found["VpcId"], state).values())
        result = self.common(cloud, id, state, found | {"OwnerId": reservation["OwnerId"]}) | {
            "ami": found["ImageId"],
            "instanceType": found["InstanceType"],
            "instanceState": found["State"]["Name"],
            "availabilityZone": found["Placement"]["AvailabilityZone"],
            "subnetId": primary["SubnetId"],
            "vpcSecurityGroupIds": [group["GroupId"] for group in primary["Groups"]],
            "primaryNetworkInterfaceId": primary["NetworkInterfaceId"],
            "privateIp": primary["PrivateIpAddress"],
            "privateDns": found["PrivateDnsName"],
            "publicIp": address or "",
            "publicDns": public_name(address, cloud.region_of(state)) if named else "",
            "iamInstanceProfile": _name(found.get("IamInstanceProfile", {}).get("Arn")),
            "metadataOptions": metadata_found(found["MetadataOptions"]),
            "rootBlockDevice": root_found(cloud, found, state),
            **encoded_user_data(self._attribute(ec2, id, "userData"), state),
        }
        for name, (attribute, _) in ATTRIBUTES.items():
            result[name] = self._attribute(ec2, id, name, attribute)
        if "primaryNetworkInterface" in state:
            result["primaryNetworkInterface"] = {
                "networkInterfaceId": primary["NetworkInterfaceId"]
            }
        return result

    def adjust(self, cloud: Cloud, id: str, found: Plain, inputs: Plain) -> None:
        ec2 = cloud.client("ec2", inputs)
        wanted = {name: inputs.get(name, self.defaults.get(name)) for name in ATTRIBUTES}
        changes = [name for name in ATTRIBUTES if wanted[name] != found[name]]
        running: list[Plain] = []
        still: list[Plain] = []
        for name in changes:
            attribute, must_stop = ATTRIBUTES[name]
            (still if must_stop else running).append({attribute: {"Value": wanted[name]}})
        data = raw_user_data(inputs)
        if data != raw_user_data(found):
            _within_limit(data)
            # boto3 encodes it once, moto decodes it twice
            still.append({"UserData": {"Value": base64.b64encode(data)}})
        if still:
            with stopped(ec2, id):
                for change in still:
                    ec2.modify_instance_attribute(InstanceId=id, **change)
        for change in running:
            ec2.modify_instance_attribute(InstanceId=id, **change)
        options = inputs.get("metadataOptions", {})
        if any(found["metadataOptions"].get(name) != value for name, value in options.items()):
            arguments = {name[0].upper() + name[1:]: value for name, value in options.items()}
            ec2.modify_instance_metadata_options(InstanceId=id, **arguments)
        adjust_groups(ec2, found, inputs)
        adjust_profile(ec2, id, found, inputs)
        adjust_root(cloud, found, inputs)

    def remove(self, cloud: Cloud, id: str, state: Plain) -> None:
        ec2 = cloud.client("ec2", state)
        found = self.find(cloud, id, state)
        if found is None:
            return
        if state.get("forceDestroy"):
            off: dict[str, Any] = {"DisableApiTermination": {"Value": False}}
            ec2.modify_instance_attribute(InstanceId=id, **off)
        ec2.terminate_instances(InstanceIds=[id])
        release(ec2, found, keep_interface="primaryNetworkInterface" in state)

    def _attribute(self, ec2: Any, id: str, name: str, attribute: str = "") -> Any:
        answer = ec2.describe_instance_attribute(InstanceId=id, Attribute=name)
        return answer.get(attribute or name[0].upper() + name[1:], {}).get("Value")

    def _image(self, ec2: Any, inputs: Plain) -> Plain:
        """The image, if instances of the wanted type can run it."""
        known = [{"Name": "image-id", "Values": [inputs["ami"]]}]
        found = ec2.describe_images(Filters=known)["Images"]
        if not found:
            raise ProviderError(
                f"RunInstances: InvalidAMIID.NotFound: the image id {inputs['ami']} does not exist"
            )
        image: Plain = found[0]
        type = inputs["instanceType"]
        offered = ec2.describe_instance_types(InstanceTypes=[type])["InstanceTypes"][0]
        able = offered["ProcessorInfo"]["SupportedArchitectures"]
        if image["Architecture"] not in able:
            raise ProviderError(
                f"RunInstances: InvalidParameterValue: the architecture of {type}"
                f" ({', '.join(able)}) does not match the image's ({image['Architecture']})"
            )
        return image


def _within_limit(data: bytes) -> None:
    if len(data) > USER_DATA_BYTES:
        raise ProviderError(
            f"RunInstances: InvalidParameterValue: user data is limited to {USER_DATA_BYTES} bytes,"
            f" these are {len(data)}"
        )


def _name(arn: str | None) -> str | None:
    return arn.rpartition("/")[2] if arn else None

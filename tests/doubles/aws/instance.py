"""Double of aws:ec2:Instance, after EC2 and the official plugin:

- an interface in the inputs is attached to one instance at a time, and outlives it;
- changed user data stop and start the instance, or replace it with `userDataReplaceOnChange`;
- a public name only while the VPC has both of its attributes for DNS;
- an unknown image, one of another architecture and too much user data are refused.

Removed user data are a replacement here, where the official plugin updates: moto cannot remove them
from a running instance.
"""

import base64
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.doubles.aws.cloud import ClientError, Cloud, is_missing
from tests.doubles.aws.instance_options import (
    METADATA,
    ROOT,
    launch_options,
    metadata_found,
)
from tests.doubles.aws.interfaces import holder, interface_of
from tests.doubles.aws.kind import (
    Ec2Kind,
    arguments,
    aws_name,
    constant,
    filters,
    pairs,
    shape,
    tags_of,
)
from tests.doubles.aws.names import public_name
from tests.doubles.aws.network import dns_attributes
from tests.doubles.aws.volumes import modify_volume
from tests.doubles.plugin.kind import ProviderError
from tests.doubles.plugin.values import Plain

USER_DATA_BYTES = 16 * 1024
ATTRIBUTES = {"instanceType": True, "disableApiTermination": False}
"""Attributes that EC2 changes one by one, and whether the instance must be stopped."""


class Instance(Ec2Kind):
    kind_of_arn = "instance"
    shape = shape(
        "ami", "availabilityZone", "subnetId", "vpcSecurityGroupIds", "privateIp",
        "iamInstanceProfile", "userData", "userDataReplaceOnChange", "forceDestroy", *ATTRIBUTES,
        "tags", "region",
        metadataOptions=METADATA,
        primaryNetworkInterface=shape("networkInterfaceId"),
        rootBlockDevice=ROOT,
    )  # fmt: skip
    defaults = constant(
        userDataReplaceOnChange=False, forceDestroy=False, disableApiTermination=False
    )
    in_place = frozenset(
        {*ATTRIBUTES, "vpcSecurityGroupIds", "iamInstanceProfile", "userData",
         "userDataReplaceOnChange", "forceDestroy", "metadataOptions", "rootBlockDevice"}
    )  # fmt: skip
    unordered = frozenset({"vpcSecurityGroupIds"})
    computed_later = frozenset(
        {"availabilityZone", "subnetId", "vpcSecurityGroupIds", "privateIp",
         "metadataOptions", "rootBlockDevice", "primaryNetworkInterface"}
    )  # fmt: skip
    outputs = frozenset(
        {"arn", "instanceState", "primaryNetworkInterfaceId", "privateDns", "publicDns",
         "publicIp"}
    )  # fmt: skip

    def objections(self, inputs: Plain) -> Iterator[tuple[str, str]]:
        if "primaryNetworkInterface" in inputs:
            for name in sorted({"subnetId", "vpcSecurityGroupIds", "privateIp"} & inputs.keys()):
                yield name, "conflicts with primaryNetworkInterface, whose own counts"

    def needs_replacement(self, name: str, state: Plain, inputs: Plain) -> bool:
        if name == "userData":
            return bool(inputs.get("userDataReplaceOnChange") or not inputs.get("userData"))
        if name == "rootBlockDevice":
            old_root, root = state.get(name, {}), inputs.get(name, {})
            return "encrypted" in root and root["encrypted"] != old_root.get("encrypted")
        return super().needs_replacement(name, state, inputs)

    def make(self, cloud: Cloud, inputs: Plain) -> str:
        ec2 = cloud.client("ec2", inputs)
        image = _image(ec2, inputs)
        _check_size(inputs)
        if primary := inputs.get("primaryNetworkInterface"):
            id = primary["networkInterfaceId"]
            if instance := holder(cloud, interface_of(cloud, id, inputs), inputs):
                raise ProviderError(
                    f"RunInstances: InvalidNetworkInterface.InUse: interface {id} is in use by"
                    f" {instance}"
                )
        # from its first moment, as the official plugin has it
        tags = pairs(inputs.get("tagsAll", {}))
        specifications = [{"ResourceType": "instance", "Tags": tags}] if tags else []
        answer = ec2.run_instances(
            MinCount=1,
            MaxCount=1,
            TagSpecifications=specifications,
            **launch_options(inputs, image),
        )
        return str(answer["Instances"][0]["InstanceId"])

    def find(self, cloud: Cloud, id: str, state: Plain) -> Plain | None:
        ec2 = cloud.client("ec2", state)
        reservation = ec2.describe_instances(InstanceIds=[id])["Reservations"][0]
        instance = reservation["Instances"][0] | {"OwnerId": reservation["OwnerId"]}
        if instance["State"]["Name"] in ("terminated", "shutting-down"):
            return None
        interface = instance["NetworkInterfaces"][0]
        address = instance.get("PublicIpAddress")
        has_name = address and all(dns_attributes(cloud, instance["VpcId"], state).values())
        profile = instance.get("IamInstanceProfile", {}).get("Arn")
        result = self.common(cloud, id, state, instance) | {
            "ami": instance["ImageId"],
            "instanceState": instance["State"]["Name"],
            "availabilityZone": instance["Placement"]["AvailabilityZone"],
            "subnetId": interface["SubnetId"],
            "vpcSecurityGroupIds": [group["GroupId"] for group in interface["Groups"]],
            "primaryNetworkInterfaceId": interface["NetworkInterfaceId"],
            "privateIp": interface["PrivateIpAddress"],
            "privateDns": instance["PrivateDnsName"],
            "publicIp": address or "",
            "publicDns": public_name(address, cloud.region_of(state)) if has_name else "",
            "iamInstanceProfile": profile.rpartition("/")[2] if profile else None,
            "metadataOptions": metadata_found(instance["MetadataOptions"]),
            "rootBlockDevice": _root(cloud, instance, state),
            **{name: _attribute(ec2, id, name) for name in ATTRIBUTES},
            "userData": base64.b64decode(_attribute(ec2, id, "userData") or "").decode() or None,
        }
        if "primaryNetworkInterface" in state:
            result["primaryNetworkInterface"] = {
                "networkInterfaceId": interface["NetworkInterfaceId"]
            }
        return result

    def adjust(self, cloud: Cloud, id: str, current: Plain, inputs: Plain) -> None:
        ec2 = cloud.client("ec2", inputs)
        changes: dict[bool, list[Plain]] = {True: [], False: []}
        for name, must_stop in ATTRIBUTES.items():
            wanted_value = inputs.get(name, self.defaults.get(name))
            if wanted_value != current[name]:
                changes[must_stop].append({aws_name(name): {"Value": wanted_value}})
        if inputs.get("userData") != current["userData"]:
            _check_size(inputs)
            # boto3 encodes it once, moto decodes it twice
            user_data = base64.b64encode(str(inputs.get("userData") or "").encode())
            changes[True].append({"UserData": {"Value": user_data}})
        if changes[True]:
            with _stopped(ec2, id):
                for change in changes[True]:
                    ec2.modify_instance_attribute(InstanceId=id, **change)
        for change in changes[False]:
            ec2.modify_instance_attribute(InstanceId=id, **change)
        options = inputs.get("metadataOptions", {})
        if any(current["metadataOptions"].get(name) != value for name, value in options.items()):
            ec2.modify_instance_metadata_options(InstanceId=id, **arguments(options, *options))
        groups = inputs.get("vpcSecurityGroupIds")
        if groups and sorted(groups) != sorted(current["vpcSecurityGroupIds"]):
            ec2.modify_network_interface_attribute(
                NetworkInterfaceId=current["primaryNetworkInterfaceId"], Groups=groups
            )
        if inputs.get("iamInstanceProfile") != current["iamInstanceProfile"]:
            _change_profile(ec2, id, inputs.get("iamInstanceProfile"))
        if inputs.get("rootBlockDevice"):
            _change_root(cloud, current, inputs)

    def remove(self, cloud: Cloud, id: str, state: Plain) -> None:
        ec2 = cloud.client("ec2", state)
        current = self.find(cloud, id, state)
        if current is None:
            return
        if state.get("forceDestroy"):
            protection_off: dict[str, Any] = {"DisableApiTermination": {"Value": False}}
            ec2.modify_instance_attribute(InstanceId=id, **protection_off)
        ec2.terminate_instances(InstanceIds=[id])
        if "primaryNetworkInterface" not in state:
            _remove_interface(ec2, current["primaryNetworkInterfaceId"])


def _attribute(ec2: Any, id: str, name: str) -> Any:
    answer = ec2.describe_instance_attribute(InstanceId=id, Attribute=name)
    return answer.get(aws_name(name), {}).get("Value")


def _image(ec2: Any, inputs: Plain) -> Plain:
    """The image, if instances of the wanted type can run it."""
    images = ec2.describe_images(Filters=filters({"image-id": inputs["ami"]}))["Images"]
    if not images:
        raise ProviderError(
            f"RunInstances: InvalidAMIID.NotFound: the image id {inputs['ami']} does not exist"
        )
    image: Plain = images[0]
    type = inputs["instanceType"]
    answer = ec2.describe_instance_types(InstanceTypes=[type])["InstanceTypes"][0]
    architectures = answer["ProcessorInfo"]["SupportedArchitectures"]
    if image["Architecture"] not in architectures:
        raise ProviderError(
            f"RunInstances: InvalidParameterValue: the architecture of {type}"
            f" ({', '.join(architectures)}) does not match the image's ({image['Architecture']})"
        )
    return image


def _check_size(inputs: Plain) -> None:
    user_data = str(inputs.get("userData") or "").encode()
    if len(user_data) > USER_DATA_BYTES:
        raise ProviderError(
            f"RunInstances: InvalidParameterValue: user data is limited to {USER_DATA_BYTES} bytes,"
            f" these are {len(user_data)}"
        )


@contextmanager
def _stopped(ec2: Any, id: str) -> Iterator[None]:
    """Stops a running instance, and starts it again afterwards."""
    ec2.stop_instances(InstanceIds=[id])
    ec2.get_waiter("instance_stopped").wait(InstanceIds=[id], WaiterConfig={"Delay": 1})
    yield
    ec2.start_instances(InstanceIds=[id])
    ec2.get_waiter("instance_running").wait(InstanceIds=[id], WaiterConfig={"Delay": 1})


def _root(cloud: Cloud, instance: Plain, state: Plain) -> Plain:
    """The root volume, as the output `rootBlockDevice`."""
    devices = {mapping["DeviceName"]: mapping["Ebs"] for mapping in instance["BlockDeviceMappings"]}
    ebs = devices.get(instance["RootDeviceName"])
    if ebs is None:
        return {}
    ec2 = cloud.client("ec2", state)
    volume = ec2.describe_volumes(VolumeIds=[ebs["VolumeId"]])["Volumes"][0]
    root = {
        "deviceName": instance["RootDeviceName"],
        "volumeId": ebs["VolumeId"],
        "deleteOnTermination": ebs["DeleteOnTermination"],
        "volumeSize": volume["Size"],
        "volumeType": volume["VolumeType"],
        "encrypted": volume["Encrypted"],
        "iops": volume.get("Iops"),
        "throughput": volume.get("Throughput"),
        **tags_of(cloud, volume.get("Tags", []), state.get("rootBlockDevice", {})),
    }
    return {name: value for name, value in root.items() if value is not None}


def _change_root(cloud: Cloud, current: Plain, inputs: Plain) -> None:
    ec2 = cloud.client("ec2", inputs)
    root, new_root = current["rootBlockDevice"], inputs["rootBlockDevice"]
    modify_volume(
        ec2,
        root["volumeId"],
        {"size": root["volumeSize"], "type": root["volumeType"], **root},
        {name.removeprefix("volume").lower(): value for name, value in new_root.items()},
    )
    is_deleted = new_root.get("deleteOnTermination", True)
    if is_deleted != root["deleteOnTermination"]:
        ebs = {"DeleteOnTermination": is_deleted}
        ec2.modify_instance_attribute(
            InstanceId=current["arn"].rpartition("/")[2],
            BlockDeviceMappings=[{"DeviceName": root["deviceName"], "Ebs": ebs}],
        )
    tags = cloud.default_tags | new_root.get("tags", {})
    if surplus := sorted(root["tagsAll"].keys() - tags.keys()):
        keys = [{"Key": key} for key in surplus]
        ec2.delete_tags(Resources=[root["volumeId"]], Tags=keys)
    if tags and tags != root["tagsAll"]:
        ec2.create_tags(Resources=[root["volumeId"]], Tags=pairs(tags))


def _change_profile(ec2: Any, id: str, name: str | None) -> None:
    answer = ec2.describe_iam_instance_profile_associations(Filters=filters({"instance-id": id}))
    for association in answer["IamInstanceProfileAssociations"]:
        ec2.disassociate_iam_instance_profile(AssociationId=association["AssociationId"])
    if name:
        ec2.associate_iam_instance_profile(InstanceId=id, IamInstanceProfile={"Name": name})


def _remove_interface(ec2: Any, id: str) -> None:
    """Removes an interface that was created with its instance. EC2 does that; moto keeps it."""
    of_interface = filters({"network-interface-id": id})
    for address in ec2.describe_addresses(Filters=of_interface)["Addresses"]:
        ec2.disassociate_address(AssociationId=address["AssociationId"])
    try:
        ec2.delete_network_interface(NetworkInterfaceId=id)
    except ClientError as error:
        if not is_missing(error):
            raise

"""What belongs to an instance and is described and changed beside it: its volumes, groups,
profile and interface."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.doubles.aws.cloud import ClientError, Cloud, gone
from tests.doubles.aws.kind import pairs, tags_found
from tests.doubles.aws.volumes import modify_volume
from tests.doubles.plugin.values import Plain


@contextmanager
def stopped(ec2: Any, id: str) -> Iterator[None]:
    """Stop a running instance, and start it again afterwards."""
    ec2.stop_instances(InstanceIds=[id])
    ec2.get_waiter("instance_stopped").wait(InstanceIds=[id], WaiterConfig={"Delay": 1})
    yield
    ec2.start_instances(InstanceIds=[id])
    ec2.get_waiter("instance_running").wait(InstanceIds=[id], WaiterConfig={"Delay": 1})


def root_found(cloud: Cloud, found: Plain, state: Plain) -> Plain:
    """The root volume, as `rootBlockDevice` tells it."""
    for mapping in found["BlockDeviceMappings"]:
        if mapping["DeviceName"] == found["RootDeviceName"]:
            break
    else:
        return {}
    ebs = mapping["Ebs"]
    volume = cloud.client("ec2", state).describe_volumes(VolumeIds=[ebs["VolumeId"]])["Volumes"][0]
    known = state.get("rootBlockDevice", {})
    root = {
        "deviceName": found["RootDeviceName"],
        "volumeId": ebs["VolumeId"],
        "deleteOnTermination": ebs["DeleteOnTermination"],
        "volumeSize": volume["Size"],
        "volumeType": volume["VolumeType"],
        "encrypted": volume["Encrypted"],
        "iops": volume.get("Iops"),
        "throughput": volume.get("Throughput"),
        **tags_found(cloud, volume.get("Tags", []), known),
    }
    return {name: value for name, value in root.items() if value is not None}


def adjust_root(cloud: Cloud, found: Plain, inputs: Plain) -> None:
    wanted = inputs.get("rootBlockDevice")
    if not wanted:
        return
    ec2 = cloud.client("ec2", inputs)
    root = found["rootBlockDevice"]
    modify_volume(
        ec2,
        root["volumeId"],
        {"size": root["volumeSize"], "type": root["volumeType"], **root},
        {name.removeprefix("volume").lower(): value for name, value in wanted.items()},
    )
    if wanted.get("deleteOnTermination", True) != root["deleteOnTermination"]:
        on = wanted.get("deleteOnTermination", True)
        ec2.modify_instance_attribute(
            InstanceId=found["arn"].rpartition("/")[2],
            BlockDeviceMappings=[
                {"DeviceName": root["deviceName"], "Ebs": {"DeleteOnTermination": on}}
            ],
        )
    tags = cloud.default_tags | wanted.get("tags", {})
    if surplus := sorted(root["tagsAll"].keys() - tags.keys()):
        keys = [{"Key": key} for key in surplus]
        ec2.delete_tags(Resources=[root["volumeId"]], Tags=keys)
    if tags and tags != root["tagsAll"]:
        ec2.create_tags(Resources=[root["volumeId"]], Tags=pairs(tags))


def adjust_groups(ec2: Any, found: Plain, inputs: Plain) -> None:
    groups = inputs.get("vpcSecurityGroupIds")
    if groups and sorted(groups) != sorted(found["vpcSecurityGroupIds"]):
        ec2.modify_network_interface_attribute(
            NetworkInterfaceId=found["primaryNetworkInterfaceId"], Groups=groups
        )


def adjust_profile(ec2: Any, id: str, found: Plain, inputs: Plain) -> None:
    wanted, there = inputs.get("iamInstanceProfile"), found["iamInstanceProfile"]
    if wanted == there:
        return
    of_this = [{"Name": "instance-id", "Values": [id]}]
    listed = ec2.describe_iam_instance_profile_associations(Filters=of_this)
    for item in listed["IamInstanceProfileAssociations"]:
        ec2.disassociate_iam_instance_profile(AssociationId=item["AssociationId"])
    if wanted:
        ec2.associate_iam_instance_profile(InstanceId=id, IamInstanceProfile={"Name": wanted})


def release(ec2: Any, found: Plain, keep_interface: bool) -> None:
    """What EC2 lets go with an instance that was terminated, and moto keeps: the interface that
    was made with it, and what was bound to that."""
    if keep_interface:
        return
    id = found["primaryNetworkInterfaceId"]
    of_this = [{"Name": "network-interface-id", "Values": [id]}]
    for address in ec2.describe_addresses(Filters=of_this)["Addresses"]:
        ec2.disassociate_address(AssociationId=address["AssociationId"])
    try:
        ec2.delete_network_interface(NetworkInterfaceId=id)
    except ClientError as error:
        if not gone(error):
            raise

"""Inputs of aws:ec2:Instance as EC2 takes them at the launch."""

from typing import Any

from tests.doubles.aws.kind import arguments, aws_name, shape
from tests.doubles.plugin.values import Plain

METADATA = shape("httpEndpoint", "httpTokens", "httpPutResponseHopLimit")
ROOT = shape(
    "volumeSize", "volumeType", "encrypted", "iops", "throughput", "deleteOnTermination", "tags",
)  # fmt: skip


def launch_options(inputs: Plain, image: Plain) -> dict[str, Any]:
    """The arguments of `RunInstances`."""
    options = arguments(inputs, ImageId="ami", InstanceType="instanceType")
    if "availabilityZone" in inputs:
        options["Placement"] = {"AvailabilityZone": inputs["availabilityZone"]}
    if "iamInstanceProfile" in inputs:
        options["IamInstanceProfile"] = {"Name": inputs["iamInstanceProfile"]}
    if user_data := inputs.get("userData"):
        options["UserData"] = user_data
    if metadata := inputs.get("metadataOptions"):
        options["MetadataOptions"] = arguments(metadata, *metadata)
    if root := inputs.get("rootBlockDevice"):
        ebs = arguments(root, "volumeSize", "volumeType", "encrypted")
        ebs["DeleteOnTermination"] = root.get("deleteOnTermination", True)
        options["BlockDeviceMappings"] = [{"DeviceName": image["RootDeviceName"], "Ebs": ebs}]
    if primary := inputs.get("primaryNetworkInterface"):
        interface = arguments(primary, "networkInterfaceId")
    else:
        interface = arguments(
            inputs, "subnetId", Groups="vpcSecurityGroupIds", PrivateIpAddress="privateIp"
        )
    options["NetworkInterfaces"] = [{"DeviceIndex": 0, **interface}]
    return options


def metadata_found(answer: Plain) -> Plain:
    return {name: answer[aws_name(name)] for name in METADATA if aws_name(name) in answer}

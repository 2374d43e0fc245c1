"""What an instance is started with: inputs of aws:ec2:Instance as EC2 takes them."""

import base64
from typing import Any

from tests.doubles.aws.kind import given, shape
from tests.doubles.plugin.values import Plain

METADATA = shape(
    "httpEndpoint", "httpTokens", "httpPutResponseHopLimit", "httpProtocolIpv6",
    "instanceMetadataTags",
)  # fmt: skip
ROOT = shape(
    "volumeSize", "volumeType", "encrypted", "iops", "throughput", "deleteOnTermination", "tags",
)  # fmt: skip


def arguments(inputs: Plain, image: Plain) -> dict[str, Any]:
    """For `RunInstances`."""
    found = given(inputs, ImageId="ami", InstanceType="instanceType")
    if "availabilityZone" in inputs:
        found["Placement"] = {"AvailabilityZone": inputs["availabilityZone"]}
    if "iamInstanceProfile" in inputs:
        found["IamInstanceProfile"] = {"Name": inputs["iamInstanceProfile"]}
    if data := raw_user_data(inputs):
        found["UserData"] = data
    if options := inputs.get("metadataOptions"):
        found["MetadataOptions"] = {_upper(name): value for name, value in options.items()}
    if root := inputs.get("rootBlockDevice"):
        ebs = given(root, VolumeSize="volumeSize", VolumeType="volumeType", Encrypted="encrypted")
        ebs["DeleteOnTermination"] = root.get("deleteOnTermination", True)
        found["BlockDeviceMappings"] = [{"DeviceName": image["RootDeviceName"], "Ebs": ebs}]
    found["NetworkInterfaces"] = [{"DeviceIndex": 0, **_interface(inputs)}]
    return found


def _interface(inputs: Plain) -> dict[str, Any]:
    if primary := inputs.get("primaryNetworkInterface"):
        return {"NetworkInterfaceId": primary["networkInterfaceId"]}
    return given(
        inputs,
        SubnetId="subnetId",
        Groups="vpcSecurityGroupIds",
        PrivateIpAddress="privateIp",
    )


def raw_user_data(values: Plain) -> bytes:
    if "userDataBase64" in values:
        return base64.b64decode(values["userDataBase64"])
    return str(values.get("userData") or "").encode()


def encoded_user_data(found: str | None, state: Plain) -> Plain:
    """What EC2 tells, in the form in which the program gave it."""
    if not found:
        return {}
    if "userDataBase64" in state:
        return {"userDataBase64": found}
    return {"userData": base64.b64decode(found).decode(errors="replace")}


def metadata_found(found: Plain) -> Plain:
    return {name: found[_upper(name)] for name in METADATA if _upper(name) in found}


def _upper(name: str) -> str:
    return name[0].upper() + name[1:]

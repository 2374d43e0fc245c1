"""Doubles of aws:ebs:Volume and aws:ec2:VolumeAttachment.

A volume is attached to one instance at a time and in its own zone, and it does not shrink: EC2
refuses the rest, and moto does not.
"""

from collections.abc import Mapping
from typing import Any

from tests.doubles.aws.cloud import Cloud
from tests.doubles.aws.kind import AwsKind, Ec2Kind, constant, given, shape
from tests.doubles.plugin.kind import ProviderError
from tests.doubles.plugin.values import Plain

CHANGEABLE = {"size": "Size", "type": "VolumeType", "iops": "Iops", "throughput": "Throughput"}


class Volume(Ec2Kind):
    kind_of_arn = "volume"
    shape = shape("availabilityZone", *CHANGEABLE, "encrypted", "tags", "region")
    in_place = frozenset(CHANGEABLE)
    settled_later = frozenset({*CHANGEABLE, "encrypted", "region"})
    outputs = frozenset({"arn", "createTime", "tagsAll"})

    def make(self, cloud: Cloud, inputs: Plain) -> str:
        arguments = given(
            inputs,
            AvailabilityZone="availabilityZone",
            Encrypted="encrypted",
            **{argument: name for name, argument in CHANGEABLE.items()},
        )
        return str(cloud.client("ec2", inputs).create_volume(**arguments)["VolumeId"])

    def find(self, cloud: Cloud, id: str, state: Plain) -> Plain:
        found = cloud.client("ec2", state).describe_volumes(VolumeIds=[id])["Volumes"][0]
        return self.common(cloud, id, state, found) | {
            "availabilityZone": found["AvailabilityZone"],
            **{name: found.get(attribute) for name, attribute in CHANGEABLE.items()},
            "encrypted": found["Encrypted"],
            "createTime": found["CreateTime"].isoformat(),
        }

    def adjust(self, cloud: Cloud, id: str, found: Plain, inputs: Plain) -> None:
        modify_volume(cloud.client("ec2", inputs), id, found, inputs)

    def remove(self, cloud: Cloud, id: str, state: Plain) -> None:
        cloud.client("ec2", state).delete_volume(VolumeId=id)


def modify_volume(ec2: Any, id: str, found: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
    """Size, type, iops and throughput, as far as they are asked for and differ."""
    changes = {
        argument: wanted[name]
        for name, argument in CHANGEABLE.items()
        if name in wanted and wanted[name] != found.get(name)
    }
    if changes.get("Size", found["size"]) < found["size"]:
        raise ProviderError(
            f"ModifyVolume: InvalidParameterValue: {id} has {found['size']} GiB and cannot shrink"
            f" to {changes['Size']}"
        )
    if changes:
        ec2.modify_volume(VolumeId=id, **changes)


class VolumeAttachment(AwsKind):
    shape = shape("volumeId", "instanceId", "deviceName", "stopInstanceBeforeDetaching", "region")
    defaults = constant(stopInstanceBeforeDetaching=False)
    in_place = frozenset({"stopInstanceBeforeDetaching"})
    settled_later = frozenset({"region"})

    def make(self, cloud: Cloud, inputs: Plain) -> str:
        ec2 = cloud.client("ec2", inputs)
        arguments = self._of(inputs)
        self._attachable(ec2, inputs)
        ec2.attach_volume(**arguments)
        return "vai-" + "-".join(str(value) for value in arguments.values())

    def find(self, cloud: Cloud, id: str, state: Plain) -> Plain | None:
        ec2 = cloud.client("ec2", state)
        for item in ec2.describe_volumes(VolumeIds=[state["volumeId"]])["Volumes"][0][
            "Attachments"
        ]:
            if item["InstanceId"] == state["instanceId"] and item["Device"] == state["deviceName"]:
                return self._kept(state)
        return None

    def remove(self, cloud: Cloud, id: str, state: Plain) -> None:
        if self.find(cloud, id, state) is None:
            return
        ec2 = cloud.client("ec2", state)
        if state.get("stopInstanceBeforeDetaching"):
            ec2.stop_instances(InstanceIds=[state["instanceId"]])
            ec2.get_waiter("instance_stopped").wait(
                InstanceIds=[state["instanceId"]], WaiterConfig={"Delay": 1}
            )
        ec2.detach_volume(**self._of(state))

    def _of(self, values: Plain) -> dict[str, Any]:
        return given(values, VolumeId="volumeId", InstanceId="instanceId", Device="deviceName")

    def _kept(self, state: Plain) -> Plain:
        return {name: state[name] for name in ("volumeId", "instanceId", "deviceName")}

    def _attachable(self, ec2: Any, inputs: Plain) -> None:
        volume = ec2.describe_volumes(VolumeIds=[inputs["volumeId"]])["Volumes"][0]
        found = ec2.describe_instances(InstanceIds=[inputs["instanceId"]])["Reservations"][0]
        instance = found["Instances"][0]
        zone = instance["Placement"]["AvailabilityZone"]
        devices = [item["DeviceName"] for item in instance["BlockDeviceMappings"]]
        if volume["Attachments"]:
            reason = f"VolumeInUse: attached to {volume['Attachments'][0]['InstanceId']}"
        elif instance["State"]["Name"] not in ("running", "stopped"):
            reason = f"IncorrectState: {instance['InstanceId']} is {instance['State']['Name']}"
        elif volume["AvailabilityZone"] != zone:
            reason = f"InvalidVolume.ZoneMismatch: it is in {volume['AvailabilityZone']}, {zone} is"
            reason += " the instance's zone"
        elif inputs["deviceName"] in devices:
            reason = f"InvalidParameterValue: {inputs['deviceName']} is already in use"
        else:
            return
        raise ProviderError(f"AttachVolume: {inputs['volumeId']}: {reason}")

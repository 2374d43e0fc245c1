"""Doubles of aws:ebs:Volume and aws:ec2:VolumeAttachment.

A volume is attached to one instance at a time, in its own zone, and does not shrink. EC2 refuses
violations; moto does not.
"""

from collections.abc import Mapping
from typing import Any

from tests.doubles.aws.cloud import Cloud
from tests.doubles.aws.kind import AwsKind, Ec2Kind, arguments, constant, shape
from tests.doubles.plugin.kind import ProviderError
from tests.doubles.plugin.values import Plain

CHANGEABLE = {"size": "Size", "type": "VolumeType", "iops": "Iops", "throughput": "Throughput"}
ARGUMENTS = {argument: name for name, argument in CHANGEABLE.items()}


class Volume(Ec2Kind):
    kind_of_arn = "volume"
    shape = shape("availabilityZone", *CHANGEABLE, "encrypted", "tags", "region")
    in_place = frozenset(CHANGEABLE)
    computed_later = frozenset({*CHANGEABLE, "encrypted"})
    outputs = frozenset({"arn"})

    def make(self, cloud: Cloud, inputs: Plain) -> str:
        answer = cloud.client("ec2", inputs).create_volume(
            **arguments(inputs, "availabilityZone", "encrypted", **ARGUMENTS)
        )
        return str(answer["VolumeId"])

    def find(self, cloud: Cloud, id: str, state: Plain) -> Plain:
        volume = cloud.client("ec2", state).describe_volumes(VolumeIds=[id])["Volumes"][0]
        return self.common(cloud, id, state, volume) | {
            "availabilityZone": volume["AvailabilityZone"],
            **{name: volume.get(attribute) for name, attribute in CHANGEABLE.items()},
            "encrypted": volume["Encrypted"],
        }

    def adjust(self, cloud: Cloud, id: str, current: Plain, inputs: Plain) -> None:
        modify_volume(cloud.client("ec2", inputs), id, current, inputs)

    def remove(self, cloud: Cloud, id: str, state: Plain) -> None:
        cloud.client("ec2", state).delete_volume(VolumeId=id)


def modify_volume(ec2: Any, id: str, current: Mapping[str, Any], inputs: Mapping[str, Any]) -> None:
    """Changes size, type, iops and throughput that are in ``inputs`` and differ."""
    changes = {
        argument: inputs[name]
        for argument, name in ARGUMENTS.items()
        if name in inputs and inputs[name] != current.get(name)
    }
    if changes.get("Size", current["size"]) < current["size"]:
        raise ProviderError(
            f"ModifyVolume: InvalidParameterValue: {id} has {current['size']} GiB and cannot shrink"
            f" to {changes['Size']}"
        )
    if changes:
        ec2.modify_volume(VolumeId=id, **changes)


class VolumeAttachment(AwsKind):
    key = ("volumeId", "instanceId", "deviceName")
    shape = shape(*key, "stopInstanceBeforeDetaching", "region")
    defaults = constant(stopInstanceBeforeDetaching=False)
    in_place = frozenset({"stopInstanceBeforeDetaching"})

    def make(self, cloud: Cloud, inputs: Plain) -> str:
        ec2 = cloud.client("ec2", inputs)
        self._check_attachable(ec2, inputs)
        ec2.attach_volume(**self._arguments(inputs))
        return "vai-" + "-".join(str(inputs[name]) for name in self.key)

    def find(self, cloud: Cloud, id: str, state: Plain) -> Plain | None:
        answer = cloud.client("ec2", state).describe_volumes(VolumeIds=[state["volumeId"]])
        target = (state["instanceId"], state["deviceName"])
        for attachment in answer["Volumes"][0]["Attachments"]:
            if (attachment["InstanceId"], attachment["Device"]) == target:
                return {name: state[name] for name in self.key}
        return None

    def remove(self, cloud: Cloud, id: str, state: Plain) -> None:
        if self.find(cloud, id, state) is None:
            return
        ec2, instances = cloud.client("ec2", state), [state["instanceId"]]
        if state.get("stopInstanceBeforeDetaching"):
            ec2.stop_instances(InstanceIds=instances)
            waiter = ec2.get_waiter("instance_stopped")
            waiter.wait(InstanceIds=instances, WaiterConfig={"Delay": 1})
        ec2.detach_volume(**self._arguments(state))

    def _arguments(self, values: Plain) -> dict[str, Any]:
        return arguments(values, "volumeId", "instanceId", Device="deviceName")

    def _check_attachable(self, ec2: Any, inputs: Plain) -> None:
        volume = ec2.describe_volumes(VolumeIds=[inputs["volumeId"]])["Volumes"][0]
        answer = ec2.describe_instances(InstanceIds=[inputs["instanceId"]])
        instance = answer["Reservations"][0]["Instances"][0]
        zone = instance["Placement"]["AvailabilityZone"]
        devices = [mapping["DeviceName"] for mapping in instance["BlockDeviceMappings"]]
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

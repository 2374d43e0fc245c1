"""One node: its role, its data volume, its instance; everything but its names."""

from __future__ import annotations

from typing import Any

import pulumi
import pulumi_aws as aws

from components.aws.instances import Profile, Surroundings, instance
from components.aws.tags import tags
from components.aws.volumes import of_volume
from components.outputs import once, told
from earshot.aws.roles import node_policy
from earshot.placement.aws import node_user_data, report_parameter
from earshot.user_data.render import digest

SILENT = "nothing yet"
"""In a node's parameter before its first report."""
DEVICE = "/dev/sdf"
"""What EC2 calls the data volume; the instance itself finds it by its id."""


class Node:
    """The resources of node ``id``, whose instance is touched once ``turn`` is known."""

    def __init__(self, around: Surroundings, id: int, turn: pulumi.Output[Any] | None) -> None:
        self._around, self.id = around, id
        self.name = around.spec.name_of(id)
        self._full = f"{around.stack}-{self.name}"
        self.parameter = aws.ssm.Parameter(
            self._full,
            name=report_parameter(around.stack, self.name),
            type="String",
            insecure_value=SILENT,
            description=f"What {self.name} of {around.stack} reports of itself",
            tags=tags(around.stack, self._full),
            opts=around.opts(ignore_changes=["insecureValue", "value"]),
        )
        # one that is given is used and left alone: it is nobody's resource
        self.volume_id = around.spec.volumes.get(id) or self._volume().id
        self.user_data = pulumi.Output.all(
            around.planned, self.volume_id, self.parameter.name, around.sealed
        ).apply(told(lambda found: node_user_data(found[0], around.spec, id, found[1], found[2])))
        if turn is not None:
            self.user_data = once(turn, self.user_data)
        self.instance = self._instance()
        self.attachment = aws.ec2.VolumeAttachment(
            self._full,
            device_name=DEVICE,
            volume_id=self.volume_id,
            instance_id=self.instance.id,
            # Kafka closes its files before they go
            stop_instance_before_detaching=True,
            opts=around.opts(delete_before_replace=True),
        )

    @property
    def incarnation(self) -> pulumi.Output[str]:
        """Changes when the instance was replaced, or given other user data."""
        return pulumi.Output.all(self.instance.id, self.user_data).apply(
            lambda found: f"{found[0]} {digest(found[1])[:12]}"
        )

    @property
    def awaited(self) -> dict[str, Any]:
        """What readiness waits for."""
        return {
            "node": self.id,
            "parameter": self.parameter.name,
            "instance": self.instance.id,
            "user_data": self.user_data.apply(digest),
        }

    def _volume(self) -> aws.ebs.Volume:
        spec, wanted = self._around.spec, self._around.spec.volume_of(self.id)
        return aws.ebs.Volume(
            self._full,
            availability_zone=spec.zone_of[self.id],
            size=wanted.size_gib,
            type=wanted.type,
            iops=wanted.iops,
            throughput=wanted.throughput,
            encrypted=True,
            tags=tags(self._around.stack, self._full) | of_volume(spec, self.id),
            opts=self._around.opts(
                protect=spec.deletion_protection, retain_on_delete=spec.data == "keep"
            ),
        )

    def _profile(self) -> Profile:
        around = self._around
        secrets = [name.replace("{id}", str(self.id)) for name in around.spec.secrets.values()]
        return Profile(
            around, self._full, self.parameter.arn.apply(lambda arn: node_policy(arn, secrets))
        )

    def _instance(self) -> aws.ec2.Instance:
        around, spec = self._around, self._around.spec
        associated = around.names.associations.get(self.id)
        return instance(
            around,
            self._full,
            spec.instance_of(self.id),
            spec.zone_of[self.id],
            around.names.interfaces[self.id].id,
            self._profile(),
            self.user_data,
            [associated] if associated else [],
            # against other hands than Pulumi's, which must replace it when the plan changes
            protected=spec.deletion_protection,
        )

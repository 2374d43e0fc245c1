"""One node: its role, its data volume, its instance; everything but its names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pulumi
import pulumi_aws as aws

from components.aws.names import Names
from components.aws.tags import tags
from components.aws.volumes import of_volume
from components.gate import GateSeal
from components.outputs import once, told
from earshot.aws.roles import node_policy, trust_policy
from earshot.placement.aws import AwsPlan, node_user_data, report_parameter
from earshot.spec.aws import AwsSpec
from earshot.spec.aws_parts import Architecture
from earshot.user_data.render import digest

SILENT = "nothing yet"
"""In a node's parameter before its first report."""
DEVICE = "/dev/sdf"
"""What EC2 calls the data volume; the instance itself finds it by its id."""
_IMAGE = "/aws/service/ami-amazon-linux-latest/al2023-ami-kernel-default-"


@dataclass(frozen=True)
class Surroundings:
    """What the nodes of one stack have in common."""

    stack: str
    spec: AwsSpec
    names: Names
    planned: pulumi.Output[AwsPlan]
    """Unknown as long as a name is."""
    gate: pulumi.Resource
    """Parent of everything here: nothing is made before the names were judged."""
    seal: GateSeal | None
    """Says that they were judged; None with `gate: off`."""
    ground: pulumi.Resource | None
    """Says that what is there may become this; None where nothing remembers."""
    images: Mapping[Architecture, str]
    """By architecture, the id of the current Amazon Linux 2023."""

    def opts(self, *after: pulumi.Resource, **options: Any) -> pulumi.ResourceOptions:
        before = [item for item in (self.seal, self.ground) if item is not None]
        return pulumi.ResourceOptions(parent=self.gate, depends_on=[*before, *after], **options)

    @property
    def sealed(self) -> pulumi.Input[str]:
        """The judged digest: what has it as an input is not even shown in a preview without."""
        return self.seal.digest if self.seal is not None else "off"


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

    def _profile(self) -> tuple[aws.iam.InstanceProfile, aws.iam.RolePolicy]:
        around = self._around
        marks = tags(around.stack, self._full)
        role = aws.iam.Role(
            self._full, assume_role_policy=trust_policy(), tags=marks, opts=around.opts()
        )
        secrets = [name.replace("{id}", str(self.id)) for name in around.spec.secrets.values()]
        policy = aws.iam.RolePolicy(
            self._full,
            role=role.name,
            policy=self.parameter.arn.apply(lambda arn: node_policy(arn, secrets)),
            opts=around.opts(),
        )
        profile = aws.iam.InstanceProfile(
            self._full, role=role.name, tags=marks, opts=around.opts()
        )
        return profile, policy

    def _instance(self) -> aws.ec2.Instance:
        around, spec = self._around, self._around.spec
        wanted = spec.instance_of(self.id)
        profile, policy = self._profile()
        associated = around.names.associations.get(self.id)
        after = [policy, *([associated] if associated else [])]
        return aws.ec2.Instance(
            self._full,
            ami=wanted.ami or around.images[wanted.arch],
            instance_type=wanted.type,
            availability_zone=spec.zone_of[self.id],
            primary_network_interface=aws.ec2.InstancePrimaryNetworkInterfaceArgs(
                network_interface_id=around.names.interfaces[self.id].id
            ),
            iam_instance_profile=profile.name,
            metadata_options=aws.ec2.InstanceMetadataOptionsArgs(
                http_endpoint="enabled", http_tokens="required", http_put_response_hop_limit=1
            ),
            root_block_device=aws.ec2.InstanceRootBlockDeviceArgs(
                encrypted=True,
                volume_type="gp3",
                volume_size=wanted.root_gib,
                delete_on_termination=True,
            ),
            user_data=self.user_data,
            # otherwise EC2 would stop and start the instance, and cloud-init not run again
            user_data_replace_on_change=True,
            # against other hands than Pulumi's, which must replace it when the plan changes
            disable_api_termination=spec.deletion_protection,
            force_destroy=spec.deletion_protection,
            tags=tags(around.stack, self._full),
            opts=around.opts(
                *after,
                # interface, address and volume are attached to one instance at a time
                delete_before_replace=True,
                # a newer image is no reason to replace an instance that serves
                ignore_changes=[] if wanted.ami else ["ami"],
            ),
        )


def newest_images(spec: AwsSpec, parent: pulumi.Resource) -> dict[Architecture, str]:
    """The ids of the current Amazon Linux 2023, for the architectures that ask for it.

    https://docs.aws.amazon.com/linux/al2023/ug/ec2.html
    """
    instances = [spec.instance_of(id) for id in spec.node_ids]
    found: dict[Architecture, str] = {}
    for item in dict.fromkeys(item.arch for item in instances if item.ami is None):
        answer = aws.ssm.get_parameter(
            name=f"{_IMAGE}{item}", opts=pulumi.InvokeOptions(parent=parent)
        )
        found[item] = str(answer.insecure_value or answer.value)
    return found

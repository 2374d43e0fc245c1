"""What every instance of a stack is like, whatever runs on it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pulumi
import pulumi_aws as aws

from components.aws.names import Names
from components.aws.tags import tags
from components.gate import GateSeal
from earshot.aws.roles import trust_policy
from earshot.placement.aws import AwsPlan
from earshot.spec.aws import AwsSpec
from earshot.spec.aws_parts import Architecture, InstanceSpec

_IMAGE = "/aws/service/ami-amazon-linux-latest/al2023-ami-kernel-default-"


@dataclass(frozen=True)
class Surroundings:
    """What the instances of one stack have in common."""

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


class Profile:
    """A role of one instance alone, which may do what ``policy`` says."""

    def __init__(self, around: Surroundings, name: str, policy: pulumi.Input[str]) -> None:
        marks = tags(around.stack, name)
        role = aws.iam.Role(name, assume_role_policy=trust_policy(), tags=marks, opts=around.opts())
        self.policy = aws.iam.RolePolicy(name, role=role.name, policy=policy, opts=around.opts())
        self.name = aws.iam.InstanceProfile(
            name, role=role.name, tags=marks, opts=around.opts()
        ).name


def instance(
    around: Surroundings,
    name: str,
    wanted: InstanceSpec,
    zone: str,
    interface: pulumi.Input[str],
    profile: Profile,
    user_data: pulumi.Input[str],
    after: Sequence[pulumi.Resource] = (),
    *,
    protected: bool,
) -> aws.ec2.Instance:
    """An instance at ``interface``, an id, once ``after`` is there."""
    return aws.ec2.Instance(
        name,
        ami=wanted.ami or around.images[wanted.arch],
        instance_type=wanted.type,
        availability_zone=zone,
        primary_network_interface=aws.ec2.InstancePrimaryNetworkInterfaceArgs(
            network_interface_id=interface
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
        user_data=user_data,
        # otherwise EC2 would stop and start the instance, and cloud-init not run again
        user_data_replace_on_change=True,
        disable_api_termination=protected,
        force_destroy=protected,
        tags=tags(around.stack, name),
        opts=around.opts(
            profile.policy,
            *after,
            # an interface, an address and a volume are attached to one instance at a time
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
    if spec.validator is not None:
        instances.append(spec.validator.instance)
    found: dict[Architecture, str] = {}
    for item in dict.fromkeys(item.arch for item in instances if item.ami is None):
        answer = aws.ssm.get_parameter(
            name=f"{_IMAGE}{item}", opts=pulumi.InvokeOptions(parent=parent)
        )
        found[item] = str(answer.insecure_value or answer.value)
    return found

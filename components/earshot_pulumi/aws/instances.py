"""The common parts of all instances of a stack: nodes, validator and Docker hosts."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pulumi
import pulumi_aws as aws

from earshot.aws.roles import trust_policy
from earshot.config.aws import AwsSpec
from earshot.config.aws_sections import Architecture, InstanceSpec
from earshot.placement.aws import AwsPlan
from earshot_pulumi.aws.names import Names
from earshot_pulumi.aws.tags import tags
from earshot_pulumi.gate import AdvertisedListeners
from earshot_pulumi.provider.kind import Inputs, Properties

SILENT = "nothing yet"
"""The value of a report before the first one."""
DEVICE = "/dev/sdf"
"""The device name of the data volume in EC2. The instance finds the volume by its id."""
_IMAGE = "/aws/service/ami-amazon-linux-latest/al2023-ami-kernel-default-"


class SharedArgs:
    """The arguments that a component's instances, and the resources around them, share."""

    stack: str
    images: Mapping[Architecture, str]
    """The image id of the current Amazon Linux 2023, by architecture."""

    def opts(self, *dependencies: pulumi.Resource, **options: Any) -> pulumi.ResourceOptions:
        """The options of a resource that is created after ``dependencies``."""
        raise NotImplementedError

    def common_args(self, name: str, *dependencies: pulumi.Resource, **options: Any) -> Properties:
        """The name, tags and options of a resource."""
        opts = self.opts(*dependencies, **options)
        return {"resource_name": name, "tags": tags(self.stack, name), "opts": opts}


@dataclass(frozen=True)
class SharedInputs(SharedArgs):
    """The inputs that all instances of one stack share."""

    stack: str
    spec: AwsSpec
    names: Names
    cluster_id: pulumi.Output[str]
    planned: pulumi.Output[AwsPlan]
    """Unknown while a name is."""
    gate: AdvertisedListeners
    """The parent of these resources, which are created after the check of the names."""
    preflight: pulumi.Resource
    """Created after the checks of an update."""
    images: Mapping[Architecture, str]
    settings: Inputs = field(default_factory=dict)
    """The `aws:` settings, an input of resources that call AWS themselves."""
    leaving: frozenset[str] = frozenset()
    """Listeners that a later step removes. Nodes report their clients."""

    def opts(self, *dependencies: pulumi.Resource, **options: Any) -> pulumi.ResourceOptions:
        all_dependencies = [*self.gate.before, self.preflight, *dependencies]
        return pulumi.ResourceOptions(parent=self.gate, depends_on=all_dependencies, **options)

    @property
    def approved_digest(self) -> pulumi.Input[str]:
        """The digest that the gate has approved. Without it, no preview registers an instance."""
        return self.gate.approved


class Profile:
    """The instance profile and role of one instance, with ``policy``."""

    def __init__(self, shared: SharedArgs, name: str, policy: pulumi.Input[str]) -> None:
        role = aws.iam.Role(**shared.common_args(name), assume_role_policy=trust_policy())
        self.policy = aws.iam.RolePolicy(name, role=role.name, policy=policy, opts=shared.opts())
        self.name = aws.iam.InstanceProfile(**shared.common_args(name), role=role.name).name


def report_resource(
    shared: SharedArgs, name: str, parameter: str, subject: str
) -> aws.ssm.Parameter:
    """The parameter ``parameter``, in which ``subject`` reports of itself."""
    return aws.ssm.Parameter(
        # a change of any other input would reset the value
        **shared.common_args(name, ignore_changes=["insecureValue", "value", "description"]),
        name=parameter,
        type="String",
        insecure_value=SILENT,
        description=f"What {subject} reports of itself",
    )


def attached(
    shared: SharedArgs, name: str, volume: pulumi.Input[str], instance: aws.ec2.Instance
) -> aws.ec2.VolumeAttachment:
    """The attachment of the data volume ``volume`` (an id) to ``instance``."""
    return aws.ec2.VolumeAttachment(
        name,
        device_name=DEVICE,
        volume_id=volume,
        instance_id=instance.id,
        # so Kafka, or the engine's containers, close their files before the detachment
        stop_instance_before_detaching=True,
        opts=shared.opts(delete_before_replace=True),
    )


def instance(
    shared: SharedArgs,
    name: str,
    spec: InstanceSpec,
    zone: str,
    interface: pulumi.Input[str],
    profile: Profile,
    user_data: pulumi.Input[str],
    after: Sequence[pulumi.Resource] = (),
    *,
    protected: bool,
) -> aws.ec2.Instance:
    """An instance with the network interface ``interface`` (an id), created after ``after``."""
    common_args = shared.common_args(
        name,
        profile.policy,
        *after,
        # an interface, an address and a volume are attached to one instance at a time
        delete_before_replace=True,
        # a newer image does not replace an existing instance
        ignore_changes=[] if spec.ami else ["ami"],
        # EC2 cannot change the architecture of an image, or shrink a root volume
        replacement_trigger=[spec.arch, spec.root_gib],
    )
    return aws.ec2.Instance(
        **common_args,
        ami=spec.ami or shared.images[spec.arch],
        instance_type=spec.type,
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
            volume_size=spec.root_gib,
            delete_on_termination=True,
        ),
        user_data=pulumi.Output.secret(user_data),  # it contains brokers' settings
        # otherwise EC2 would only restart the instance, and cloud-init would not run again
        user_data_replace_on_change=True,
        disable_api_termination=protected,
        force_destroy=protected,
    )


def instances_of(spec: AwsSpec) -> list[InstanceSpec]:
    """The instances of all nodes and of the validator."""
    instances = [spec.instance_of(id) for id in spec.node_ids]
    return [*instances, spec.validator.instance] if spec.validator is not None else instances


def newest_images(
    instances: Iterable[InstanceSpec], parent: pulumi.Resource
) -> dict[Architecture, str]:
    """The image ids of the current Amazon Linux 2023, for architectures without a configured image.

    https://docs.aws.amazon.com/linux/al2023/ug/ec2.html
    """
    images: dict[Architecture, str] = {}
    for arch in dict.fromkeys(instance.arch for instance in instances if instance.ami is None):
        parameter = aws.ssm.get_parameter(
            name=f"{_IMAGE}{arch}", opts=pulumi.InvokeOptions(parent=parent)
        )
        images[arch] = str(parameter.insecure_value or parameter.value)
    return images

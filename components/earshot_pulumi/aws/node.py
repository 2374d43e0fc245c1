"""The resources of one node except its names: role, data volume, instance."""

from collections.abc import Callable
from typing import Any

import pulumi
import pulumi_aws as aws

from earshot.aws.roles import node_policy
from earshot.placement.aws import node_user_data, parameters_of, report_parameter
from earshot.placement.aws_secrets import SecretVersions
from earshot.user_data.render import digest
from earshot_pulumi.aws.instances import Profile, SharedInputs, attached, instance, report_resource
from earshot_pulumi.aws.tags import tags
from earshot_pulumi.aws.volumes import of_volume
from earshot_pulumi.outputs import once, with_run_errors
from earshot_pulumi.provider.kind import Properties

Granted = Callable[["InstanceNode", pulumi.Output[Any]], pulumi.Output[str]]


class InstanceNode:
    """The resources of node ``id``. Its instance changes after ``turn`` is known."""

    def __init__(
        self,
        shared: SharedInputs,
        id: int,
        turn: pulumi.Output[Any] | None,
        version: pulumi.Input[SecretVersions],
        granted: Granted,
    ) -> None:
        """``version`` is that of the secrets of `security`; empty without it. ``granted`` gets the
        node and the inputs that replace or restart its instance, and returns an output that is
        known when the node may change."""
        self._shared, self.id = shared, id
        self.name = shared.spec.name_of(id)
        self._full_name = f"{shared.stack}-{self.name}"
        self.parameter = report_resource(
            shared,
            self._full_name,
            report_parameter(shared.stack, self.name),
            f"{self.name} of {shared.stack}",
        )
        # an existing volume is not a resource of the stack
        self.volume_id = shared.spec.volumes.get(id) or self._volume().id
        self.user_data = pulumi.Output.all(
            shared.planned,
            shared.cluster_id,
            self.volume_id,
            self.parameter.name,
            version,
            sorted(shared.leaving),
            shared.approved_digest,
        ).apply(
            with_run_errors(
                lambda values: node_user_data(
                    values[0], shared.spec, shared.stack, id, *values[1:6]
                )
            )
        )
        if turn is not None:
            self.user_data = once(turn, self.user_data)
        instance_inputs = pulumi.Output.all(
            self.user_data.apply(digest), self.hardware, shared.spec.instance_of(id).ami or ""
        )
        self._granted = granted(self, instance_inputs)
        self.user_data = once(self._granted, self.user_data)
        self.instance = self._instance()
        self.attachment = attached(shared, self._full_name, self.volume_id, self.instance)

    @property
    def hardware(self) -> str:
        """The instance type. To change it, EC2 stops the instance and starts it again."""
        return self._shared.spec.instance_of(self.id).type

    @property
    def incarnation(self) -> pulumi.Output[str]:
        """A value that changes when the instance is replaced or restarted."""
        return pulumi.Output.all(self.instance.id, self.user_data).apply(
            lambda values: f"{values[0]} {digest(values[1])[:12]} {self.hardware}"
        )

    @property
    def awaited(self) -> Properties:
        """The fields of `AwaitedNode`."""
        return {
            "node": self.id,
            "parameter": self.parameter.name,
            "instance": self.instance.id,
            "user_data": self.user_data.apply(digest),
            "hardware": self.hardware,
            "granted": self._granted,
            "size_gib": self._shared.spec.volume_of(self.id).size_gib,
        }

    def _volume(self) -> aws.ebs.Volume:
        spec, settings = self._shared.spec, self._shared.spec.volume_of(self.id)
        return aws.ebs.Volume(
            self._full_name,
            availability_zone=spec.zone_of[self.id],
            size=settings.size_gib,
            type=settings.type,
            iops=settings.iops,
            throughput=settings.throughput,
            encrypted=True,
            tags=self._shared.cluster_id.apply(
                lambda cluster_id: (
                    tags(self._shared.stack, self._full_name) | of_volume(spec, self.id, cluster_id)
                )
            ),
            opts=self._shared.opts(
                protect=spec.deletion_protection or None,
                retain_on_delete=spec.data == "keep" or None,
            ),
        )

    def _instance(self) -> aws.ec2.Instance:
        shared, spec = self._shared, self._shared.spec
        association = shared.names.associations.get(self.id)
        secrets = list(parameters_of(spec, shared.stack, self.id).values())
        policy = self.parameter.arn.apply(lambda arn: node_policy(arn, secrets))
        return instance(
            shared,
            self._full_name,
            spec.instance_of(self.id),
            spec.zone_of[self.id],
            shared.names.interfaces[self.id].id,
            Profile(shared, self._full_name, policy),
            self.user_data,
            [association] if association else [],
            # against deletion by others: Pulumi must replace it when the plan changes
            protected=spec.deletion_protection,
        )

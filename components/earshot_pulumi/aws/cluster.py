"""`AwsCluster`, which may use the program's own `aws.Provider`."""

from typing import Any, Final

import pulumi

from earshot.config.aws import AwsSpec
from earshot_pulumi.aws_settings import StackSettings
from earshot_pulumi.cluster import Cluster, Settings, refuse
from earshot_pulumi.cluster_args import AwsClusterArgs
from earshot_pulumi.provider.kind import Inputs, Properties

AWS_ONLY: Final = (
    "assumeRoles",
    "assumeRoleWithWebIdentity",
    "customCaBundle",
    "httpProxy",
    "httpsProxy",
    "insecure",
    "sharedConfigFiles",
    "sharedCredentialsFiles",
)
"""Settings of an `aws.Provider` that earshot's own calls of AWS do not support."""
AWS_READ: Final = ("profile", "accessKey", "secretKey", "token", "region", "endpoints")


class AwsCluster(Cluster):
    """Kafka brokers as EC2 instances; changes replace one instance at a time."""

    _placement = "aws"
    _provider_type = "aws:index:Provider"
    _exported = ("contract", "names", "ids", "incarnations")

    vpc_id: pulumi.Output[str]
    """The id of the nodes' VPC."""
    instances: pulumi.Output[dict[str, str]]
    """The instance's id by node id."""
    names: pulumi.Output[dict[str, dict[str, str]]]
    """By node id and scope, the name to which clients connect."""
    ids: pulumi.Output[dict[str, dict[str, str]]]
    """By node id, the ids of its instance, volume, interface and, if it has one, Elastic IP."""
    reports: pulumi.Output[str | None]
    """With a validator: the URL of its latest report."""
    endpoint_service: pulumi.Output[Properties | None]
    """With `expose: privatelink`, inputs for an `AwsEndpoint` of another stack: `service_name`, the
    advertised `name`, `ports` by listener and broker, `zone_ids`, `acceptance`."""

    def __init__(
        self, name: str, args: AwsClusterArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        spec: Any = args
        self._reports = isinstance(spec, AwsSpec) and spec.validator is not None
        self._linked = isinstance(spec, AwsSpec) and bool(spec.linked)
        super().__init__(name, args, opts)

    def _provided(
        self, args: Properties, settings: Settings, provider: pulumi.ProviderResource
    ) -> tuple[Properties, Settings, Inputs]:
        settings = aws_settings(settings)
        return args, settings, {"aws": StackSettings(settings)}

    def exports(self) -> dict[str, pulumi.Output[object]]:
        outputs = {**super().exports(), "vpc": self.vpc_id}
        if self._reports:
            outputs["reports"] = self.reports
        if self._linked:
            outputs["endpoint_service"] = self.endpoint_service
        return outputs


def aws_settings(settings: Settings) -> Settings:
    """The settings of an `aws.Provider` with which earshot calls AWS, too.

    Raises EarshotError for settings that earshot's calls do not support.
    """
    refuse(
        "aws.Provider",
        settings,
        AWS_ONLY,
        f"{', '.join(AWS_READ)}; a profile of ~/.aws/config may assume a role (role_arn)",
    )
    return {name: settings[name] for name in AWS_READ if name in settings}

"""Names and tags of a stack's resources on AWS, and the settings of every bucket."""

from typing import Any, Final

import pulumi
import pulumi_aws as aws

from earshot_pulumi.provider.kind import Properties

STACK: Final = "earshot:stack"


def tags(stack: str, name: str) -> dict[str, str]:
    return {"Name": name, STACK: stack}


class TaggedComponent(pulumi.ComponentResource):
    """A component with the stack's name, which prefixes the names of its resources."""

    def __init__(self, kind: str, name: str, opts: pulumi.ResourceOptions | None) -> None:
        super().__init__(f"earshot:aws:{kind}", name, {}, opts)

    def _args(self, suffix: str = "", **options: Any) -> Properties:
        """The name and options of the resource with this ``suffix``, which has no tags."""
        name = f"{self._name}-{suffix}" if suffix else self._name
        return {"resource_name": name, "opts": pulumi.ResourceOptions(parent=self, **options)}

    def _common_args(self, suffix: str = "", **options: Any) -> Properties:
        """The name, tags and options of the resource with this ``suffix``."""
        args = self._args(suffix, **options)
        return {**args, "tags": tags(self._name, args["resource_name"])}


def without_public_access(
    name: str, bucket: aws.s3.Bucket, opts: pulumi.ResourceOptions
) -> aws.s3.BucketPublicAccessBlock:
    """Keeps ``bucket`` private, even if a later policy or access list allows access."""
    return aws.s3.BucketPublicAccessBlock(
        name,
        bucket=bucket.bucket,
        block_public_acls=True,
        block_public_policy=True,
        ignore_public_acls=True,
        restrict_public_buckets=True,
        opts=opts,
    )

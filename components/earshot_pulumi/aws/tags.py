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

    def _common_args(self, suffix: str = "", **options: Any) -> Properties:
        """The name, tags and options of the resource with this ``suffix``."""
        name = f"{self._name}-{suffix}" if suffix else self._name
        opts = pulumi.ResourceOptions(parent=self, **options)
        return {"resource_name": name, "tags": tags(self._name, name), "opts": opts}


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

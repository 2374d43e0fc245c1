"""What every bucket of a stack has."""

from __future__ import annotations

import pulumi
import pulumi_aws as aws


def without_public_access(
    name: str, bucket: aws.s3.Bucket, opts: pulumi.ResourceOptions
) -> aws.s3.BucketPublicAccessBlock:
    """Whatever a policy or an access list may say later, ``bucket`` is for nobody else."""
    return aws.s3.BucketPublicAccessBlock(
        name,
        bucket=bucket.bucket,
        block_public_acls=True,
        block_public_policy=True,
        ignore_public_acls=True,
        restrict_public_buckets=True,
        opts=opts,
    )

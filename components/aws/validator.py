"""The validator in the VPC: an instance without a public address, and the bucket it answers in."""

from __future__ import annotations

import pulumi
import pulumi_aws as aws

from components.aws.instances import Profile, Surroundings, instance
from components.aws.network import Ground
from components.aws.tags import tags
from components.outputs import told
from earshot.aws.roles import over_tls, validator_policy
from earshot.placement.aws import VALIDATOR
from earshot.spec.aws_validator import ValidatorSpec
from earshot.user_data.boot import ssm_secret
from earshot.user_data.systems import System
from earshot.user_data.validator import Parcel, Place, validator_user_data
from earshot.vantages.bundle import Bundle
from earshot.vantages.post import LATEST, ORDER, REPORTS, STATUS


class Validator:
    """The resources of a stack's validator; below the gate, as the nodes are."""

    bucket: pulumi.Output[str]
    """The name of its bucket."""
    instance: aws.ec2.Instance
    ready: tuple[pulumi.Resource, ...]
    """What must be there before it is asked anything."""
    reports: pulumi.Output[str]
    """The URL of its latest report."""

    def __init__(
        self,
        around: Surroundings,
        spec: ValidatorSpec,
        network: Ground,
        group: pulumi.Input[str],
        bundle: Bundle,
    ) -> None:
        """``group`` is the id of its security group, which lets nobody in."""
        self._around, self._spec, self._network = around, spec, network
        self._full = f"{around.stack}-{VALIDATOR}"
        self._zone = around.spec.vpc.zones[0]
        made = aws.s3.Bucket(
            self._full,
            force_destroy=True,  # reports are made anew at any time
            tags=tags(around.stack, self._full),
            opts=around.opts(),
        )
        self.bucket = made.bucket
        closed = self._close(made)
        parcel = Parcel(key=f"bundles/{bundle.sha256}.tar", sha256=bundle.sha256)
        carried = aws.s3.BucketObject(
            self._full,
            bucket=made.bucket,
            key=parcel.key,
            source=pulumi.FileAsset(bundle.file),
            opts=around.opts(*closed),
        )
        self.instance = instance(
            around,
            self._full,
            spec.instance,
            self._zone,
            self._interface(group).id,
            Profile(around, self._full, self._policy(made, parcel)),
            pulumi.Output.all(made.bucket, around.sealed).apply(
                told(lambda found: validator_user_data(self._place(found[0], parcel)))
            ),
            [carried],
            protected=False,  # it holds nothing
        )
        self.ready = (self.instance, *closed)
        self.reports = pulumi.Output.concat("s3://", made.bucket, "/", LATEST)

    def _place(self, bucket: str, parcel: Parcel) -> Place:
        region = self._around.spec.region
        return Place(
            system=System.AMAZON_LINUX_2023,
            region=region,
            bucket=bucket,
            bundle=parcel,
            every=self._spec.every,
            client=self._spec.client,
            secrets=tuple(
                ssm_secret(name, source, region) for name, source in self._spec.secrets.items()
            ),
        )

    def _interface(self, group: pulumi.Input[str]) -> aws.ec2.NetworkInterface:
        around = self._around
        return aws.ec2.NetworkInterface(
            self._full,
            subnet_id=self._network.subnets[self._zone, False],
            security_groups=[group],
            description=f"{VALIDATOR} of {around.stack}",
            tags=tags(around.stack, self._full),
            # and so does the instance that it is for: it needs a way to what it boots from
            opts=around.opts(*self._network.ways),
        )

    def _policy(self, bucket: aws.s3.Bucket, parcel: Parcel) -> pulumi.Output[str]:
        secrets = list(self._spec.secrets.values())
        account = ""
        if secrets:
            own = pulumi.InvokeOptions(parent=self._around.gate)
            account = aws.get_caller_identity(opts=own).account_id

        def policy(arn: str) -> str:
            parameters = f"arn:{arn.split(':')[1]}:ssm:{self._around.spec.region}:{account}"
            reads, writes = (ORDER, parcel.key), (STATUS, f"{REPORTS}*")
            return validator_policy(arn, reads, writes, parameters, secrets)

        return bucket.arn.apply(policy)

    def _close(self, bucket: aws.s3.Bucket) -> tuple[pulumi.Resource, ...]:
        """Private, encrypted, over TLS alone, and rid of old reports."""
        name, opts = self._full, self._around.opts()
        block = aws.s3.BucketPublicAccessBlock(
            name,
            bucket=bucket.bucket,
            block_public_acls=True,
            block_public_policy=True,
            ignore_public_acls=True,
            restrict_public_buckets=True,
            opts=opts,
        )
        encryption = aws.s3.BucketServerSideEncryptionConfiguration(
            name,
            bucket=bucket.bucket,
            rules=[
                aws.s3.BucketServerSideEncryptionConfigurationRuleArgs(
                    apply_server_side_encryption_by_default=aws.s3.BucketServerSideEncryptionConfigurationRuleApplyServerSideEncryptionByDefaultArgs(
                        sse_algorithm="AES256"
                    )
                )
            ],
            opts=opts,
        )
        policy = aws.s3.BucketPolicy(
            name,
            bucket=bucket.bucket,
            policy=bucket.arn.apply(over_tls),
            opts=self._around.opts(block),  # S3 takes one change of this kind at a time
        )
        expiry = aws.s3.BucketLifecycleConfiguration(
            name,
            bucket=bucket.bucket,
            rules=[
                aws.s3.BucketLifecycleConfigurationRuleArgs(
                    id="old-reports",
                    status="Enabled",
                    filter=aws.s3.BucketLifecycleConfigurationRuleFilterArgs(prefix=REPORTS),
                    expiration=aws.s3.BucketLifecycleConfigurationRuleExpirationArgs(
                        days=self._spec.keep_days
                    ),
                )
            ],
            opts=opts,
        )
        return block, encryption, policy, expiry

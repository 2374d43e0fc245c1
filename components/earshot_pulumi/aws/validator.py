"""The validator in the VPC: an instance without a public address, and a bucket for its reports."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pulumi
import pulumi_aws as aws

from earshot.aws.roles import over_tls, validator_policy
from earshot.config.aws_sections import ValidatorInstanceSpec
from earshot.placement.aws import VALIDATOR
from earshot.placement.aws_secrets import secret_parameter, validator_secrets
from earshot.remote.image import Bundle
from earshot.remote.orders import LATEST, ORDER, REPORTS, STATUS
from earshot.remote.user_data import BundleRef, ValidatorSettings, validator_user_data
from earshot.user_data.boot import System, ssm_secret
from earshot_pulumi.aws.instances import Profile, SharedInputs, instance
from earshot_pulumi.aws.network import NetworkFacts
from earshot_pulumi.aws.tags import without_public_access
from earshot_pulumi.outputs import with_run_errors

if TYPE_CHECKING:
    from earshot_pulumi.aws.cluster_security import ClusterSecurity


class Validator:
    """The resources of a stack's validator, below the gate like the nodes."""

    bucket: pulumi.Output[str]
    """The name of its bucket."""
    instance: aws.ec2.Instance
    ready: tuple[pulumi.Resource, ...]
    """The resources that must exist before it gets an order."""
    reports: pulumi.Output[str]
    """The URL of its latest report."""

    def __init__(
        self,
        shared: SharedInputs,
        spec: ValidatorInstanceSpec,
        network: NetworkFacts,
        group: pulumi.Input[str],
        bundle: Bundle,
        secured: ClusterSecurity | None = None,
    ) -> None:
        """``group`` is the id of its security group, which has no ingress."""
        self._shared, self._spec, self._network = shared, spec, network
        version = secured.of_validator() if secured else ""
        self._full_name = f"{shared.stack}-{VALIDATOR}"
        self._zone = shared.spec.vpc.zones[0]
        # reports can be created again at any time
        bucket = aws.s3.Bucket(**shared.common_args(self._full_name), force_destroy=True)
        self.bucket = bucket.bucket
        bucket_settings = self._close(bucket)
        bundle_ref = BundleRef(key=f"bundles/{bundle.sha256}.tar", sha256=bundle.sha256)
        bundle_object = aws.s3.BucketObject(
            self._full_name,
            bucket=bucket.bucket,
            key=bundle_ref.key,
            source=pulumi.FileAsset(bundle.file),
            opts=shared.opts(*bucket_settings),
        )
        self.instance = instance(
            shared,
            self._full_name,
            spec.instance,
            self._zone,
            self._interface(group).id,
            Profile(shared, self._full_name, self._policy(bucket, bundle_ref)),
            pulumi.Output.all(bucket.bucket, version, shared.approved_digest).apply(
                with_run_errors(
                    lambda values: validator_user_data(
                        self._settings(values[0], values[1], bundle_ref)
                    )
                )
            ),
            [bundle_object],
            protected=False,  # it has no data
        )
        self.ready = (self.instance, *bucket_settings)
        self.reports = pulumi.Output.concat("s3://", bucket.bucket, "/", LATEST)

    def _settings(self, bucket: str, version: str, bundle_ref: BundleRef) -> ValidatorSettings:
        region = self._shared.spec.region
        return ValidatorSettings(
            system=System.AMAZON_LINUX_2023,
            region=region,
            bucket=bucket,
            bundle=bundle_ref,
            every=self._spec.every,
            client=self._spec.client,
            client_secret=next(iter(validator_secrets(self._shared.spec)), ""),
            secrets=tuple(
                ssm_secret(name, source, region) for name, source in self._parameters.items()
            ),
            version=version,
        )

    @property
    def _parameters(self) -> dict[str, str]:
        """The SSM parameter by file. Only the validator and the deployer may read it."""
        stack, secrets = self._shared.stack, validator_secrets(self._shared.spec)
        return self._spec.secrets | {
            file: secret_parameter(stack, parameter) for file, parameter in secrets.items()
        }

    def _interface(self, group: pulumi.Input[str]) -> aws.ec2.NetworkInterface:
        shared = self._shared
        return aws.ec2.NetworkInterface(
            # so the instance waits, too: at its boot it needs routes
            **shared.common_args(self._full_name, *self._network.routes),
            subnet_id=self._network.subnets[self._zone, False],
            security_groups=[group],
            description=f"{VALIDATOR} of {shared.stack}",
        )

    def _policy(self, bucket: aws.s3.Bucket, bundle_ref: BundleRef) -> pulumi.Output[str]:
        secrets = list(self._parameters.values())
        account = ""
        if secrets:
            child = pulumi.InvokeOptions(parent=self._shared.gate)
            account = aws.get_caller_identity(opts=child).account_id

        def policy(arn: str) -> str:
            parameters = f"arn:{arn.split(':')[1]}:ssm:{self._shared.spec.region}:{account}"
            reads, writes = (ORDER, bundle_ref.key), (STATUS, f"{REPORTS}*")
            return validator_policy(arn, reads, writes, parameters, secrets)

        return bucket.arn.apply(policy)

    def _close(self, bucket: aws.s3.Bucket) -> tuple[pulumi.Resource, ...]:
        """The settings of ``bucket``: private, encrypted, TLS only, old reports expire."""
        name, opts = self._full_name, self._shared.opts()
        block = without_public_access(name, bucket, opts)
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
            opts=self._shared.opts(block),  # S3 accepts one change of this kind at a time
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

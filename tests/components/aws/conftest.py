"""pulumi-aws warns of its own outdated parts when they are loaded, which is on their first use."""

from __future__ import annotations

import warnings

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    import pulumi_aws.ec2
    import pulumi_aws.s3

    LOADED = (pulumi_aws.ec2.Instance, pulumi_aws.s3.Bucket)

"""The `aws` placement: network, groups, names, and the instances behind their gate."""

from earshot_pulumi.aws.sdk import load_on_demand

load_on_demand()  # before a module here imports pulumi_aws

KINDS = {
    "AwsCertificates": "secrets",
    "AwsReadiness": "readiness",
    "AwsSecret": "secrets",
    "AwsTurn": "turns",
    "ChangePreflight": "preflight",
}
"""For each custom resource, the module of this package with its kind, `NAMEKind`."""

"""The `aws` placement: network, groups, names, and the instances behind their gate."""

from earshot_pulumi.aws.sdk import load_on_demand

load_on_demand()  # before a module here imports pulumi_aws

KINDS = {
    "AwsCertificates": "copies",
    "AwsReadiness": "readiness",
    "AwsSecret": "secrets",
    "AwsTurn": "turns",
    "ChangePreflight": "preflight",
    "DockerHostKeys": "host_keys",
}
"""By name of its custom resources, the module here with their kind, called `NAMEKind`."""

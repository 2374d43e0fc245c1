"""What an instance's role may do: nothing but what its user data and Session Manager need.

Sources: the Systems Manager guide on adding Session Manager permissions to an existing role (five
actions, which take no resource), the IAM reference of Systems Manager, KMS, ECR and S3; the S3
guide on bucket policies (TLS alone).
"""

import json
from collections.abc import Iterable, Iterator
from typing import Any

from earshot.aws.ecr import EcrImage

SESSION_MANAGER = (
    "ssm:UpdateInstanceInformation",
    "ssmmessages:CreateControlChannel",
    "ssmmessages:CreateDataChannel",
    "ssmmessages:OpenControlChannel",
    "ssmmessages:OpenDataChannel",
)

PULL = ("ecr:BatchGetImage", "ecr:GetDownloadUrlForLayer", "ecr:BatchImportUpstreamImage")
"""The last one fetches what a pull through cache lacks; other repositories do not use it."""


def trust_policy() -> str:
    """Who may take the role: EC2, for an instance."""
    who = {"Service": "ec2.amazonaws.com"}
    return _policy([{"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": who}])


def node_policy(report: str, secrets: Iterable[str] = ()) -> str:
    """For a node that reports in the SSM parameter with the ARN ``report``, and reads those named
    in ``secrets``, of the same account and region."""
    statements: list[dict[str, Any]] = [
        _allow("Report", ("ssm:PutParameter",), [report]),
        _allow("Sessions", SESSION_MANAGER, ["*"]),
    ]
    return _policy([*statements, *_secrets(report.partition(":parameter/")[0], secrets)])


def docker_host_policy(report: str, key: str, listed: str, images: Iterable[EcrImage]) -> str:
    """For a Docker host that reports in the SSM parameter with the ARN ``report``, reads its
    engine's ``key``, and pulls ``images``, which the parameter ``listed`` names."""
    prefix, _, _ = report.partition(":parameter/")
    statements = json.loads(node_policy(report, [key]))["Statement"]
    repositories = {it.repository_arn(prefix.split(":")[1]) for it in images}
    if repositories:
        statements += [
            _allow("Images", ("ssm:GetParameter",), [f"{prefix}:parameter{listed}"]),
            # this action takes no resource
            _allow("Login", ("ecr:GetAuthorizationToken",), ["*"]),
            _allow("Pull", PULL, sorted(repositories)),
        ]
    return _policy(statements)


def validator_policy(
    bucket: str,
    reads: Iterable[str],
    writes: Iterable[str],
    parameters: str,
    secrets: Iterable[str],
) -> str:
    """For the validator whose bucket has the ARN ``bucket``: it gets the objects with the keys
    ``reads``, puts those that match ``writes``, and reads the SSM parameters named in ``secrets``,
    of the account and region that ``parameters``, an ARN without a resource, is of."""
    statements = [
        _allow("Orders", ("s3:GetObject",), [f"{bucket}/{key}" for key in reads]),
        _allow("Reports", ("s3:PutObject",), [f"{bucket}/{key}" for key in writes]),
        _allow("Sessions", SESSION_MANAGER, ["*"]),
    ]
    return _policy([*statements, *_secrets(parameters, secrets)])


def over_tls(bucket: str) -> str:
    """A bucket's own policy: access needs TLS."""
    statement = {
        "Sid": "OverTls",
        "Effect": "Deny",
        "Principal": "*",
        "Action": "s3:*",
        "Resource": [bucket, f"{bucket}/*"],
        "Condition": {"Bool": {"aws:SecureTransport": "false"}},
    }
    return _policy([statement])


def _secrets(prefix: str, names: Iterable[str]) -> Iterator[dict[str, Any]]:
    """What it takes to read the SSM parameters ``names``, whose ARNs begin with ``prefix``."""
    arns = [f"{prefix}:parameter{name}" for name in names]
    if arns:
        yield _allow("Secrets", ("ssm:GetParameter",), arns)
        # for parameters under a key of one's own; AWS's own key asks for no more than the above
        context = {"kms:EncryptionContext:PARAMETER_ARN": arns}
        yield _allow("Decrypt", ("kms:Decrypt",), ["*"]) | {"Condition": {"StringEquals": context}}


def _allow(sid: str, actions: Iterable[str], resources: list[str]) -> dict[str, Any]:
    return {"Sid": sid, "Effect": "Allow", "Action": list(actions), "Resource": resources}


def _policy(statements: list[dict[str, Any]]) -> str:
    return json.dumps({"Version": "2012-10-17", "Statement": statements})

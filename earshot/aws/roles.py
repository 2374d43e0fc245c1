"""Policies of instance roles, with only the permissions for user data and Session Manager.

Sources: the Systems Manager guide on adding Session Manager permissions to an existing role (five
actions without a resource); the IAM reference of Systems Manager, KMS, ECR and S3; the S3 guide on
bucket policies (only TLS).
"""

import json
from collections.abc import Iterable, Iterator

from earshot.aws.ecr import EcrImage
from earshot.json_object import JsonObject

SESSION_MANAGER = (
    "ssm:UpdateInstanceInformation",
    "ssmmessages:CreateControlChannel",
    "ssmmessages:CreateDataChannel",
    "ssmmessages:OpenControlChannel",
    "ssmmessages:OpenDataChannel",
)

PULL = ("ecr:BatchGetImage", "ecr:GetDownloadUrlForLayer", "ecr:BatchImportUpstreamImage")
"""Actions of a pull; the last one fills a pull through cache, and other repositories ignore it."""


def trust_policy() -> str:
    """The trust policy of a role for EC2 instances."""
    principal = {"Service": "ec2.amazonaws.com"}
    return _policy([{"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": principal}])


def node_policy(report: str, secrets: Iterable[str] = ()) -> str:
    """The policy of a node that writes the SSM parameter with the ARN ``report``, and reads the
    parameters ``secrets`` (names) of the same account and region."""
    statements: list[JsonObject] = [
        _allow("Report", ("ssm:PutParameter",), [report]),
        _allow("Sessions", SESSION_MANAGER, ["*"]),
    ]
    return _policy([*statements, *_secrets(report.partition(":parameter/")[0], secrets)])


def docker_host_policy(report: str, key: str, image_list: str, images: Iterable[EcrImage]) -> str:
    """The policy of a Docker host that writes the SSM parameter with the ARN ``report``, reads its
    engine's ``key``, and pulls ``images``, whose names are in the parameter ``image_list``."""
    prefix, _, _ = report.partition(":parameter/")
    statements = json.loads(node_policy(report, [key]))["Statement"]
    repositories = {image.repository_arn(prefix.split(":")[1]) for image in images}
    if repositories:
        statements += [
            _allow("Images", ("ssm:GetParameter",), [f"{prefix}:parameter{image_list}"]),
            # this action has no resource
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
    """The policy of the validator with the bucket ``bucket`` (an ARN): it reads objects with the
    keys ``reads``, writes those that match ``writes``, and reads the SSM parameters ``secrets``
    (names) of the account and region in ``parameters``, an ARN without a resource."""
    statements = [
        _allow("Orders", ("s3:GetObject",), [f"{bucket}/{key}" for key in reads]),
        _allow("Reports", ("s3:PutObject",), [f"{bucket}/{key}" for key in writes]),
        _allow("Sessions", SESSION_MANAGER, ["*"]),
    ]
    return _policy([*statements, *_secrets(parameters, secrets)])


def over_tls(bucket: str) -> str:
    """A bucket policy that requires TLS."""
    statement = {
        "Sid": "OverTls",
        "Effect": "Deny",
        "Principal": "*",
        "Action": "s3:*",
        "Resource": [bucket, f"{bucket}/*"],
        "Condition": {"Bool": {"aws:SecureTransport": "false"}},
    }
    return _policy([statement])


def _secrets(prefix: str, names: Iterable[str]) -> Iterator[JsonObject]:
    """Statements for reading the SSM parameters ``names``, whose ARNs begin with ``prefix``."""
    arns = [f"{prefix}:parameter{name}" for name in names]
    if arns:
        yield _allow("Secrets", ("ssm:GetParameter",), arns)
        # for parameters with a key of the user; AWS's own key needs only the statement above
        context = {"kms:EncryptionContext:PARAMETER_ARN": arns}
        yield _allow("Decrypt", ("kms:Decrypt",), ["*"]) | {"Condition": {"StringEquals": context}}


def _allow(sid: str, actions: Iterable[str], resources: list[str]) -> JsonObject:
    return {"Sid": sid, "Effect": "Allow", "Action": list(actions), "Resource": resources}


def _policy(statements: list[JsonObject]) -> str:
    return json.dumps({"Version": "2012-10-17", "Statement": statements})

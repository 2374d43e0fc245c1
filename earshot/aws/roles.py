"""What an instance's role may do: nothing but what its user data and Session Manager need.

Sources: the Systems Manager guide on adding Session Manager permissions to an existing role (five
actions, which take no resource), the IAM reference of Systems Manager and KMS.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

SESSION_MANAGER = (
    "ssm:UpdateInstanceInformation",
    "ssmmessages:CreateControlChannel",
    "ssmmessages:CreateDataChannel",
    "ssmmessages:OpenControlChannel",
    "ssmmessages:OpenDataChannel",
)


def trust_policy() -> str:
    """Who may take the role: EC2, for an instance."""
    return _policy(
        [
            {
                "Effect": "Allow",
                "Action": "sts:AssumeRole",
                "Principal": {"Service": "ec2.amazonaws.com"},
            }
        ]
    )


def node_policy(report: str, secrets: Iterable[str] = ()) -> str:
    """For a node that reports in the SSM parameter with the ARN ``report``, and reads those named
    in ``secrets``, of the same account and region."""
    statements: list[dict[str, Any]] = [
        _allow("Report", ("ssm:PutParameter",), [report]),
        _allow("Sessions", SESSION_MANAGER, ["*"]),
    ]
    prefix = report.partition(":parameter/")[0]
    arns = [f"{prefix}:parameter{name}" for name in secrets]
    if arns:
        statements.append(_allow("Secrets", ("ssm:GetParameter",), arns))
        # for parameters under a key of one's own; AWS's own key asks for no more than the above
        context = {"kms:EncryptionContext:PARAMETER_ARN": arns}
        statements.append(
            _allow("Decrypt", ("kms:Decrypt",), ["*"]) | {"Condition": {"StringEquals": context}}
        )
    return _policy(statements)


def _allow(sid: str, actions: Iterable[str], resources: list[str]) -> dict[str, Any]:
    return {"Sid": sid, "Effect": "Allow", "Action": list(actions), "Resource": resources}


def _policy(statements: list[dict[str, Any]]) -> str:
    return json.dumps({"Version": "2012-10-17", "Statement": statements})

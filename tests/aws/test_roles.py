"""The permissions of an instance's role."""

import json
from typing import Any

from earshot.aws.ecr import EXAMPLE, ecr_image
from earshot.aws.roles import (
    SESSION_MANAGER,
    docker_host_policy,
    node_policy,
    over_tls,
    trust_policy,
    validator_policy,
)

OWN = "arn:aws:ssm:eu-central-1:123456789012:parameter/earshot/mine/broker-1"


def grants_by_sid(statements: list[dict[str, Any]]) -> dict[str, tuple[list[str], list[str]]]:
    """Actions and resources, by `Sid`."""
    return {
        statement["Sid"]: (statement["Action"], statement["Resource"]) for statement in statements
    }


def test_only_instances_assume_a_role() -> None:
    principal = {"Service": "ec2.amazonaws.com"}
    statement = {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": principal}
    assert json.loads(trust_policy()) == {"Version": "2012-10-17", "Statement": [statement]}


def test_a_session_takes_five_actions() -> None:
    assert set(SESSION_MANAGER) == {
        "ssm:UpdateInstanceInformation",
        "ssmmessages:CreateControlChannel",
        "ssmmessages:CreateDataChannel",
        "ssmmessages:OpenControlChannel",
        "ssmmessages:OpenDataChannel",
    }


def test_a_node_writes_its_own_report_and_nothing_else() -> None:
    statements = json.loads(node_policy(OWN))["Statement"]
    assert grants_by_sid(statements) == {
        "Report": (["ssm:PutParameter"], [OWN]),
        "Sessions": (list(SESSION_MANAGER), ["*"]),
    }


def test_secrets_are_read_by_name() -> None:
    statements = json.loads(node_policy(OWN, ["/kafka/1/key"]))["Statement"]
    arn = "arn:aws:ssm:eu-central-1:123456789012:parameter/kafka/1/key"
    context = {"kms:EncryptionContext:PARAMETER_ARN": [arn]}
    assert statements[2:] == [
        {"Sid": "Secrets", "Effect": "Allow", "Action": ["ssm:GetParameter"], "Resource": [arn]},
        {
            "Sid": "Decrypt",
            "Effect": "Allow",
            "Action": ["kms:Decrypt"],
            "Resource": ["*"],
            "Condition": {"StringEquals": context},
        },
    ]


def test_a_docker_host_pulls_from_its_repositories_alone() -> None:
    parameter = "/earshot/mine/docker/images"
    names = (EXAMPLE, f"{EXAMPLE.partition(':')[0]}:4.1.2", EXAMPLE.replace("kafka", "debian"))
    images = [image for image in map(ecr_image, names) if image]
    policy = docker_host_policy(OWN, "/key", parameter, images)
    policy_without_images = docker_host_policy(OWN, "/key", parameter, [])
    assert policy_without_images == node_policy(OWN, ["/key"])
    added_statements = json.loads(policy)["Statement"][
        len(json.loads(policy_without_images)["Statement"]) :
    ]
    registry = "arn:aws:ecr:eu-central-1:123456789012:repository"
    assert grants_by_sid(added_statements) == {
        "Images": (
            ["ssm:GetParameter"],
            [f"arn:aws:ssm:eu-central-1:123456789012:parameter{parameter}"],
        ),
        "Login": (["ecr:GetAuthorizationToken"], ["*"]),
        "Pull": (
            [
                "ecr:BatchGetImage",
                "ecr:GetDownloadUrlForLayer",
                "ecr:BatchImportUpstreamImage",
            ],
            [f"{registry}/apache/debian", f"{registry}/apache/kafka"],
        ),
    }
    chinese = OWN.replace("arn:aws:", "arn:aws-cn:")
    assert "arn:aws-cn:ecr:" in docker_host_policy(chinese, "/key", parameter, images)


def test_a_validator_gets_and_puts_what_it_must_alone() -> None:
    text = validator_policy("arn:aws:s3:::b", ["order.json"], ["reports/*"], "arn:aws:ssm:x:1", [])
    statements = json.loads(text)["Statement"]
    assert grants_by_sid(statements) == {
        "Orders": (["s3:GetObject"], ["arn:aws:s3:::b/order.json"]),
        "Reports": (["s3:PutObject"], ["arn:aws:s3:::b/reports/*"]),
        "Sessions": (list(SESSION_MANAGER), ["*"]),
    }
    secret = validator_policy("arn:aws:s3:::b", [], [], "arn:aws:ssm:x:1", ["/k"])
    assert "arn:aws:ssm:x:1:parameter/k" in secret


def test_a_bucket_is_reached_over_tls_alone() -> None:
    (statement,) = json.loads(over_tls("arn:aws:s3:::b"))["Statement"]
    assert statement == {
        "Sid": "OverTls",
        "Effect": "Deny",
        "Principal": "*",
        "Action": "s3:*",
        "Resource": ["arn:aws:s3:::b", "arn:aws:s3:::b/*"],
        "Condition": {"Bool": {"aws:SecureTransport": "false"}},
    }

"""What an instance's role may do, and no more."""

import json

from earshot.aws.ecr import EXAMPLE, EcrImage, ecr_image
from earshot.aws.roles import (
    SESSION_MANAGER,
    docker_host_policy,
    node_policy,
    over_tls,
    trust_policy,
    validator_policy,
)

OWN = "arn:aws:ssm:eu-central-1:123456789012:parameter/earshot/mine/broker-1"


def test_only_instances_take_it() -> None:
    (statement,) = json.loads(trust_policy())["Statement"]
    assert statement == {
        "Effect": "Allow",
        "Action": "sts:AssumeRole",
        "Principal": {"Service": "ec2.amazonaws.com"},
    }
    assert json.loads(trust_policy())["Version"] == "2012-10-17"


def test_what_a_session_takes_are_five_actions() -> None:
    assert set(SESSION_MANAGER) == {
        "ssm:UpdateInstanceInformation",
        "ssmmessages:CreateControlChannel",
        "ssmmessages:CreateDataChannel",
        "ssmmessages:OpenControlChannel",
        "ssmmessages:OpenDataChannel",
    }


def test_a_node_writes_its_own_report_and_nothing_else() -> None:
    statements = json.loads(node_policy(OWN))["Statement"]
    assert {item["Sid"]: (item["Action"], item["Resource"]) for item in statements} == {
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


def found(name: str) -> EcrImage:
    image = ecr_image(name)
    assert image is not None
    return image


def test_a_docker_host_pulls_from_its_repositories_alone() -> None:
    listed = "/earshot/mine/docker/images"
    names = (EXAMPLE, f"{EXAMPLE.partition(':')[0]}:4.1.2", EXAMPLE.replace("kafka", "debian"))
    policy = docker_host_policy(OWN, "/key", listed, map(found, names))
    plain = docker_host_policy(OWN, "/key", listed, [])
    assert plain == node_policy(OWN, ["/key"])
    added = json.loads(policy)["Statement"][len(json.loads(plain)["Statement"]) :]
    registry = "arn:aws:ecr:eu-central-1:123456789012:repository"
    assert {item["Sid"]: (item["Action"], item["Resource"]) for item in added} == {
        "Images": (
            ["ssm:GetParameter"],
            [f"arn:aws:ssm:eu-central-1:123456789012:parameter{listed}"],
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
    assert "arn:aws-cn:ecr:" in docker_host_policy(chinese, "/key", listed, [found(EXAMPLE)])


def test_no_action_is_a_pattern() -> None:
    statements = json.loads(node_policy(OWN, ["/a"]))["Statement"]
    assert not [action for item in statements for action in item["Action"] if "*" in action]


def test_a_validator_gets_and_puts_what_it_must_alone() -> None:
    text = validator_policy("arn:aws:s3:::b", ["order.json"], ["reports/*"], "arn:aws:ssm:x:1", [])
    statements = json.loads(text)["Statement"]
    assert {item["Sid"]: (item["Action"], item["Resource"]) for item in statements} == {
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

"""What an instance's role may do, and no more."""

from __future__ import annotations

import json

from earshot.aws.roles import SESSION_MANAGER, node_policy, trust_policy

OWN = "arn:aws:ssm:eu-central-1:123456789012:parameter/earshot/mine/broker-1"


def test_only_instances_take_it() -> None:
    (statement,) = json.loads(trust_policy())["Statement"]
    assert statement["Principal"] == {"Service": "ec2.amazonaws.com"}


def test_a_node_writes_its_own_report_and_nothing_else() -> None:
    statements = json.loads(node_policy(OWN))["Statement"]
    assert {item["Sid"]: (item["Action"], item["Resource"]) for item in statements} == {
        "Report": (["ssm:PutParameter"], [OWN]),
        "Sessions": (list(SESSION_MANAGER), ["*"]),
    }


def test_secrets_are_read_by_name() -> None:
    statements = json.loads(node_policy(OWN, ["/kafka/1/key"]))["Statement"]
    (arn,) = next(item["Resource"] for item in statements if item["Sid"] == "Secrets")
    assert arn == "arn:aws:ssm:eu-central-1:123456789012:parameter/kafka/1/key"
    (decrypt,) = (item for item in statements if item["Sid"] == "Decrypt")
    assert decrypt["Condition"]["StringEquals"] == {"kms:EncryptionContext:PARAMETER_ARN": [arn]}


def test_no_action_is_a_pattern() -> None:
    statements = json.loads(node_policy(OWN, ["/a"]))["Statement"]
    assert not [action for item in statements for action in item["Action"] if "*" in action]

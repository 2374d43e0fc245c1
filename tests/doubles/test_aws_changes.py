"""The changes that the AWS double detects, their replacements, and its form of AWS's values."""

import json
from typing import Any

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError
from pulumi.runtime.rpc import UNKNOWN

from tests.doubles.aws.cloud import Cloud, error_line, is_missing
from tests.doubles.aws.endpoints import same_document
from tests.doubles.aws.kind import tags_of
from tests.doubles.aws.names import partition, private_name, public_name
from tests.doubles.aws.provider import KINDS
from tests.doubles.plugin.kind import changed_inputs

INSTANCE = KINDS["aws:ec2/instance:Instance"]
RULE = KINDS["aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule"]


def root(**parts: Any) -> dict[str, Any]:
    return {"rootBlockDevice": parts}


@pytest.mark.parametrize(
    ("state", "inputs", "expected"),
    [
        ({"privateIp": "10.0.0.9", "subnetId": "s"}, {"subnetId": "s"}, []),
        ({"subnetId": "s"}, {"subnetId": "t"}, ["subnetId"]),
        ({"vpcSecurityGroupIds": ["a", "b"]}, {"vpcSecurityGroupIds": ["b", "a"]}, []),
        ({"vpcSecurityGroupIds": ["a"]}, {"vpcSecurityGroupIds": ["b"]}, ["vpcSecurityGroupIds"]),
        (root(volumeSize=8, iops=3000), root(volumeSize=8), []),
        ({"userData": "a"}, {}, ["userData"]),
        ({"disableApiTermination": False}, {}, []),
        ({"tagsAll": {"a": "1"}}, {"tagsAll": {"a": "2"}}, ["tagsAll"]),
        ({"tagsAll": {"a": "1"}}, {}, ["tagsAll"]),
        ({"publicIp": "203.0.113.9", "ami": "a"}, {"ami": "a"}, []),
    ],
)
def test_what_counts_as_a_change(
    state: dict[str, Any], inputs: dict[str, Any], expected: list[str]
) -> None:
    assert changed_inputs(INSTANCE, state, inputs) == expected


@pytest.mark.parametrize(
    ("name", "state", "inputs", "expected"),
    [
        ("userData", {}, {"userData": "a"}, False),
        ("userData", {}, {"userData": "a", "userDataReplaceOnChange": True}, True),
        ("userData", {"userData": "a"}, {}, True),
        ("ami", {}, {"ami": "ami-2"}, True),
        ("instanceType", {}, {"instanceType": "t4g.large"}, False),
        ("tagsAll", {}, {}, False),
        ("rootBlockDevice", root(volumeSize=8), root(volumeSize=9), False),
        ("rootBlockDevice", root(encrypted=False), root(encrypted=True), True),
    ],
)
def test_which_changes_replace_an_instance(
    name: str, state: dict[str, Any], inputs: dict[str, Any], expected: bool
) -> None:
    assert INSTANCE.needs_replacement(name, state, inputs) is expected


RANGE = {"securityGroupId": "sg", "ipProtocol": "tcp", "fromPort": 1, "toPort": 1, "cidrIpv4": "c"}
GROUP = {"securityGroupId": "sg", "ipProtocol": "tcp", "fromPort": 1, "toPort": 1}


def test_a_rule_of_an_ipv4_range_is_updated_and_others_are_replaced() -> None:
    assert not RULE.needs_replacement("cidrIpv4", RANGE, RANGE | {"cidrIpv4": "d"})
    assert RULE.needs_replacement("securityGroupId", RANGE, RANGE | {"securityGroupId": "x"})
    group = GROUP | {"referencedSecurityGroupId": "other"}
    assert RULE.needs_replacement("description", group, group | {"description": "d"})
    assert RULE.deletes_first(group, group | {"description": "d"})
    assert not RULE.deletes_first(group, group | {"toPort": 2})


def test_a_name_that_was_asked_for_makes_the_old_one_go_first() -> None:
    role = KINDS["aws:iam/role:Role"]
    assert role.deletes_first({"name": "r"}, {"name": "r", "__defaults": []})
    assert not role.deletes_first({"name": "r"}, {"name": "r", "__defaults": ["name"]})
    assert not role.deletes_first({"name": "r"}, {"name": "s", "__defaults": []})


def test_a_preview_of_a_change_in_place_keeps_what_it_does_not_touch() -> None:
    state = {"ami": "a", "privateIp": "10.0.0.9", "publicIp": "203.0.113.9", "userData": "u"}
    plan = INSTANCE.planned(state, {"ami": "a", "instanceType": "t4g.large"})
    assert plan == {
        "ami": "a",
        "instanceType": "t4g.large",
        "privateIp": "10.0.0.9",
        "publicIp": "203.0.113.9",
    }
    parameter = KINDS["aws:ssm/parameter:Parameter"].planned({"version": 1, "arn": "a"}, {})
    assert parameter == {"version": UNKNOWN, "arn": "a"}


@pytest.mark.parametrize(("region", "private", "public", "owner"), [
    ("us-east-1", "ip-10-0-0-9.ec2.internal", "ec2-203-0-113-9.compute-1.amazonaws.com", "aws"),
    ("eu-central-1", "ip-10-0-0-9.eu-central-1.compute.internal",
     "ec2-203-0-113-9.eu-central-1.compute.amazonaws.com", "aws"),
    ("cn-north-1", "ip-10-0-0-9.cn-north-1.compute.internal",
     "ec2-203-0-113-9.cn-north-1.compute.amazonaws.com.cn", "aws-cn"),
    ("us-gov-west-1", "ip-10-0-0-9.us-gov-west-1.compute.internal",
     "ec2-203-0-113-9.us-gov-west-1.compute.amazonaws.com", "aws-us-gov"),
])  # fmt: skip
def test_names_have_each_regions_form(region: str, private: str, public: str, owner: str) -> None:
    assert private_name("10.0.0.9", region) == private
    assert public_name("203.0.113.9", region) == public
    assert partition(region) == owner


def test_the_providers_own_tags_are_not_the_programs() -> None:
    tags = json.dumps({"tags": {"owner": "me", "stage": "dev"}})
    cloud = Cloud({"region": "us-west-2", "defaultTags": tags})
    aws_tags = [
        {"Key": "owner", "Value": "me"},
        {"Key": "stage", "Value": "prod"},
        {"Key": "own", "Value": "1"},
    ]
    assert tags_of(cloud, aws_tags, {}) == {
        "tags": {"stage": "prod", "own": "1"},
        "tagsAll": {"owner": "me", "stage": "prod", "own": "1"},
    }
    assert tags_of(cloud, aws_tags[:1], {"tags": {"owner": "me"}})["tags"] == {"owner": "me"}


@pytest.mark.parametrize(
    ("state_policy", "aws_policy", "expected"),
    [
        ('{"a": 1}', '{"a":1}', '{"a": 1}'),
        ('{"a": 1}', '{"a":2}', '{"a":2}'),
        (None, '{"a":2}', '{"a":2}'),
        ('{"a": 1}', None, None),
    ],
)
def test_policies_that_say_the_same_are_the_same(
    state_policy: str | None, aws_policy: str | None, expected: str | None
) -> None:
    assert same_document(state_policy, aws_policy) == expected


def _error(code: str, message: str = "it says so") -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": message}}, "DescribeVpcs")


def test_what_the_cloud_says_is_one_line() -> None:
    assert error_line(_error("VpcLimit", "too\n many")) == "DescribeVpcs: VpcLimit: too many"
    nowhere = EndpointConnectionError(endpoint_url="http://127.0.0.1:1")
    assert error_line(nowhere) == 'Could not connect to the endpoint URL: "http://127.0.0.1:1"'


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("InvalidVpcID.NotFound", True),
        ("NoSuchEntity", True),
        ("NoSuchHostedZone", True),
        ("404", True),
        ("InvalidPermission.NotFound", False),
        ("DependencyViolation", False),
        ("InvalidParameterValue", False),
    ],
)
def test_which_errors_mean_that_it_is_gone(code: str, expected: bool) -> None:
    assert is_missing(_error(code)) is expected

"""What a target's health is read as, and what is said where it cannot be read."""

from collections.abc import Callable, Iterator

import pytest
from earshot_pulumi.aws.reports import Target
from earshot_pulumi.aws.targets import deregister, health, register, still_served

from earshot.errors import EarshotError
from tests.doubles.aws.in_process import MotoInProcess, moto_in_process
from tests.doubles.aws.server import REGION

ADDRESS = "10.0.0.11"


@pytest.fixture
def cloud() -> Iterator[MotoInProcess]:
    with moto_in_process() as moto:
        moto.reset()
        yield moto


def group(cloud: MotoInProcess) -> str:
    vpc = cloud.client("ec2").create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    made = cloud.client("elbv2").create_target_group(
        Name="kafka-1", Protocol="TCP", Port=9094, VpcId=vpc, TargetType="ip"
    )
    return str(made["TargetGroups"][0]["TargetGroupArn"])


@pytest.fixture(autouse=True)
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")


def test_a_target_is_healthy_or_named_with_its_state(cloud: MotoInProcess) -> None:
    target = Target(group(cloud), ADDRESS, 9094)
    unhealthy = health({}, REGION)
    assert unhealthy(target) == (
        "target 10.0.0.11:9094 of target group kafka-1 is unavailable "
        "(Target.NotRegistered: Target is not registered)"
    )
    registered = {"TargetGroupArn": target.group, "Targets": [{"Id": ADDRESS, "Port": 9094}]}
    cloud.client("elbv2").register_targets(**registered)
    assert unhealthy(target) == ""


def test_targets_leave_their_group_and_come_back(cloud: MotoInProcess) -> None:
    arn = group(cloud)
    one, two = (Target(arn, f"10.0.0.{it}", 9094) for it in (11, 12))
    elb = cloud.client("elbv2")

    def registered() -> set[str]:
        found = elb.describe_target_health(TargetGroupArn=arn)["TargetHealthDescriptions"]
        return {it["Target"]["Id"] for it in found}

    register({}, REGION, [one, two])
    deregister({}, REGION, [one])
    assert registered() == {two.address}
    served = still_served({}, REGION, [one, two])
    assert served == ["target 10.0.0.12:9094 is healthy"]
    deregister({}, REGION, [one])
    register({}, REGION, [one, two])
    assert registered() == {one.address, two.address}


@pytest.mark.parametrize(
    ("act", "action"),
    [
        (lambda it: health({}, REGION)(it), "DescribeTargetHealth"),
        (lambda it: still_served({}, REGION, [it]), "DescribeTargetHealth"),
        (lambda it: register({}, REGION, [it]), "RegisterTargets"),
        (lambda it: deregister({}, REGION, [it]), "DeregisterTargets"),
    ],
)
def test_a_group_that_is_gone_is_an_error_that_names_the_permission(
    act: Callable[[Target], object], action: str, cloud: MotoInProcess
) -> None:
    target = Target(group(cloud), ADDRESS, 9094)
    cloud.client("elbv2").delete_target_group(TargetGroupArn=target.group)
    with pytest.raises(EarshotError) as raised:
        act(target)
    assert f"elasticloadbalancing:{action}" in str(raised.value)

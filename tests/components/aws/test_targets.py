"""The health of targets, their registration, and errors of both."""

from collections.abc import Callable, Iterator

import pytest
from earshot_pulumi.aws.targets import Target, deregister, register, still_served, unhealthy

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
    answer = cloud.client("elbv2").create_target_group(
        Name="kafka-1", Protocol="TCP", Port=9094, VpcId=vpc, TargetType="ip"
    )
    return str(answer["TargetGroups"][0]["TargetGroupArn"])


@pytest.fixture(autouse=True)
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")


def test_a_target_is_healthy_or_named_with_its_state(cloud: MotoInProcess) -> None:
    target = Target(group(cloud), ADDRESS, 9094)
    assert unhealthy({}, REGION, target) == (
        "target 10.0.0.11:9094 of target group kafka-1 is unavailable "
        "(Target.NotRegistered: Target is not registered)"
    )
    registered = {"TargetGroupArn": target.group, "Targets": [{"Id": ADDRESS, "Port": 9094}]}
    cloud.client("elbv2").register_targets(**registered)
    assert unhealthy({}, REGION, target) == ""


def test_targets_leave_their_group_and_come_back(cloud: MotoInProcess) -> None:
    arn = group(cloud)
    first, second = (Target(arn, f"10.0.0.{n}", 9094) for n in (11, 12))
    elb = cloud.client("elbv2")

    def registered() -> set[str]:
        answer = elb.describe_target_health(TargetGroupArn=arn)
        return {health["Target"]["Id"] for health in answer["TargetHealthDescriptions"]}

    register({}, REGION, [first, second])
    deregister({}, REGION, [first])
    assert registered() == {second.address}
    assert still_served({}, REGION, [first, second]) == ["target 10.0.0.12:9094 is healthy"]
    deregister({}, REGION, [first])
    register({}, REGION, [first, second])
    assert registered() == {first.address, second.address}


@pytest.mark.parametrize(
    ("act", "action"),
    [
        (lambda target: unhealthy({}, REGION, target), "DescribeTargetHealth"),
        (lambda target: still_served({}, REGION, [target]), "DescribeTargetHealth"),
        (lambda target: register({}, REGION, [target]), "RegisterTargets"),
        (lambda target: deregister({}, REGION, [target]), "DeregisterTargets"),
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

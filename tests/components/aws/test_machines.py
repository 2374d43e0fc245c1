"""What EC2 says of instances, on moto."""

import time
from collections.abc import Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError
from earshot_pulumi.aws import machines as module
from earshot_pulumi.aws.machines import described, machines

from earshot.errors import EarshotError
from tests.doubles.aws.in_process import moto_in_process
from tests.doubles.aws.server import REGION

IMAGE = "ami-03cf127a"


@pytest.fixture
def ec2(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    with moto_in_process() as moto:
        monkeypatch.setattr(module, "client", lambda _config, _region, name: moto.client(name))
        yield moto.client("ec2")


def launched(ec2: Any, name: str, stack: str = "mine") -> str:
    tags = [{"Key": "Name", "Value": name}, {"Key": "earshot:stack", "Value": stack}]
    specification = {"ResourceType": "instance", "Tags": tags}
    answer = ec2.run_instances(
        ImageId=IMAGE, MinCount=1, MaxCount=1, TagSpecifications=[specification]
    )
    return str(answer["Instances"][0]["InstanceId"])


def test_a_stacks_own_instances_are_described_until_they_are_terminated(ec2: Any) -> None:
    running, stopped = launched(ec2, "mine-broker-1"), launched(ec2, "mine-broker-2")
    launched(ec2, "other-broker-1", "other")
    launched(ec2, "mine-broker-3")
    ec2.stop_instances(InstanceIds=[stopped])
    ec2.terminate_instances(InstanceIds=[machines({}, REGION, "mine")["mine-broker-3"].id])
    stack_machines = machines({}, REGION, "mine")
    assert {name: (it.id, it.state, it.problem) for name, it in stack_machines.items()} == {
        "mine-broker-1": (running, "running", ""),
        "mine-broker-2": (stopped, "stopped", f"its instance {stopped} is stopped"),
    }


def test_the_time_is_that_of_the_last_start(ec2: Any) -> None:
    id = launched(ec2, "mine-broker-1")
    launch = described({}, REGION, [id])[id].started
    time.sleep(1.1)
    ec2.stop_instances(InstanceIds=[id])
    ec2.start_instances(InstanceIds=[id])
    last_start = described({}, REGION, [id])[id].started
    assert launch < last_start <= time.time()
    assert described({}, REGION, ["i-0123456789abcdef0"]) == {}


def test_an_instance_whose_checks_fail_is_impaired(
    ec2: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    id = launched(ec2, "mine-broker-1")

    class Impaired:
        """EC2, which calls the instance impaired; moto calls every one well."""

        def get_paginator(self, call: str) -> Any:
            return self if call == "describe_instance_status" else ec2.get_paginator(call)

        def paginate(self, **_: Any) -> list[dict[str, Any]]:
            checks = {"SystemStatus": {"Status": "impaired"}, "InstanceStatus": {"Status": "ok"}}
            return [{"InstanceStatuses": [{"InstanceId": id, **checks}]}]

    monkeypatch.setattr(module, "client", lambda *_: Impaired())
    (machine,) = machines({}, REGION, "mine").values()
    assert machine.problem == f"EC2 reports its instance {id} as impaired (system status)"


def test_where_aws_does_not_answer_the_permission_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    class Refusing:
        def get_paginator(self, _: str) -> Any:
            error = {"Error": {"Code": "UnauthorizedOperation", "Message": "no"}}
            raise ClientError(error, "DescribeInstances")

    monkeypatch.setattr(module, "client", lambda *_: Refusing())
    with pytest.raises(EarshotError, match="credentials call ec2:DescribeInstances") as caught:
        described({}, REGION, ["i-1"])
    assert "UnauthorizedOperation" in str(caught.value)

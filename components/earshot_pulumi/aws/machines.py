"""EC2's description of a stack's instances: their state, and their last start."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from earshot.aws_client import AwsClient
from earshot_pulumi.aws.credentials import aws_errors, client
from earshot_pulumi.aws.tags import STACK
from earshot_pulumi.aws_settings import AwsSettings

_ENDED: Final = ("terminated", "shutting-down")
STOPPED: Final = "stopped"


@dataclass(frozen=True)
class Machine:
    """One instance that is not terminated."""

    id: str
    name: str
    """The value of its tag `Name`."""
    state: str
    started: float
    """The time at which EC2 last started it, in seconds since the epoch."""
    impaired: str = ""
    """The status checks of EC2 that fail; empty if none does."""

    @property
    def is_stopped(self) -> bool:
        return self.state == STOPPED

    @property
    def problem(self) -> str:
        """Why no node can serve on it; empty if EC2 reports no reason."""
        if self.state != "running":
            return f"its instance {self.id} is {self.state}"
        if self.impaired:
            return f"EC2 reports its instance {self.id} as impaired ({self.impaired})"
        return ""


def described(config: AwsSettings, region: str, ids: Sequence[str]) -> dict[str, Machine]:
    """The instances with these ``ids`` that are not terminated, by id. Raises EarshotError."""
    return {machine.id: machine for machine in _machines(config, region, "instance-id", ids)}


def start(config: AwsSettings, region: str, id: str) -> None:
    """Starts a stopped instance. Raises EarshotError."""
    with aws_errors(f"instance {id}", "cannot be started", "ec2:StartInstances"):
        client(config, region, "ec2").start_instances(InstanceIds=[id])


def machines(config: AwsSettings, region: str, stack: str) -> dict[str, Machine]:
    """The instances of ``stack`` by name. Raises EarshotError."""
    return {machine.name: machine for machine in _machines(config, region, f"tag:{STACK}", [stack])}


def _machines(config: AwsSettings, region: str, key: str, values: Sequence[str]) -> list[Machine]:
    filters = [{"Name": key, "Values": list(values)}]
    calls = "ec2:DescribeInstances and ec2:DescribeInstanceStatus"
    with aws_errors(f"instances in {region}", "cannot be described", calls):
        ec2 = client(config, region, "ec2")
        instances = [
            instance
            for page in ec2.get_paginator("describe_instances").paginate(Filters=filters)
            for reservation in page["Reservations"]
            for instance in reservation["Instances"]
            if instance["State"]["Name"] not in _ENDED
        ]
        impaired = dict(_impaired(ec2, [instance["InstanceId"] for instance in instances]))
    return [
        Machine(
            id=instance["InstanceId"],
            name=next(
                (tag["Value"] for tag in instance.get("Tags", ()) if tag["Key"] == "Name"), ""
            ),
            state=instance["State"]["Name"],
            started=instance["LaunchTime"].timestamp(),
            impaired=impaired.get(instance["InstanceId"], ""),
        )
        for instance in instances
    ]


def _impaired(ec2: AwsClient, ids: Sequence[str]) -> Iterator[tuple[str, str]]:
    if not ids:
        return
    pages = ec2.get_paginator("describe_instance_status").paginate(
        Filters=[{"Name": "instance-state-name", "Values": ["running"]}]
    )
    for page in pages:
        for status in page["InstanceStatuses"]:
            checks = {"system": status["SystemStatus"], "instance": status["InstanceStatus"]}
            failing = [name for name, check in checks.items() if check["Status"] == "impaired"]
            if failing and status["InstanceId"] in ids:
                yield status["InstanceId"], f"{' and '.join(failing)} status"

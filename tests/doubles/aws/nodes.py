"""A double of the scripts on instances: each node reports as if it had booted its user data.

moto runs no machine. For each running instance this writes the report of the real scripts into the
parameter that its user data name.
"""

import base64
import hashlib
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from earshot_pulumi.aws.instances import DEVICE

from tests.doubles.aws.kind import filters
from tests.doubles.aws.server import MotoServer
from tests.doubles.plugin.values import Plain
from tests.doubles.watching import watching

POLL_SECONDS = 0.5
"""A look takes both processes up to 40 ms."""
_PARAMETER = re.compile(r"--name (?P<name>/earshot/[A-Za-z0-9-]+/[a-z]+-(?P<node>\d+)) --type ")
"""The parameter in a node's report command. A validator's paths look similar."""


@dataclass
class Nodes:
    """The nodes' reports so far, and the states of later ones."""

    server: MotoServer
    state: dict[int, str] = field(default_factory=dict)
    """State to report, by node id; default: in sync."""
    mute: set[int] = field(default_factory=set)
    """Nodes that do not report."""
    history: list[tuple[int, str]] = field(default_factory=list)
    """Node ids and instances, in the order of their reports."""
    reported_starts: set[tuple[str, float, int]] = field(default_factory=set)
    """Reported instances, each with its start (Unix time) and the size of its data volume (GiB)."""

    def look(self) -> None:
        """Lets every instance report that has not yet."""
        ec2 = self.server.client("ec2")
        for instance in running_instances(ec2):
            launch_time = instance["LaunchTime"].timestamp()
            self._report(ec2, str(instance["InstanceId"]), launch_time)

    def _report(self, ec2: Any, instance: str, launch_time: float) -> None:
        size = self._size(ec2, instance)
        if size is None or (instance, launch_time, size) in self.reported_starts:
            return  # a node waits for its volume
        text = user_data(ec2, instance)
        match = _PARAMETER.search(text)
        if match is None or (node := int(match["node"])) in self.mute:
            return
        # as the scripts of the user data write it, with sha256sum and printf
        report = {
            "node": node,
            "instance": instance,
            "user_data": hashlib.sha256(text.encode()).hexdigest(),
            "state": self.state.get(node, "in-sync"),
            "detail": "as the test wants it" if node in self.state else "",
            "at": "2026-01-01T00:00:00Z",
            "booted": int(launch_time) + 1,
            "size_gib": size,
        }
        self.server.client("ssm").put_parameter(
            Name=match["name"], Value=json.dumps(report), Type="String", Overwrite=True
        )
        self.reported_starts.add((instance, launch_time, size))
        self.history.append((node, instance))

    def _size(self, ec2: Any, instance: str) -> int | None:
        """The size (GiB) of the file system, which grows with its volume."""
        attachment_filters = filters(
            {"attachment.instance-id": instance, "attachment.device": DEVICE}
        )
        for volume in ec2.describe_volumes(Filters=attachment_filters)["Volumes"]:
            return int(volume["Size"])
        return None


def running_instances(ec2: Any) -> Iterator[Plain]:
    running_filters = filters({"instance-state-name": "running"})
    for reservation in ec2.describe_instances(Filters=running_filters)["Reservations"]:
        yield from reservation["Instances"]


def user_data(ec2: Any, instance: str) -> str:
    answer = ec2.describe_instance_attribute(InstanceId=instance, Attribute="userData")
    return base64.b64decode(answer["UserData"].get("Value", "")).decode()


@contextmanager
def nodes_reporting(server: MotoServer) -> Iterator[Nodes]:
    """Instances of ``server`` report until the block ends."""
    nodes = Nodes(server)
    client_error = server.client("ec2").exceptions.ClientError  # between two questions
    with watching(nodes.look, POLL_SECONDS, (client_error,)):
        yield nodes

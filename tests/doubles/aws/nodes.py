"""A double of what happens on instances: each node reports as if it had booted its user data.

moto runs no machine. This looks for instances that run and writes, into the parameter that their
user data name, the report that the real scripts would write.
"""

import base64
import hashlib
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from earshot_pulumi.aws.node import DEVICE

from tests.doubles.aws.server import MotoServer
from tests.doubles.watching import watching

POLL_SECONDS = 0.5
"""To look costs both processes up to 40 ms."""
_PARAMETER = re.compile(r"--name (?P<name>/earshot/[A-Za-z0-9-]+/[a-z]+-(?P<node>\d+)) --type ")
"""Named by the command that a node reports with; a validator's has paths that look alike."""


@dataclass
class Nodes:
    """What has reported so far, and how nodes fare from now on."""

    server: MotoServer
    state: dict[int, str] = field(default_factory=dict)
    """By node id, what it says; default: in sync."""
    mute: set[int] = field(default_factory=set)
    """Nodes that say nothing."""
    history: list[tuple[int, str]] = field(default_factory=list)
    """Node ids and instances, in the order of their reports."""
    reported: set[tuple[str, float, int]] = field(default_factory=set)
    """Instances that have reported, with when EC2 started each and how far its data reach."""

    def look(self) -> None:
        """Let every instance report that has not yet."""
        ec2 = self.server.client("ec2")
        running = [{"Name": "instance-state-name", "Values": ["running"]}]
        for reservation in ec2.describe_instances(Filters=running)["Reservations"]:
            for instance in reservation["Instances"]:
                launched = instance["LaunchTime"].timestamp()
                self._report(ec2, str(instance["InstanceId"]), launched)

    def _report(self, ec2: Any, instance: str, launched: float) -> None:
        size = self._size(ec2, instance)
        if size is None or (instance, launched, size) in self.reported:
            return  # a node waits for its volume
        found = ec2.describe_instance_attribute(InstanceId=instance, Attribute="userData")
        text = base64.b64decode(found["UserData"].get("Value", "")).decode()
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
            "booted": int(launched) + 1,
            "size_gib": size,
        }
        self.server.client("ssm").put_parameter(
            Name=match["name"], Value=json.dumps(report), Type="String", Overwrite=True
        )
        self.reported.add((instance, launched, size))
        self.history.append((node, instance))

    def _size(self, ec2: Any, instance: str) -> int | None:
        """How far the file system reaches, which grows with its volume."""
        of_this = [
            {"Name": "attachment.instance-id", "Values": [instance]},
            {"Name": "attachment.device", "Values": [DEVICE]},
        ]
        for item in ec2.describe_volumes(Filters=of_this)["Volumes"]:
            return int(item["Size"])
        return None


@contextmanager
def nodes_reporting(server: MotoServer) -> Iterator[Nodes]:
    """Instances of ``server`` report until the block ends."""
    nodes = Nodes(server)
    terminated = server.client("ec2").exceptions.ClientError  # between two questions
    with watching(nodes.look, POLL_SECONDS, (terminated,)):
        yield nodes

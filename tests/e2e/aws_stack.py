"""A stack of the program on a moto server: real CLI, doubles of what nodes report.

No Kafka runs, so nothing is validated here: `prove: later`.
"""

import base64
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from earshot.project import POLICIES
from tests.config.aws_documents import document
from tests.doubles.aws.addresses import POOL_VARIABLE
from tests.doubles.aws.nodes import Nodes, nodes_reporting
from tests.doubles.aws.server import REGION, MotoServer
from tests.e2e.aws_project import Project, aws_project, aws_settings
from tests.e2e.project import STACK
from tests.user_data.properties import properties_in
from toolchain.paths import ROOT

SILENT_RESOLVERS = {"names": {"resolvers": {"external": ["127.0.0.1:1"]}, "timeout": 0.5}}


@dataclass
class Stack:
    """One stack of the component, its moto server, and its nodes' behaviour."""

    project: Project
    server: MotoServer
    nodes: Nodes

    def configure(self, cluster: dict[str, Any], policy: dict[str, Any] = SILENT_RESOLVERS) -> None:
        path = self.project.folder / f"Pulumi.{STACK}.yaml"
        document = yaml.safe_load(path.read_text())
        settings = {
            f"aws:{name}": aws_setting for name, aws_setting in aws_settings(self.server).items()
        }
        document["config"] = {**settings, "earshot:cluster": cluster}
        path.write_text(yaml.safe_dump(document, sort_keys=False))
        config = self.project.folder / POLICIES / f"{STACK}.json"
        config.parent.mkdir(parents=True, exist_ok=True)
        config.write_text(json.dumps(policy))

    def instances(self) -> dict[str, dict[str, Any]]:
        """The running instances, by name."""
        ec2 = self.server.client("ec2")
        running_filter = [{"Name": "instance-state-name", "Values": ["running"]}]
        reservations = ec2.describe_instances(Filters=running_filter)["Reservations"]
        return {
            next(tag["Value"] for tag in instance["Tags"] if tag["Key"] == "Name"): instance
            for reservation in reservations
            for instance in reservation["Instances"]
        }

    def advertised(self) -> dict[str, str]:
        """The listeners in the user data of each instance, by its name."""
        ec2, listeners = self.server.client("ec2"), {}
        for name, instance in self.instances().items():
            attribute = {"InstanceId": instance["InstanceId"], "Attribute": "userData"}
            user_data = ec2.describe_instance_attribute(**attribute)["UserData"]["Value"]
            lines = properties_in(base64.b64decode(user_data).decode()).splitlines()
            listeners[name] = next(
                line.partition("=")[2] for line in lines if line.startswith("advertised.list")
            )
        return listeners

    def volumes(self) -> dict[str, str]:
        """The data volumes by name."""
        return {
            tag["Value"]: volume["VolumeId"]
            for volume in self.server.client("ec2").describe_volumes()["Volumes"]
            for tag in volume.get("Tags", [])
            if tag["Key"] == "Name"
        }


def cluster(brokers: int = 1, **settings: Any) -> dict[str, Any]:
    zones = {"zones": [f"{REGION}{letter}" for letter in "abc"]}
    small = {"volume": {"size_gib": 1}, "ready_seconds": 60, "prove": "later"}
    return document(brokers=brokers, **{"region": REGION, "vpc": zones, **small, **settings})


@contextmanager
def aws_stack(server: MotoServer, folder: Path) -> Iterator[Stack]:
    """A stack without settings, on ``server``, whose resources are removed first."""
    server.reset()
    environment = {POOL_VARIABLE: "198.51.100.0/24"}
    project = aws_project(folder / "project", server, environment)
    (project.folder / "__main__.py").symlink_to(ROOT / "__main__.py")
    with nodes_reporting(server) as nodes:
        yield Stack(project, server, nodes)

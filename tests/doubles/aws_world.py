"""A small cloud for tests of the AWS double's resource types, without the Pulumi engine."""

from __future__ import annotations

import functools
import json
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tests.doubles.aws.cloud import Cloud
from tests.doubles.aws.in_process import moto_in_process
from tests.doubles.aws.kind import AwsKind
from tests.doubles.aws.provider import KINDS
from tests.doubles.aws.server import REGION, Moto
from tests.doubles.plugin.kind import changed_inputs
from tests.doubles.plugin.values import Plain

IMAGE = "/aws/service/ami-amazon-linux-latest/al2023-ami-kernel-default-{architecture}"
BY_NAME = {token.rpartition(":")[2]: kind for token, kind in KINDS.items()}
TRUST = json.dumps(
    {"Version": "2012-10-17",
     "Statement": [{"Effect": "Allow", "Principal": {"Service": "ec2.amazonaws.com"},
                    "Action": "sts:AssumeRole"}]},
)  # fmt: skip
POLICY = json.dumps(
    {
        "Version": "2012-10-17",
        "Statement": [{"Effect": "Allow", "Action": "ssm:PutParameter", "Resource": "*"}],
    }
)


class AwsResource:
    """One resource: its id and its state."""

    def __init__(self, world: World, kind: AwsKind, inputs: Plain) -> None:
        self.world, self.kind, self.inputs = world, kind, inputs
        self.id, self.state = kind.create(world.cloud, inputs)

    def __getitem__(self, name: str) -> Any:
        return self.state[name]

    def read(self) -> Plain | None:
        return self.kind.read(self.world.cloud, self.id, self.state)

    def refresh(self) -> list[str]:
        """Reads the current state. Returns the inputs that differ from it."""
        state = self.read()
        assert state is not None, f"{self.id} is gone"
        self.state = state
        return changed_inputs(self.kind, self.state, self.inputs)

    def update(self, **inputs: Any) -> None:
        self.inputs = self.inputs | inputs
        if "tags" in inputs:
            self.inputs["tagsAll"] = inputs["tags"]
        self.state = self.kind.update(self.world.cloud, self.id, self.state, self.inputs)

    def delete(self) -> None:
        self.kind.delete(self.world.cloud, self.id, self.state)


class World:
    """Creates resources by the name of their class; common ones are created at the first use."""

    def __init__(self, moto: Moto, cloud: Cloud) -> None:
        self.moto, self.cloud = moto, cloud
        self.zone = f"{REGION}a"
        self.mark = uuid.uuid4().hex[:8]
        """Part of every name that must be unique, because one moto has many worlds."""

    def make(self, type_name: str, **inputs: Any) -> AwsResource:
        """Creates a resource with its own tags only, as a provider without default tags does."""
        kind = BY_NAME[type_name]
        if "tags" in inputs:
            inputs["tagsAll"] = inputs["tags"]
        return AwsResource(self, kind, inputs)

    def ec2(self) -> Any:
        return self.cloud.client("ec2")

    def image(self, architecture: str = "arm64") -> str:
        name = IMAGE.format(architecture=architecture)
        answer = self.cloud.client("ssm").get_parameter(Name=name)
        return str(answer["Parameter"]["Value"])

    @functools.cached_property
    def vpc(self) -> AwsResource:
        return self.make("Vpc", cidrBlock="10.0.0.0/16", enableDnsHostnames=True)

    @functools.cached_property
    def gateway(self) -> AwsResource:
        return self.make("InternetGateway", vpcId=self.vpc.id)

    @functools.cached_property
    def subnet(self) -> AwsResource:
        return self.make(
            "Subnet", vpcId=self.vpc.id, cidrBlock="10.0.0.0/24", availabilityZone=self.zone
        )

    @functools.cached_property
    def group(self) -> AwsResource:
        return self.make("SecurityGroup", name="brokers", vpcId=self.vpc.id)

    @functools.cached_property
    def targets(self) -> AwsResource:
        return self.make(
            "TargetGroup", vpcId=self.vpc.id, protocol="TCP", port=9092, targetType="ip"
        )

    @functools.cached_property
    def table(self) -> AwsResource:
        return self.make("RouteTable", vpcId=self.vpc.id)

    @functools.cached_property
    def role(self) -> AwsResource:
        return self.make("Role", name=f"broker-{self.mark}", assumeRolePolicy=TRUST)

    @functools.cached_property
    def private_zone(self) -> AwsResource:
        return self.make("Zone", name="kafka.internal", vpcs=[{"vpcId": self.vpc.id}])

    @functools.cached_property
    def bucket(self) -> AwsResource:
        return self.make("Bucket", bucket=f"reports-{self.mark}")

    def interface(self, **inputs: Any) -> AwsResource:
        return self.make("NetworkInterface", subnetId=self.subnet.id, **inputs)

    def instance(self, **inputs: Any) -> AwsResource:
        instance_inputs = {"ami": self.image(), "instanceType": "t4g.small"} | inputs
        if "primaryNetworkInterface" not in instance_inputs:
            instance_inputs = {"subnetId": self.subnet.id} | instance_inputs
        return self.make("Instance", **instance_inputs)

    def on(self, interface: AwsResource, **inputs: Any) -> AwsResource:
        """An instance on an existing interface."""
        return self.instance(primaryNetworkInterface={"networkInterfaceId": interface.id}, **inputs)

    def address(self, **inputs: Any) -> AwsResource:
        """An Elastic IP, in a VPC with an internet gateway."""
        assert self.gateway.id
        return self.make("Eip", domain="vpc", **inputs)


@contextmanager
def aws_worlds() -> Iterator[Callable[[], World]]:
    """Worlds one after the other, each with moto's own resources only."""
    with moto_in_process() as moto:
        cloud = Cloud({"region": REGION, "endpoints": moto.endpoints()})

        def empty() -> World:
            moto.reset()
            return World(moto, cloud)

        yield empty
        cloud.close()

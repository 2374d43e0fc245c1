"""A moto server in another process, which ends with the test that started it.

As a module it serves until its standard input is closed, which ends it with its parent process.
"""

import functools
import json
import logging
import os
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from tests.doubles.aws.cloud import SERVICES, Cloud
from toolchain.paths import ROOT

REGION = "us-west-2"
END_SECONDS = 10
POLICIES = ("AmazonSSMManagedInstanceCore",)
"""The policies of AWS that can be attached."""
ENVIRONMENT = {
    "MOTO_IAM_LOAD_MANAGED_POLICIES": "true",  # otherwise no policy of AWS can be attached
    "AWS_DEFAULT_REGION": REGION,
}

HEALTH = "health.json"
Health = tuple[str, str, str]
"""State, reason and description of a target, as describe_target_health has them."""


class Moto:
    """The resources in moto, and clients of it."""

    def __init__(self, urls: Mapping[str, str]) -> None:
        self._urls = urls
        self._clouds: dict[str, Cloud] = {}

    def endpoints(self) -> list[dict[str, str]]:
        """The provider's setting of that name."""
        return [dict(self._urls)]

    def client(self, service: str, region: str = REGION) -> Any:
        """A boto3 client, for reads and changes without Pulumi."""
        if region not in self._clouds:
            self._clouds[region] = Cloud({"region": region, "endpoints": self.endpoints()})
        return self._clouds[region].client(service)

    def close(self) -> None:
        for cloud in self._clouds.values():
            cloud.close()

    def holdings(self) -> set[str]:
        """The resources of the region and of the global services, as `kind id`. Without terminated
        instances and deleted gateways, which AWS lists for a while, and the parameters that AWS
        publishes."""
        addresses = self.client("ec2").describe_addresses()["Addresses"]
        holdings = {f"Addresses {address['AllocationId']}" for address in addresses}
        buckets = self.client("s3").list_buckets()["Buckets"]
        holdings |= {f"Buckets {bucket['Name']}" for bucket in buckets}
        for service, call, kind, id in HOLDINGS:
            for page in self.client(service).get_paginator(call).paginate():
                for description in page[kind]:
                    for resource in description.get("Instances", [description]):
                        state = resource.get("State")
                        name = state.get("Name") if isinstance(state, dict) else state
                        if name not in ("terminated", "deleted"):
                            holdings.add(f"{kind} {resource[id]}")
        return {name for name in holdings if not name.startswith("Parameters /aws/")}


class MotoServer(Moto):
    """A server at ``url``; `reset` removes all resources."""

    def __init__(self, url: str, log: Path) -> None:
        super().__init__(dict.fromkeys(SERVICES, url))
        self.url, self.log = url, log
        self._health = log.with_name(HEALTH)

    def set_health(self, health: Mapping[tuple[str, str, int], Health]) -> None:
        """Sets the health of targets, by target group, address and port. Others are healthy, or
        unused once they are deregistered."""
        document = {target_key(*target): state for target, state in health.items()}
        temporary = self._health.with_suffix(".new")
        temporary.write_text(json.dumps(document))
        temporary.replace(self._health)

    def reset(self) -> None:
        request = urllib.request.Request(f"{self.url}/moto-api/reset", method="POST")
        with urllib.request.urlopen(request, timeout=60):
            pass


# Service, the call that lists, the key of its list, and the key of an id.
HOLDINGS = (
    ("ec2", "describe_vpcs", "Vpcs", "VpcId"),
    ("ec2", "describe_subnets", "Subnets", "SubnetId"),
    ("ec2", "describe_internet_gateways", "InternetGateways", "InternetGatewayId"),
    ("ec2", "describe_route_tables", "RouteTables", "RouteTableId"),
    ("ec2", "describe_nat_gateways", "NatGateways", "NatGatewayId"),
    ("ec2", "describe_vpc_endpoints", "VpcEndpoints", "VpcEndpointId"),
    ("ec2", "describe_vpc_endpoint_service_configurations", "ServiceConfigurations", "ServiceId"),
    ("ec2", "describe_flow_logs", "FlowLogs", "FlowLogId"),
    ("ec2", "describe_security_groups", "SecurityGroups", "GroupId"),
    ("ec2", "describe_network_interfaces", "NetworkInterfaces", "NetworkInterfaceId"),
    ("ec2", "describe_instances", "Reservations", "InstanceId"),
    ("ec2", "describe_volumes", "Volumes", "VolumeId"),
    ("elbv2", "describe_load_balancers", "LoadBalancers", "LoadBalancerArn"),
    ("elbv2", "describe_target_groups", "TargetGroups", "TargetGroupArn"),
    ("iam", "list_roles", "Roles", "RoleName"),
    ("iam", "list_instance_profiles", "InstanceProfiles", "InstanceProfileName"),
    ("route53", "list_hosted_zones", "HostedZones", "Id"),
    ("ssm", "describe_parameters", "Parameters", "Name"),
)


@contextmanager
def moto_server(folder: Path, address: str = "127.0.0.1") -> Iterator[MotoServer]:
    """A server with moto's own resources only; its log is in ``folder``.

    ``address`` is an address of this machine.
    """
    log = folder / "moto.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.doubles.aws.server", address, str(folder / HEALTH)],
            cwd=ROOT,
            env={**os.environ, **ENVIRONMENT},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=output,
            text=True,
        )
        assert process.stdin is not None and process.stdout is not None
        try:
            url = process.stdout.readline().strip()
            assert url, log.read_text()
            server = MotoServer(url, log)
            yield server
            server.close()
        finally:
            process.stdin.close()
            try:
                process.wait(END_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            process.stdout.close()


def make_lean() -> None:
    """Skips what moto reads and does for every account, reset or request without use here."""
    policies: Any = import_module("moto.iam.models")
    managed_policies = json.loads(policies.aws_managed_policies_data)  # more than a thousand
    few_policies = {name: managed_policies[name] for name in POLICIES}
    policies.aws_managed_policies_data = json.dumps(few_policies)
    images: Any = import_module("moto.ec2.models.amis")
    load = images.load_resource
    images.load_resource = lambda path: [] if "/ecs/" in path else load(path)
    responses: Any = import_module("moto.core.responses")
    responses.method_names_from_class = functools.cache(responses.method_names_from_class)


def start_as_ec2_does() -> None:
    """Sets the launch time at each start of an instance, as EC2 does; moto keeps the first."""
    models: Any = import_module("moto.ec2.models.instances")
    start = models.Instance.start

    def start_now(instance: Any) -> Any:
        instance.launch_time = models.utcnow()
        return start(instance)

    models.Instance.start = start_now


def target_key(group: str, address: str, port: int) -> str:
    return f"{group} {address}:{port}"


def tell_health(path: Path) -> None:
    """Reads the health of targets from the file at ``path``. In moto every registered target is
    healthy at once, and every deregistered one unused."""
    models: Any = import_module("moto.elbv2.models")
    ask = models.FakeTargetGroup.health_for

    def health_for(group: Any, target: Any, ec2: Any) -> Any:
        health = ask(group, target, ec2)
        states = json.loads(path.read_text()) if path.exists() else {}
        key = target_key(group.arn, health.instance_id, int(health.port))
        if health.status in ("healthy", "unused") and key in states:
            health.status, health.reason, health.description = states[key]
        return health

    models.FakeTargetGroup.health_for = health_for


def main(address: str, health: str) -> None:
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.WARNING)  # no line for each request
    backends: Any = import_module("moto.backends")
    modules = tuple(backends.list_of_moto_modules())
    backends.list_of_moto_modules = lambda: modules  # which every request would list again
    make_lean()
    start_as_ec2_does()
    tell_health(Path(health))
    server = ThreadedMotoServer(address, 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    print(f"http://{host}:{port}", flush=True)
    sys.stdin.read()
    # Nothing to save: the server's threads may be in the middle of anything.
    os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])

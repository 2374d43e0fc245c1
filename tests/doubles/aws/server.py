"""A moto server as a process of its own, which ends with the test that started it.

Run as a module it serves until its standard input is closed, so it outlives nobody who started it.
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
"""Of AWS's own, those that can be attached here."""
ENVIRONMENT = {
    "MOTO_IAM_LOAD_MANAGED_POLICIES": "true",  # else no policy of AWS's own can be attached
    "AWS_DEFAULT_REGION": REGION,
}


HEALTH = "health.json"
Health = tuple[str, str, str]
"""State, reason and description of a target, as describe_target_health has them."""


class Moto:
    """What moto holds, and how to call it."""

    def __init__(self, urls: Mapping[str, str]) -> None:
        self._urls = urls
        self._clouds: dict[str, Cloud] = {}

    def endpoints(self) -> list[dict[str, str]]:
        """As the provider's setting of that name wants them."""
        return [dict(self._urls)]

    def client(self, service: str, region: str = REGION) -> Any:
        """A boto3 client, to see and to change what no program did."""
        if region not in self._clouds:
            self._clouds[region] = Cloud({"region": region, "endpoints": self.endpoints()})
        return self._clouds[region].client(service)

    def close(self) -> None:
        for cloud in self._clouds.values():
            cloud.close()

    def holdings(self) -> set[str]:
        """What exists in the region and in the global services, as `kind id`. Left out are
        terminated instances and deleted gateways, which AWS lists for a while too, and the
        parameters that it publishes itself."""
        found = set()
        for service, call, listed, id in HOLDINGS:
            for page in self.client(service).get_paginator(call).paginate():
                for item in page[listed]:
                    for one in item.get("Instances", [item]):
                        state = one.get("State")
                        name = state.get("Name") if isinstance(state, dict) else state
                        if name not in ("terminated", "deleted"):
                            found.add(f"{listed} {one[id]}")
        published = {item for item in found if item.startswith("Parameters /aws/")}
        return (found | self._unpaged()) - published

    def _unpaged(self) -> set[str]:
        ec2, s3 = self.client("ec2"), self.client("s3")
        addresses = ec2.describe_addresses()["Addresses"]
        buckets = s3.list_buckets()["Buckets"]
        return {f"Addresses {item['AllocationId']}" for item in addresses} | {
            f"Buckets {item['Name']}" for item in buckets
        }


class MotoServer(Moto):
    """Where it answers. What it holds is forgotten with `reset`."""

    def __init__(self, url: str, log: Path) -> None:
        super().__init__(dict.fromkeys(SERVICES, url))
        self.url, self.log = url, log
        self._health = log.with_name(HEALTH)

    def set_health(self, health: Mapping[tuple[str, str, int], Health]) -> None:
        """How targets are, by target group, address and port; others are healthy, or unused once
        they are deregistered."""
        listed = {target_key(*target): found for target, found in health.items()}
        new = self._health.with_suffix(".new")
        new.write_text(json.dumps(listed))
        new.replace(self._health)

    def reset(self) -> None:
        request = urllib.request.Request(f"{self.url}/moto-api/reset", method="POST")
        with urllib.request.urlopen(request, timeout=60):
            pass


# Service, the call that lists, the key of its list, and what an item is known by.
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
    """A server with nothing in it but what moto brings along; its log is in ``folder``.

    ``address`` is this machine's, where it is to answer.
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
    """Let moto not read and do, for every account, reset or request, what nobody here looks at."""
    policies: Any = import_module("moto.iam.models")
    every = json.loads(policies.aws_managed_policies_data)  # more than a thousand
    few = {name: every[name] for name in POLICIES}
    policies.aws_managed_policies_data = json.dumps(few)
    images: Any = import_module("moto.ec2.models.amis")
    load = images.load_resource
    images.load_resource = lambda path: [] if "/ecs/" in path else load(path)
    responses: Any = import_module("moto.core.responses")
    responses.method_names_from_class = functools.cache(responses.method_names_from_class)


def start_as_ec2_does() -> None:
    """moto keeps the time of the launch when an instance is started again; EC2 tells the last
    start."""
    models: Any = import_module("moto.ec2.models.instances")
    start = models.Instance.start

    def start_now(instance: Any) -> Any:
        instance.launch_time = models.utcnow()
        return start(instance)

    models.Instance.start = start_now


def target_key(group: str, address: str, port: int) -> str:
    return f"{group} {address}:{port}"


def tell_health(path: Path) -> None:
    """Target health from the file at ``path``, in place of moto's, which reports every registered
    target as healthy and every deregistered one as unused at once."""
    models: Any = import_module("moto.elbv2.models")
    ask = models.FakeTargetGroup.health_for

    def health_for(group: Any, target: Any, ec2: Any) -> Any:
        found = ask(group, target, ec2)
        told = json.loads(path.read_text()) if path.exists() else {}
        key = target_key(group.arn, found.instance_id, int(found.port))
        if found.status in ("healthy", "unused") and key in told:
            found.status, found.reason, found.description = told[key]
        return found

    models.FakeTargetGroup.health_for = health_for


def main(address: str, health: str) -> None:
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.WARNING)  # no line for each request
    backends: Any = import_module("moto.backends")
    modules = tuple(backends.list_of_moto_modules())
    backends.list_of_moto_modules = lambda: modules  # which every request would list anew
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

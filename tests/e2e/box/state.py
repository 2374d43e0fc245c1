"""The state of a moto server, as far as a box has containers for it: plain data."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from ipaddress import IPv4Network
from typing import Any

from tests.doubles.aws.server import Moto
from tests.e2e.box.balancer_state import Forwarding, forwardings


@dataclass(frozen=True)
class Machine:
    """An instance that is not terminated."""

    id: str
    name: str
    running: bool
    launch_time: float
    """When EC2 last started it, in seconds since the epoch."""
    private: str
    elastic: str
    """The machine's Elastic IP, or an empty string."""
    volumes: Mapping[str, int]
    """The sizes of the machine's data volumes in GiB, by volume id."""
    groups: frozenset[str]


@dataclass(frozen=True)
class MotoState:
    """Instances, volumes, groups and balancers."""

    machines: Mapping[str, Machine]
    """The machines by instance id."""
    volumes: Mapping[str, int]
    """The size of every volume, attached or not, in GiB."""
    groups: Mapping[str, Any]
    """EC2's descriptions, by id."""
    members: Mapping[str, frozenset[str]]
    """The private addresses of the interfaces in each group, with those of balancers."""
    balancers: tuple[Forwarding, ...] = ()


def read_state(server: Moto) -> MotoState:
    ec2 = server.client("ec2")
    # before the targets of balancers: a target that leaves before its machine stops is seen to
    instances = list(_instances(ec2))
    volumes = ec2.describe_volumes()["Volumes"]
    sizes = {volume["VolumeId"]: int(volume["Size"]) for volume in volumes}
    elastic = {private: public for public, private in addresses(ec2).items()}
    members: dict[str, set[str]] = {}
    groups_at: dict[str, frozenset[str]] = {}
    for interface in ec2.describe_network_interfaces()["NetworkInterfaces"]:
        groups = frozenset(group["GroupId"] for group in interface["Groups"])
        groups_at[interface["PrivateIpAddress"]] = groups
        for group in groups:
            members.setdefault(group, set()).add(interface["PrivateIpAddress"])
    balancers = forwardings(server)
    for balancer in (forwarding.balancer for forwarding in balancers):
        for group in balancer.groups:
            members.setdefault(group, set()).update(balancer.private)
    machines = {}
    for instance in instances:
        private = instance["PrivateIpAddress"]
        volume_mappings = [
            mapping["Ebs"]["VolumeId"]
            for mapping in instance["BlockDeviceMappings"]
            if mapping["DeviceName"] != instance["RootDeviceName"]
        ]
        machines[instance["InstanceId"]] = Machine(
            id=instance["InstanceId"],
            name=next(
                (tag["Value"] for tag in instance.get("Tags", []) if tag["Key"] == "Name"), ""
            ),
            running=instance["State"]["Name"] == "running",
            launch_time=instance["LaunchTime"].timestamp(),
            private=private,
            elastic=elastic.get(private, ""),
            volumes={id: sizes[id] for id in volume_mappings if id in sizes},
            groups=groups_at.get(private, frozenset()),
        )
    return MotoState(
        machines,
        sizes,
        {group["GroupId"]: group for group in ec2.describe_security_groups()["SecurityGroups"]},
        {group: frozenset(addresses) for group, addresses in members.items()},
        balancers,
    )


def _instances(ec2: Any) -> Iterator[Any]:
    states = [{"Name": "instance-state-name", "Values": ["running", "stopping", "stopped"]}]
    for reservation in ec2.describe_instances(Filters=states)["Reservations"]:
        for instance in reservation["Instances"]:
            if instance.get("PrivateIpAddress"):
                yield instance


def addresses(ec2: Any) -> dict[str, str]:
    """Every Elastic IP with its private address, which is empty for an unused one."""
    private_addresses = {}
    for address in ec2.describe_addresses()["Addresses"]:
        private = address.get("PrivateIpAddress", "")
        if not private and (id := address.get("InstanceId")):
            instance = ec2.describe_instances(InstanceIds=[id])["Reservations"][0]["Instances"][0]
            is_gone = instance["State"]["Name"] in ("shutting-down", "terminated")
            private = "" if is_gone else instance["PrivateIpAddress"]
        private_addresses[address["PublicIp"]] = private
    return private_addresses


def endpoint_addresses(ec2: Any, endpoint: Any) -> tuple[str, ...]:
    """An address of ``endpoint`` (in EC2's description) in each of its subnets: one of the last
    ones, because moto gives it addresses of other networks."""
    if not (ids := endpoint.get("SubnetIds")):
        return ()
    place = 2 + zlib.crc32(endpoint["VpcEndpointId"].encode()) % 16
    subnets = ec2.describe_subnets(SubnetIds=ids)["Subnets"]
    return tuple(sorted(str(IPv4Network(subnet["CidrBlock"])[-place]) for subnet in subnets))


def user_data(server: Moto, id: str) -> bytes:
    """The exact user data of the instance."""
    ec2 = server.client("ec2")
    answer = ec2.describe_instance_attribute(InstanceId=id, Attribute="userData")
    return base64.b64decode(answer["UserData"].get("Value", ""))

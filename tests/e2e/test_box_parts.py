"""A box's DNS and packet rules, computed from moto's state, without an engine."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Network
from typing import Any

import pytest

from tests.doubles.aws.in_process import MotoInProcess, moto_in_process
from tests.doubles.aws.server import Moto
from tests.doubles.dns_server import NO_RECORD
from tests.e2e.box.firewall import packet_rules
from tests.e2e.box.horizons import DnsSnapshot, Zone, dns_snapshot
from tests.e2e.box.state import read_state, user_data

RANGE = IPv4Network("10.20.0.0/16")
ELASTIC = IPv4Network("198.18.0.128/25")
PRIVATE, PUBLIC = "10.20.0.10", "198.18.0.129"
IMAGE = "ami-03cf127a"
"""One that moto has, and whose disk has another name than that of Amazon Linux."""
IP_NAME = "ip-10-20-0-10.us-west-2.compute.internal"
EC2_NAME = "ec2-198-18-0-129.us-west-2.compute.amazonaws.com"


@pytest.fixture(scope="module")
def server() -> Iterator[MotoInProcess]:
    with moto_in_process() as moto:
        yield moto


@pytest.fixture
def vpc(server: MotoInProcess) -> str:
    """A VPC with both attributes and one instance that has an Elastic IP."""
    server.reset()
    ec2 = server.client("ec2")
    id: str = ec2.create_vpc(CidrBlock=str(RANGE))["Vpc"]["VpcId"]
    ec2.modify_vpc_attribute(VpcId=id, EnableDnsHostnames={"Value": True})
    subnet = ec2.create_subnet(VpcId=id, CidrBlock="10.20.0.0/24")["Subnet"]["SubnetId"]
    group = ec2.create_security_group(GroupName="g", Description="g", VpcId=id)["GroupId"]
    ec2.authorize_security_group_ingress(
        GroupId=group,
        IpPermissions=[
            {"IpProtocol": "tcp", "FromPort": 9092, "ToPort": 9093,
             "IpRanges": [{"CidrIp": "198.18.0.0/26"}],
             "UserIdGroupPairs": [{"GroupId": group}]},
        ],
    )  # fmt: skip

    instance = ec2.run_instances(
        ImageId=IMAGE, MinCount=1, MaxCount=1, SubnetId=subnet, PrivateIpAddress=PRIVATE,
        SecurityGroupIds=[group], UserData="#!/bin/sh\necho ü\n",
        TagSpecifications=[
            {"ResourceType": "instance", "Tags": [{"Key": "Name", "Value": "broker"}]}
        ],
    )["Instances"][0]["InstanceId"]  # fmt: skip
    address = ec2.allocate_address(Domain="vpc", Address=PUBLIC)["AllocationId"]
    ec2.associate_address(AllocationId=address, InstanceId=instance)
    return id


def test_ec2_names_lead_to_the_private_address_inside_alone(server: Moto, vpc: str) -> None:
    snapshot = dns_snapshot(server, RANGE, ELASTIC)
    assert snapshot.answer("inside", IP_NAME) == (PRIVATE,)
    assert snapshot.answer("inside", EC2_NAME) == (PRIVATE,)
    assert snapshot.answer("outside", IP_NAME) is None
    assert snapshot.answer("outside", EC2_NAME) == (PUBLIC,)
    assert snapshot.answer("inside", "10.0.20.10.in-addr.arpa") == (IP_NAME,)
    assert snapshot.answer("outside", "129.0.18.198.in-addr.arpa") == (EC2_NAME,)
    assert snapshot.answer("inside", "example.com") is None


@pytest.mark.parametrize("attribute", ["EnableDnsHostnames", "EnableDnsSupport"])
def test_names_need_the_attributes_of_the_vpc(server: Moto, vpc: str, attribute: str) -> None:
    attribute_off: dict[str, Any] = {attribute: {"Value": False}}
    server.client("ec2").modify_vpc_attribute(VpcId=vpc, **attribute_off)
    snapshot = dns_snapshot(server, RANGE, ELASTIC)
    assert snapshot.answer("inside", EC2_NAME) is snapshot.answer("outside", EC2_NAME) is None
    expected = None if attribute == "EnableDnsSupport" else (PRIVATE,)
    assert snapshot.answer("inside", IP_NAME) == expected


def test_zones_are_read_as_they_are_associated(server: Moto, vpc: str) -> None:
    route53 = server.client("route53")

    def zone(name: str, address: str, **zone_settings: Any) -> None:
        zone_answer = route53.create_hosted_zone(
            Name=name, CallerReference=f"{name}{zone_settings}", **zone_settings
        )
        record = {"Name": f"b.{name}", "Type": "A", "TTL": 60}
        changed_record = {**record, "ResourceRecords": [{"Value": address}]}
        route53.change_resource_record_sets(
            HostedZoneId=zone_answer["HostedZone"]["Id"],
            ChangeBatch={"Changes": [{"Action": "CREATE", "ResourceRecordSet": changed_record}]},
        )

    in_this_vpc = {"VPC": {"VPCId": vpc, "VPCRegion": "us-west-2"}}
    in_another_vpc = {"VPC": {"VPCId": "vpc-12345678", "VPCRegion": "us-west-2"}}
    private = {"HostedZoneConfig": {"PrivateZone": True}}
    zone("kafka.example.com", PUBLIC)
    zone("kafka.example.com", PRIVATE, **private, **in_this_vpc)
    zone("elsewhere.example.com", PRIVATE, **private, **in_another_vpc)
    snapshot = dns_snapshot(server, RANGE, ELASTIC)
    assert snapshot.answer("inside", "b.kafka.example.com") == (PRIVATE,)
    assert snapshot.answer("outside", "b.kafka.example.com") == (PUBLIC,)
    assert snapshot.answer("inside", "b.elsewhere.example.com") is None
    assert snapshot.answer("outside", "kafka.example.com") == NO_RECORD  # NS and SOA alone


def test_the_most_specific_zone_answers_and_a_private_one_hides_public_ones() -> None:
    zones = (
        Zone("a.example.com", private=False, records={"x.a.example.com": ("198.18.0.1",)}),
        Zone("example.com", private=True, records={"y.example.com": ("10.20.0.1",)}),
        Zone("example.com", private=False, records={"x.a.example.com": ("198.18.0.2",)}),
    )
    snapshot = DnsSnapshot({"inside": {}, "outside": {}}, zones)
    assert snapshot.answer("outside", "x.a.example.com") == ("198.18.0.1",)
    assert snapshot.answer("outside", "y.example.com") is None
    assert snapshot.answer("inside", "x.a.example.com") is None
    assert snapshot.answer("inside", "y.example.com") == ("10.20.0.1",)


def test_machines_are_seen_with_all_that_they_need(server: Moto, vpc: str) -> None:
    ec2 = server.client("ec2")
    (machine,) = read_state(server).machines.values()
    assert (machine.name, machine.private, machine.elastic) == ("broker", PRIVATE, PUBLIC)
    assert machine.running and machine.volumes == {}, "the root volume is the container's own"
    assert user_data(server, machine.id) == "#!/bin/sh\necho ü\n".encode()

    zone = ec2.describe_instances()["Reservations"][0]["Instances"][0]["Placement"]
    disk = ec2.create_volume(AvailabilityZone=zone["AvailabilityZone"], Size=2)["VolumeId"]
    ec2.attach_volume(VolumeId=disk, InstanceId=machine.id, Device="/dev/sdf")
    ec2.stop_instances(InstanceIds=[machine.id])
    moto_state = read_state(server)
    assert moto_state.machines[machine.id].volumes == {disk: 2}
    assert not moto_state.machines[machine.id].running
    ec2.terminate_instances(InstanceIds=[machine.id])
    assert read_state(server).machines == {}


def test_what_no_rule_lets_in_is_dropped(server: Moto, vpc: str) -> None:
    moto_state = read_state(server)
    (machine,) = moto_state.machines.values()
    groups = [moto_state.groups[id] for id in machine.groups]
    rules = packet_rules(groups, moto_state.members, "10.20.0.1").splitlines()
    input_rules = [line for line in rules if line.startswith("-A INPUT -s")]
    assert input_rules == [
        f"-A INPUT -s {PRIVATE} -p tcp --dport 9092:9093 -j ACCEPT",
        "-A INPUT -s 198.18.0.0/26 -p tcp --dport 9092:9093 -j ACCEPT",
    ]
    assert ":INPUT DROP [0:0]" in rules and "-A OUTPUT -d 0.0.0.0/0 -j ACCEPT" in rules
    rules_without_groups = packet_rules([], {}, "10.20.0.1").splitlines()
    assert [line for line in rules_without_groups if " -s " in line or " -d " in line] == [
        "-A OUTPUT -d 10.20.0.1 -p udp --dport 53 -j ACCEPT"
    ]

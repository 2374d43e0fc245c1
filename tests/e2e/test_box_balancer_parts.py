"""What a box makes of moto's balancers, without an engine: addresses, names, rules, checks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from ipaddress import IPv4Network

import pytest

from tests.doubles.aws.in_process import MotoInProcess, moto_in_process
from tests.e2e.box import state
from tests.e2e.box.balancer_state import Forwarding, address_rules, forwardings
from tests.e2e.box.balancers import FAILED, HEALTHY, INITIAL, Checked
from tests.e2e.box.horizons import dns_snapshot
from tests.e2e.box.state import look

RANGE, ELASTIC = IPv4Network("10.20.0.0/16"), IPv4Network("198.18.0.128/25")
ONE, TWO = ("10.20.0.10", 9094), ("10.20.1.10", 9094)
PORT = 9101
IMAGE = "ami-03cf127a"


@dataclass(frozen=True)
class Made:
    moto: MotoInProcess
    vpc: str
    group: str
    """Security group."""

    @property
    def forwarding(self) -> Forwarding:
        (found,) = forwardings(self.moto)
        return found


def balanced(moto: MotoInProcess, scheme: str) -> Made:
    """A balancer in two zones, one port of which leads to both targets."""
    moto.reset()
    ec2, elb = moto.client("ec2"), moto.client("elbv2")
    vpc = ec2.create_vpc(CidrBlock=str(RANGE))["Vpc"]["VpcId"]
    ec2.modify_vpc_attribute(VpcId=vpc, EnableDnsHostnames={"Value": True})
    subnets = [
        ec2.create_subnet(
            VpcId=vpc, CidrBlock=f"10.20.{number}.0/24", AvailabilityZone=f"us-west-2{zone}"
        )["Subnet"]["SubnetId"]
        for number, zone in enumerate("ab")
    ]
    group = ec2.create_security_group(GroupName="g", Description="g", VpcId=vpc)["GroupId"]
    balancer = elb.create_load_balancer(
        Name="kafka", Type="network", Scheme=scheme, Subnets=subnets, SecurityGroups=[group]
    )["LoadBalancers"][0]["LoadBalancerArn"]
    targets = elb.create_target_group(
        Name="kafka-1", Protocol="TCP", Port=9094, VpcId=vpc, TargetType="ip",
        HealthCheckPort="9094", HealthCheckIntervalSeconds=10, HealthyThresholdCount=2,
        UnhealthyThresholdCount=3,
    )["TargetGroups"][0]["TargetGroupArn"]  # fmt: skip
    listed = [{"Id": address, "Port": port} for address, port in (ONE, TWO)]
    elb.register_targets(TargetGroupArn=targets, Targets=listed)
    cross_zone = {"Key": "load_balancing.cross_zone.enabled", "Value": "true"}
    elb.modify_target_group_attributes(TargetGroupArn=targets, Attributes=[cross_zone])
    elb.create_listener(
        LoadBalancerArn=balancer, Protocol="TCP", Port=PORT,
        DefaultActions=[{"Type": "forward", "TargetGroupArn": targets}],
    )  # fmt: skip
    return Made(moto, vpc, group)


@pytest.fixture(scope="module")
def moto() -> Iterator[MotoInProcess]:
    with moto_in_process() as server:
        yield server


def test_a_balancer_has_an_address_in_each_zone_and_is_a_member_of_its_group(
    moto: MotoInProcess,
) -> None:
    made = balanced(moto, "internal")
    found, group = made.forwarding, made.forwarding.ports[PORT]
    private = found.balancer.private
    assert [it.rpartition(".")[0] for it in private] == ["10.20.0", "10.20.1"]
    assert look(moto).members[made.group] == {*private}
    assert found.idle_seconds == 350 and group.targets == (ONE, TWO)
    assert (group.check_port, group.interval, group.rises, group.falls) == (9094, 10, 2, 3)


@pytest.mark.parametrize("scheme", ["internal", "internet-facing"])
def test_its_name_and_a_record_lead_to_its_addresses_on_both_sides(
    moto: MotoInProcess, scheme: str
) -> None:
    made = balanced(moto, scheme)
    balancer, route53 = made.forwarding.balancer, moto.client("route53")
    zone = route53.create_hosted_zone(
        Name="example.com", CallerReference=scheme, HostedZoneConfig={"PrivateZone": False}
    )["HostedZone"]["Id"]
    record = {"Name": "kafka.example.com", "Type": "CNAME", "TTL": 60}
    changed = {**record, "ResourceRecords": [{"Value": balancer.name}]}
    route53.change_resource_record_sets(
        HostedZoneId=zone,
        ChangeBatch={"Changes": [{"Action": "CREATE", "ResourceRecordSet": changed}]},
    )
    expected = balancer.private if scheme == "internal" else balancer.outside(ELASTIC)
    assert len(expected) == 2
    found = dns_snapshot(moto, RANGE, ELASTIC)
    for name in (balancer.name, "kafka.example.com"):
        assert found.answer("inside", name) == found.answer("outside", name) == expected


def rules(forwarding: Forwarding, *healthy: tuple[str, int]) -> dict[str, list[str]]:
    """By address, where packets to its port go."""
    found: dict[str, list[str]] = {}
    for line in address_rules(forwarding, ELASTIC, lambda _, it: it in healthy).splitlines():
        words = line.split()
        if "DNAT" in words:
            assert words[words.index("--dport") + 1] == str(PORT)
            found.setdefault(words[words.index("-d") + 1], []).append(words[-1])
    return found


def test_ports_lead_to_healthy_targets_or_to_all_without_one(moto: MotoInProcess) -> None:
    forwarding = balanced(moto, "internet-facing").forwarding
    one, two = (f"{host}:{port}" for host, port in (ONE, TWO))
    every = {*forwarding.balancer.private, *forwarding.balancer.outside(ELASTIC)}
    assert rules(forwarding, ONE, TWO) == {key: [one, two] for key in every}
    assert rules(forwarding, TWO) == {key: [two] for key in every}
    assert rules(forwarding) == {key: [one, two] for key in every}


def test_without_cross_zone_an_address_leads_to_its_own_zone_alone(moto: MotoInProcess) -> None:
    forwarding = balanced(moto, "internal").forwarding
    zonal = replace(forwarding.ports[PORT], cross_zone=False)
    first, second = forwarding.balancer.private
    found = rules(replace(forwarding, ports={PORT: zonal}), ONE, TWO)
    assert found == {first: ["10.20.0.10:9094"], second: ["10.20.1.10:9094"]}
    alone = replace(zonal, targets=(ONE,))
    assert rules(replace(forwarding, ports={PORT: alone}), ONE) == {first: ["10.20.0.10:9094"]}


def test_no_look_has_a_machine_off_with_a_target_that_had_left_before(
    moto: MotoInProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An update deregisters a broker and stops it, between two questions of one look."""
    balanced(moto, "internal")
    ec2, elb = moto.client("ec2"), moto.client("elbv2")
    (group,) = elb.describe_target_groups()["TargetGroups"]
    of_range = [{"Name": "cidr", "Values": ["10.20.0.0/24"]}]
    (subnet,) = ec2.describe_subnets(Filters=of_range)["Subnets"]
    made = ec2.run_instances(
        ImageId=IMAGE, MinCount=1, MaxCount=1, SubnetId=subnet["SubnetId"], PrivateIpAddress=ONE[0]
    )["Instances"][0]["InstanceId"]

    def meanwhile(server: MotoInProcess) -> tuple[Forwarding, ...]:
        found = forwardings(server)
        targets = [{"Id": ONE[0], "Port": ONE[1]}]
        elb.deregister_targets(TargetGroupArn=group["TargetGroupArn"], Targets=targets)
        ec2.stop_instances(InstanceIds=[made])
        return found

    with monkeypatch.context() as patched:
        patched.setattr(state, "forwardings", meanwhile)
        assert look(moto).machines[made].running, "with its target still there"
    held = look(moto)
    assert not held.machines[made].running
    assert [balancer.ports[PORT].targets for balancer in held.balancers] == [(TWO,)]


def test_as_many_checks_in_a_row_as_the_group_wants_turn_a_target(moto: MotoInProcess) -> None:
    group = balanced(moto, "internal").forwarding.ports[PORT]
    target = Checked()
    states = []
    for answered in (True, False, True, True, False, False, True, False, False, False):
        target.took(answered, group)
        states.append(target.health)
    assert states == [*[INITIAL] * 3, *[HEALTHY] * 6, FAILED]

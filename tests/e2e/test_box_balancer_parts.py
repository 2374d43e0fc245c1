"""A box's model of moto's balancers, without an engine: addresses, names, rules, checks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from ipaddress import IPv4Network

import pytest

from tests.doubles.aws.in_process import MotoInProcess, moto_in_process
from tests.e2e.box import state
from tests.e2e.box.balancer_state import Forwarding, address_rules, forwardings
from tests.e2e.box.balancers import FAILED, HEALTHY, INITIAL, TargetHealth
from tests.e2e.box.horizons import dns_snapshot
from tests.e2e.box.state import read_state

RANGE, ELASTIC = IPv4Network("10.20.0.0/16"), IPv4Network("198.18.0.128/25")
ONE, TWO = ("10.20.0.10", 9094), ("10.20.1.10", 9094)
PORT = 9101
IMAGE = "ami-03cf127a"


@dataclass(frozen=True)
class BalancedVpc:
    moto: MotoInProcess
    vpc: str
    group: str
    """Security group."""

    @property
    def forwarding(self) -> Forwarding:
        (only_forwarding,) = forwardings(self.moto)
        return only_forwarding


def create_balanced_vpc(moto: MotoInProcess, scheme: str) -> BalancedVpc:
    """Creates a balancer in two zones. One of its ports forwards to both targets."""
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
    registered_targets = [{"Id": address, "Port": port} for address, port in (ONE, TWO)]
    elb.register_targets(TargetGroupArn=targets, Targets=registered_targets)
    cross_zone = {"Key": "load_balancing.cross_zone.enabled", "Value": "true"}
    elb.modify_target_group_attributes(TargetGroupArn=targets, Attributes=[cross_zone])
    elb.create_listener(
        LoadBalancerArn=balancer, Protocol="TCP", Port=PORT,
        DefaultActions=[{"Type": "forward", "TargetGroupArn": targets}],
    )  # fmt: skip
    return BalancedVpc(moto, vpc, group)


@pytest.fixture(scope="module")
def moto() -> Iterator[MotoInProcess]:
    with moto_in_process() as server:
        yield server


def test_a_balancer_has_an_address_in_each_zone_and_is_a_member_of_its_group(
    moto: MotoInProcess,
) -> None:
    balanced_vpc = create_balanced_vpc(moto, "internal")
    forwarding, group = balanced_vpc.forwarding, balanced_vpc.forwarding.ports[PORT]
    private = forwarding.balancer.private
    assert [address.rpartition(".")[0] for address in private] == ["10.20.0", "10.20.1"]
    assert read_state(moto).members[balanced_vpc.group] == {*private}
    assert forwarding.idle_seconds == 350 and group.targets == (ONE, TWO)
    assert (group.check_port, group.interval, group.rises, group.falls) == (9094, 10, 2, 3)


@pytest.mark.parametrize("scheme", ["internal", "internet-facing"])
def test_its_name_and_a_record_lead_to_its_addresses_on_both_sides(
    moto: MotoInProcess, scheme: str
) -> None:
    balanced_vpc = create_balanced_vpc(moto, scheme)
    balancer, route53 = balanced_vpc.forwarding.balancer, moto.client("route53")
    zone = route53.create_hosted_zone(
        Name="example.com", CallerReference=scheme, HostedZoneConfig={"PrivateZone": False}
    )["HostedZone"]["Id"]
    record = {"Name": "kafka.example.com", "Type": "CNAME", "TTL": 60}
    changed_record = {**record, "ResourceRecords": [{"Value": balancer.name}]}
    route53.change_resource_record_sets(
        HostedZoneId=zone,
        ChangeBatch={"Changes": [{"Action": "CREATE", "ResourceRecordSet": changed_record}]},
    )
    expected = balancer.private if scheme == "internal" else balancer.outside(ELASTIC)
    assert len(expected) == 2
    snapshot = dns_snapshot(moto, RANGE, ELASTIC)
    for name in (balancer.name, "kafka.example.com"):
        assert snapshot.answer("inside", name) == snapshot.answer("outside", name) == expected


def rules(forwarding: Forwarding, *healthy: tuple[str, int]) -> dict[str, list[str]]:
    """The targets of packets to the port, by address of the balancer."""
    targets_by_address: dict[str, list[str]] = {}
    for line in address_rules(
        forwarding, ELASTIC, lambda _, target: target in healthy
    ).splitlines():
        words = line.split()
        if "DNAT" in words:
            assert words[words.index("--dport") + 1] == str(PORT)
            targets_by_address.setdefault(words[words.index("-d") + 1], []).append(words[-1])
    return targets_by_address


def test_ports_lead_to_healthy_targets_or_to_all_without_one(moto: MotoInProcess) -> None:
    forwarding = create_balanced_vpc(moto, "internet-facing").forwarding
    first_target, second_target = (f"{host}:{port}" for host, port in (ONE, TWO))
    addresses = {*forwarding.balancer.private, *forwarding.balancer.outside(ELASTIC)}
    assert rules(forwarding, ONE, TWO) == {key: [first_target, second_target] for key in addresses}
    assert rules(forwarding, TWO) == {key: [second_target] for key in addresses}
    assert rules(forwarding) == {key: [first_target, second_target] for key in addresses}


def test_without_cross_zone_an_address_leads_to_its_own_zone_alone(moto: MotoInProcess) -> None:
    forwarding = create_balanced_vpc(moto, "internal").forwarding
    zonal = replace(forwarding.ports[PORT], cross_zone=False)
    first_address, second_address = forwarding.balancer.private
    rules_by_address = rules(replace(forwarding, ports={PORT: zonal}), ONE, TWO)
    assert rules_by_address == {
        first_address: ["10.20.0.10:9094"],
        second_address: ["10.20.1.10:9094"],
    }
    one_target = replace(zonal, targets=(ONE,))
    assert rules(replace(forwarding, ports={PORT: one_target}), ONE) == {
        first_address: ["10.20.0.10:9094"]
    }


def test_no_look_has_a_machine_off_with_a_target_that_had_left_before(
    moto: MotoInProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An update deregisters a broker and stops it, between two questions of one look."""
    create_balanced_vpc(moto, "internal")
    ec2, elb = moto.client("ec2"), moto.client("elbv2")
    (group,) = elb.describe_target_groups()["TargetGroups"]
    of_range = [{"Name": "cidr", "Values": ["10.20.0.0/24"]}]
    (subnet,) = ec2.describe_subnets(Filters=of_range)["Subnets"]
    instance = ec2.run_instances(
        ImageId=IMAGE, MinCount=1, MaxCount=1, SubnetId=subnet["SubnetId"], PrivateIpAddress=ONE[0]
    )["Instances"][0]["InstanceId"]

    def meanwhile(server: MotoInProcess) -> tuple[Forwarding, ...]:
        old_forwardings = forwardings(server)
        targets = [{"Id": ONE[0], "Port": ONE[1]}]
        elb.deregister_targets(TargetGroupArn=group["TargetGroupArn"], Targets=targets)
        ec2.stop_instances(InstanceIds=[instance])
        return old_forwardings

    with monkeypatch.context() as patch:
        patch.setattr(state, "forwardings", meanwhile)
        assert read_state(moto).machines[instance].running, "with its target still there"
    moto_state = read_state(moto)
    assert not moto_state.machines[instance].running
    assert [balancer.ports[PORT].targets for balancer in moto_state.balancers] == [(TWO,)]


def test_as_many_checks_in_a_row_as_the_group_wants_turn_a_target(moto: MotoInProcess) -> None:
    group = create_balanced_vpc(moto, "internal").forwarding.ports[PORT]
    target = TargetHealth()
    states = []
    for has_answered in (True, False, True, True, False, False, True, False, False, False):
        target.record_check(has_answered, group)
        states.append(target.health)
    assert states == [*[INITIAL] * 3, *[HEALTHY] * 6, FAILED]

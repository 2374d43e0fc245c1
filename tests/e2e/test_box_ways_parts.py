"""A box's model of moto's other VPCs, without an engine: names, endpoints, routes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from ipaddress import IPv4Network
from typing import Any

import pytest

from tests.doubles.aws.in_process import MotoInProcess, moto_in_process
from tests.e2e.box.endpoints import endpoints
from tests.e2e.box.horizons import dns_snapshot
from tests.e2e.box.other_vpc import peered_routes
from tests.e2e.box.state import read_state

BROKERS, PARTNER = IPv4Network("10.20.0.0/16"), IPv4Network("10.60.0.0/16")
ELASTIC = IPv4Network("198.18.0.128/25")


@pytest.fixture(scope="module")
def moto() -> Iterator[MotoInProcess]:
    with moto_in_process() as server:
        yield server


def vpc(moto: MotoInProcess, cidr: IPv4Network) -> tuple[str, list[str]]:
    """A VPC with two subnets, with the ids of both."""
    ec2 = moto.client("ec2")
    id = ec2.create_vpc(CidrBlock=str(cidr))["Vpc"]["VpcId"]
    ec2.modify_vpc_attribute(VpcId=id, EnableDnsHostnames={"Value": True})
    ranges = list(cidr.subnets(new_prefix=24))[:2]
    subnets = [
        ec2.create_subnet(
            VpcId=id, CidrBlock=str(subnet_range), AvailabilityZone=f"us-west-2{zone}"
        )
        for subnet_range, zone in zip(ranges, "ab", strict=True)
    ]
    return id, [subnet["Subnet"]["SubnetId"] for subnet in subnets]


def create_endpoint(moto: MotoInProcess) -> tuple[str, Any]:
    """A balancer with a port, an endpoint of its service, and the id of the endpoint's VPC."""
    moto.reset()
    ec2, elb = moto.client("ec2"), moto.client("elbv2")
    broker_vpc, subnets = vpc(moto, BROKERS)
    arn = elb.create_load_balancer(
        Name="kafka", Type="network", Scheme="internal", Subnets=subnets
    )["LoadBalancers"][0]["LoadBalancerArn"]
    group = elb.create_target_group(
        Name="k",
        Protocol="TCP",
        Port=9094,
        VpcId=broker_vpc,
        TargetType="ip",
        HealthCheckPort="9094",
    )["TargetGroups"][0]["TargetGroupArn"]
    action = {"Type": "forward", "TargetGroupArn": group}
    elb.create_listener(LoadBalancerArn=arn, Protocol="TCP", Port=9101, DefaultActions=[action])
    service = ec2.create_vpc_endpoint_service_configuration(NetworkLoadBalancerArns=[arn])
    partner_vpc, partner_subnets = vpc(moto, PARTNER)
    endpoint_answer = ec2.create_vpc_endpoint(
        VpcEndpointType="Interface",
        VpcId=partner_vpc,
        ServiceName=service["ServiceConfiguration"]["ServiceName"],
        SubnetIds=partner_subnets,
    )
    return partner_vpc, endpoint_answer["VpcEndpoint"]


def test_an_endpoint_has_an_address_in_each_subnet_and_the_balancers_ports(
    moto: MotoInProcess,
) -> None:
    partner_vpc, _ = create_endpoint(moto)
    moto_state = read_state(moto)
    (endpoint,) = endpoints(moto, partner_vpc, moto_state)
    assert [address.rpartition(".")[0] for address in endpoint.addresses] == ["10.60.0", "10.60.1"]
    assert endpoint.ports == (9101,)
    assert endpoint.target == moto_state.balancers[0].balancer.private[0]
    (lone_endpoint,) = endpoints(moto, partner_vpc, replace(moto_state, balancers=()))
    assert (lone_endpoint.target, lone_endpoint.ports) == ("", ())
    assert endpoints(moto, "vpc-0", moto_state) == ()


def test_an_alias_in_a_private_zone_leads_to_the_endpoint_in_its_own_vpc_alone(
    moto: MotoInProcess,
) -> None:
    partner_vpc, vpc_endpoint = create_endpoint(moto)
    route53 = moto.client("route53")
    zone = route53.create_hosted_zone(
        Name="kafka.test",
        CallerReference="1",
        HostedZoneConfig={"PrivateZone": True},
        VPC={"VPCRegion": "us-west-2", "VPCId": partner_vpc},
    )["HostedZone"]["Id"]
    dns_entry = vpc_endpoint["DnsEntries"][0]
    target = {
        "DNSName": dns_entry["DnsName"],
        "HostedZoneId": dns_entry["HostedZoneId"],
        "EvaluateTargetHealth": False,
    }
    record = {"Name": "kafka.test", "Type": "A", "AliasTarget": target}
    changes = [{"Action": "CREATE", "ResourceRecordSet": record}]
    route53.change_resource_record_sets(HostedZoneId=zone, ChangeBatch={"Changes": changes})
    (endpoint,) = endpoints(moto, partner_vpc, read_state(moto))
    assert dns_snapshot(moto, PARTNER, ELASTIC).answer("inside", "kafka.test") == endpoint.addresses
    assert dns_snapshot(moto, BROKERS, ELASTIC).answer("inside", "kafka.test") is None


def test_a_wildcard_answers_for_names_without_a_record(moto: MotoInProcess) -> None:
    moto.reset()
    route53 = moto.client("route53")
    zone = route53.create_hosted_zone(Name="x.test", CallerReference="2")["HostedZone"]["Id"]
    for name, value in (("*.k.x.test", "198.18.0.1"), ("own.k.x.test", "198.18.0.2")):
        record = {"Name": name, "Type": "A", "TTL": 60, "ResourceRecords": [{"Value": value}]}
        changes = [{"Action": "CREATE", "ResourceRecordSet": record}]
        route53.change_resource_record_sets(HostedZoneId=zone, ChangeBatch={"Changes": changes})
    snapshot = dns_snapshot(moto, BROKERS, ELASTIC)
    assert snapshot.answer("outside", "broker-1.k.x.test") == ("198.18.0.1",)
    assert snapshot.answer("outside", "own.k.x.test") == ("198.18.0.2",)
    assert snapshot.answer("outside", "broker-1.x.test") is None


def test_only_routes_through_connections_lead_to_another_vpc(moto: MotoInProcess) -> None:
    moto.reset()
    ec2 = moto.client("ec2")
    (broker_vpc, _), (partner_vpc, _) = vpc(moto, BROKERS), vpc(moto, PARTNER)
    assert peered_routes(moto, BROKERS) == set()
    peering = ec2.create_vpc_peering_connection(VpcId=broker_vpc, PeerVpcId=partner_vpc)[
        "VpcPeeringConnection"
    ]
    of_vpc = [{"Name": "vpc-id", "Values": [broker_vpc]}]
    (table,) = ec2.describe_route_tables(Filters=of_vpc)["RouteTables"]
    ec2.create_route(
        RouteTableId=table["RouteTableId"],
        DestinationCidrBlock=str(PARTNER),
        VpcPeeringConnectionId=peering["VpcPeeringConnectionId"],
    )
    assert peered_routes(moto, BROKERS) == {PARTNER}
    assert peered_routes(moto, PARTNER) == set(), "a route in one direction"

"""What a box makes of moto's other VPCs, without an engine: names, endpoints, routes."""

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
from tests.e2e.box.state import look

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
        ec2.create_subnet(VpcId=id, CidrBlock=str(it), AvailabilityZone=f"us-west-2{zone}")
        for it, zone in zip(ranges, "ab", strict=True)
    ]
    return id, [subnet["Subnet"]["SubnetId"] for subnet in subnets]


def linked(moto: MotoInProcess) -> tuple[str, Any]:
    """A balancer with a port, an endpoint of its service, and the id of the endpoint's VPC."""
    moto.reset()
    ec2, elb = moto.client("ec2"), moto.client("elbv2")
    own, subnets = vpc(moto, BROKERS)
    arn = elb.create_load_balancer(
        Name="kafka", Type="network", Scheme="internal", Subnets=subnets
    )["LoadBalancers"][0]["LoadBalancerArn"]
    group = elb.create_target_group(
        Name="k", Protocol="TCP", Port=9094, VpcId=own, TargetType="ip", HealthCheckPort="9094"
    )["TargetGroups"][0]["TargetGroupArn"]
    action = {"Type": "forward", "TargetGroupArn": group}
    elb.create_listener(LoadBalancerArn=arn, Protocol="TCP", Port=9101, DefaultActions=[action])
    service = ec2.create_vpc_endpoint_service_configuration(NetworkLoadBalancerArns=[arn])
    other, others = vpc(moto, PARTNER)
    made = ec2.create_vpc_endpoint(
        VpcEndpointType="Interface",
        VpcId=other,
        ServiceName=service["ServiceConfiguration"]["ServiceName"],
        SubnetIds=others,
    )
    return other, made["VpcEndpoint"]


def test_an_endpoint_has_an_address_in_each_subnet_and_the_balancers_ports(
    moto: MotoInProcess,
) -> None:
    other, _ = linked(moto)
    held = look(moto)
    (endpoint,) = endpoints(moto, other, held)
    assert [address.rpartition(".")[0] for address in endpoint.addresses] == ["10.60.0", "10.60.1"]
    assert endpoint.ports == (9101,)
    assert endpoint.target == held.balancers[0].balancer.private[0]
    (alone,) = endpoints(moto, other, replace(held, balancers=()))
    assert (alone.target, alone.ports) == ("", ())
    assert endpoints(moto, "vpc-0", held) == ()


def test_an_alias_in_a_private_zone_leads_to_the_endpoint_in_its_own_vpc_alone(
    moto: MotoInProcess,
) -> None:
    other, made = linked(moto)
    route53 = moto.client("route53")
    zone = route53.create_hosted_zone(
        Name="kafka.test",
        CallerReference="1",
        HostedZoneConfig={"PrivateZone": True},
        VPC={"VPCRegion": "us-west-2", "VPCId": other},
    )["HostedZone"]["Id"]
    entry = made["DnsEntries"][0]
    target = {
        "DNSName": entry["DnsName"],
        "HostedZoneId": entry["HostedZoneId"],
        "EvaluateTargetHealth": False,
    }
    record = {"Name": "kafka.test", "Type": "A", "AliasTarget": target}
    changes = [{"Action": "CREATE", "ResourceRecordSet": record}]
    route53.change_resource_record_sets(HostedZoneId=zone, ChangeBatch={"Changes": changes})
    (endpoint,) = endpoints(moto, other, look(moto))
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
    found = dns_snapshot(moto, BROKERS, ELASTIC)
    assert found.answer("outside", "broker-1.k.x.test") == ("198.18.0.1",)
    assert found.answer("outside", "own.k.x.test") == ("198.18.0.2",)
    assert found.answer("outside", "broker-1.x.test") is None


def test_only_routes_through_connections_lead_to_another_vpc(moto: MotoInProcess) -> None:
    moto.reset()
    ec2 = moto.client("ec2")
    (one, _), (two, _) = vpc(moto, BROKERS), vpc(moto, PARTNER)
    assert peered_routes(moto, BROKERS) == set()
    peering = ec2.create_vpc_peering_connection(VpcId=one, PeerVpcId=two)["VpcPeeringConnection"]
    of_vpc = [{"Name": "vpc-id", "Values": [one]}]
    (table,) = ec2.describe_route_tables(Filters=of_vpc)["RouteTables"]
    ec2.create_route(
        RouteTableId=table["RouteTableId"],
        DestinationCidrBlock=str(PARTNER),
        VpcPeeringConnectionId=peering["VpcPeeringConnectionId"],
    )
    assert peered_routes(moto, BROKERS) == {PARTNER}
    assert peered_routes(moto, PARTNER) == set(), "a route in one direction"

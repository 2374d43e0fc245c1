"""Other VPCs whose clients use internal listeners: what a stack file may say of them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.config.aws_documents import OWN_ZONE, read_aws, refused

OTHER = {"id": "vpc-0123abcd", "cidr": "10.60.0.0/16", "peering": "pcx-0123abcd"}
MORE = {"id": "vpc-0456abcd", "cidr": "10.61.0.0/16", "transit_gateway": "tgw-0123abcd"}


def test_two_ways_to_two_vpcs() -> None:
    spec = read_aws(connected={"analytics": OTHER, "jobs": {**MORE, "region": "eu-west-1"}})
    assert [str(it.range) for it in spec.connected.values()] == ["10.60.0.0/16", "10.61.0.0/16"]
    assert spec.connected["analytics"].associate and spec.connected["analytics"].routed is None


@pytest.mark.parametrize(
    ("connected", "problem"),
    [
        (
            {"analytics": {**OTHER, "cidr": "10.0.128.0/20"}},
            "cidr: found 10.0.128.0/20, which overlaps 10.0.0.0/16 of the brokers' VPC, so that",
        ),
        (
            {"analytics": OTHER, "jobs": {**MORE, "cidr": "10.60.1.0/24"}},
            "connected.jobs.cidr: found 10.60.1.0/24, which overlaps 10.60.0.0/16 of analytics",
        ),
        (
            {"analytics": OTHER, "jobs": {**MORE, "id": OTHER["id"]}},
            "jobs.id: found vpc-0123abcd, which is analytics; allowed: each other VPC once",
        ),
        (
            {"analytics": {**OTHER, "transit_gateway": "tgw-0123abcd"}},
            "peering: found peering and transit_gateway; allowed: one of",
        ),
        (
            {"analytics": {key: OTHER[key] for key in ("id", "cidr")}},
            "peering: found neither peering nor transit_gateway",
        ),
        ({"analytics": {**OTHER, "cidr": "fd00::/56"}}, "cidr: found fd00::/56; allowed: an IPv4"),
        ({"analytics": {**OTHER, "cidr": "0.0.0.0/0"}}, "which is the world"),
        ({"analytics": {**OTHER, "peering": "peer"}}, "an id such as pcx-0123456789abcdef0"),
        ({"analytics": {**OTHER, "resolver": ["ns.example.com"]}}, "DNS server 'ns.example.com'"),
        (
            {"Analytics VPC": OTHER},
            "found 'Analytics VPC'; allowed: up to 30 small",
        ),
        ({"internal": OTHER}, "but not the name of a scope"),
        ({"analytics": {**OTHER, "region": "moon"}}, "is none whose names are known"),
        (
            {"analytics": {**OTHER, "associate": False}},
            "associate: found false with naming aws, which has no zone; leave it out, or set",
        ),
    ],
)
def test_each_mistake_has_one_error(connected: dict[str, Any], problem: str) -> None:
    (found,) = refused(connected=connected)
    assert problem in found


def test_a_zone_may_be_left_unassociated_for_the_gate_to_judge() -> None:
    assert read_aws(connected={"analytics": {**OTHER, "associate": False}}, **OWN_ZONE).connected

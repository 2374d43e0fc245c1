"""`connected` of a stack file: other VPCs whose clients use internal listeners."""

from pathlib import Path
from typing import Any

from tests.config.aws_documents import OWN_ZONE, read_aws, refused
from tests.goldens import refusals_are_golden

MISTAKES = Path(__file__).parent / "mistakes"
"""The texts of refusals, which `EARSHOT_WRITE_GOLDENS=1` writes."""

OTHER = {"id": "vpc-0123abcd", "cidr": "10.60.0.0/16", "peering": "pcx-0123abcd"}
MORE = {"id": "vpc-0456abcd", "cidr": "10.61.0.0/16", "transit_gateway": "tgw-0123abcd"}


def test_two_ways_to_two_vpcs() -> None:
    spec = read_aws(connected={"analytics": OTHER, "jobs": {**MORE, "region": "eu-west-1"}})
    assert [str(vpc.range) for vpc in spec.connected.values()] == ["10.60.0.0/16", "10.61.0.0/16"]
    assert spec.connected["analytics"].associate and spec.connected["analytics"].routed is None


def test_each_mistake_has_one_error() -> None:
    mistakes: list[Any] = [
        {"analytics": {**OTHER, "cidr": "10.0.128.0/20"}},
        {"analytics": OTHER, "jobs": {**MORE, "cidr": "10.60.1.0/24"}},
        {"analytics": OTHER, "jobs": {**MORE, "id": OTHER["id"]}},
        {"analytics": {**OTHER, "transit_gateway": "tgw-0123abcd"}},
        {"analytics": {key: OTHER[key] for key in ("id", "cidr")}},
        {"analytics": {**OTHER, "cidr": "fd00::/56"}},
        {"analytics": {**OTHER, "cidr": "0.0.0.0/0"}},
        {"analytics": {**OTHER, "peering": "peer"}},
        {"analytics": {**OTHER, "resolver": ["ns.example.com"]}},
        {"Analytics VPC": OTHER},
        {"internal": OTHER},
        {"analytics": {**OTHER, "region": "moon"}},
        {"analytics": {**OTHER, "associate": False}},
    ]
    refusals_are_golden(mistakes, lambda case: refused(connected=case), MISTAKES / "connected.txt")


def test_a_zone_may_be_left_unassociated_for_the_gate_to_judge() -> None:
    assert read_aws(connected={"analytics": {**OTHER, "associate": False}}, **OWN_ZONE).connected

"""Connected VPCs: what a cluster registers for them, and what the gate says of their clients."""

import pytest

from earshot.checks.connected import with_lookups
from earshot.checks.plan import check_planned
from earshot.config.aws import AwsSpec
from earshot.facts.cloud import Cloud
from earshot.names.policy import ResolverPolicy
from earshot.placement.aws import AwsPlan, ProvisionedNames, plan_aws
from earshot.rules.rule import Finding, FindingState
from tests.components.aws.registered import INGRESS, ZONE, inputs, registered
from tests.config.aws_documents import OWN_ZONE, read_aws
from tests.config.test_connected import MORE, OTHER
from tests.doubles.resolvers import TableAsked

ASSOCIATION = "aws:route53/zoneAssociation:ZoneAssociation"
ROUTE = "aws:ec2/route:Route"
BOTH = {"analytics": OTHER, "jobs": {**MORE, "region": "eu-west-1"}}


def planned_with_names(spec: AwsSpec) -> AwsPlan:
    """The plan of ``spec`` with records of its zone."""
    assert spec.zone is not None
    names = {
        id: ProvisionedNames(spec.zone.broker(id), f"10.0.0.{id + 10}") for id in spec.node_ids
    }
    return plan_aws(spec, names)


def findings(spec: AwsSpec, planned: AwsPlan | None = None) -> list[Finding]:
    """What the gate says of connected VPCs."""
    planned = planned or planned_with_names(spec)
    checked = check_planned(spec, planned, ResolverPolicy(timeout=0.5))
    return [it for it in checked.findings if it.rule == "KL026"]


def test_the_zone_is_associated_and_subnets_and_groups_admit_the_vpcs() -> None:
    engine = registered(read_aws(connected=BOTH, **OWN_ZONE))
    associations = inputs(engine, ASSOCIATION).values()
    assert [(it["vpcId"], it["vpcRegion"]) for it in associations] == [
        ("vpc-0123abcd", "eu-central-1"),
        ("vpc-0456abcd", "eu-west-1"),
    ]
    assert engine.one(ZONE).request.ignoreChanges == ["vpcs"], "a refresh takes none of them away"
    routes = inputs(engine, ROUTE).values()
    peered = [it for it in routes if it["destinationCidrBlock"] == "10.60.0.0/16"]
    assert {it["vpcPeeringConnectionId"] for it in peered} == {"pcx-0123abcd"}
    assert len(peered) == 4, "the public table, and one per private subnet"
    joined = [it for it in routes if it["destinationCidrBlock"] == "10.61.0.0/16"]
    assert {it["transitGatewayId"] for it in joined} == {"tgw-0123abcd"} and len(joined) == 4
    rules = inputs(engine, INGRESS).values()
    for text in ("10.60.0.0/16", "10.61.0.0/16"):
        ports = {rule["fromPort"] for rule in rules if rule.get("cidrIpv4") == text}
        assert ports == {19092}, "only internal listeners"


def test_a_zone_that_is_not_associated_is_refused_and_routes_are_not_known() -> None:
    other = {**OTHER, "associate": False}
    spec = read_aws(connected={"analytics": other}, **OWN_ZONE)
    (first,) = (it for it in findings(spec, plan_aws(spec)) if it.listener)
    assert first.state is FindingState.VIOLATED, "in a preview that knows no record yet, too"
    assert "do not resolve names of kafka.example.com" in first.observed
    unknown, refused = findings(spec)
    assert (unknown.state, refused.state) == (FindingState.UNKNOWN, FindingState.VIOLATED)
    assert "is not associated with it" in refused.observed
    assert "connected.analytics.associate: true" in refused.remedy
    assert unknown.observed.startswith("whether routes lead to vpc-0123abcd (analytics) and back")


def test_an_associated_zone_with_routes_passes() -> None:
    spec = read_aws(connected={"analytics": {**OTHER, "routed": True}}, **OWN_ZONE)
    assert not findings(spec)
    planned = planned_with_names(spec)
    assert Cloud.read(planned.cloud.document()).connected == planned.connected


@pytest.mark.parametrize("answers", [{}, {"broker-1.kafka.example.com": ("10.0.0.11",)}])
def test_the_resolver_of_the_vpc_is_asked(answers: dict[str, tuple[str, ...]]) -> None:
    other = {**OTHER, "resolver": ["192.0.2.53"]}
    spec = read_aws(connected={"analytics": other, "jobs": MORE}, **OWN_ZONE)
    planned = planned_with_names(spec)
    asked = TableAsked({"192.0.2.53": answers})
    analytics, jobs = with_lookups(planned.plan, planned.connected, ResolverPolicy(), asked)
    assert analytics.lookups["broker-1.kafka.example.com"].ok is bool(answers)
    assert not jobs.lookups

"""`expose: privatelink`: what a cluster registers, advertises and refuses."""

from __future__ import annotations

from typing import Any

import pytest

from earshot.checks.plan import check_planned
from earshot.facts.cloud import Cloud
from earshot.listeners.terms import Scope
from earshot.names.policy import ResolverPolicy
from earshot.placement.aws import plan_aws
from earshot.placement.aws_standpoints import aws_standpoints
from earshot.rules.registry import FindingState, Severity
from tests.components.aws.registered import GROUP, INGRESS, RECORD, Answers, registered
from tests.components.aws.test_balancer import BALANCER, EXTERNAL, TARGETS, external
from tests.components.engine_double import Engine
from tests.config.aws_documents import INTERNAL, OFFICE, OWN_ZONE, read_aws, refused

SERVICE = "aws:ec2/vpcEndpointService:VpcEndpointService"
NAME = "kafka.partners.example.com"
LINK = {"kind": "privatelink", "name": NAME}
LINKED: dict[str, Any] = {"listeners": [INTERNAL, EXTERNAL], "expose": LINK}


def facts_of(answers: Answers | None = None, **changes: Any) -> tuple[Engine, dict[str, Any]]:
    """What a cluster registers, and its output `endpoint_service`."""
    found: dict[str, Any] = {}

    def look(brokers: Any) -> Any:
        return brokers.endpoint_service.facts.apply(found.update)

    return registered(read_aws(**{**LINKED, **changes}), answers, look), found


def test_only_the_own_account_may_connect_and_each_endpoint_waits() -> None:
    engine, _ = facts_of()
    service = engine.one(SERVICE)
    assert service.inputs["allowedPrincipals"] == ["arn:aws:iam::123456789012:root"]
    assert service.inputs["acceptanceRequired"] is True
    assert "privateDnsName" not in service.inputs
    assert service.inputs["networkLoadBalancerArns"] == ["arn of mine"]
    assert service.request.protect
    balancer = engine.one(BALANCER).inputs
    assert balancer["internal"] is True
    assert balancer["enforceSecurityGroupInboundRulesOnPrivateLinkTraffic"] == "off"
    assert {it.inputs["preserveClientIp"] for it in engine.of(TARGETS).values()} == {"false"}


def test_brokers_advertise_the_name_of_the_consumers_zone_with_a_port_each() -> None:
    for preview in (False, True):
        engine, _ = facts_of(Answers(preview=preview))
        node = engine.one("earshot:gate:AdvertisedListeners").inputs["plan"]["nodes"][0]
        listener = node["listeners"][1]
        assert (listener["host"], listener["port"]) == (NAME, 9101), "known in a preview too"
        assert listener["front"]["private_link"] is True
    engine, _ = facts_of()
    assert external(engine) == [f"EXTERNAL://{NAME}:910{id}" for id in (1, 2, 3)]


def test_the_output_has_what_a_consumer_needs() -> None:
    _, found = facts_of()
    assert found == {
        "service_name": "com.amazonaws.vpce.eu-central-1.vpce-svc-0123",
        "name": NAME,
        "acceptance": "required",
        "zone_ids": ["euc1-az2", "euc1-az3", "euc1-az1"],
        "ports": {"EXTERNAL": {"1": 9101, "2": 9102, "3": 9103, "bootstrap": 9100}},
    }
    engine, found = facts_of(expose={**LINK, "private_dns": True})
    assert engine.one(SERVICE).inputs["privateDnsName"] == NAME
    assert found["verification"] == [{"name": "_0123", "type": "TXT", "value": "vpce:0123"}]


def test_named_principals_replace_the_own_account() -> None:
    partner = "arn:aws:iam::111122223333:role/kafka"
    expose = {**LINK, "principals": {"partner": partner}, "acceptance": "automatic"}
    engine, found = facts_of(expose=expose)
    assert engine.one(SERVICE).inputs["allowedPrincipals"] == [partner]
    assert engine.one(SERVICE).inputs["acceptanceRequired"] is False
    assert found["acceptance"] == "automatic"


def test_no_range_comes_in_to_the_balancer_and_the_balancer_alone_to_brokers() -> None:
    engine, _ = facts_of()
    assert "mine-balancer" in engine.of(GROUP)
    rules = [it.inputs for it in engine.of(INGRESS).values()]
    assert not [it for it in rules if it["securityGroupId"] == "id of mine-balancer"]
    (to_brokers,) = (it for it in rules if it["fromPort"] == 9094)
    assert to_brokers["referencedSecurityGroupId"] == "id of mine-balancer"
    assert registered(read_aws(**LINKED, clients=OFFICE)).of(INGRESS), "ranges may be named too"


def test_a_zone_gives_the_name_inside_the_vpc_alone() -> None:
    link = {"kind": "privatelink"}
    engine = registered(read_aws(**{**LINKED, "expose": link}, **OWN_ZONE))
    assert external(engine)[0] == "EXTERNAL://kafka.kafka.example.com:9101"
    names = [name for name, it in engine.of(RECORD).items() if it.inputs["type"] == "CNAME"]
    assert names == ["mine-balancer-private"]


def test_the_gate_takes_the_name_as_declared_whatever_resolves_here() -> None:
    spec = read_aws(**LINKED)
    planned = plan_aws(spec)
    silent = ResolverPolicy(timeout=0.5, resolvers={Scope.EXTERNAL: ("127.0.0.1:1",)})
    found = check_planned(spec, planned, silent)
    certain = [it for it in found.findings if it.state is FindingState.VIOLATED]
    assert not [it for it in certain if it.severity is Severity.ERROR]
    evidence = {it.why for it in planned.cloud.declared.values() if it.elsewhere}
    assert evidence == {"the private zone of each VPC with an endpoint of this stack's service"}
    again = Cloud.read(planned.cloud.document())
    assert again.declared == planned.cloud.declared, "the gate is in another process"


def test_a_deploy_does_not_try_it_from_here() -> None:
    (external_one,) = (it for it in aws_standpoints(read_aws(**LINKED)) if it.scope == "external")
    assert "its clients are in other VPCs" in external_one.leaves_out("EXTERNAL")


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"expose": "privatelink"}, "expose.name: is missing; brokers advertise it"),
        ({"expose": {**LINK, "name": "kafka"}}, "expose.name: found kafka; allowed: a name such"),
        ({"expose": {**LINK, "name": "10.0.0.1"}}, "expose.name: found 10.0.0.1; allowed: a name"),
        ({"expose": {**LINK, "scheme": "internet"}}, "expose.scheme: found internet with kind"),
        (
            {"expose": {**LINK, "keep_client_address": True}},
            "expose.keep_client_address: found true with kind privatelink",
        ),
        (
            {"expose": {**LINK, "principals": {"all": "*"}, "acceptance": "automatic"}},
            "expose.principals.all: found * with acceptance automatic",
        ),
        (
            {"expose": {**LINK, "principals": {"partner": "111122223333"}}},
            "allowed: an ARN such as arn:aws:iam::111122223333:root, or *",
        ),
        (
            {"expose": {"name": NAME}, "clients": OFFICE},
            "expose.name: found with kind nlb; allowed: with kind privatelink",
        ),
        (OWN_ZONE, f"expose.name: found {NAME} with naming zone; allowed: `expose.record`"),
        ({"brokers": 50}, "found 50 brokers behind EXTERNAL, which take 51 listeners"),
        (
            {"listeners": [INTERNAL, {**EXTERNAL, "scopes": ["internal", "external"]}]},
            "listeners.EXTERNAL.scopes: found internal, external with expose privatelink",
        ),
    ],
)
def test_each_mistake_has_one_error(changes: dict[str, Any], problem: str) -> None:
    (found,) = refused(**{**LINKED, **changes})
    assert problem in found


def test_every_account_may_ask_if_each_endpoint_is_accepted() -> None:
    spec = read_aws(**{**LINKED, "expose": {**LINK, "principals": {"all": "*"}}})
    assert any("every AWS account may request" in it for it in plan_aws(spec).notes)

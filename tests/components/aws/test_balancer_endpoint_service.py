"""`expose: privatelink`: what a cluster registers, advertises and refuses."""

from typing import Any

import pytest

from earshot.checks.plan import check_planned
from earshot.facts.cloud import Cloud
from earshot.listeners.terms import Scope
from earshot.names.policy import ResolverPolicy
from earshot.placement.aws import plan_aws
from earshot.placement.aws_standpoints import aws_standpoints
from earshot.rules.rule import FindingState, Severity
from tests.components.aws.registered import (
    GATE,
    GROUP,
    INGRESS,
    RECORD,
    Answers,
    inputs,
    registered,
)
from tests.components.aws.test_balancer import BALANCER, EXTERNAL, TARGETS, external_addresses
from tests.components.engine_double import Engine
from tests.config.aws_documents import INTERNAL, OFFICE, OWN_ZONE, read_aws, refused

SERVICE = "aws:ec2/vpcEndpointService:VpcEndpointService"
NAME = "kafka.partners.example.com"
LINK = {"kind": "privatelink", "name": NAME}
LINKED: dict[str, Any] = {"listeners": [INTERNAL, EXTERNAL], "expose": LINK}


def linked(answers: Answers | None = None, **changes: Any) -> tuple[Engine, dict[str, Any]]:
    """The registrations of a cluster, and its output `endpoint_service`."""
    output: dict[str, Any] = {}

    def look(brokers: Any) -> Any:
        return brokers.endpoint_service.facts.apply(output.update)

    return registered(read_aws(**{**LINKED, **changes}), answers, look), output


def test_a_service_of_the_account_whose_brokers_advertise_the_name_of_the_consumers_zone() -> None:
    engine, output = linked()
    service = engine.one(SERVICE)
    assert service.inputs["allowedPrincipals"] == ["arn:aws:iam::123456789012:root"]
    assert service.inputs["acceptanceRequired"] is True, "each endpoint waits"
    assert "privateDnsName" not in service.inputs
    assert service.inputs["networkLoadBalancerArns"] == ["arn of mine"]
    assert service.request.protect
    balancer = engine.one(BALANCER).inputs
    assert balancer["internal"] is True
    assert balancer["enforceSecurityGroupInboundRulesOnPrivateLinkTraffic"] == "off"
    assert {it["preserveClientIp"] for it in inputs(engine, TARGETS).values()} == {"false"}
    assert external_addresses(engine) == [f"EXTERNAL://{NAME}:910{id}" for id in (1, 2, 3)]
    assert output == {
        "service_name": "com.amazonaws.vpce.eu-central-1.vpce-svc-0123",
        "name": NAME,
        "acceptance": "required",
        "zone_ids": ["euc1-az2", "euc1-az3", "euc1-az1"],
        "ports": {"EXTERNAL": {"1": 9101, "2": 9102, "3": 9103, "bootstrap": 9100}},
    }
    for answers in (Answers(), Answers(preview=True)):
        engine, _ = linked(answers)
        listener = engine.one(GATE).inputs["plan"]["nodes"][0]["listeners"][1]
        assert (listener["host"], listener["port"]) == (NAME, 9101), "known in a preview too"
        assert listener["front"]["private_link"] is True


def test_private_dns_and_principals_as_the_stack_file_has_them() -> None:
    engine, output = linked(expose={**LINK, "private_dns": True})
    assert engine.one(SERVICE).inputs["privateDnsName"] == NAME
    assert output["verification"] == [{"name": "_0123", "type": "TXT", "value": "vpce:0123"}]
    partner = "arn:aws:iam::111122223333:role/kafka"
    expose = {**LINK, "principals": {"partner": partner}, "acceptance": "automatic"}
    engine, output = linked(expose=expose)
    assert engine.one(SERVICE).inputs["allowedPrincipals"] == [partner]
    assert engine.one(SERVICE).inputs["acceptanceRequired"] is False
    assert output["acceptance"] == "automatic"
    spec = read_aws(**{**LINKED, "expose": {**LINK, "principals": {"all": "*"}}})
    assert any("every AWS account may request" in note for note in plan_aws(spec).notes)


def test_no_range_reaches_the_balancer_and_only_the_balancer_reaches_brokers() -> None:
    engine, _ = linked()
    assert "mine-balancer" in engine.of(GROUP)
    rules = inputs(engine, INGRESS).values()
    assert "id of mine-balancer" not in [rule["securityGroupId"] for rule in rules]
    (rule,) = (it for it in rules if it["fromPort"] == 9094)
    assert rule["referencedSecurityGroupId"] == "id of mine-balancer"
    assert registered(read_aws(**LINKED, clients=OFFICE)).of(INGRESS), "ranges may be named too"


def test_a_zone_gives_the_name_inside_the_vpc_alone() -> None:
    link = {"kind": "privatelink"}
    engine = registered(read_aws(**{**LINKED, "expose": link}, **OWN_ZONE))
    assert external_addresses(engine)[0] == "EXTERNAL://kafka.kafka.example.com:9101"
    records = inputs(engine, RECORD)
    names = [name for name, record in records.items() if record["type"] == "CNAME"]
    assert names == ["mine-balancer-private"]


def test_the_gate_takes_the_name_as_declared_whatever_resolves_here() -> None:
    spec = read_aws(**LINKED)
    planned = plan_aws(spec)
    silent = ResolverPolicy(timeout=0.5, resolvers={Scope.EXTERNAL: ("127.0.0.1:1",)})
    findings = check_planned(spec, planned, silent).findings
    violations = [it for it in findings if it.state is FindingState.VIOLATED]
    assert not [it for it in violations if it.severity is Severity.ERROR]
    evidence = {it.why for it in planned.cloud.declared.values() if it.elsewhere}
    assert evidence == {"the private zone of each VPC with an endpoint of this stack's service"}
    cloud = Cloud.read(planned.cloud.document())
    assert cloud.declared == planned.cloud.declared, "the gate is in another process"


def test_a_deploy_does_not_try_it_from_here() -> None:
    standpoints = {it.scope: it for it in aws_standpoints(read_aws(**LINKED))}
    assert "its clients are in other VPCs" in standpoints[Scope.EXTERNAL].leaves_out("EXTERNAL")


@pytest.mark.parametrize(("changes", "problem"), [
    ({"expose": "privatelink"}, "expose.name: is missing; brokers advertise it"),
    ({"expose": {**LINK, "name": "kafka"}}, "expose.name: found kafka; allowed: a name such"),
    ({"expose": {**LINK, "name": "10.0.0.1"}}, "expose.name: found 10.0.0.1; allowed: a name"),
    ({"expose": {**LINK, "scheme": "internet"}}, "expose.scheme: found internet with kind"),
    ({"expose": {**LINK, "keep_client_address": True}},
     "expose.keep_client_address: found true with kind privatelink"),
    ({"expose": {**LINK, "principals": {"all": "*"}, "acceptance": "automatic"}},
     "expose.principals.all: found * with acceptance automatic"),
    ({"expose": {**LINK, "principals": {"partner": "111122223333"}}},
     "allowed: an ARN such as arn:aws:iam::111122223333:root, or *"),
    ({"expose": {"name": NAME}, "clients": OFFICE},
     "expose.name: found with kind nlb; allowed: with kind privatelink"),
    (OWN_ZONE, f"expose.name: found {NAME} with naming zone; allowed: `expose.record`"),
    ({"brokers": 50}, "found 50 brokers behind EXTERNAL, which take 51 listeners"),
    ({"listeners": [INTERNAL, {**EXTERNAL, "scopes": ["internal", "external"]}]},
     "listeners.EXTERNAL.scopes: found internal, external with expose privatelink"),
])  # fmt: skip
def test_each_mistake_has_one_error(changes: dict[str, Any], problem: str) -> None:
    (line,) = refused(**{**LINKED, **changes})
    assert problem in line

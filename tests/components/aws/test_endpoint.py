"""An endpoint in the clients' VPC: what is registered, what comes back, what is refused."""

from typing import Any

import pulumi
import pytest
from pulumi.errors import InputPropertiesError

from earshot.listeners.model import ClusterPlan
from earshot.placement.aws import plan_aws
from earshot.validation.contract import Contract
from tests.components.aws.registered import GROUP, INGRESS, RECORD, ZONE, Answers, inputs
from tests.components.aws.test_balancer import EXPOSED, EXTERNAL
from tests.components.aws.test_balancer_endpoint_service import LINKED, NAME
from tests.components.constructed import constructed, given_later
from tests.components.engine_double import Engine
from tests.config.aws_documents import INTERNAL, read_aws

ENDPOINT = "aws:ec2/vpcEndpoint:VpcEndpoint"
SERVICE = "com.amazonaws.vpce.eu-central-1.vpce-svc-0123"
DNS_ON = {"enableDnsSupport": True, "enableDnsHostnames": True}


def planned(**changes: Any) -> ClusterPlan:
    return plan_aws(read_aws(**{**LINKED, **changes})).plan


def contract_of(plan: ClusterPlan) -> dict[str, Any]:
    """The output `contract` of the cluster, as a StackReference has it."""
    document: dict[str, Any] = Contract.of(plan, "orders", "aws").model_dump(mode="json")
    return document


def constructed_endpoint(
    answers: Answers | None = None, **changes: Any
) -> tuple[Engine, dict[str, Any]]:
    """Registrations and outputs; an input of None is left out."""
    settings = {
        "serviceName": SERVICE,
        "contract": contract_of(planned()),
        "vpcId": "vpc-0123abcd",
        "subnets": ["subnet-0123abcd", "subnet-0456abcd"],
        "clients": {"apps": "10.60.0.0/16"},
        **changes,
    }
    present = {key: value for key, value in settings.items() if value is not None}
    return constructed("AwsEndpoint", present, answers or Answers(vpc=DNS_ON))


def test_the_advertised_name_leads_to_the_endpoint_in_the_clients_vpc() -> None:
    engine, outputs = constructed_endpoint()
    assert (
        engine.one(ENDPOINT).inputs.items()
        >= {
            "vpcEndpointType": "Interface",
            "serviceName": SERVICE,
            "vpcId": "vpc-0123abcd",
            "subnetIds": ["subnet-0123abcd", "subnet-0456abcd"],
            "privateDnsEnabled": False,
        }.items()
    )
    zone = engine.one(ZONE).inputs
    assert zone["name"] == NAME, "no other name of the domain is shadowed"
    assert zone["vpcs"] == [{"vpcId": "vpc-0123abcd"}]
    record = engine.one(RECORD).inputs
    assert (record["name"], record["type"], record["zoneId"]) == (NAME, "A", "ZPRIVATE")
    (alias,) = record["aliases"]
    assert alias["name"] == "vpce-1.svc.eu-central-1.vpce.amazonaws.com"
    assert alias["zoneId"] == "ZVPCE"
    assert outputs["bootstrap"] == {"EXTERNAL": f"{NAME}:9100"}
    (listener,) = outputs["contract"]["listeners"]
    assert listener["name"] == "EXTERNAL", "INTERNAL is not reached from here"
    assert outputs["state"] == "pendingAcceptance"


def test_only_clients_reach_the_endpoint_at_the_ports_of_brokers() -> None:
    engine, outputs = constructed_endpoint(groups={"jobs": "sg-0123abcd"})
    rules = inputs(engine, INGRESS).values()
    assert {(it["fromPort"], it["toPort"]) for it in rules} == {(9100, 9103)}
    sources = {it.get("cidrIpv4") or it["referencedSecurityGroupId"] for it in rules}
    assert sources == {"10.60.0.0/16", "sg-0123abcd"}
    group = engine.one(GROUP)
    assert engine.one(ENDPOINT).inputs["securityGroupIds"] == [f"id of {group.name}"]
    assert outputs["securityGroupId"] == f"id of {group.name}"


def test_a_wider_zone_and_the_name_that_aws_resolves() -> None:
    engine, _ = constructed_endpoint(zone="partners.example.com")
    assert engine.one(ZONE).inputs["name"] == "partners.example.com"
    assert engine.one(RECORD).inputs["name"] == NAME
    engine, outputs = constructed_endpoint(privateDns=True)
    assert not engine.of(ZONE) and not engine.of(RECORD)
    assert engine.one(ENDPOINT).inputs["privateDnsEnabled"] is True
    assert outputs["bootstrap"] == {"EXTERNAL": f"{NAME}:9100"}


def test_inputs_of_other_resources_in_a_preview() -> None:
    later = {
        "serviceName": given_later(SERVICE, known=False),
        "vpcId": given_later("vpc-1", known=False),
    }
    engine, _ = constructed_endpoint(Answers(preview=True), **later)
    assert engine.one(RECORD) and engine.one(ENDPOINT)
    unknown = {"contract": given_later(contract_of(planned()), known=False)}
    engine, outputs = constructed_endpoint(Answers(preview=True), **unknown)
    assert not engine.of(ENDPOINT) and outputs == {}
    engine, outputs = constructed_endpoint(contract=given_later(contract_of(planned())))
    assert outputs["bootstrap"] == {"EXTERNAL": f"{NAME}:9100"}


def test_ports_and_names_of_two_listeners() -> None:
    second = {**EXTERNAL, "name": "PARTNERS", "port": 9095}
    second["address"] = {"strategy": "port", "base_port": 9200}
    contract = contract_of(planned(listeners=[INTERNAL, EXTERNAL, second]))
    engine, outputs = constructed_endpoint(contract=contract)
    ports = {(it["fromPort"], it["toPort"]) for it in inputs(engine, INGRESS).values()}
    assert ports == {(9100, 9103), (9200, 9203)} and len(engine.of(ZONE)) == 1
    engine, outputs = constructed_endpoint(contract=contract, listeners=["PARTNERS"])
    assert outputs["bootstrap"] == {"PARTNERS": f"{NAME}:9200"}


BALANCED = plan_aws(read_aws(**EXPOSED), balancer="k-1.elb.eu-central-1.amazonaws.com")


@pytest.mark.parametrize(("changes", "problem"), [
    ({"zone": "partners.internal"},
     f"zone: found partners.internal, and the brokers of orders advertise {NAME}, which"),
    ({"contract": contract_of(BALANCED.plan)},
     "contract: the brokers of orders advertise k-1.elb.eu-central-1.amazonaws.com"),
    ({"contract": contract_of(planned(listeners=[INTERNAL], expose=None))},
     "contract: none of its listeners (INTERNAL) has one name for all brokers"),
    ({"contract": {"version": 3}}, "contract: "),
    ({"listeners": ["NONE"]}, "listeners: found NONE; allowed: those of the contract: INTERNAL"),
    ({"clients": None}, "clients: is missing; no client could connect"),
    ({"clients": {"all": "0.0.0.0/0"}}, "which is every address"),
    ({"zone": NAME, "privateDns": True}, "zone: found one with private_dns"),
    ({"clients": {str(n): f"10.{n}.0.0/16" for n in range(61)}},
     "clients: found 61 sources for 1 ranges of ports, which need 61 rules; allowed: 60"),
])  # fmt: skip
def test_each_mistake_has_one_error(changes: dict[str, Any], problem: str) -> None:
    with pytest.raises(InputPropertiesError) as refused:
        constructed_endpoint(**changes)
    lines = str(refused.value).splitlines()
    assert any(problem in line for line in lines), lines


def test_all_mistakes_are_in_one_error() -> None:
    wrong: dict[str, Any] = {
        "serviceName": 5,
        "vpcId": None,
        "subnets": "subnet-0123abcd",
        "zone": "a b",
    }
    with pytest.raises(InputPropertiesError) as refused:
        constructed_endpoint(**wrong, contract={}, vpcID="vpc-0123abcd")
    lines = str(refused.value).splitlines()
    keys = {line.removeprefix("  - ").partition(":")[0] for line in lines}
    assert keys == {
        "AwsEndpoint mine", "vpcID", "service_name", "vpc_id", "subnets", "contract", "zone"
    }  # fmt: skip
    with pytest.raises(pulumi.RunError, match="vpc_id: found 'x'"):
        constructed_endpoint(vpcId=given_later("x"))


@pytest.mark.parametrize(("vpc", "changes", "problem"), [
    ({**DNS_ON, "enableDnsSupport": False}, {}, "enableDnsSupport of the VPC: off"),
    (DNS_ON, {"serviceName": SERVICE.replace("central", "west")},
     "is not an endpoint service of eu-central-1"),
    (DNS_ON, {"zoneIds": ["euc1-az1"]}, "is in the zone euc1-az2, and the endpoint service"),
])  # fmt: skip
def test_what_the_vpc_lacks_is_refused(
    vpc: dict[str, bool], changes: dict[str, Any], problem: str
) -> None:
    with pytest.raises(InputPropertiesError, match=problem):
        constructed_endpoint(Answers(vpc=vpc), **changes)
    later = {**changes, "vpcId": given_later("vpc-0123abcd")}
    with pytest.raises(pulumi.RunError, match=problem):
        constructed_endpoint(Answers(vpc=vpc), **later)

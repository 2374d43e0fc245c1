"""Endpoints and endpoint services of the AWS double: who may connect, and what an endpoint has."""

from typing import Any

import pytest

from tests.doubles.aws_world import AwsResource, World
from tests.doubles.plugin.kind import ProviderError

OWN = "arn:aws:iam::123456789012:root"


def service(world: World, **inputs: Any) -> AwsResource:
    """An endpoint service with a balancer in the world's subnet."""
    balancer = world.make(
        "LoadBalancer",
        namePrefix="kafka-",
        loadBalancerType="network",
        internal=True,
        subnets=[world.subnet.id],
    )
    service_inputs = {"acceptanceRequired": True, "allowedPrincipals": [OWN], **inputs}
    return world.make("VpcEndpointService", networkLoadBalancerArns=[balancer.id], **service_inputs)


def endpoint(world: World, service_name: str, **inputs: Any) -> AwsResource:
    endpoint_inputs = {"vpcId": world.vpc.id, "subnetIds": [world.subnet.id], **inputs}
    return world.make(
        "VpcEndpoint", serviceName=service_name, vpcEndpointType="Interface", **endpoint_inputs
    )


def test_an_endpoint_waits_for_acceptance_and_has_a_name_to_lead_to(world: World) -> None:
    provided_service = service(world)
    pending_endpoint = endpoint(
        world, provided_service["serviceName"], securityGroupIds=[world.group.id]
    )
    assert pending_endpoint.refresh() == [] and pending_endpoint["state"] == "pendingAcceptance"
    (dns_entry,) = pending_endpoint["dnsEntries"]
    record = world.make(
        "Record",
        zoneId=world.private_zone.id,
        name="kafka.internal",
        type="A",
        aliases=[
            {
                "name": dns_entry["dnsName"],
                "zoneId": dns_entry["hostedZoneId"],
                "evaluateTargetHealth": False,
            }
        ],
    )
    assert record.refresh() == []
    provided_service.update(acceptanceRequired=False)
    assert provided_service.refresh() == []
    with pytest.raises(
        ProviderError, match=f"ExistingVpcEndpointConnections: .* {pending_endpoint.id}"
    ):
        provided_service.delete()
    pending_endpoint.delete()
    provided_service.delete()
    assert provided_service.read() is None


def test_only_named_principals_see_the_service(world: World) -> None:
    provided = service(world, allowedPrincipals=["arn:aws:iam::111122223333:root"])
    with pytest.raises(ProviderError, match=r"InvalidServiceName: .* does not exist"):
        endpoint(world, provided["serviceName"])
    provided.update(allowedPrincipals=["*"])
    assert provided.refresh() == []
    assert endpoint(world, provided["serviceName"])["state"] == "pendingAcceptance"


def test_a_subnet_in_another_zone_is_refused(world: World) -> None:
    other_subnet = world.make(
        "Subnet",
        vpcId=world.vpc.id,
        cidrBlock="10.0.9.0/24",
        availabilityZone=f"{world.zone[:-1]}{'b' if world.zone[-1] == 'a' else 'a'}",
    )
    with pytest.raises(ProviderError, match="does not support the availability zone"):
        endpoint(world, service(world)["serviceName"], subnetIds=[other_subnet.id])

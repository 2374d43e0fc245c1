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
    given = {"acceptanceRequired": True, "allowedPrincipals": [OWN], **inputs}
    return world.make("VpcEndpointService", networkLoadBalancerArns=[balancer.id], **given)


def endpoint(world: World, name: str, **inputs: Any) -> AwsResource:
    own = {"vpcId": world.vpc.id, "subnetIds": [world.subnet.id], **inputs}
    return world.make("VpcEndpoint", serviceName=name, vpcEndpointType="Interface", **own)


def test_an_endpoint_waits_for_acceptance_and_has_a_name_to_lead_to(world: World) -> None:
    provided = service(world)
    made = endpoint(world, provided["serviceName"], securityGroupIds=[world.group.id])
    assert made.refresh() == [] and made["state"] == "pendingAcceptance"
    (entry,) = made["dnsEntries"]
    record = world.make(
        "Record",
        zoneId=world.private_zone.id,
        name="kafka.internal",
        type="A",
        aliases=[
            {
                "name": entry["dnsName"],
                "zoneId": entry["hostedZoneId"],
                "evaluateTargetHealth": False,
            }
        ],
    )
    assert record.refresh() == []
    provided.update(acceptanceRequired=False)
    assert provided.refresh() == []
    with pytest.raises(ProviderError, match=f"ExistingVpcEndpointConnections: .* {made.id}"):
        provided.delete()
    made.delete()
    provided.delete()
    assert provided.read() is None


def test_only_named_principals_see_the_service(world: World) -> None:
    provided = service(world, allowedPrincipals=["arn:aws:iam::111122223333:root"])
    with pytest.raises(ProviderError, match=r"InvalidServiceName: .* does not exist"):
        endpoint(world, provided["serviceName"])
    provided.update(allowedPrincipals=["*"])
    assert provided.refresh() == []
    assert endpoint(world, provided["serviceName"])["state"] == "pendingAcceptance"


def test_a_subnet_in_another_zone_is_refused(world: World) -> None:
    other = world.make(
        "Subnet",
        vpcId=world.vpc.id,
        cidrBlock="10.0.9.0/24",
        availabilityZone=f"{world.zone[:-1]}{'b' if world.zone[-1] == 'a' else 'a'}",
    )
    with pytest.raises(ProviderError, match="does not support the availability zone"):
        endpoint(world, service(world)["serviceName"], subnetIds=[other.id])

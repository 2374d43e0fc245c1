"""The life of every resource type of the AWS double on a moto server."""

from collections.abc import Callable
from typing import Any

import pytest

from earshot.aws.roles import over_tls
from tests.doubles.aws import official
from tests.doubles.aws.provider import KINDS
from tests.doubles.aws_world import BY_NAME, POLICY, TRUST, World
from tests.doubles.plugin.kind import not_implemented

TAGS = {"tags": {"Name": "mine"}}


def _attachment(world: World) -> dict[str, Any]:
    volume = world.make("Volume", availabilityZone=world.zone, size=8)
    instance = world.instance()
    return {"volumeId": volume.id, "instanceId": instance.id, "deviceName": "/dev/sdf"}


# Inputs for one of each, with what else it needs already made.
LIVES: dict[str, Callable[[World], dict[str, Any]]] = {
    "Vpc": lambda _: {"cidrBlock": "10.0.0.0/16", "enableDnsHostnames": True, **TAGS},
    "Subnet": lambda world: {
        "vpcId": world.vpc.id, "cidrBlock": "10.0.0.0/24", "availabilityZone": world.zone, **TAGS,
    },
    "InternetGateway": lambda world: {"vpcId": world.vpc.id, **TAGS},
    "RouteTable": lambda world: {
        "vpcId": world.vpc.id, **TAGS,
        "routes": [{"cidrBlock": "0.0.0.0/0", "gatewayId": world.gateway.id}],
    },
    "Route": lambda world: {
        "routeTableId": world.table.id, "destinationCidrBlock": "0.0.0.0/0",
        "gatewayId": world.gateway.id,
    },
    "RouteTableAssociation": lambda world: {
        "routeTableId": world.table.id, "subnetId": world.subnet.id,
    },
    "NatGateway": lambda world: {
        "subnetId": world.subnet.id, "allocationId": world.address().id, **TAGS,
    },
    "VpcEndpoint": lambda world: {
        "vpcId": world.vpc.id, "serviceName": "com.amazonaws.us-west-2.s3",
        "routeTableIds": [world.table.id], **TAGS,
    },
    "VpcEndpointService": lambda world: {
        "networkLoadBalancerArns": [world.make("LoadBalancer", **LIVES["LoadBalancer"](world)).id],
        "acceptanceRequired": True, "allowedPrincipals": ["arn:aws:iam::123456789012:root"],
        "privateDnsName": "kafka.example.com", **TAGS,
    },
    "FlowLog": lambda world: {
        "vpcId": world.vpc.id, "trafficType": "REJECT", "logDestinationType": "s3",
        "logDestination": world.bucket["arn"], **TAGS,
    },
    "SecurityGroup": lambda world: {
        "name": "g", "vpcId": world.vpc.id, **TAGS,
        "ingress": [
            {"protocol": "tcp", "fromPort": 9092, "toPort": 9092, "cidrBlocks": ["10.0.0.0/8"],
             "description": "clients"},
            {"protocol": "tcp", "fromPort": 9093, "toPort": 9093, "cidrBlocks": ["10.0.0.0/8"]},
        ],
        "egress": [{"protocol": "-1", "fromPort": 0, "toPort": 0, "cidrBlocks": ["0.0.0.0/0"]}],
    },
    "SecurityGroupIngressRule": lambda world: {
        "securityGroupId": world.group.id, "ipProtocol": "tcp", "fromPort": 9092, "toPort": 9092,
        "cidrIpv4": "198.51.100.0/24", "description": "clients", **TAGS,
    },
    "SecurityGroupEgressRule": lambda world: {
        "securityGroupId": world.group.id, "ipProtocol": "-1", "cidrIpv4": "0.0.0.0/0", **TAGS,
    },
    "NetworkInterface": lambda world: {
        "subnetId": world.subnet.id, "securityGroups": [world.group.id],
        "description": "broker 1", **TAGS,
    },
    "Eip": lambda _: {"domain": "vpc", **TAGS},
    "EipAssociation": lambda world: {
        "allocationId": world.address().id, "networkInterfaceId": world.interface().id,
    },
    "Instance": lambda world: {
        "ami": world.image(), "instanceType": "t4g.small", "userData": "#cloud-config\n",
        "primaryNetworkInterface": {"networkInterfaceId": world.interface().id},
        "metadataOptions": {"httpTokens": "required", "httpPutResponseHopLimit": 1},
        "rootBlockDevice": {"volumeSize": 20, "volumeType": "gp3", "encrypted": True,
                            "throughput": 250, "tags": {"Name": "root"}},
        "iamInstanceProfile": world.make(
            "InstanceProfile", name=f"p-{world.mark}", role=world.role.id
        ).id,
        **TAGS,
    },
    "Volume": lambda world: {
        "availabilityZone": world.zone, "size": 50, "type": "gp3", "throughput": 250, "iops": 4000,
        "encrypted": True, **TAGS,
    },
    "VolumeAttachment": _attachment,
    "Role": lambda world: {
        "name": f"r-{world.mark}", "assumeRolePolicy": TRUST, "description": "brokers",
        "path": "/kafka/", **TAGS,
    },
    "RolePolicy": lambda world: {"name": "p", "role": world.role.id, "policy": POLICY},
    "InstanceProfile": lambda world: {"name": f"p-{world.mark}", "role": world.role.id, **TAGS},
    "LoadBalancer": lambda world: {
        "namePrefix": "kafka-", "loadBalancerType": "network", "internal": True,
        "subnets": [world.subnet.id], "securityGroups": [world.group.id],
        "enableCrossZoneLoadBalancing": True, "enableDeletionProtection": False, **TAGS,
    },
    "TargetGroup": lambda world: {
        "namePrefix": "kafka-", "protocol": "TCP", "port": 9092, "targetType": "ip",
        "vpcId": world.vpc.id, "preserveClientIp": "true", "deregistrationDelay": 60,
        "loadBalancingCrossZoneEnabled": "true",
        "healthCheck": {"protocol": "TCP", "port": "9092", "interval": 10,
                        "healthyThreshold": 2, "unhealthyThreshold": 2},
        **TAGS,
    },
    "TargetGroupAttachment": lambda world: {
        "targetGroupArn": world.targets.id, "targetId": "10.0.0.11", "port": 9092,
    },
    "Listener": lambda world: {
        "loadBalancerArn": world.make("LoadBalancer", **LIVES["LoadBalancer"](world)).id,
        "protocol": "TCP", "port": 9101, "tcpIdleTimeoutSeconds": 660,
        "defaultActions": [{"type": "forward", "targetGroupArn": world.targets.id}], **TAGS,
    },
    "Zone": lambda world: {"name": "kafka.internal", "vpcs": [{"vpcId": world.vpc.id}], **TAGS},
    "ZoneAssociation": lambda world: {
        "zoneId": world.private_zone.id, "vpcId": world.make("Vpc", cidrBlock="10.1.0.0/16").id,
    },
    "Record": lambda world: {
        "zoneId": world.private_zone.id, "name": "broker-1", "type": "A", "ttl": 60,
        "records": ["10.0.0.10", "10.0.0.11"],
    },
    "Parameter": lambda world: {
        "name": f"/kafka/{world.mark}", "type": "SecureString", "value": "hush",
        "description": "hush-hush", **TAGS,
    },
    "Bucket": lambda world: {"bucket": f"b-{world.mark}", **TAGS},
    "BucketPublicAccessBlock": lambda world: {
        "bucket": world.bucket.id, "blockPublicAcls": True, "restrictPublicBuckets": True,
    },
    "BucketServerSideEncryptionConfiguration": lambda world: {
        "bucket": world.bucket.id,
        "rules": [{"applyServerSideEncryptionByDefault": {"sseAlgorithm": "AES256"}}],
    },
    "BucketObject": lambda world: {
        "bucket": world.bucket.id, "key": "a/b.json",
        "source": {"asset": True, "path": __file__, "hash": "1"},
    },
    "BucketPolicy": lambda world: {
        "bucket": world.bucket.id, "policy": over_tls(f"arn:aws:s3:::{world.bucket.id}"),
    },
    "BucketLifecycleConfiguration": lambda world: {
        "bucket": world.bucket.id,
        "rules": [
            {"id": "old", "status": "Enabled", "filter": {"prefix": "reports/"},
             "expiration": {"days": 30}}
        ],
    },
}  # fmt: skip


@pytest.mark.parametrize("token", KINDS)
def test_it_is_made_stays_as_it_is_and_goes(world: World, token: str) -> None:
    name = token.rpartition(":")[2]
    inputs = LIVES[name](world)
    old_holdings = world.moto.holdings()
    resource = world.make(name, **inputs)

    assert list(not_implemented(resource.state, official.outputs(token))) == []
    computed_outputs = {output for output, value in resource.state.items() if value is not None}
    missing_outputs = resource.kind.outputs - computed_outputs
    assert missing_outputs <= {"associationId", "privateDns", "privateIp"}, "never computed"
    assert resource.refresh() == []
    created_state = resource.state
    resource.update()
    assert resource.state == created_state

    resource.delete()
    assert resource.read() is None
    resource.delete()
    assert world.moto.holdings() == old_holdings


@pytest.mark.parametrize("name", [name for name in LIVES if "tags" in BY_NAME[name].shape])
def test_tags_are_added_changed_and_taken_off(world: World, name: str) -> None:
    resource = world.make(name, **LIVES[name](world))
    resource.update(tags={"Name": "other", "owner": "me"})
    assert resource.refresh() == []
    assert resource["tagsAll"] == {"Name": "other", "owner": "me"}
    resource.update(tags={})
    assert resource.refresh() == []
    assert resource["tagsAll"] == {}

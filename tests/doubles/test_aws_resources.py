"""The life of every resource type of the AWS double on a moto server."""

from collections.abc import Callable
from typing import Any

import pytest

from earshot.aws.roles import over_tls
from tests.doubles.aws import official
from tests.doubles.aws.provider import KINDS
from tests.doubles.aws_world import BY_NAME, POLICY, TRUST, AwsResource, World
from tests.doubles.plugin.kind import not_implemented

TAGS = {"tags": {"Name": "mine"}}


def _reachable(world: World) -> AwsResource:
    """An interface in a VPC that has its way out."""
    assert world.gateway.id
    return world.interface()


def _attachment(world: World) -> dict[str, Any]:
    volume = world.make("Volume", availabilityZone=world.zone, size=8)
    instance = world.instance()
    return {"volumeId": volume.id, "instanceId": instance.id, "deviceName": "/dev/sdf"}


# Inputs for one of each, with what else it needs already made.
LIVES: dict[str, Callable[[World], dict[str, Any]]] = {
    "Vpc": lambda _: {"cidrBlock": "10.0.0.0/16", "enableDnsHostnames": True, **TAGS},
    "Subnet": lambda w: {
        "vpcId": w.vpc.id, "cidrBlock": "10.0.0.0/24", "availabilityZone": w.zone, **TAGS,
    },
    "InternetGateway": lambda w: {"vpcId": w.vpc.id, **TAGS},
    "RouteTable": lambda w: {
        "vpcId": w.vpc.id, **TAGS,
        "routes": [{"cidrBlock": "0.0.0.0/0", "gatewayId": w.gateway.id}],
    },
    "Route": lambda w: {
        "routeTableId": w.table.id, "destinationCidrBlock": "0.0.0.0/0", "gatewayId": w.gateway.id,
    },
    "RouteTableAssociation": lambda w: {"routeTableId": w.table.id, "subnetId": w.subnet.id},
    "NatGateway": lambda w: {"subnetId": w.subnet.id, "allocationId": w.address().id, **TAGS},
    "VpcEndpoint": lambda w: {
        "vpcId": w.vpc.id, "serviceName": "com.amazonaws.us-west-2.s3",
        "routeTableIds": [w.table.id], **TAGS,
    },
    "VpcEndpointService": lambda w: {
        "networkLoadBalancerArns": [w.make("LoadBalancer", **LIVES["LoadBalancer"](w)).id],
        "acceptanceRequired": True, "allowedPrincipals": ["arn:aws:iam::123456789012:root"],
        "privateDnsName": "kafka.example.com", **TAGS,
    },
    "FlowLog": lambda w: {
        "vpcId": w.vpc.id, "trafficType": "REJECT", "logDestinationType": "s3",
        "logDestination": w.bucket["arn"], **TAGS,
    },
    "SecurityGroup": lambda w: {
        "name": "g", "vpcId": w.vpc.id, **TAGS,
        "ingress": [
            {"protocol": "tcp", "fromPort": 9092, "toPort": 9092, "cidrBlocks": ["10.0.0.0/8"],
             "description": "clients"},
            {"protocol": "tcp", "fromPort": 9093, "toPort": 9093, "self": True},
        ],
        "egress": [{"protocol": "-1", "fromPort": 0, "toPort": 0, "cidrBlocks": ["0.0.0.0/0"]}],
    },
    "SecurityGroupIngressRule": lambda w: {
        "securityGroupId": w.group.id, "ipProtocol": "tcp", "fromPort": 9092, "toPort": 9092,
        "cidrIpv4": "198.51.100.0/24", "description": "clients", **TAGS,
    },
    "SecurityGroupEgressRule": lambda w: {
        "securityGroupId": w.group.id, "ipProtocol": "-1", "cidrIpv4": "0.0.0.0/0", **TAGS,
    },
    "NetworkInterface": lambda w: {
        "subnetId": w.subnet.id, "privateIps": ["10.0.0.10"], "securityGroups": [w.group.id],
        "description": "broker 1", **TAGS,
    },
    "Eip": lambda w: {"domain": "vpc", "networkInterface": _reachable(w).id, **TAGS},
    "EipAssociation": lambda w: {
        "allocationId": w.address().id, "networkInterfaceId": w.interface().id,
    },
    "Instance": lambda w: {
        "ami": w.image(), "instanceType": "t4g.small", "userData": "#cloud-config\n",
        "primaryNetworkInterface": {"networkInterfaceId": w.interface().id},
        "metadataOptions": {"httpTokens": "required", "httpPutResponseHopLimit": 1},
        "rootBlockDevice": {"volumeSize": 20, "volumeType": "gp3", "encrypted": True,
                            "throughput": 250, "tags": {"Name": "root"}},
        "iamInstanceProfile": w.make("InstanceProfile", name=f"p-{w.mark}", role=w.role.id).id,
        **TAGS,
    },
    "Volume": lambda w: {
        "availabilityZone": w.zone, "size": 50, "type": "gp3", "throughput": 250, "iops": 4000,
        "encrypted": True, **TAGS,
    },
    "VolumeAttachment": _attachment,
    "Role": lambda w: {
        "name": f"r-{w.mark}", "assumeRolePolicy": TRUST, "description": "brokers",
        "path": "/kafka/", **TAGS,
    },
    "RolePolicy": lambda w: {"name": "p", "role": w.role.id, "policy": POLICY},
    "InstanceProfile": lambda w: {"name": f"p-{w.mark}", "role": w.role.id, **TAGS},
    "LoadBalancer": lambda w: {
        "namePrefix": "kafka-", "loadBalancerType": "network", "internal": True,
        "subnets": [w.subnet.id], "securityGroups": [w.group.id],
        "enableCrossZoneLoadBalancing": True, "enableDeletionProtection": False, **TAGS,
    },
    "TargetGroup": lambda w: {
        "namePrefix": "kafka-", "protocol": "TCP", "port": 9092, "targetType": "ip",
        "vpcId": w.vpc.id, "preserveClientIp": "true", "deregistrationDelay": 60,
        "loadBalancingCrossZoneEnabled": "true",
        "healthCheck": {"protocol": "TCP", "port": "9092", "interval": 10,
                        "healthyThreshold": 2, "unhealthyThreshold": 2},
        **TAGS,
    },
    "TargetGroupAttachment": lambda w: {
        "targetGroupArn": w.targets.id, "targetId": "10.0.0.11", "port": 9092,
    },
    "Listener": lambda w: {
        "loadBalancerArn": w.make("LoadBalancer", **LIVES["LoadBalancer"](w)).id,
        "protocol": "TCP", "port": 9101, "tcpIdleTimeoutSeconds": 660,
        "defaultActions": [{"type": "forward", "targetGroupArn": w.targets.id}], **TAGS,
    },
    "Zone": lambda w: {"name": "kafka.internal", "vpcs": [{"vpcId": w.vpc.id}], **TAGS},
    "ZoneAssociation": lambda w: {
        "zoneId": w.private_zone.id, "vpcId": w.make("Vpc", cidrBlock="10.1.0.0/16").id,
    },
    "Record": lambda w: {
        "zoneId": w.private_zone.id, "name": "broker-1", "type": "A", "ttl": 60,
        "records": ["10.0.0.10", "10.0.0.11"],
    },
    "Parameter": lambda w: {
        "name": f"/kafka/{w.mark}", "type": "SecureString", "value": "hush",
        "description": "hush-hush", **TAGS,
    },
    "Bucket": lambda w: {"bucket": f"b-{w.mark}", **TAGS},
    "BucketPublicAccessBlock": lambda w: {
        "bucket": w.bucket.id, "blockPublicAcls": True, "restrictPublicBuckets": True,
    },
    "BucketServerSideEncryptionConfiguration": lambda w: {
        "bucket": w.bucket.id,
        "rules": [{"applyServerSideEncryptionByDefault": {"sseAlgorithm": "AES256"}}],
    },
    "BucketObject": lambda w: {
        "bucket": w.bucket.id, "key": "a/b.json",
        "source": {"asset": True, "path": __file__, "hash": "1"},
        "contentType": "text/plain",
    },
    "BucketPolicy": lambda w: {
        "bucket": w.bucket.id, "policy": over_tls(f"arn:aws:s3:::{w.bucket.id}"),
    },
    "BucketLifecycleConfiguration": lambda w: {
        "bucket": w.bucket.id,
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
    before = world.moto.holdings()
    thing = world.make(name, **inputs)

    assert list(not_implemented(thing.state, official.outputs(token))) == []
    computed = {output for output, value in thing.state.items() if value is not None}
    missing = thing.kind.outputs - computed
    assert missing <= {"primaryNameServer", "privateDns", "privateIp"}, "never computed"
    assert thing.refresh() == []
    made = thing.state
    thing.update()
    assert thing.state == made

    thing.delete()
    assert thing.read() is None
    thing.delete()
    assert world.moto.holdings() == before


@pytest.mark.parametrize("name", [name for name in LIVES if "tags" in BY_NAME[name].shape])
def test_tags_are_added_changed_and_taken_off(world: World, name: str) -> None:
    thing = world.make(name, **LIVES[name](world))
    thing.update(tags={"Name": "other", "owner": "me"})
    assert thing.refresh() == []
    assert thing["tagsAll"] == {"Name": "other", "owner": "me"}
    thing.update(tags={})
    assert thing.refresh() == []
    assert thing["tagsAll"] == {}

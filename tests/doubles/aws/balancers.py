"""Doubles of aws:lb LoadBalancer, TargetGroup, TargetGroupAttachment and Listener, for Network Load
Balancers alone."""

import uuid
from collections.abc import Iterator, Mapping
from typing import Any

from tests.doubles.aws.cloud import Cloud
from tests.doubles.aws.kind import AwsKind, constant, pairs, shape, tags_found
from tests.doubles.plugin.values import Plain

ELB = "elbv2"
_BALANCER_ATTRIBUTES = {
    "enableCrossZoneLoadBalancing": "load_balancing.cross_zone.enabled",
    "enableDeletionProtection": "deletion_protection.enabled",
}
_GROUP_ATTRIBUTES = {
    "deregistrationDelay": "deregistration_delay.timeout_seconds",
    "preserveClientIp": "preserve_client_ip.enabled",
    "loadBalancingCrossZoneEnabled": "load_balancing.cross_zone.enabled",
}
_ENFORCED = "enforceSecurityGroupInboundRulesOnPrivateLinkTraffic"
"""Unknown to moto, which takes it and forgets it."""
_IDLE = "tcp.idle_timeout.seconds"


class _ElbKind(AwsKind):
    """What has an ARN as its id, and tags."""

    def tag(self, cloud: Cloud, id: str, inputs: Plain, new: Plain, old: list[str]) -> None:
        elb = cloud.client(ELB, inputs)
        if old:
            elb.remove_tags(ResourceArns=[id], TagKeys=old)
        if new:
            elb.add_tags(ResourceArns=[id], Tags=pairs(new))

    def tags(self, cloud: Cloud, id: str, state: Plain) -> Plain:
        (found,) = cloud.client(ELB, state).describe_tags(ResourceArns=[id])["TagDescriptions"]
        return tags_found(cloud, found["Tags"], state) | {"arn": id}


class LoadBalancer(_ElbKind):
    shape = shape(
        "name", "namePrefix", "loadBalancerType", "internal", "subnets", "securityGroups",
        "enableCrossZoneLoadBalancing", "enableDeletionProtection", _ENFORCED, "tags", "region",
    )  # fmt: skip
    defaults = constant(
        internal=False, enableCrossZoneLoadBalancing=False, enableDeletionProtection=False
    )
    in_place = frozenset({"enableCrossZoneLoadBalancing", "enableDeletionProtection", _ENFORCED})
    unordered = frozenset({"subnets", "securityGroups"})
    settled_later = frozenset({"name", "region", _ENFORCED})
    outputs = frozenset({"arn", "arnSuffix", "dnsName", "tagsAll", "vpcId", "zoneId"})

    def objections(self, inputs: Plain) -> Iterator[tuple[str, str]]:
        if inputs.get("loadBalancerType") != "network":
            yield "loadBalancerType", "this test double of the AWS provider knows only network"

    def make(self, cloud: Cloud, inputs: Plain) -> str:
        made = cloud.client(ELB, inputs).create_load_balancer(
            Name=_name(inputs),
            Type="network",
            Scheme="internal" if inputs.get("internal") else "internet-facing",
            Subnets=inputs["subnets"],
            SecurityGroups=inputs.get("securityGroups", []),
        )
        return str(made["LoadBalancers"][0]["LoadBalancerArn"])

    def find(self, cloud: Cloud, id: str, state: Plain) -> Plain | None:
        elb = cloud.client(ELB, state)
        found = elb.describe_load_balancers(LoadBalancerArns=[id])["LoadBalancers"][0]
        listed = elb.describe_load_balancer_attributes(LoadBalancerArn=id)["Attributes"]
        attributes = {item["Key"]: item["Value"] == "true" for item in listed}
        return self.tags(cloud, id, state) | {
            "name": found["LoadBalancerName"],
            "loadBalancerType": found["Type"],
            "internal": found["Scheme"] == "internal",
            "subnets": [item["SubnetId"] for item in found["AvailabilityZones"]],
            "securityGroups": found.get("SecurityGroups", []),
            "arnSuffix": id.partition(":loadbalancer/")[2],
            "dnsName": found["DNSName"],
            "vpcId": found["VpcId"],
            "zoneId": found["CanonicalHostedZoneId"],
            **{name: attributes.get(key, False) for name, key in _BALANCER_ATTRIBUTES.items()},
            _ENFORCED: state.get(_ENFORCED, "on"),
        }

    def adjust(self, cloud: Cloud, id: str, found: Plain, inputs: Plain) -> None:
        wanted = _wanted(_BALANCER_ATTRIBUTES, inputs)
        cloud.client(ELB, inputs).modify_load_balancer_attributes(
            LoadBalancerArn=id, Attributes=wanted
        )

    def remove(self, cloud: Cloud, id: str, state: Plain) -> None:
        cloud.client(ELB, state).delete_load_balancer(LoadBalancerArn=id)


class TargetGroup(_ElbKind):
    shape = shape(
        "name", "namePrefix", "vpcId", "protocol", "port", "targetType", "preserveClientIp",
        "deregistrationDelay", "loadBalancingCrossZoneEnabled", "tags", "region",
        healthCheck=shape("protocol", "port", "interval", "healthyThreshold", "unhealthyThreshold"),
    )  # fmt: skip
    in_place = frozenset({"healthCheck", *_GROUP_ATTRIBUTES})
    settled_later = frozenset({"name", "region"})
    outputs = frozenset({"arn", "arnSuffix", "tagsAll"})
    absent = frozenset({"loadBalancerArns"})

    def make(self, cloud: Cloud, inputs: Plain) -> str:
        made = cloud.client(ELB, inputs).create_target_group(
            Name=_name(inputs),
            Protocol=inputs["protocol"],
            Port=int(inputs["port"]),
            VpcId=inputs["vpcId"],
            TargetType=inputs["targetType"],
            **_check(inputs),
        )
        return str(made["TargetGroups"][0]["TargetGroupArn"])

    def find(self, cloud: Cloud, id: str, state: Plain) -> Plain | None:
        elb = cloud.client(ELB, state)
        found = elb.describe_target_groups(TargetGroupArns=[id])["TargetGroups"][0]
        listed = elb.describe_target_group_attributes(TargetGroupArn=id)["Attributes"]
        attributes: dict[str, Any] = {item["Key"]: item["Value"] for item in listed}
        known = {name: attributes.get(key) for name, key in _GROUP_ATTRIBUTES.items()}
        if known["deregistrationDelay"] is not None:
            known["deregistrationDelay"] = int(known["deregistrationDelay"])
        return self.tags(cloud, id, state) | {
            "name": found["TargetGroupName"],
            "vpcId": found["VpcId"],
            "protocol": found["Protocol"],
            "port": found["Port"],
            "targetType": found["TargetType"],
            "arnSuffix": id.rpartition(":")[2],
            "healthCheck": {
                "protocol": found["HealthCheckProtocol"],
                "port": found["HealthCheckPort"],
                "interval": found["HealthCheckIntervalSeconds"],
                "healthyThreshold": found["HealthyThresholdCount"],
                "unhealthyThreshold": found["UnhealthyThresholdCount"],
            },
            **{name: value for name, value in known.items() if name in state},
        }

    def adjust(self, cloud: Cloud, id: str, found: Plain, inputs: Plain) -> None:
        elb = cloud.client(ELB, inputs)
        elb.modify_target_group_attributes(
            TargetGroupArn=id, Attributes=_wanted(_GROUP_ATTRIBUTES, inputs)
        )
        if found["healthCheck"] != inputs.get("healthCheck"):
            elb.modify_target_group(TargetGroupArn=id, **_check(inputs))

    def remove(self, cloud: Cloud, id: str, state: Plain) -> None:
        cloud.client(ELB, state).delete_target_group(TargetGroupArn=id)


class TargetGroupAttachment(AwsKind):
    shape = shape("targetGroupArn", "targetId", "port", "region")
    settled_later = frozenset({"region"})

    def make(self, cloud: Cloud, inputs: Plain) -> str:
        cloud.client(ELB, inputs).register_targets(
            TargetGroupArn=inputs["targetGroupArn"], Targets=[_target(inputs)]
        )
        return f"{inputs['targetGroupArn']} {inputs['targetId']} {int(inputs['port'])}"

    def find(self, cloud: Cloud, id: str, state: Plain) -> Plain | None:
        group, target, port = id.split()
        elb = cloud.client(ELB, state)
        health = elb.describe_target_health(TargetGroupArn=group)["TargetHealthDescriptions"]
        for item in health:
            if (item["Target"]["Id"], item["Target"]["Port"]) == (target, int(port)):
                return {"targetGroupArn": group, "targetId": target, "port": int(port)}
        return None

    def remove(self, cloud: Cloud, id: str, state: Plain) -> None:
        if self.find(cloud, id, state) is not None:
            cloud.client(ELB, state).deregister_targets(
                TargetGroupArn=state["targetGroupArn"], Targets=[_target(state)]
            )


class Listener(_ElbKind):
    shape = shape(
        "loadBalancerArn", "protocol", "port", "tcpIdleTimeoutSeconds", "tags", "region",
        defaultActions=shape("type", "targetGroupArn"),
    )  # fmt: skip
    in_place = frozenset({"tcpIdleTimeoutSeconds", "defaultActions"})
    settled_later = frozenset({"region"})
    outputs = frozenset({"arn", "tagsAll"})

    def make(self, cloud: Cloud, inputs: Plain) -> str:
        made = cloud.client(ELB, inputs).create_listener(
            LoadBalancerArn=inputs["loadBalancerArn"],
            Protocol=inputs["protocol"],
            Port=int(inputs["port"]),
            DefaultActions=_actions(inputs),
        )
        return str(made["Listeners"][0]["ListenerArn"])

    def find(self, cloud: Cloud, id: str, state: Plain) -> Plain | None:
        elb = cloud.client(ELB, state)
        found = elb.describe_listeners(ListenerArns=[id])["Listeners"][0]
        listed = elb.describe_listener_attributes(ListenerArn=id)["Attributes"]
        idle = next(item["Value"] for item in listed if item["Key"] == _IDLE)
        return self.tags(cloud, id, state) | {
            "loadBalancerArn": found["LoadBalancerArn"],
            "protocol": found["Protocol"],
            "port": found["Port"],
            "tcpIdleTimeoutSeconds": int(idle),
            "defaultActions": [
                {"type": item["Type"], "targetGroupArn": item["TargetGroupArn"]}
                for item in found["DefaultActions"]
            ],
        }

    def adjust(self, cloud: Cloud, id: str, found: Plain, inputs: Plain) -> None:
        elb = cloud.client(ELB, inputs)
        if (seconds := inputs.get("tcpIdleTimeoutSeconds")) is not None:
            idle = {"Key": _IDLE, "Value": str(int(seconds))}
            elb.modify_listener_attributes(ListenerArn=id, Attributes=[idle])
        if found["defaultActions"] != inputs["defaultActions"]:
            elb.modify_listener(ListenerArn=id, DefaultActions=_actions(inputs))

    def remove(self, cloud: Cloud, id: str, state: Plain) -> None:
        cloud.client(ELB, state).delete_listener(ListenerArn=id)


def _name(inputs: Plain) -> str:
    return str(inputs.get("name") or f"{inputs.get('namePrefix', 'tf-')}{uuid.uuid4().hex[:24]}")


def _wanted(attributes: Mapping[str, str], inputs: Plain) -> list[dict[str, str]]:
    return [
        {"Key": key, "Value": _text(inputs[name])}
        for name, key in attributes.items()
        if name in inputs
    ]


def _text(value: Any) -> str:
    if isinstance(value, float):
        value = int(value)
    return str(value).lower()


def _check(inputs: Plain) -> dict[str, Any]:
    found = inputs.get("healthCheck", {})
    return {
        argument: found[name] if isinstance(found[name], str) else int(found[name])
        for argument, name in (
            ("HealthCheckProtocol", "protocol"),
            ("HealthCheckPort", "port"),
            ("HealthCheckIntervalSeconds", "interval"),
            ("HealthyThresholdCount", "healthyThreshold"),
            ("UnhealthyThresholdCount", "unhealthyThreshold"),
        )
        if name in found
    }


def _target(inputs: Plain) -> dict[str, Any]:
    return {"Id": inputs["targetId"], "Port": int(inputs["port"])}


def _actions(inputs: Plain) -> list[dict[str, str]]:
    return [
        {"Type": item["type"], "TargetGroupArn": item["targetGroupArn"]}
        for item in inputs["defaultActions"]
    ]

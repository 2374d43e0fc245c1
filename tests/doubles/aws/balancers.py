"""Doubles of aws:lb LoadBalancer, TargetGroup, TargetGroupAttachment and Listener, for Network Load
Balancers only."""

import uuid
from collections.abc import Iterator, Mapping
from typing import Any

from tests.doubles.aws.cloud import Cloud
from tests.doubles.aws.kind import AwsKind, constant, outputs_of, pairs, shape, tags_of
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
_HEALTH_CHECK = {
    "protocol": "HealthCheckProtocol",
    "port": "HealthCheckPort",
    "interval": "HealthCheckIntervalSeconds",
    "healthyThreshold": "HealthyThresholdCount",
    "unhealthyThreshold": "UnhealthyThresholdCount",
}
_ENFORCED = "enforceSecurityGroupInboundRulesOnPrivateLinkTraffic"
"""moto accepts it and forgets it."""
_IDLE = "tcp.idle_timeout.seconds"


class _ElbKind(AwsKind):
    """A resource type with an ARN as its id, and tags."""

    def tag(self, cloud: Cloud, id: str, inputs: Plain, tags: Plain, removed: list[str]) -> None:
        elb = cloud.client(ELB, inputs)
        if removed:
            elb.remove_tags(ResourceArns=[id], TagKeys=removed)
        if tags:
            elb.add_tags(ResourceArns=[id], Tags=pairs(tags))

    def tags(self, cloud: Cloud, id: str, state: Plain) -> Plain:
        (answer,) = cloud.client(ELB, state).describe_tags(ResourceArns=[id])["TagDescriptions"]
        return tags_of(cloud, answer["Tags"], state) | {"arn": id}


class LoadBalancer(_ElbKind):
    shape = shape(
        "name", "namePrefix", "loadBalancerType", "internal", "subnets", "securityGroups",
        "enableCrossZoneLoadBalancing", "enableDeletionProtection", _ENFORCED, "tags", "region",
    )  # fmt: skip
    defaults = constant(
        internal=False, enableCrossZoneLoadBalancing=False, enableDeletionProtection=False
    )
    in_place = frozenset({*_BALANCER_ATTRIBUTES, _ENFORCED})
    unordered = frozenset({"subnets", "securityGroups"})
    computed_later = frozenset({"name", _ENFORCED})
    outputs = frozenset({"arn", "dnsName", "vpcId", "zoneId"})

    def objections(self, inputs: Plain) -> Iterator[tuple[str, str]]:
        if inputs.get("loadBalancerType") != "network":
            yield "loadBalancerType", "this test double of the AWS provider knows only network"

    def make(self, cloud: Cloud, inputs: Plain) -> str:
        answer = cloud.client(ELB, inputs).create_load_balancer(
            Name=_name(inputs),
            Type="network",
            Scheme="internal" if inputs.get("internal") else "internet-facing",
            Subnets=inputs["subnets"],
            SecurityGroups=inputs.get("securityGroups", []),
        )
        return str(answer["LoadBalancers"][0]["LoadBalancerArn"])

    def find(self, cloud: Cloud, id: str, state: Plain) -> Plain | None:
        elb = cloud.client(ELB, state)
        balancer = elb.describe_load_balancers(LoadBalancerArns=[id])["LoadBalancers"][0]
        answer = elb.describe_load_balancer_attributes(LoadBalancerArn=id)
        attributes = {
            attribute["Key"]: attribute["Value"] == "true" for attribute in answer["Attributes"]
        }
        return self.tags(cloud, id, state) | {
            "name": balancer["LoadBalancerName"],
            "loadBalancerType": balancer["Type"],
            "internal": balancer["Scheme"] == "internal",
            "subnets": [zone["SubnetId"] for zone in balancer["AvailabilityZones"]],
            "securityGroups": balancer.get("SecurityGroups", []),
            "dnsName": balancer["DNSName"],
            "vpcId": balancer["VpcId"],
            "zoneId": balancer["CanonicalHostedZoneId"],
            **{name: attributes.get(key, False) for name, key in _BALANCER_ATTRIBUTES.items()},
            _ENFORCED: state.get(_ENFORCED, "on"),
        }

    def adjust(self, cloud: Cloud, id: str, current: Plain, inputs: Plain) -> None:
        cloud.client(ELB, inputs).modify_load_balancer_attributes(
            LoadBalancerArn=id, Attributes=_attributes(_BALANCER_ATTRIBUTES, inputs)
        )

    def remove(self, cloud: Cloud, id: str, state: Plain) -> None:
        cloud.client(ELB, state).delete_load_balancer(LoadBalancerArn=id)


class TargetGroup(_ElbKind):
    shape = shape(
        "name", "namePrefix", "vpcId", "protocol", "port", "targetType", *_GROUP_ATTRIBUTES,
        "tags", "region", healthCheck=shape(*_HEALTH_CHECK),
    )  # fmt: skip
    in_place = frozenset({"healthCheck", *_GROUP_ATTRIBUTES})
    computed_later = frozenset({"name"})
    outputs = frozenset({"arn"})

    def make(self, cloud: Cloud, inputs: Plain) -> str:
        answer = cloud.client(ELB, inputs).create_target_group(
            Name=_name(inputs),
            Protocol=inputs["protocol"],
            Port=int(inputs["port"]),
            VpcId=inputs["vpcId"],
            TargetType=inputs["targetType"],
            **_health_check(inputs),
        )
        return str(answer["TargetGroups"][0]["TargetGroupArn"])

    def find(self, cloud: Cloud, id: str, state: Plain) -> Plain | None:
        elb = cloud.client(ELB, state)
        group = elb.describe_target_groups(TargetGroupArns=[id])["TargetGroups"][0]
        answer = elb.describe_target_group_attributes(TargetGroupArn=id)
        values: dict[str, Any] = {
            attribute["Key"]: attribute["Value"] for attribute in answer["Attributes"]
        }
        attributes = {name: values.get(key) for name, key in _GROUP_ATTRIBUTES.items()}
        if attributes["deregistrationDelay"] is not None:
            attributes["deregistrationDelay"] = int(attributes["deregistrationDelay"])
        return self.tags(cloud, id, state) | {
            **outputs_of(group, "vpcId", "protocol", "port", "targetType"),
            "name": group["TargetGroupName"],
            "healthCheck": {name: group[key] for name, key in _HEALTH_CHECK.items()},
            **{name: value for name, value in attributes.items() if name in state},
        }

    def adjust(self, cloud: Cloud, id: str, current: Plain, inputs: Plain) -> None:
        elb = cloud.client(ELB, inputs)
        attributes = _attributes(_GROUP_ATTRIBUTES, inputs)
        elb.modify_target_group_attributes(TargetGroupArn=id, Attributes=attributes)
        if current["healthCheck"] != inputs.get("healthCheck"):
            elb.modify_target_group(TargetGroupArn=id, **_health_check(inputs))

    def remove(self, cloud: Cloud, id: str, state: Plain) -> None:
        cloud.client(ELB, state).delete_target_group(TargetGroupArn=id)


class TargetGroupAttachment(AwsKind):
    shape = shape("targetGroupArn", "targetId", "port", "region")

    def make(self, cloud: Cloud, inputs: Plain) -> str:
        cloud.client(ELB, inputs).register_targets(**_registration(inputs))
        return f"{inputs['targetGroupArn']} {inputs['targetId']} {int(inputs['port'])}"

    def find(self, cloud: Cloud, id: str, state: Plain) -> Plain | None:
        group, address, port = id.split()
        answer = cloud.client(ELB, state).describe_target_health(TargetGroupArn=group)
        targets = [health["Target"] for health in answer["TargetHealthDescriptions"]]
        if (address, int(port)) in [(target["Id"], target["Port"]) for target in targets]:
            return {"targetGroupArn": group, "targetId": address, "port": int(port)}
        return None

    def remove(self, cloud: Cloud, id: str, state: Plain) -> None:
        if self.find(cloud, id, state) is not None:
            cloud.client(ELB, state).deregister_targets(**_registration(state))


class Listener(_ElbKind):
    shape = shape(
        "loadBalancerArn", "protocol", "port", "tcpIdleTimeoutSeconds", "tags", "region",
        defaultActions=shape("type", "targetGroupArn"),
    )  # fmt: skip
    in_place = frozenset({"tcpIdleTimeoutSeconds", "defaultActions"})
    outputs = frozenset({"arn"})

    def make(self, cloud: Cloud, inputs: Plain) -> str:
        answer = cloud.client(ELB, inputs).create_listener(
            LoadBalancerArn=inputs["loadBalancerArn"],
            Protocol=inputs["protocol"],
            Port=int(inputs["port"]),
            DefaultActions=_actions(inputs),
        )
        return str(answer["Listeners"][0]["ListenerArn"])

    def find(self, cloud: Cloud, id: str, state: Plain) -> Plain | None:
        elb = cloud.client(ELB, state)
        listener = elb.describe_listeners(ListenerArns=[id])["Listeners"][0]
        attributes = elb.describe_listener_attributes(ListenerArn=id)["Attributes"]
        idle = next(attribute["Value"] for attribute in attributes if attribute["Key"] == _IDLE)
        return self.tags(cloud, id, state) | {
            **outputs_of(listener, "loadBalancerArn", "protocol", "port"),
            "tcpIdleTimeoutSeconds": int(idle),
            "defaultActions": [
                outputs_of(action, "type", "targetGroupArn")
                for action in listener["DefaultActions"]
            ],
        }

    def adjust(self, cloud: Cloud, id: str, current: Plain, inputs: Plain) -> None:
        elb = cloud.client(ELB, inputs)
        if (seconds := inputs.get("tcpIdleTimeoutSeconds")) is not None:
            idle = {"Key": _IDLE, "Value": str(int(seconds))}
            elb.modify_listener_attributes(ListenerArn=id, Attributes=[idle])
        if current["defaultActions"] != inputs["defaultActions"]:
            elb.modify_listener(ListenerArn=id, DefaultActions=_actions(inputs))

    def remove(self, cloud: Cloud, id: str, state: Plain) -> None:
        cloud.client(ELB, state).delete_listener(ListenerArn=id)


def _name(inputs: Plain) -> str:
    return str(inputs.get("name") or f"{inputs.get('namePrefix', 'tf-')}{uuid.uuid4().hex[:24]}")


def _attributes(keys: Mapping[str, str], inputs: Plain) -> list[dict[str, str]]:
    attributes = {key: _integral(inputs[name]) for name, key in keys.items() if name in inputs}
    return [{"Key": key, "Value": str(value).lower()} for key, value in attributes.items()]


def _integral(value: Any) -> Any:
    return int(value) if isinstance(value, float) else value


def _health_check(inputs: Plain) -> dict[str, Any]:
    check = inputs.get("healthCheck", {})
    return {key: _integral(check[name]) for name, key in _HEALTH_CHECK.items() if name in check}


def _registration(values: Plain) -> dict[str, Any]:
    target = {"Id": values["targetId"], "Port": int(values["port"])}
    return {"TargetGroupArn": values["targetGroupArn"], "Targets": [target]}


def _actions(inputs: Plain) -> list[dict[str, str]]:
    return [
        {"Type": action["type"], "TargetGroupArn": action["targetGroupArn"]}
        for action in inputs["defaultActions"]
    ]

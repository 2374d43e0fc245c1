"""Double of aws:ec2 SecurityGroup, with or without inline rules."""

import json
from collections.abc import Iterator
from typing import Any

from tests.doubles.aws.cloud import Cloud
from tests.doubles.aws.kind import Ec2Kind, arguments, constant, filters, shape
from tests.doubles.plugin.kind import ProviderError
from tests.doubles.plugin.values import Plain

RULE = shape("protocol", "fromPort", "toPort", "cidrBlocks", "description")
EVERYWHERE = [{"IpProtocol": "-1", "IpRanges": [{"CidrIp": "0.0.0.0/0"}]}]
DIRECTIONS = {"ingress": "IpPermissions", "egress": "IpPermissionsEgress"}


class SecurityGroup(Ec2Kind):
    """EC2 gives every new group a rule, all traffic out. Like the official plugin, this removes it.
    Rules in the inputs are the group's only ones; without them the group keeps other rules.
    """

    kind_of_arn = "security-group"
    name_input = "name"
    shape = shape("name", "description", "vpcId", "tags", "region", ingress=RULE, egress=RULE)
    defaults = constant(description="Managed by Pulumi")
    in_place = frozenset(DIRECTIONS)
    computed_later = frozenset({*DIRECTIONS, "vpcId"})
    outputs = frozenset({"arn"})

    def make(self, cloud: Cloud, inputs: Plain) -> str:
        ec2 = cloud.client("ec2", inputs)
        id = ec2.create_security_group(
            GroupName=inputs["name"],
            Description=inputs.get("description", self.defaults["description"]),
            **arguments(inputs, "vpcId"),
        )["GroupId"]
        ec2.revoke_security_group_egress(GroupId=id, IpPermissions=EVERYWHERE)
        return str(id)

    def find(self, cloud: Cloud, id: str, state: Plain) -> Plain:
        ec2 = cloud.client("ec2", state)
        group = ec2.describe_security_groups(GroupIds=[id])["SecurityGroups"][0]
        return self.common(cloud, id, state, group) | {
            "name": group["GroupName"],
            "description": group["Description"],
            "vpcId": group.get("VpcId"),
            **{
                direction: _current_rules(group[key], state.get(direction))
                for direction, key in DIRECTIONS.items()
            },
        }

    def adjust(self, cloud: Cloud, id: str, current: Plain, inputs: Plain) -> None:
        ec2 = cloud.client("ec2", inputs)
        for direction in DIRECTIONS.keys() & inputs.keys():
            wanted_permissions = dict(_permissions(inputs[direction]))
            permissions = dict(_permissions(current[direction]))
            surplus = [permissions[key] for key in permissions.keys() - wanted_permissions.keys()]
            missing_permissions = [
                wanted_permissions[key] for key in wanted_permissions.keys() - permissions.keys()
            ]
            for call, changes in (("revoke", surplus), ("authorize", missing_permissions)):
                if changes:
                    change = getattr(ec2, f"{call}_security_group_{direction}")
                    change(GroupId=id, IpPermissions=changes)

    def remove(self, cloud: Cloud, id: str, state: Plain) -> None:
        ec2 = cloud.client("ec2", state)
        if users := sorted(_users(ec2, id)):
            raise ProviderError(
                f"DeleteSecurityGroup: DependencyViolation: {id} is used by {', '.join(users)}"
            )
        ec2.delete_security_group(GroupId=id)


def _users(ec2: Any, id: str) -> Iterator[str]:
    """The interfaces with the group, and the groups that name it: moto forgets both."""
    of_group = filters({"group-id": id})
    for interface in ec2.describe_network_interfaces(Filters=of_group)["NetworkInterfaces"]:
        yield interface["NetworkInterfaceId"]
    for page in ec2.get_paginator("describe_security_groups").paginate():
        for group in page["SecurityGroups"]:
            rules = [rule for key in DIRECTIONS.values() for rule in group[key]]
            sources = {pair["GroupId"] for rule in rules for pair in rule["UserIdGroupPairs"]}
            if id in sources and group["GroupId"] != id:
                yield group["GroupId"]


def _current_rules(permissions: list[Plain], state_rules: list[Plain] | None) -> list[Plain]:
    """EC2's rules, in the words of the state if they mean the same."""
    rules = [rule for permission in permissions for rule in _rules(permission)]
    if state_rules is not None and dict(_permissions(state_rules)) == dict(_permissions(rules)):
        return state_rules
    return rules


def _rules(permission: Plain) -> Iterator[Plain]:
    """One rule for each range: each has its own description."""
    base = {
        "protocol": permission["IpProtocol"],
        "fromPort": permission.get("FromPort", 0),
        "toPort": permission.get("ToPort", 0),
    }
    for source in permission["IpRanges"]:
        note = {"description": source["Description"]} if source.get("Description") else {}
        yield base | {"cidrBlocks": [source["CidrIp"]], **note}


def _permissions(rules: list[Plain]) -> Iterator[tuple[str, Plain]]:
    """One permission for each range of each rule, by its content."""
    for rule in rules:
        base: dict[str, Any] = {"IpProtocol": rule["protocol"]}
        if rule["protocol"] != "-1":
            base |= {"FromPort": rule["fromPort"], "ToPort": rule["toPort"]}
        note = {"Description": rule["description"]} if rule.get("description") else {}
        for source in rule["cidrBlocks"]:
            permission = {**base, "IpRanges": [{"CidrIp": source, **note}]}
            yield json.dumps(permission, sort_keys=True), permission

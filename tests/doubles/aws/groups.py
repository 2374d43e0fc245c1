"""Double of aws:ec2 SecurityGroup, with or without rules of its own."""

import json
from collections.abc import Iterator
from typing import Any

from tests.doubles.aws.cloud import Cloud
from tests.doubles.aws.kind import Ec2Kind, constant, given, shape
from tests.doubles.plugin.kind import ProviderError
from tests.doubles.plugin.values import Plain

RULE = shape(
    "protocol", "fromPort", "toPort", "cidrBlocks", "ipv6CidrBlocks", "securityGroups", "self",
    "description",
)  # fmt: skip
EVERYWHERE = [{"IpProtocol": "-1", "IpRanges": [{"CidrIp": "0.0.0.0/0"}]}]


class SecurityGroup(Ec2Kind):
    """The rule that EC2 gives every new group, all traffic out, is taken away, as the official
    plugin does. Rules given here are the group's only ones; without them it keeps what others add.
    """

    kind_of_arn = "security-group"
    named = "name"
    shape = shape(
        "name", "description", "vpcId", "tags", "region", ingress=RULE, egress=RULE,
    )  # fmt: skip
    defaults = constant(description="Managed by Pulumi")
    in_place = frozenset({"ingress", "egress"})
    settled_later = frozenset({"ingress", "egress", "vpcId", "region"})
    outputs = frozenset({"arn", "ownerId", "tagsAll"})

    def make(self, cloud: Cloud, inputs: Plain) -> str:
        ec2 = cloud.client("ec2", inputs)
        id = ec2.create_security_group(
            GroupName=inputs["name"],
            Description=inputs.get("description", self.defaults["description"]),
            **given(inputs, VpcId="vpcId"),
        )["GroupId"]
        ec2.revoke_security_group_egress(GroupId=id, IpPermissions=EVERYWHERE)
        return str(id)

    def find(self, cloud: Cloud, id: str, state: Plain) -> Plain:
        ec2 = cloud.client("ec2", state)
        found = ec2.describe_security_groups(GroupIds=[id])["SecurityGroups"][0]
        return self.common(cloud, id, state, found) | {
            "name": found["GroupName"],
            "description": found["Description"],
            "vpcId": found.get("VpcId"),
            "ingress": _reported(id, found["IpPermissions"], state.get("ingress")),
            "egress": _reported(id, found["IpPermissionsEgress"], state.get("egress")),
        }

    def adjust(self, cloud: Cloud, id: str, found: Plain, inputs: Plain) -> None:
        ec2 = cloud.client("ec2", inputs)
        for name in ("ingress", "egress"):
            if name not in inputs:
                continue
            wanted = dict(_permissions(id, inputs[name]))
            there = dict(_permissions(id, found[name]))
            surplus = [there[key] for key in there.keys() - wanted.keys()]
            missing = [wanted[key] for key in wanted.keys() - there.keys()]
            if surplus:
                revoke = getattr(ec2, f"revoke_security_group_{name}")
                revoke(GroupId=id, IpPermissions=surplus)
            if missing:
                authorize = getattr(ec2, f"authorize_security_group_{name}")
                authorize(GroupId=id, IpPermissions=missing)

    def remove(self, cloud: Cloud, id: str, state: Plain) -> None:
        ec2 = cloud.client("ec2", state)
        if users := sorted(_users(ec2, id)):
            raise ProviderError(
                f"DeleteSecurityGroup: DependencyViolation: {id} is used by {', '.join(users)}"
            )
        ec2.delete_security_group(GroupId=id)


def _users(ec2: Any, id: str) -> Iterator[str]:
    """The interfaces that have the group, and the groups that name it: moto forgets both."""
    holding = [{"Name": "group-id", "Values": [id]}]
    for interface in ec2.describe_network_interfaces(Filters=holding)["NetworkInterfaces"]:
        yield interface["NetworkInterfaceId"]
    for page in ec2.get_paginator("describe_security_groups").paginate():
        for group in page["SecurityGroups"]:
            rules = [*group["IpPermissions"], *group["IpPermissionsEgress"]]
            named = {pair["GroupId"] for rule in rules for pair in rule["UserIdGroupPairs"]}
            if id in named and group["GroupId"] != id:
                yield group["GroupId"]


def _reported(id: str, permissions: list[Plain], known: list[Plain] | None) -> list[Plain]:
    """What EC2 lists, in the words of the program where they mean the same."""
    found = [rule for permission in permissions for rule in _rules(id, permission)]
    same = known is not None and dict(_permissions(id, known)) == dict(_permissions(id, found))
    return known if known is not None and same else found


def _rules(id: str, permission: Plain) -> Iterator[Plain]:
    """One rule for each source: each has a description of its own."""
    base = {
        "protocol": permission["IpProtocol"],
        "fromPort": permission.get("FromPort", 0),
        "toPort": permission.get("ToPort", 0),
    }
    sources = [
        *((item, {"cidrBlocks": [item["CidrIp"]]}) for item in permission["IpRanges"]),
        *((item, {"ipv6CidrBlocks": [item["CidrIpv6"]]}) for item in permission["Ipv6Ranges"]),
        *(
            (
                item,
                {"self": True} if item["GroupId"] == id else {"securityGroups": [item["GroupId"]]},
            )
            for item in permission["UserIdGroupPairs"]
        ),
    ]
    for item, source in sources:
        note = {"description": item["Description"]} if item.get("Description") else {}
        yield base | source | note


def _permissions(id: str, rules: list[Plain]) -> Iterator[tuple[str, Plain]]:
    """One permission for each source of each rule, by what it says."""
    for rule in rules:
        base: dict[str, Any] = {"IpProtocol": rule["protocol"]}
        if rule["protocol"] != "-1":
            base |= {"FromPort": rule["fromPort"], "ToPort": rule["toPort"]}
        groups = [*rule.get("securityGroups", []), *([id] if rule.get("self") else [])]
        note = {"Description": rule["description"]} if rule.get("description") else {}
        sources = [
            *({"IpRanges": [{"CidrIp": cidr, **note}]} for cidr in rule.get("cidrBlocks", [])),
            *(
                {"Ipv6Ranges": [{"CidrIpv6": cidr, **note}]}
                for cidr in rule.get("ipv6CidrBlocks", [])
            ),
            *({"UserIdGroupPairs": [{"GroupId": group, **note}]} for group in groups),
        ]
        for source in sources:
            permission = base | source
            yield json.dumps(permission, sort_keys=True), permission

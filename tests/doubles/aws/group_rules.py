"""Doubles of aws:vpc SecurityGroupIngressRule and SecurityGroupEgressRule."""

from typing import Any

from tests.doubles.aws.cloud import Cloud
from tests.doubles.aws.kind import Ec2Kind, arguments, outputs_of, shape
from tests.doubles.plugin.values import Plain

SOURCES = ("cidrIpv4", "cidrIpv6", "referencedSecurityGroupId")
PORTS = ("ipProtocol", "fromPort", "toPort")


class SecurityGroupRule(Ec2Kind):
    """One rule, one id. moto can change a rule only from one IPv4 range to another; any other
    change is a replacement here, where the official plugin updates.
    """

    kind_of_arn = "security-group-rule"
    shape = shape("securityGroupId", *PORTS, *SOURCES, "description", "tags", "region")
    in_place = frozenset({*PORTS, "cidrIpv4", "description"})
    outputs = frozenset({"arn"})

    def __init__(self, direction: str) -> None:
        self._direction = direction

    def needs_replacement(self, name: str, state: Plain, inputs: Plain) -> bool:
        ranges = all("cidrIpv4" in values and "toPort" in values for values in (state, inputs))
        return super().needs_replacement(name, state, inputs) or (
            name in self.in_place and not ranges
        )

    def deletes_first(self, state: Plain, inputs: Plain) -> bool:
        """A group holds no two rules that differ in their description only."""
        names = ("securityGroupId", *PORTS, *SOURCES)
        return all(state.get(name) == inputs.get(name) for name in names)

    def make(self, cloud: Cloud, inputs: Plain) -> str:
        ec2 = cloud.client("ec2", inputs)
        authorize = getattr(ec2, f"authorize_security_group_{self._direction}")
        answer = authorize(GroupId=inputs["securityGroupId"], IpPermissions=[_permission(inputs)])
        return str(answer["SecurityGroupRules"][0]["SecurityGroupRuleId"])

    def find(self, cloud: Cloud, id: str, state: Plain) -> Plain | None:
        ec2 = cloud.client("ec2", state)
        answer = ec2.describe_security_group_rules(SecurityGroupRuleIds=[id])
        if not answer["SecurityGroupRules"]:
            return None
        rule = answer["SecurityGroupRules"][0]
        if rule["IpProtocol"] == "-1":
            rule |= {"FromPort": None, "ToPort": None}
        # moto forgets the description of a rule that names a group
        forgotten = state.get("description") if "ReferencedGroupInfo" in rule else None
        return self.common(cloud, id, state, rule | {"OwnerId": rule.get("GroupOwnerId")}) | {
            **outputs_of(rule, *PORTS, "cidrIpv4", "cidrIpv6"),
            "securityGroupId": rule["GroupId"],
            "referencedSecurityGroupId": rule.get("ReferencedGroupInfo", {}).get("GroupId"),
            "description": rule.get("Description") or forgotten,
        }

    def adjust(self, cloud: Cloud, id: str, current: Plain, inputs: Plain) -> None:
        if all(current.get(name) == inputs.get(name) for name in self.in_place):
            return
        rule = arguments(inputs, *PORTS, "cidrIpv4")
        rule["Description"] = inputs.get("description", "")
        cloud.client("ec2", inputs).modify_security_group_rules(
            GroupId=inputs["securityGroupId"],
            SecurityGroupRules=[{"SecurityGroupRuleId": id, "SecurityGroupRule": rule}],
        )

    def remove(self, cloud: Cloud, id: str, state: Plain) -> None:
        if self.find(cloud, id, state) is None:
            return
        revoke = getattr(cloud.client("ec2", state), f"revoke_security_group_{self._direction}")
        revoke(GroupId=state["securityGroupId"], SecurityGroupRuleIds=[id])


def _permission(inputs: Plain) -> dict[str, Any]:
    permission = arguments(inputs, *PORTS)
    note = {"Description": inputs["description"]} if inputs.get("description") else {}
    for name, group, key in (
        ("cidrIpv4", "IpRanges", "CidrIp"),
        ("cidrIpv6", "Ipv6Ranges", "CidrIpv6"),
        ("referencedSecurityGroupId", "UserIdGroupPairs", "GroupId"),
    ):
        if name in inputs:
            permission[group] = [{key: inputs[name], **note}]
    return permission

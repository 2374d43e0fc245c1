"""Security groups from the plan: only a listener's clients may reach it."""

from collections.abc import Mapping, Sequence
from ipaddress import IPv4Network

import pulumi
import pulumi_aws as aws

from earshot.facts.security_groups import Ingress, Members, SecurityGroup
from earshot_pulumi.aws.tags import TaggedComponent
from earshot_pulumi.provider.kind import Properties


class SecurityGroups(TaggedComponent):
    """One group per role of a node."""

    ids: Mapping[str, pulumi.Output[str]]
    """The id by the group's name in the plan."""

    def __init__(
        self,
        name: str,
        groups: Sequence[SecurityGroup],
        vpc_id: pulumi.Input[str],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__("SecurityGroups", name, opts)
        self.ids = {
            group.name: aws.ec2.SecurityGroup(
                **self._common_args(group.name),
                description=f"Kafka {group.name} of {name}",
                vpc_id=vpc_id,
            ).id
            for group in groups
        }
        for group in groups:
            for rule in group.ingress:
                self._add_ingress(group, rule)
            aws.vpc.SecurityGroupEgressRule(
                **self._args(group.name),
                security_group_id=self.ids[group.name],
                ip_protocol="-1",
                cidr_ipv4="0.0.0.0/0",
                description="Packages, Kafka itself, AWS services, other nodes",
            )
        self.register_outputs({"ids": self.ids})

    def _add_ingress(self, group: SecurityGroup, rule: Ingress) -> None:
        source: Properties
        if isinstance(rule.source, Members):
            label = rule.source.group
            source = {"referenced_security_group_id": self.ids.get(label, label)}
        else:
            label = str(rule.source)
            kind = "cidr_ipv4" if isinstance(rule.source, IPv4Network) else "cidr_ipv6"
            source = {kind: label}
        aws.vpc.SecurityGroupIngressRule(
            **self._args(f"{group.name}-{rule.first}-{label}"),
            security_group_id=self.ids[group.name],
            ip_protocol="tcp",
            from_port=rule.first,
            to_port=rule.last,
            description=rule.why,
            **source,
        )

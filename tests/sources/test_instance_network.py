"""What surrounds an instance, told from the resources of a stack."""

from __future__ import annotations

from typing import Any

import pytest

from earshot.listeners.terms import UnknownHost
from earshot.names.aws import VpcDns
from earshot.sources.instance_network import InstanceNetwork, instance_network
from earshot.sources.stack_resources import (
    EIP,
    EIP_ASSOCIATION,
    GROUP_ATTACHMENT,
    GROUPS,
    INSTANCE,
    INTERFACE,
    INTERFACE_ATTACHMENT,
    RULES,
    SUBNETS,
    VPCS,
    References,
    RegisteredResource,
    RegisteredStack,
)

ZONE = {"availabilityZone": "eu-central-1a"}


def made(kind: str, name: str, /, **props: Any) -> RegisteredResource:
    return RegisteredResource(kind, f"urn::{name}", props)


VPC = made(VPCS[0], "vpc", id="vpc-1", enableDnsHostnames=True)
SUBNET = made(SUBNETS[0], "subnet", id="subnet-1", vpcId="vpc-1")
GROUP = made(GROUPS[0], "kafka", id="sg-1", vpcId="vpc-1")
OWN = {
    "id": "i-1",
    "subnetId": "subnet-1",
    "vpcSecurityGroupIds": ["sg-1"],
    "privateIp": "10.0.0.1",
}


def around(*resources: RegisteredResource, **props: Any) -> InstanceNetwork:
    instance = made(INSTANCE, "broker", **{**OWN, **ZONE, **props})
    return instance_network(RegisteredStack([VPC, SUBNET, GROUP, instance, *resources]), instance)


def ingress(network: InstanceNetwork) -> list[str]:
    return [str(rule) for rule in network.ingress]


@pytest.mark.parametrize("key", ["privateIps", "secondaryPrivateIps", "ipv6Addresses"])
def test_all_addresses_of_an_instance_are_its_own(key: str) -> None:
    network = around(**{key: ["192.0.2.7", "192.0.2.8"]})
    assert network.addresses == ("10.0.0.1", "192.0.2.7", "192.0.2.8")


def test_an_instance_without_interfaces_and_rules() -> None:
    network = around(privateDns="ip-10-0-0-1.x")
    assert (network.private, network.addresses) == ("10.0.0.1", ("10.0.0.1",))
    assert (network.elastic, network.ingress) == ((), ())
    assert network.vpc == References((VPC,))
    assert network.dns == VpcDns(support=True, hostnames=True)
    assert network.own_name == "ip-10-0-0-1.x"


@pytest.mark.parametrize(
    ("props", "region"),
    [
        ({}, "eu-central-1"),
        ({"region": "us-west-2"}, "us-west-2"),
        ({"availabilityZone": "us-gov-west-1b"}, "us-gov-west-1"),
        ({"availabilityZone": None, "arn": "arn:aws:ec2:eu-west-1:1:instance/i-1"}, "eu-west-1"),
        ({"availabilityZone": None}, None),
    ],
)
def test_the_region(props: dict[str, Any], region: str | None) -> None:
    assert around(**props).region == region


ETH = made(
    INTERFACE, "eth", id="eni-1", subnetId="subnet-1", securityGroups=["sg-1"], privateIp="10.0.0.7"
)


@pytest.mark.parametrize(
    ("props", "resources"),
    [
        ({"primaryNetworkInterface": {"networkInterfaceId": "eni-1"}}, ()),
        ({"networkInterfaces": [{"networkInterfaceId": "eni-1"}]}, ()),
        ({}, (made(INTERFACE_ATTACHMENT, "a", instanceId="i-1", networkInterfaceId="eni-1"),)),
    ],
)
def test_an_interface_of_its_own(
    props: dict[str, Any], resources: tuple[RegisteredResource, ...]
) -> None:
    rule = made(RULES[1], "r", securityGroupId="sg-2", ipProtocol="tcp", fromPort=1, toPort=2,
                cidrIpv4="10.0.0.0/8")  # fmt: skip
    second = made(GROUPS[0], "second", id="sg-2")
    carries = made(GROUP_ATTACHMENT, "c", networkInterfaceId="eni-1", securityGroupId="sg-2")
    eip = made(EIP, "eip", networkInterface="eni-1", publicIp="198.51.100.1")
    bare = {"subnetId": "", "vpcSecurityGroupIds": [], "privateIp": ""}
    network = around(ETH, *resources, rule, second, carries, eip, **{**bare, **props})
    assert (network.private, network.vpc.resources) == ("10.0.0.7", (VPC,))
    assert network.elastic == ("198.51.100.1",)
    assert network.addresses == ("198.51.100.1", "10.0.0.7")
    assert ingress(network) == ["1-2 from 10.0.0.0/8"]


def test_elastic_ips_by_association_and_one_that_is_still_to_be_made() -> None:
    eip = made(EIP, "eip", id="eipalloc-1", publicIp="198.51.100.1")
    link = made(EIP_ASSOCIATION, "link", allocationId="eipalloc-1", instanceId="i-1")
    assert around(eip, link).elastic == ("198.51.100.1",)
    foreign = made(EIP_ASSOCIATION, "l", allocationId="eipalloc-9", instanceId="i-1",
                   publicIp="198.51.100.9")  # fmt: skip
    assert around(foreign).elastic == ("198.51.100.9",)
    network = around(made(EIP, "eip", instance="i-1", publicIp=None))
    assert network.elastic == (UnknownHost(what="the Elastic IP eip"),)
    assert network.addresses == (), "not all are known"
    assert around(made(EIP, "eip", instance="i-2", publicIp="198.51.100.2")).elastic == ()


def test_rules_of_three_shapes_and_groups_by_their_names() -> None:
    block = {"protocol": "tcp", "fromPort": 1, "toPort": 1, "self": True}
    group = made(GROUPS[0], "second", id="sg-2", ingress=[block])
    older = made(RULES[0], "a", type="ingress", securityGroupId="sg-2", protocol="tcp", fromPort=2,
                 toPort=2, sourceSecurityGroupId="sg-1")  # fmt: skip
    out = made(RULES[0], "b", type="egress", securityGroupId="sg-2", protocol="-1")
    advised = made(RULES[1], "c", securityGroupId="sg-2", ipProtocol="tcp", fromPort=3, toPort=3,
                   referencedSecurityGroupId="sg-9")  # fmt: skip
    network = around(group, older, out, advised, vpcSecurityGroupIds=["sg-2"])
    assert ingress(network) == ["1 from group second", "2 from group kafka", "3 from group sg-9"]


def test_what_aws_lists_in_a_group_without_blocks_of_its_own_is_not_taken_for_a_block() -> None:
    outputs = {"ingress": [{"protocol": "tcp", "fromPort": 1, "toPort": 1, "cidrBlocks": ["::/0"]}]}
    group = RegisteredResource(
        GROUPS[0], "urn::g", {"id": "sg-2", **outputs}, inputs={"vpcId": "vpc-1"}
    )
    assert around(group, vpcSecurityGroupIds=["sg-2"]).ingress == ()


def test_the_clients_that_unknown_groups_admit_are_unknown() -> None:
    foreign = ["0-65535 from group sg-9, which is not of this stack"]
    assert ingress(around(vpcSecurityGroupIds=["sg-9"])) == foreign
    unknown = ["0-65535 from its security groups, which are not known"]
    assert ingress(around(vpcSecurityGroupIds=None)) == unknown
    assert ingress(around(vpcSecurityGroupIds=["sg-1", None])) == unknown


@pytest.mark.parametrize(
    ("vpc", "dns"),
    [
        (made(VPCS[0], "v", id="vpc-2"), VpcDns(support=True, hostnames=False)),
        (made(VPCS[1], "v", id="vpc-2"), VpcDns(support=True, hostnames=True)),
        (made(VPCS[0], "v", id="vpc-2", enableDnsSupport=False), VpcDns(False, False)),
        (made(VPCS[0], "v", id="vpc-2", enableDnsHostnames=None), None),
        (made(VPCS[0], "v", id="vpc-3"), None),
    ],
)
def test_the_dns_attributes_of_its_vpc(vpc: RegisteredResource, dns: VpcDns | None) -> None:
    subnet = made(SUBNETS[0], "s", id="subnet-2", vpcId="vpc-2")
    assert around(vpc, subnet, subnetId="subnet-2").dns == dns


def test_a_subnet_that_is_not_of_the_stack_leaves_the_group_to_tell_the_vpc() -> None:
    assert around(subnetId="subnet-9").vpc == References((VPC,))
    network = around(subnetId="subnet-9", vpcSecurityGroupIds=["sg-9"])
    assert (network.vpc, network.dns) == (References(unknown=True), None)

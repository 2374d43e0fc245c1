"""What surrounds an instance of any program, as the stack's resources show it: its addresses, who
is let in, its Elastic IPs, and the DNS attributes of its VPC."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from earshot.facts.cloud import read_group, read_ingress
from earshot.facts.security_groups import Ingress, UnknownSource
from earshot.listeners.terms import UnknownHost
from earshot.names.aws import VpcDns
from earshot.sources import stack_resources as aws
from earshot.sources.stack_resources import Pointed, RegisteredResource, RegisteredStack

Interfaces = tuple[RegisteredResource, ...]
_ZONE = re.compile(r"([a-z]{2}(?:-[a-z]+)+-\d+)[a-z]?", re.ASCII)
_REFERRED = ("referencedSecurityGroupId", "sourceSecurityGroupId")


@dataclass(frozen=True)
class InstanceNetwork:
    """The network of one instance; None is a value that is not known, yet or from here."""

    region: str | None
    private: str | None
    """Its first private address."""
    addresses: tuple[str, ...]
    """All of its own; empty where one of them is not known yet."""
    elastic: tuple[str | UnknownHost, ...]
    ingress: tuple[Ingress, ...]
    """The sources that a group of another stack lets in are one unread source."""
    vpc: Pointed
    dns: VpcDns | None
    own_name: str | UnknownHost
    """What the machine calls itself, unless a user has renamed it."""


def instance_network(stack: RegisteredStack, instance: RegisteredResource) -> InstanceNetwork:
    """What ``stack`` says about ``instance``."""
    interfaces = _interfaces(stack, instance)
    elastic = tuple(dict.fromkeys(_elastic(stack, instance, interfaces)))
    groups = _groups(stack, instance, interfaces)
    vpc = _vpc(stack, instance, interfaces, groups)
    private = next(filter(None, (item.text("privateIp") for item in (instance, *interfaces))), None)
    name = instance.text("privateDns")
    return InstanceNetwork(
        region=_region(instance),
        private=private,
        addresses=tuple(_addresses((instance, *interfaces), elastic)) if private else (),
        elastic=elastic,
        ingress=tuple(_ingress(stack, groups)),
        vpc=vpc,
        dns=_dns(vpc),
        own_name=name or UnknownHost(what=f"the private name of instance {instance.name}"),
    )


def _interfaces(stack: RegisteredStack, instance: RegisteredResource) -> Interfaces:
    found: dict[str, RegisteredResource] = {}
    for key in ("primaryNetworkInterface", "networkInterfaces"):
        if instance.given(key):
            pointed = stack.pointed(instance, key, aws.INTERFACE, inner="networkInterfaceId")
            found |= {item.urn: item for item in pointed.found}
    for item in stack.pointing(
        instance.urn, "instanceId", (aws.INTERFACE_ATTACHMENT,), (aws.INSTANCE,)
    ):
        attached = stack.pointed(item, "networkInterfaceId", aws.INTERFACE).found
        found |= {other.urn: other for other in attached}
    return tuple(found.values())


def _elastic(
    stack: RegisteredStack, instance: RegisteredResource, interfaces: Interfaces
) -> Iterator[str | UnknownHost]:
    held = ((interface, "networkInterface", aws.INTERFACE) for interface in interfaces)
    for holder, key, type in ((instance, "instance", aws.INSTANCE), *held):
        for eip in stack.pointing(holder.urn, key, (aws.EIP,), (type,)):
            yield _address(eip)
        for item in stack.pointing(holder.urn, f"{key}Id", (aws.EIP_ASSOCIATION,), (type,)):
            eips = stack.pointed(item, "allocationId", aws.EIP).found
            yield from map(_address, eips or (item,))


def _address(holder: RegisteredResource) -> str | UnknownHost:
    return holder.text("publicIp") or UnknownHost(what=f"the Elastic IP {holder.name}")


def _addresses(holders: Interfaces, elastic: tuple[str | UnknownHost, ...]) -> Iterator[str]:
    known = [item for item in elastic if isinstance(item, str)]
    if len(known) < len(elastic):
        return
    found = dict.fromkeys(known)
    for holder in holders:
        for key in ("privateIp", "publicIp"):
            found |= dict.fromkeys(filter(None, [holder.text(key)]))
        for key in ("privateIps", "secondaryPrivateIps", "ipv6Addresses"):
            listed = holder.props.get(key)
            found |= dict.fromkeys(item for item in listed or () if isinstance(item, str))
    yield from found


def _groups(
    stack: RegisteredStack, instance: RegisteredResource, interfaces: Interfaces
) -> tuple[Pointed, ...]:
    found = [stack.pointed(interface, "securityGroups", *aws.GROUPS) for interface in interfaces]
    if not interfaces:
        found.append(stack.pointed(instance, "vpcSecurityGroupIds", *aws.GROUPS))
    key = "networkInterfaceId"
    for interface in interfaces:
        for other in stack.pointing(interface.urn, key, (aws.GROUP_ATTACHMENT,), (aws.INTERFACE,)):
            found.append(stack.pointed(other, "securityGroupId", *aws.GROUPS))
    return tuple(found)


def _ingress(stack: RegisteredStack, groups: tuple[Pointed, ...]) -> Iterator[Ingress]:
    carried = {item.urn: item for pointed in groups for item in pointed.found}
    for group in carried.values():
        yield from _let_in(stack, group)
    foreign = [id for pointed in groups for id in pointed.foreign]
    for id in dict.fromkeys(foreign):
        yield Ingress(0, 65535, UnknownSource(f"group {id}, which is not of this stack"))
    if any(pointed.unknown for pointed in groups) or not (carried or foreign):
        yield Ingress(0, 65535, UnknownSource("its security groups, which are not known"))


def _let_in(stack: RegisteredStack, group: RegisteredResource) -> Iterator[Ingress]:
    own = group.name
    if group.given("ingress"):  # else a group has none, and AWS lists here what rules add
        yield from read_group(_named(stack, group, group.props), own)
    for rule in stack.pointing(group.urn, "securityGroupId", aws.RULES, aws.GROUPS):
        yield from read_ingress(_named(stack, rule, rule.props), own)


def _named(
    stack: RegisteredStack, rule: RegisteredResource, props: Mapping[str, Any]
) -> dict[str, Any]:
    """With the names of this stack's groups for the ids of those that are referred to."""
    found = dict(props)
    for key in _REFERRED:
        pointed = stack.pointed(rule, key, *aws.GROUPS)
        if pointed.found:
            found[key] = pointed.found[0].name
    return found


def _vpc(
    stack: RegisteredStack,
    instance: RegisteredResource,
    interfaces: Interfaces,
    groups: tuple[Pointed, ...],
) -> Pointed:
    """By its subnet, else by its groups; unknown where neither is of this stack."""
    holders = [*interfaces, instance]
    subnets = [
        other
        for holder in holders
        for other in stack.pointed(holder, "subnetId", *aws.SUBNETS).found
    ]
    carried = [group for pointed in groups for group in pointed.found]
    for subnet in (*subnets, *carried):
        found = stack.pointed(subnet, "vpcId", *aws.VPCS)
        if found.keys:
            return found
    return Pointed(unknown=True)


def _dns(vpc: Pointed) -> VpcDns | None:
    if not vpc.found:
        return None
    props, default = vpc.found[0].props, VpcDns()
    if vpc.found[0].type == aws.VPCS[1]:
        default = VpcDns(support=True, hostnames=True)
    support = props.get("enableDnsSupport", default.support)
    hostnames = props.get("enableDnsHostnames", default.hostnames)
    return None if support is None or hostnames is None else VpcDns(bool(support), bool(hostnames))


def _region(instance: RegisteredResource) -> str | None:
    if region := instance.text("region"):
        return region
    match = _ZONE.fullmatch(instance.text("availabilityZone") or "")
    if match is not None:
        return match[1]
    parts = (instance.text("arn") or "").split(":")
    return parts[3] if len(parts) > 5 else None

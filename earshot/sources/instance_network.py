"""The network of an EC2 instance, read from the stack's resources: addresses, ingress rules,
Elastic IPs, and the DNS attributes of its VPC."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from earshot.facts.cloud import read_group, read_ingress
from earshot.facts.security_groups import Ingress, UnknownSource
from earshot.json_object import Document, JsonObject
from earshot.listeners.terms import UnknownHost
from earshot.names.aws import VpcDns
from earshot.sources import stack_resources as aws
from earshot.sources.stack_resources import References, RegisteredResource, RegisteredStack

Interfaces = tuple[RegisteredResource, ...]
_ZONE = re.compile(r"([a-z]{2}(?:-[a-z]+)+-\d+)[a-z]?", re.ASCII)
_REFERRED = ("referencedSecurityGroupId", "sourceSecurityGroupId")


@dataclass(frozen=True)
class InstanceNetwork:
    """The network of one instance; None is an unknown value."""

    region: str | None
    private: str | None
    """Its first private address."""
    addresses: tuple[str, ...]
    """All addresses of the instance; empty if one of them is unknown."""
    elastic: tuple[str | UnknownHost, ...]
    ingress: tuple[Ingress, ...]
    """A group of another stack is one rule with an `UnknownSource`."""
    vpc: References
    dns: VpcDns | None
    own_name: str | UnknownHost
    """The machine's default hostname."""


def instance_network(stack: RegisteredStack, instance: RegisteredResource) -> InstanceNetwork:
    """The network of ``instance`` in ``stack``."""
    interfaces = _interfaces(stack, instance)
    elastic = tuple(dict.fromkeys(_elastic(stack, instance, interfaces)))
    groups = _groups(stack, instance, interfaces)
    vpc = _vpc(stack, instance, interfaces, groups)
    private = next(
        filter(None, (resource.text("privateIp") for resource in (instance, *interfaces))), None
    )
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
    interfaces: dict[str, RegisteredResource] = {}
    for key in ("primaryNetworkInterface", "networkInterfaces"):
        if instance.given(key):
            pointed = stack.references(instance, key, aws.INTERFACE, inner="networkInterfaceId")
            interfaces |= {resource.urn: resource for resource in pointed.resources}
    for referrer in stack.referrers(
        instance.urn, "instanceId", (aws.INTERFACE_ATTACHMENT,), (aws.INSTANCE,)
    ):
        attached = stack.references(referrer, "networkInterfaceId", aws.INTERFACE).resources
        interfaces |= {interface.urn: interface for interface in attached}
    return tuple(interfaces.values())


def _elastic(
    stack: RegisteredStack, instance: RegisteredResource, interfaces: Interfaces
) -> Iterator[str | UnknownHost]:
    interface_holders = ((interface, "networkInterface", aws.INTERFACE) for interface in interfaces)
    for holder, key, type in ((instance, "instance", aws.INSTANCE), *interface_holders):
        for eip in stack.referrers(holder.urn, key, (aws.EIP,), (type,)):
            yield _address(eip)
        for referrer in stack.referrers(holder.urn, f"{key}Id", (aws.EIP_ASSOCIATION,), (type,)):
            eips = stack.references(referrer, "allocationId", aws.EIP).resources
            yield from map(_address, eips or (referrer,))


def _address(holder: RegisteredResource) -> str | UnknownHost:
    return holder.text("publicIp") or UnknownHost(what=f"the Elastic IP {holder.name}")


def _addresses(holders: Interfaces, elastic: tuple[str | UnknownHost, ...]) -> Iterator[str]:
    known_addresses = [address for address in elastic if isinstance(address, str)]
    if len(known_addresses) < len(elastic):
        return
    addresses = dict.fromkeys(known_addresses)
    for holder in holders:
        for key in ("privateIp", "publicIp"):
            addresses |= dict.fromkeys(filter(None, [holder.text(key)]))
        for key in ("privateIps", "secondaryPrivateIps", "ipv6Addresses"):
            values = holder.props.get(key)
            addresses |= dict.fromkeys(value for value in values or () if isinstance(value, str))
    yield from addresses


def _groups(
    stack: RegisteredStack, instance: RegisteredResource, interfaces: Interfaces
) -> tuple[References, ...]:
    groups = [
        stack.references(interface, "securityGroups", *aws.GROUPS) for interface in interfaces
    ]
    if not interfaces:
        groups.append(stack.references(instance, "vpcSecurityGroupIds", *aws.GROUPS))
    key = "networkInterfaceId"
    for interface in interfaces:
        for attachment in stack.referrers(
            interface.urn, key, (aws.GROUP_ATTACHMENT,), (aws.INTERFACE,)
        ):
            groups.append(stack.references(attachment, "securityGroupId", *aws.GROUPS))
    return tuple(groups)


def _ingress(stack: RegisteredStack, groups: tuple[References, ...]) -> Iterator[Ingress]:
    own_groups = {resource.urn: resource for pointed in groups for resource in pointed.resources}
    for group in own_groups.values():
        yield from _group_ingress(stack, group)
    foreign = [id for pointed in groups for id in pointed.foreign_ids]
    for id in dict.fromkeys(foreign):
        yield Ingress(0, 65535, UnknownSource(f"group {id}, which is not of this stack"))
    if any(pointed.unknown for pointed in groups) or not (own_groups or foreign):
        yield Ingress(0, 65535, UnknownSource("its security groups, which are not known"))


def _group_ingress(stack: RegisteredStack, group: RegisteredResource) -> Iterator[Ingress]:
    if group.given("ingress"):  # otherwise AWS lists the rules of other resources here
        yield from read_group(_with_group_names(stack, group, group.props), group.name)
    for rule in stack.referrers(group.urn, "securityGroupId", aws.RULES, aws.GROUPS):
        yield from read_ingress(_with_group_names(stack, rule, rule.props), group.name)


def _with_group_names(
    stack: RegisteredStack, rule: RegisteredResource, props: Document
) -> JsonObject:
    """``props`` with names in place of ids for groups of this stack."""
    named_props = dict(props)
    for key in _REFERRED:
        pointed = stack.references(rule, key, *aws.GROUPS)
        if pointed.resources:
            named_props[key] = pointed.resources[0].name
    return named_props


def _vpc(
    stack: RegisteredStack,
    instance: RegisteredResource,
    interfaces: Interfaces,
    groups: tuple[References, ...],
) -> References:
    """The VPC of its subnets, or else of its groups; unknown if neither is in this stack."""
    holders = [*interfaces, instance]
    subnets = [
        subnet
        for holder in holders
        for subnet in stack.references(holder, "subnetId", *aws.SUBNETS).resources
    ]
    own_groups = [group for references in groups for group in references.resources]
    for subnet in (*subnets, *own_groups):
        vpc = stack.references(subnet, "vpcId", *aws.VPCS)
        if vpc.keys:
            return vpc
    return References(unknown=True)


def _dns(vpc: References) -> VpcDns | None:
    if not vpc.resources:
        return None
    props, default = vpc.resources[0].props, VpcDns()
    if vpc.resources[0].type == aws.VPCS[1]:
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

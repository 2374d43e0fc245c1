"""What a stack's Pulumi state holds of its nodes, for the program that goes on with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from earshot.config.aws import AwsSpec, Place
from earshot.errors import EarshotError
from earshot.listeners.listed import numbered
from earshot_pulumi.aws.credentials import asking
from earshot_pulumi.provider.internal import types_of

_INSTANCE: Final = "aws:ec2/instance:Instance"
_VOLUME: Final = "aws:ebs/volume:Volume"
_INTERFACE: Final = "aws:ec2/networkInterface:NetworkInterface"
_ASSOCIATION: Final = "aws:ec2/eipAssociation:EipAssociation"


@dataclass(frozen=True)
class Remembered:
    """The nodes of a stack's last run; nothing of a new one."""

    served: bool = False
    """Whether all nodes were in sync once."""
    nodes: frozenset[str] = frozenset()
    """The names of those that were deployed."""
    volumes: Mapping[str, str] = field(default_factory=dict)
    """The ids of the volumes that the stack has made, by name of their node."""
    place: Place | None = None
    """Where its brokers are; None before there is one."""

    @classmethod
    def read(cls, stack: str, resources: Mapping[str, Mapping[str, Any]]) -> Remembered:
        """From the ``resources`` of ``stack``, by their URN."""
        names_of: dict[str, set[str]] = {}
        for urn, resource in resources.items():
            names_of.setdefault(resource["type"], set()).add(
                urn.rpartition("::")[2].removeprefix(f"{stack}-")
            )
        ready = {name for kind in types_of("AwsReadiness") for name in names_of.get(kind, ())}
        instances = names_of.get(_INSTANCE, set())
        place: Place | None = None
        if any(name.startswith("broker-") for name in instances):
            associated = names_of.get(_ASSOCIATION, set())
            place = (
                "public" if any(name.startswith("broker-") for name in associated) else "private"
            )
        volumes = {
            urn.rpartition("::")[2].removeprefix(f"{stack}-"): str(
                resource["outputs"].get("arn", "")
            ).rpartition("/")[2]
            for urn, resource in resources.items()
            if resource["type"] == _VOLUME
        }
        return cls("cluster" in ready, frozenset(ready - {"cluster"}), volumes, place)


def check_attached(stack: str, resources: Mapping[str, Mapping[str, Any]], ec2: Any) -> None:
    """Raises EarshotError where a node runs on an instance that the state does not have.

    ``resources`` are those of ``stack`` by their URN, ``ec2`` is boto3's client. An instance is
    replaced where its listeners change, so a state with the right instances has the right listeners
    too.
    """
    ids_of: dict[str, dict[str, str]] = {_INSTANCE: {}, _INTERFACE: {}}
    for urn, resource in resources.items():
        prefix, full_name = f"{stack}-", urn.rpartition("::")[2]
        if resource["type"] in ids_of and full_name.startswith(prefix):
            name = full_name.removeprefix(prefix)
            ids_of[resource["type"]][resource["outputs"]["arn"].rpartition("/")[2]] = name
    nodes = ids_of[_INTERFACE]
    if not nodes:
        return
    filters = [{"Name": "network-interface-id", "Values": list(nodes)}]
    subject, call = "network interfaces of the nodes", "ec2:DescribeNetworkInterfaces"
    with asking(subject, "cannot be read", call):
        interfaces = ec2.describe_network_interfaces(Filters=filters)["NetworkInterfaces"]
    instance_of = {
        nodes[interface["NetworkInterfaceId"]]: instance
        for interface in interfaces
        if (instance := interface.get("Attachment", {}).get("InstanceId"))
        and instance not in ids_of[_INSTANCE]
    }
    if instance_of:
        instances_text = ", ".join(
            f"{name} on {instance}" for name, instance in sorted(instance_of.items())
        )
        raise EarshotError(
            "nothing was touched: the state of this stack is not that of its nodes",
            observed=f"nodes run on instances that the state does not have: {instances_text}",
            allowed="the state that the last update wrote",
            remedy="bring it back (`pulumi stack export --version`, `pulumi stack import`); where "
            "an update was cut off before it wrote it, terminate these instances one by one, each "
            "once the last one is in sync again: their data volumes stay",
        )


def check_volumes(spec: AwsSpec, remembered: Remembered) -> None:
    """Raises EarshotError where so many voters have lost their volumes that blank ones could win an
    election."""
    voters = spec.controller_ids
    lost = [
        id
        for id in voters
        if spec.name_of(id) in remembered.nodes
        and spec.name_of(id) not in remembered.volumes
        and id not in spec.volumes
    ]
    if remembered.served and (len(voters) - len(lost)) * 2 <= len(voters):
        raise EarshotError(
            f"nothing was touched: the data of {numbered('node', lost)} is gone",
            observed=f"the state has no volume of these, of {len(voters)} voters in all: with "
            "blank volumes they would elect each other, and the cluster would forget its topics, "
            "users and records",
            allowed="the volumes, or copies of them from snapshots with the same tags",
            remedy=f"enter them (`volumes: {{{lost[0]}: vol-...}}`); or for an empty cluster "
            "`pulumi destroy`, then `pulumi up`",
        )


def placed(spec: AwsSpec, remembered: Remembered) -> AwsSpec:
    """``spec`` with the place where its brokers are, or will be; raises EarshotError for another.

    Another subnet gives every broker another interface, address and name, all of them at once.
    """
    if remembered.place is None:
        return spec
    wanted_place: Place = spec.place or ("public" if spec.directly_external else remembered.place)
    if wanted_place != remembered.place:
        change, reason = f"place: {wanted_place}", ""
        if spec.place is None:
            change, reason = "listeners for scope external", "these take `place: public`, and "
        raise EarshotError(
            f"nothing was touched: {change}",
            observed=f"{reason}the brokers are in {remembered.place} subnets; in {wanted_place} "
            "ones all would get other addresses and names at once, and the first to restart would "
            "find no other",
            allowed=f"`place: {remembered.place}`, and listeners that it can serve; with `expose: "
            "nlb` and the address strategy port also external ones in private subnets",
            remedy="mirror the data to another stack; or, with the cluster down meanwhile: set "
            "`data: keep` and `deletion_protection: false`, `pulumi up`, `pulumi destroy`, then "
            f"`pulumi up` with `place: {wanted_place}`, and with `volumes` and `cluster_id` as the "
            "tags of the kept volumes have them",
        )
    return spec.at(remembered.place)

"""Reads the nodes of a stack's last run from its Pulumi state."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from earshot.aws_client import AwsClient
from earshot.config.aws import AwsSpec, Place
from earshot.errors import EarshotError
from earshot.listeners.listed import numbered
from earshot_pulumi.aws.credentials import aws_errors
from earshot_pulumi.provider.kind import Outputs
from earshot_pulumi.provider.resource import outputs_of, types_of

_INSTANCE: Final = "aws:ec2/instance:Instance"
_VOLUME: Final = "aws:ebs/volume:Volume"
_INTERFACE: Final = "aws:ec2/networkInterface:NetworkInterface"
_ASSOCIATION: Final = "aws:ec2/eipAssociation:EipAssociation"


@dataclass(frozen=True)
class LastRun:
    """The nodes of a stack's last run; the defaults are those of a new stack."""

    served: bool = False
    """True if all nodes were in sync once."""
    nodes: frozenset[str] = frozenset()
    """The names of the nodes that were deployed."""
    volumes: Mapping[str, str] = field(default_factory=dict)
    """The ids of the volumes that the stack has made, by name of their node."""
    place: Place | None = None
    """The place of its brokers; None without brokers."""

    @classmethod
    def read(cls, stack: str, resources: Mapping[str, Outputs]) -> LastRun:
        """The nodes in the ``resources`` of ``stack``, by URN."""
        ready_names = _ids(stack, resources, *types_of("AwsReadiness")).keys()
        place: Place | None = None
        if _has_broker(_ids(stack, resources, _INSTANCE)):
            is_public = _has_broker(_ids(stack, resources, _ASSOCIATION))
            place = "public" if is_public else "private"
        volumes = _ids(stack, resources, _VOLUME)
        return cls("cluster" in ready_names, frozenset(ready_names - {"cluster"}), volumes, place)


def _ids(stack: str, resources: Mapping[str, Outputs], *types: str) -> dict[str, str]:
    """The ids in the ARNs of the resources of ``stack`` of these ``types``, by name without the
    stack's."""
    prefix = f"{stack}-"
    return {
        name.removeprefix(prefix): str(outputs.get("arn", "")).rpartition("/")[2]
        for name, outputs in outputs_of(resources, *types).items()
        if name.startswith(prefix)
    }


def _has_broker(names: Iterable[str]) -> bool:
    return any(name.startswith("broker-") for name in names)


def check_attached(stack: str, resources: Mapping[str, Outputs], ec2: AwsClient) -> None:
    """Raises EarshotError if a node runs on an instance that is not in the state.

    ``resources`` are those of ``stack`` by URN, ``ec2`` is boto3's client. A change of listeners
    replaces an instance, so a state with the right instances has the right listeners, too.
    """
    instances = _ids(stack, resources, _INSTANCE).values()
    nodes = {id: name for name, id in _ids(stack, resources, _INTERFACE).items()}
    if not nodes:
        return
    filters = [{"Name": "network-interface-id", "Values": list(nodes)}]
    subject, call = "network interfaces of the nodes", "ec2:DescribeNetworkInterfaces"
    with aws_errors(subject, "cannot be read", call):
        interfaces = ec2.describe_network_interfaces(Filters=filters)["NetworkInterfaces"]
    instance_of = {
        nodes[interface["NetworkInterfaceId"]]: instance
        for interface in interfaces
        if (instance := interface.get("Attachment", {}).get("InstanceId"))
        and instance not in instances
    }
    if instance_of:
        instances_text = ", ".join(
            f"{name} on {instance}" for name, instance in sorted(instance_of.items())
        )
        raise EarshotError(
            "nothing was changed: the state of this stack does not match its nodes",
            observed=f"nodes run on instances that are not in the state: {instances_text}",
            allowed="the state that the last update wrote",
            remedy="restore it (`pulumi stack export --version`, `pulumi stack import`); if an "
            "update was killed before it wrote the state, terminate these instances one by one, "
            "each after the last one is in sync again: their data volumes stay",
        )


def check_volumes(spec: AwsSpec, remembered: LastRun) -> None:
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
            f"nothing was changed: {numbered('node', lost)} would start on blank volumes",
            observed=f"the state has no volume of these, of {len(voters)} voters in all: with "
            "blank volumes they would elect each other, and the cluster would forget its topics, "
            "users and records",
            allowed="the volumes, or copies of them from snapshots with the same tags",
            remedy=f"enter them (`volumes: {{{lost[0]}: vol-...}}`); or for an empty cluster "
            "`pulumi destroy`, then `pulumi up`",
        )


def placed(spec: AwsSpec, remembered: LastRun) -> AwsSpec:
    """``spec`` with the place of its existing brokers. Raises EarshotError for another place.

    Another subnet gives every broker another interface, address and name, all at the same time.
    """
    if remembered.place is None:
        return spec
    planned_place: Place = spec.place or ("public" if spec.directly_external else remembered.place)
    if planned_place != remembered.place:
        change, reason = f"place: {planned_place}", ""
        if spec.place is None:
            change, reason = "listeners for scope external", "these take `place: public`, and "
        raise EarshotError(
            f"nothing was changed: {change}",
            observed=f"{reason}the brokers are in {remembered.place} subnets; in {planned_place} "
            "ones all would get other addresses and names at the same time, and the first "
            "restarted "
            "broker could not connect to the others",
            allowed=f"`place: {remembered.place}`, and listeners that it can serve; with `expose: "
            "nlb` and the address strategy port also external ones in private subnets",
            remedy="mirror the data to another stack; or, while the cluster is down: set "
            "`data: keep` and `deletion_protection: false`, `pulumi up`, `pulumi destroy`, then "
            f"`pulumi up` with `place: {planned_place}`, and with `volumes` and `cluster_id` "
            "from the tags of the kept volumes",
        )
    return spec.at(remembered.place)

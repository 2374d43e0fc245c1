"""The resources of a stack as their inputs and outputs show them, and which belong together.

A preview does not know the ids of what is still to be made; there a property points at whatever
its value comes from.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from earshot.listeners.listed import by_key

INSTANCE = "aws:ec2/instance:Instance"
INTERFACE = "aws:ec2/networkInterface:NetworkInterface"
INTERFACE_ATTACHMENT = "aws:ec2/networkInterfaceAttachment:NetworkInterfaceAttachment"
GROUP_ATTACHMENT = (
    "aws:ec2/networkInterfaceSecurityGroupAttachment:NetworkInterfaceSecurityGroupAttachment"
)
EIP = "aws:ec2/eip:Eip"
EIP_ASSOCIATION = "aws:ec2/eipAssociation:EipAssociation"
SUBNETS = ("aws:ec2/subnet:Subnet", "aws:ec2/defaultSubnet:DefaultSubnet")
VPCS = ("aws:ec2/vpc:Vpc", "aws:ec2/defaultVpc:DefaultVpc")
GROUPS = (
    "aws:ec2/securityGroup:SecurityGroup",
    "aws:ec2/defaultSecurityGroup:DefaultSecurityGroup",
)
RULES = (
    "aws:ec2/securityGroupRule:SecurityGroupRule",
    "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule",
)
ZONE = "aws:route53/zone:Zone"
ZONE_ASSOCIATION = "aws:route53/zoneAssociation:ZoneAssociation"
RECORD = "aws:route53/record:Record"
TYPES = frozenset(
    {
        *(INSTANCE, INTERFACE, INTERFACE_ATTACHMENT, GROUP_ATTACHMENT, EIP, EIP_ASSOCIATION),
        *(*SUBNETS, *VPCS, *GROUPS, *RULES, ZONE, ZONE_ASSOCIATION, RECORD),
    }
)
"""All resources that decide how an instance is reached."""
_IDS = ("id", "zoneId", "allocationId")


@dataclass(frozen=True)
class RegisteredResource:
    """One resource."""

    type: str
    urn: str
    props: Mapping[str, Any]
    """Outputs, in which the inputs are; a value of None is not known yet."""
    inputs: Mapping[str, Any] | None = None
    """What the program gave; None where that is not known apart."""
    depends: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By property, the URNs of the resources that its value comes from."""

    @property
    def name(self) -> str:
        return self.urn.rsplit("::", 1)[-1]

    @property
    def ids(self) -> frozenset[str]:
        """What other resources' properties may call it."""
        arn = self.text("arn") or ""
        texts = (*map(self.text, _IDS), arn.rpartition("/")[2])
        return frozenset(filter(None, texts))

    def given(self, key: str) -> bool:
        """Whether the program gave ``key``; where that is not known apart, whether it is there."""
        return key in (self.props if self.inputs is None else self.inputs)

    def text(self, key: str) -> str | None:
        """The value of a text that is known; None for one that is not, or not there."""
        value = self.props.get(key)
        return value if isinstance(value, str) and value else None


@dataclass(frozen=True)
class References:
    """What a property points at."""

    resources: tuple[RegisteredResource, ...] = ()
    foreign_ids: tuple[str, ...] = ()
    """Ids of what is no resource of this stack."""
    unknown: bool = False
    """Something is not known yet, and nothing shows what it comes from."""

    @property
    def whole(self) -> bool:
        """All that it points at is a resource of this stack."""
        return not self.foreign_ids and not self.unknown

    @property
    def keys(self) -> frozenset[str]:
        """What identifies each thing pointed at: a URN, or the id of what is foreign."""
        return frozenset({*(item.urn for item in self.resources), *self.foreign_ids})


class RegisteredStack:
    """The resources of `TYPES` that a stack has."""

    def __init__(self, resources: Iterable[RegisteredResource]) -> None:
        listed = list(resources)
        self._by_type = by_key((item.type, item) for item in listed)
        self._by_urn = {item.urn: item for item in listed}
        self._by_id = by_key((id, item) for item in listed for id in item.ids)
        # asked for every instance: the answers for all of them are found at once
        self._referrers: dict[tuple[object, ...], dict[str, list[RegisteredResource]]] = {}

    def all(self, *types: str) -> Iterator[RegisteredResource]:
        """Every resource of ``types``."""
        for type in types:
            yield from self._by_type.get(type, ())

    def get(self, urn: str) -> RegisteredResource | None:
        return self._by_urn.get(urn)

    def references(
        self, holder: RegisteredResource, key: str, *types: str, inner: str = ""
    ) -> References:
        """What ``key`` of ``holder`` points at, among ``types``.

        ``inner`` is the key within that map, or within each map of that list.
        """
        texts, hidden = _texts(holder.props, key, inner)
        found: dict[str, RegisteredResource] = {}
        foreign = []
        for text in texts:
            own = [item for item in self._by_id.get(text, ()) if item.type in types]
            found |= {item.urn: item for item in own}
            foreign += [] if own else [text]
        if foreign or hidden:
            sources = [self._by_urn.get(urn) for urn in holder.depends.get(key, ())]
            more = {
                source.urn: source
                for source in sources
                if source is not None and source.type in types
            }
            if more:
                return References(tuple({**found, **more}.values()))
        return References(tuple(found.values()), tuple(foreign), hidden)

    def referrers(
        self, target: str, key: str, types: tuple[str, ...], at: tuple[str, ...]
    ) -> tuple[RegisteredResource, ...]:
        """Resources of ``types`` whose ``key`` points at the resource with the URN ``target``,
        which is one of the types ``at``."""
        question = (key, types, at)
        if question not in self._referrers:
            self._referrers[question] = by_key(
                (urn, item)
                for item in self.all(*types)
                for urn in self.references(item, key, *at).keys
            )
        return tuple(self._referrers[question].get(target, ()))


def _texts(props: Mapping[str, Any], key: str, inner: str) -> tuple[list[str], bool]:
    """The texts at ``key``, and whether any is not known yet."""
    if key not in props:
        return [], False
    value = props[key]
    listed = value if isinstance(value, list) else [value]
    if inner:
        listed = [
            None if item is None else item.get(inner, "")
            for item in listed
            if item is None or isinstance(item, Mapping)
        ]
    return [item for item in listed if isinstance(item, str) and item], None in listed

"""The resources of a stack, and the references between them.

A preview does not know the ids of new resources. There a property refers to the resources that its
value depends on.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from earshot.json_object import Document
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
"""The types of resources that decide how an instance is reached."""
_IDS = ("id", "zoneId", "allocationId")


@dataclass(frozen=True)
class RegisteredResource:
    """A resource of a Pulumi program, with its properties and their dependencies."""

    type: str
    urn: str
    props: Document
    """Outputs, which include the inputs; None is an unknown value."""
    inputs: Document | None = None
    """The program's inputs; None if they are not known separately."""
    depends: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """URNs of the resources that a property's value depends on, by property."""

    @property
    def name(self) -> str:
        return self.urn.rsplit("::", 1)[-1]

    @property
    def ids(self) -> frozenset[str]:
        """The ids by which other resources refer to it."""
        arn = self.text("arn") or ""
        texts = (*map(self.text, _IDS), arn.rpartition("/")[2])
        return frozenset(filter(None, texts))

    def given(self, key: str) -> bool:
        """Whether the program set ``key``; without known inputs, whether ``key`` exists."""
        return key in (self.props if self.inputs is None else self.inputs)

    def text(self, key: str) -> str | None:
        """The text at ``key``; None if it is unknown or absent."""
        value = self.props.get(key)
        return value if isinstance(value, str) and value else None


@dataclass(frozen=True)
class References:
    """The resources that a property refers to."""

    resources: tuple[RegisteredResource, ...] = ()
    foreign_ids: tuple[str, ...] = ()
    """Ids of resources outside of this stack."""
    unknown: bool = False
    """A value is unknown, and so are the resources that it depends on."""

    @property
    def whole(self) -> bool:
        """Whether all references are known and in this stack."""
        return not self.foreign_ids and not self.unknown

    @property
    def keys(self) -> frozenset[str]:
        """The URNs of ``resources``, and the foreign ids."""
        return frozenset({*(resource.urn for resource in self.resources), *self.foreign_ids})


class RegisteredStack:
    """The resources of a stack that are of `TYPES`."""

    def __init__(self, resources: Iterable[RegisteredResource]) -> None:
        resource_list = list(resources)
        self._by_type = by_key((resource.type, resource) for resource in resource_list)
        self._by_urn = {resource.urn: resource for resource in resource_list}
        self._by_id = by_key((id, resource) for resource in resource_list for id in resource.ids)
        # asked once per instance: the answers for all targets are computed at the first query
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
        """The resources of ``types`` that ``key`` of ``holder`` refers to.

        ``inner`` is the key within the map, or within each map of the list, at ``key``.
        """
        texts, hidden = _texts(holder.props, key, inner)
        by_urn: dict[str, RegisteredResource] = {}
        foreign = []
        for text in texts:
            matching = [
                resource for resource in self._by_id.get(text, ()) if resource.type in types
            ]
            by_urn |= {resource.urn: resource for resource in matching}
            foreign += [] if matching else [text]
        if foreign or hidden:
            sources = [self._by_urn.get(urn) for urn in holder.depends.get(key, ())]
            more = {
                source.urn: source
                for source in sources
                if source is not None and source.type in types
            }
            if more:
                # hidden and foreign texts are values of the resources that ``key`` depends on
                return References(tuple({**by_urn, **more}.values()))
        return References(tuple(by_urn.values()), tuple(foreign), hidden)

    def referrers(
        self, target: str, key: str, types: tuple[str, ...], at: tuple[str, ...]
    ) -> tuple[RegisteredResource, ...]:
        """The resources of ``types`` whose ``key`` refers to the resource with the URN ``target``.

        ``at`` has the types of resources that ``key`` may refer to.
        """
        question = (key, types, at)
        if question not in self._referrers:
            self._referrers[question] = by_key(
                (urn, resource)
                for resource in self.all(*types)
                for urn in self.references(resource, key, *at).keys
            )
        return tuple(self._referrers[question].get(target, ()))


def _texts(props: Mapping[str, object], key: str, inner: str) -> tuple[list[str], bool]:
    """The texts at ``key``, and whether any is unknown."""
    if key not in props:
        return [], False
    value = props[key]
    values = value if isinstance(value, list) else [value]
    if inner:
        values = [
            None if value is None else value.get(inner, "")
            for value in values
            if value is None or isinstance(value, Mapping)
        ]
    return [value for value in values if isinstance(value, str) and value], None in values

"""Docker hosts on EC2 instances that the stack creates, for brokers in containers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from ipaddress import IPv4Network, ip_network
from typing import Annotated, Literal, Self

from pydantic import Field, PlainValidator, field_validator, model_validator

from earshot.aws.ecr import EXAMPLE, EcrImage, ecr_image
from earshot.aws.subnets import Nat, Subnet, check_room, check_zones, lay_out
from earshot.config.aws_sections import InstanceSpec, SubnetId, VolumeSpec, VpcId, VpcRange
from earshot.config.cluster import Whole
from earshot.errors import EarshotError
from earshot.facts.security_groups import MAX_RULES, WORLD, IpRange, read_range
from earshot.listeners.model import Frozen, Port, matching
from earshot.listeners.problems import refuse, reraised, shown

ENGINE_PORT = 2376
"""The port of the engines, for TLS."""
HOSTS = "hosts"
"""The name of the hosts' security group."""
MAX_IMAGES = 4096
"""The maximum length of the SSM parameter with the names of images."""
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,29}", re.ASCII)
_BRIDGES = ("172.17.0.0/16", "192.168.240.0/20", "10.240.0.0/16", "100.96.0.0/16")
"""Candidates for the range of containers; a host gets the first unused one."""


def _range(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(f"found {shown(value)}; allowed: a range of addresses, as text")
    if value in WORLD:
        raise ValueError(f"found {value}, which is every address; allowed: a smaller range")
    reraised(read_range, value)
    return value


ClosedRange = Annotated[str, PlainValidator(_range, json_schema_input_type=str)]
HostName = Annotated[str, matching(_NAME, "up to 30 small letters, digits and hyphens")]


class DockerHostsSpec(Frozen):
    """EC2 instances with a Docker engine each, in private subnets of a VPC."""

    host_zones: dict[HostName, str] = Field(min_length=1, max_length=20)
    """By a name of your choice, the availability zone of each host. A host's zone cannot change:
    its data volume is there."""
    deployers: dict[str, ClosedRange] = Field(min_length=1)
    """By a name of your choice, CIDR blocks from which the engines may be reached, with TLS: those
    of the machines that run `pulumi up`."""
    clients: dict[str, ClosedRange] = Field(default_factory=dict)
    """By a name of your choice, CIDR blocks from which the published ports may be reached, in
    addition to the hosts themselves and the deployers."""
    first_port: Port = 9092
    """The first published port that clients reach."""
    last_port: Port = 49_151
    """The last published port that clients reach."""
    zones: tuple[str, ...] = ()
    """Two or three availability zones of a new VPC. Default: those of the hosts."""
    cidr: VpcRange = "10.0.0.0/16"
    """The VPC's CIDR block, from /16 to /24. For an existing VPC, its own."""
    vpc_id: VpcId | None = None
    """The id of an existing VPC. Default: a new VPC."""
    subnets: dict[str, SubnetId] = Field(default_factory=dict)
    """By availability zone, a private subnet of an existing VPC that reaches AWS's services."""
    nat: Nat | None = None
    """NAT gateways of a new VPC: one, or per-zone. Default: one."""
    instance: InstanceSpec = InstanceSpec()
    """The instances, with Amazon Linux 2023. Default: m7g.large with a root volume of 16 GiB."""
    instances: dict[str, InstanceSpec] = Field(default_factory=dict)
    """By host, its own instance."""
    volume: VolumeSpec = VolumeSpec()
    """Each host's data volume, with all data of Docker, which outlives the instance. Default: gp3
    with 100 GiB."""
    images: tuple[str, ...] = ()
    """Images in private registries of Amazon ECR, which each host pulls by its instance's role. In
    a stack file, those of the brokers and of the validator need not be listed."""
    data: Literal["keep", "delete"] = "keep"
    """What `pulumi destroy` does with the data volumes: keep or delete."""
    deletion_protection: bool = True
    """Whether resources that hold data or an address are protected from deletion."""
    in_turn: bool = True
    """true: one host changes at a time, and none while another host or a broker on it is down;
    false: all at once, for clusters that are down as a whole."""
    ready_seconds: Whole = Field(default=900, ge=10, le=7200)
    """Seconds for a new or replaced host until its engine answers, and after that for the brokers
    on it until the next host changes."""

    @field_validator("images")
    @classmethod
    def _in_ecr(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        problems = [
            f"found {shown(name)}, which is not in ECR; allowed: images such as {EXAMPLE}"
            for name in value
            if ecr_image(name) is None
        ]
        refuse(problems)
        if sum(len(name) + 1 for name in value) > MAX_IMAGES:
            raise ValueError(f"found {len(value)} names; allowed: {MAX_IMAGES} characters in all")
        return tuple(dict.fromkeys(value))

    @model_validator(mode="after")
    def _fits(self) -> Self:
        refuse([*self._zone_problems(), *self._network_problems(), *self._port_problems()])
        refuse([*self._room_problems(), *self._bridge_problems()])
        return self

    def _zone_problems(self) -> Iterator[str]:
        for zone in sorted({*self.host_zones.values(), *self.zones}):
            try:
                check_zones((zone, zone[:-1] + ("b" if zone[-1:] == "a" else "a")))
            except EarshotError as error:
                yield f"host_zones: {error.line}"
                return
        regions = sorted({zone[:-1] for zone in (*self.host_zones.values(), *self.zones)})
        if len(regions) > 1:
            problem = f"found zones of {' and '.join(regions)}"
            yield f"host_zones: {problem}; allowed: zones of one region"
        for name in self.instances:
            if name not in self.host_zones:
                yield f"instances: found {name}; allowed: {', '.join(self.host_zones)}"

    def _network_problems(self) -> Iterator[str]:
        if self.vpc_id is None:
            if self.subnets:
                yield "subnets: found subnets without `vpc_id`; a new VPC gets its own"
            try:
                check_zones(self.vpc_zones)
            except EarshotError as error:
                yield f"zones: {error.line}"
            for name, zone in self.host_zones.items():
                if zone not in self.vpc_zones:
                    yield f"host_zones.{name}: found {zone}; allowed: {', '.join(self.vpc_zones)}"
            if self.nat == "none":
                yield "nat: found none; hosts fetch packages and images; allowed: one, per-zone"
            return
        for key, value in (("nat", self.nat), ("zones", self.zones)):
            if value:
                yield f"{key}: found with `vpc_id`; a VPC that is there has its own"
        for name, zone in self.host_zones.items():
            if zone not in self.subnets:
                yield f"subnets: found none for {zone}, where host {name} is"

    def _port_problems(self) -> Iterator[str]:
        if self.first_port > self.last_port:
            yield f"first_port: found {self.first_port}, after last_port {self.last_port}"
        elif self.first_port <= ENGINE_PORT <= self.last_port:
            yield (
                f"first_port: found {self.first_port} to {self.last_port}, which has the engines' "
                f"own port {ENGINE_PORT}; allowed: ports above or below it"
            )
        rules = 1 + 2 * len(self.admitted_deployers) + len(self.admitted_clients)
        if rules > MAX_RULES:
            yield f"clients: found ranges for {rules} rules; allowed: {MAX_RULES} of a group"

    def _room_problems(self) -> Iterator[str]:
        if self.vpc_id is None:
            zones = dict(enumerate(self.host_zones.values()))
            try:
                check_room(self.subnet_layout, zones, public=False)
            except EarshotError as error:
                yield f"cidr: {error.line}"

    def _bridge_problems(self) -> Iterator[str]:
        if self.bridge is None:
            yield (
                "deployers: found ranges that meet all of those for containers: "
                f"{', '.join(_BRIDGES)}; allowed: narrower ones"
            )

    @property
    def region(self) -> str:
        return next(iter(self.host_zones.values()))[:-1]

    @property
    def vpc_zones(self) -> tuple[str, ...]:
        """The zones of a new VPC."""
        return self.zones or tuple(sorted({*self.host_zones.values()}))

    @property
    def subnet_layout(self) -> tuple[Subnet, ...]:
        """The subnets of a new VPC."""
        return lay_out(self.cidr, self.vpc_zones)

    @property
    def admitted_deployers(self) -> tuple[IpRange, ...]:
        return _read_ranges(self.deployers)

    @property
    def admitted_clients(self) -> tuple[IpRange, ...]:
        """The clients' CIDR blocks that are not also deployers'."""
        return tuple(
            block for block in _read_ranges(self.clients) if block not in self.admitted_deployers
        )

    @property
    def bridge(self) -> IPv4Network | None:
        """A range for containers that overlaps neither the VPC nor a client, as packets to such
        clients would not leave the host. None if all are in use."""
        ranges_in_use: list[IpRange] = [IPv4Network(self.cidr)]
        ranges_in_use += [*self.admitted_deployers, *self.admitted_clients]
        return next(
            (
                network
                for network in map(IPv4Network, _BRIDGES)
                if not _meets(network, ranges_in_use)
            ),
            None,
        )

    def images_with(self, *names: str) -> tuple[str, ...]:
        """`images`, and those of ``names`` that are in ECR."""
        ecr_names = (name for name in names if ecr_image(name) is not None)
        return tuple(dict.fromkeys((*self.images, *ecr_names)))

    @property
    def ecr_images(self) -> tuple[EcrImage, ...]:
        return tuple(image for image in map(ecr_image, self.images) if image is not None)

    def instance_of(self, host: str) -> InstanceSpec:
        return self.instances.get(host, self.instance)


def _read_ranges(ranges: Mapping[str, str]) -> tuple[IpRange, ...]:
    return tuple(dict.fromkeys(ip_network(text) for text in ranges.values()))


def _meets(bridge: IPv4Network, ranges: Iterable[IpRange]) -> bool:
    return any(isinstance(block, IPv4Network) and block.overlaps(bridge) for block in ranges)

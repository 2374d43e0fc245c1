"""The parts of `earshot:cluster` with placement aws: network, instances, volumes, zone,
clients, and the validator in the VPC."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, PlainValidator, field_validator, model_validator

from earshot.aws.subnets import Nat, check_vpc, check_zones
from earshot.config.cluster import Whole
from earshot.errors import AddressError
from earshot.facts.security_groups import WORLD, Clients, IpRange, Members, read_range
from earshot.listeners.address import check_host
from earshot.listeners.model import Frozen, matching
from earshot.listeners.owned import check_property
from earshot.listeners.problems import refuse, reraised, shown
from earshot.listeners.secrets import revealed

MIN_GIB, MAX_GIB = 1, 16_384
ANYWHERE = "anywhere"
_HOSTED_ZONE = re.compile(r"[A-Z0-9]{4,32}", re.ASCII)
_TYPE = re.compile(
    r"(?P<family>[a-z]+)(?P<generation>\d+)(?P<options>[a-z-]*)\.[a-z0-9-]+", re.ASCII
)
_PATTERN = re.compile(r"[a-z0-9-]*\{id\}[a-z0-9-]*", re.ASCII)
_PARAMETER = re.compile(r"/[A-Za-z0-9_./{}-]{1,1000}", re.ASCII)
_URL = re.compile(r"https?://[!-~]+", re.ASCII)
_SHA512 = re.compile(r"[0-9a-f]{128}", re.ASCII)
_FILE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*", re.ASCII)

Architecture = Literal["arm64", "x86_64"]


def _id(kind: str) -> AfterValidator:
    pattern = re.compile(rf"{kind}-[0-9a-f]{{8,17}}", re.ASCII)
    return matching(pattern, f"an id such as {kind}-0123456789abcdef0")


def _range(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(f"found {shown(value)}; allowed: a range of addresses, as text")
    if value in WORLD:
        raise ValueError(f"found {value}, which is every address; write `{ANYWHERE}: true` instead")
    reraised(read_range, value)
    return value


FileName = Annotated[str, matching(_FILE, "a file name of letters, digits, '.', '_' and '-'")]
Range = Annotated[str, PlainValidator(_range, json_schema_input_type=str)]
VpcId = Annotated[str, _id("vpc")]
SubnetId = Annotated[str, _id("subnet")]
GroupId = Annotated[str, _id("sg")]
VolumeId = Annotated[str, _id("vol")]
AmiId = Annotated[str, _id("ami")]
HostedZoneId = Annotated[str, matching(_HOSTED_ZONE, "a hosted zone's id, as Z0123456789ABC")]
ParameterName = Annotated[
    str, matching(_PARAMETER, "an SSM parameter's name that begins with a slash")
]


def _range_of_vpc(value: str) -> str:
    reraised(check_vpc, value)
    return value


def _zones(value: tuple[str, ...]) -> tuple[str, ...]:
    reraised(check_zones, value)
    return value


VpcRange = Annotated[str, AfterValidator(_range_of_vpc)]
Zones = Annotated[tuple[str, ...], AfterValidator(_zones)]


class NetworkSpec(Frozen):
    """A VPC for brokers, with a public and a private subnet per zone."""

    zones: Zones
    """Two or three availability zones of one region, as in us-east-1a."""
    cidr: VpcRange = "10.0.0.0/16"
    """The VPC's CIDR block, private, from /16 to /24."""
    nat: Nat = "one"
    """NAT gateways for the private subnets: none, one or per-zone."""
    flow_logs: bool = False
    """true: the VPC's traffic is logged in a bucket."""
    deletion_protection: bool = True
    """true: resources with data or addresses cannot be deleted."""


class KafkaRelease(Frozen):
    """Kafka's release archive, `kafka_2.13-<version>.tgz`, and its SHA-512 sum."""

    url: Annotated[str, matching(_URL, "an http or https URL of printable ASCII")]
    """The http or https URL of kafka_2.13-VERSION.tgz. Instances must reach it."""
    sha512: Annotated[str, matching(_SHA512, "128 lower-case hexadecimal digits")]
    """The archive's SHA-512 sum in hexadecimal digits, as published with it (.tgz.sha512)."""

    @field_validator("sha512", mode="before")
    @classmethod
    def _joined(cls, value: object) -> object:
        # published files have the sum in groups of upper-case digits
        return "".join(value.split()).lower() if isinstance(value, str) else value


class VpcSpec(Frozen):
    """A VPC of the stack's own, or, with ``id``, an existing one."""

    id: VpcId | None = None
    """The id of an existing VPC. Default: a new VPC."""
    cidr: VpcRange = "10.0.0.0/16"
    """The VPC's CIDR block, from /16 to /24. For an existing VPC, its own."""
    zones: Zones
    """Two or three availability zones; nodes are spread over them in turn."""
    public_subnets: dict[str, SubnetId] = Field(default_factory=dict)
    """By availability zone, a subnet of an existing VPC with a route to its internet gateway."""
    private_subnets: dict[str, SubnetId] = Field(default_factory=dict)
    """By availability zone, a subnet of an existing VPC without that route, which reaches AWS's
    services."""

    @model_validator(mode="after")
    def _subnets(self) -> Self:
        refuse(self._subnet_problems())
        return self

    def _subnet_problems(self) -> Iterator[str]:
        for key, subnets in self.subnets.items():
            if subnets and self.id is None:
                yield f"{key}: found subnets without a VPC's `id`; a new VPC gets its own"
            elif subnets and set(subnets) != set(self.zones):
                allowed = f"one for each of {', '.join(self.zones)}"
                yield f"{key}: found {', '.join(sorted(subnets))}; allowed: {allowed}"

    @property
    def subnets(self) -> dict[str, dict[str, str]]:
        """The subnets by zone, of each key."""
        return {"public_subnets": self.public_subnets, "private_subnets": self.private_subnets}


class InstanceSpec(Frozen):
    """The instances of one role. They run Amazon Linux 2023."""

    type: str = "m7g.large"
    """The EC2 instance type, such as m7g.large."""
    architecture: Architecture | None = None
    """The processor architecture: arm64 or x86_64. Default: that of `type`."""
    ami: AmiId | None = None
    """The id of an Amazon Linux 2023 image. Default: the newest one when an instance is created;
    running instances keep theirs."""
    root_gib: Whole = Field(default=16, ge=8, le=MAX_GIB)
    """The size of the root volume in GiB."""

    @model_validator(mode="after")
    def _agrees(self) -> Self:
        if not _TYPE.fullmatch(self.type):
            raise ValueError(f"type: found {shown(self.type)}; allowed: a type such as m7g.large")
        architecture = architecture_of(self.type)
        if self.architecture not in (None, architecture):
            raise ValueError(
                f"architecture: found {self.architecture} for {self.type}; allowed: {architecture}"
            )
        return self

    @property
    def arch(self) -> Architecture:
        """The architecture of `type`, also if `architecture` is not set."""
        return architecture_of(self.type)


def architecture_of(instance_type: str) -> Architecture:
    """The architecture in the type's name: Graviton has a `g` after the generation, or family a1.

    Source: https://docs.aws.amazon.com/ec2/latest/instancetypes/instance-type-names.html
    """
    match = _TYPE.fullmatch(instance_type)
    if match is None:
        raise ValueError(f"{instance_type} is no instance type")
    graviton = "g" in match["options"] or (match["family"], match["generation"]) == ("a", "1")
    return "arm64" if graviton else "x86_64"


class VolumeSpec(Frozen):
    """The data volume of each node of one role. It is encrypted, and outlives its instance."""

    size_gib: Whole = Field(default=100, ge=MIN_GIB, le=MAX_GIB)
    """The size in GiB."""
    type: Literal["gp3", "io2"] = "gp3"
    """The EBS volume type: gp3 or io2."""
    iops: Whole | None = Field(default=None, ge=100, le=256_000)
    """Provisioned I/O operations per second; required for io2."""
    throughput: Whole | None = Field(default=None, ge=125, le=2000)
    """Provisioned throughput in MiB/s, for gp3 only."""

    @model_validator(mode="after")
    def _performance(self) -> Self:
        if self.type == "io2" and self.iops is None:
            raise ValueError("iops: is missing; io2 has no default")
        if self.type == "io2" and self.throughput is not None:
            raise ValueError("throughput: found one for io2; allowed: for gp3 only")
        if self.type == "gp3" and self.iops is not None and self.iops < 3000:
            raise ValueError(f"iops: found {self.iops} for gp3; allowed: 3000 or more")
        return self


class ZoneSpec(Frozen):
    """A domain for the nodes: a private zone of the stack, and records in a public one."""

    name: str
    """The domain, such as kafka.example.com. Inside the VPC only the private zone answers for
    it."""
    public_zone_id: HostedZoneId | None = None
    """The id of the public hosted zone that holds `name` or a parent domain; required for listeners
    of scope external."""
    record: Annotated[str, matching(_PATTERN, "small letters, digits and hyphens around {id}")] = (
        "broker-{id}"
    )
    """The first label of each broker's name; `{id}` is replaced by the broker's id."""
    ttl: Whole = Field(default=60, ge=1, le=86_400)
    """The records' time to live in seconds."""

    @field_validator("name")
    @classmethod
    def _domain(cls, value: str) -> str:
        name = reraised(check_host, value).lower()
        if "." not in name or not name.rpartition(".")[2].isalpha():
            raise ValueError(f"found {shown(value)}; allowed: a domain such as kafka.example.com")
        return name

    @model_validator(mode="after")
    def _names(self) -> Self:
        try:
            check_host(self.broker(1))
        except AddressError as error:
            raise ValueError(f"record: {error.line}") from None
        return self

    def broker(self, id: int) -> str:
        """The name of broker ``id``."""
        return f"{self.record.format(id=id)}.{self.name}"

    def controller(self, id: int) -> str:
        """The name of a controller on a separate instance."""
        return f"controller-{id}.{self.name}"


class ClientsSpec(Frozen):
    """Clients that security groups admit, in addition to nodes and, for scope internal, the VPC."""

    ranges: dict[str, Range] = Field(default_factory=dict)
    """By a name of your choice, CIDR blocks of external clients."""
    anywhere: bool = False
    """Whether external clients from any address are admitted."""
    groups: dict[str, GroupId] = Field(default_factory=dict)
    """By a name of your choice, ids of security groups of internal clients, in addition to the
    VPC's own range."""

    def admitted(self, vpc: str, connected: Iterable[IpRange] = ()) -> Clients:
        """The admitted clients of a VPC with the range ``vpc``, to which VPCs with the ranges
        ``connected`` are connected."""
        world = WORLD[:1] if self.anywhere else ()
        external: list[IpRange] = [read_range(text) for text in (*self.ranges.values(), *world)]
        return Clients(
            internal=(read_range(vpc), *connected, *(Members(id) for id in self.groups.values())),
            external=tuple(dict.fromkeys(external)),
        )


class ValidatorInstanceSpec(Frozen):
    """A separate instance, without a public address, that validates the internal scope."""

    instance: InstanceSpec = InstanceSpec(type="t4g.medium")
    """The instance. Spark needs two GiB of memory."""
    every: Whole = Field(default=60, ge=5, le=1440)
    """Minutes between validations on the timer."""
    keep_days: Whole = Field(default=30, ge=1, le=3650)
    """Days for which dated reports are kept."""
    client: dict[str, str] = Field(default_factory=dict)
    """Kafka client properties, if an internal listener uses TLS or SASL."""
    secrets: dict[FileName, ParameterName] = Field(default_factory=dict)
    """By file name below /run/earshot/secrets, the SSM parameter that holds the file."""

    @field_validator("client")
    @classmethod
    def _plain(cls, value: dict[str, str]) -> dict[str, str]:
        refuse([f"{key} would reveal a secret" for key in revealed(value)])
        return {key: check_property(key, text) for key, text in value.items()}

    @model_validator(mode="after")
    def _no_id(self) -> ValidatorInstanceSpec:
        refuse(
            f"secrets.{name}: found {parameter}; allowed: a name without {{id}}, for there is one "
            "validator"
            for name, parameter in self.secrets.items()
            if "{" in parameter
        )
        return self


def on_or_off(value: object) -> object:
    """The settings of a validator instance: none for false, all defaults for true."""
    if isinstance(value, bool):
        return {} if value else None
    if value is None or isinstance(value, (Mapping, ValidatorInstanceSpec)):
        return value
    raise ValueError(f"found {shown(value)}; allowed: true, false or a map of settings")

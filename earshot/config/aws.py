"""`earshot:cluster` with placement aws: brokers as EC2 instances in a VPC."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property, partial
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, field_validator, model_validator

from earshot.aws.subnets import Nat, Subnet, check_room, lay_out, spread
from earshot.config.aws_sections import (
    ClientsSpec,
    FileName,
    InstanceSpec,
    KafkaRelease,
    ParameterName,
    ValidatorInstanceSpec,
    VolumeId,
    VolumeSpec,
    VpcSpec,
    ZoneSpec,
    on_or_off,
)
from earshot.config.balancer import Expose
from earshot.config.clear_text import clear_text_problems
from earshot.config.cluster import ClusterSpec, Heap, Whole, shown_ids, unknown_ids
from earshot.config.connected import ConnectedVpcSpec, VpcName, connection_problems
from earshot.config.listener import ListenerSpec
from earshot.config.removal import UNUSED, Remove
from earshot.errors import EarshotError, SpecError
from earshot.listeners.cluster_id import ClusterId
from earshot.listeners.owned import check_property
from earshot.listeners.problems import refuse, reraised
from earshot.listeners.security import is_secret_file
from earshot.listeners.terms import Scope, Strategy
from earshot.names.aws import check_region

Place = Literal["private", "public"]
"""The kind of subnet that brokers are in; only in a public one an Elastic IP works."""
NO_NODE = 0
"""The validator among the ids of nodes, which begin at 1."""


class AwsSpec(ClusterSpec):
    """Brokers as EC2 instances."""

    placement: Literal["aws"]
    """Where brokers run: aws, as EC2 instances in a VPC."""
    region: Annotated[str, AfterValidator(partial(reraised, check_region))]
    """The AWS region, such as eu-central-1."""
    vpc: VpcSpec
    """A VPC of the stack's own, or, with `id`, an existing one."""
    listeners: tuple[ListenerSpec, ...] = (
        ListenerSpec(name="INTERNAL", port=19092, scopes=(Scope.INTERNAL,)),
    )
    """The listeners of all brokers. At least one serves scope internal."""
    expose: Expose = None
    """nlb: a Network Load Balancer with a port per broker, for the listeners with address strategy
    port and no host. Brokers then need no public addresses. privatelink: the same for clients in
    other VPCs, which connect through endpoints. Default: none."""
    naming: Literal["aws", "zone"] = "aws"
    """The names that brokers advertise. aws: EC2's own (`ip-...`, `ec2-...`); zone: names of your
    domain, see `zone`."""
    zone: ZoneSpec | None = None
    """A domain for the nodes, only with naming zone."""
    place: Place | None = None
    """The subnets of brokers, which cannot change later: public, with an Elastic IP each, or
    private. Default: where they are; for a new cluster, public if a listener serves scope
    external."""
    clients: ClientsSpec = ClientsSpec()
    """The clients that security groups admit."""
    connected: dict[VpcName, ConnectedVpcSpec] = Field(default_factory=dict)
    """By a name of your choice (also that of the vantage there), other VPCs with clients of scope
    internal, connected by peering or a Transit Gateway."""
    clear_text: dict[str, str] = Field(default_factory=dict)
    """By listener, the reason why a listener of scope external needs no TLS."""
    instance: InstanceSpec = InstanceSpec()
    """The brokers' instances."""
    volume: VolumeSpec = VolumeSpec()
    """The brokers' data volumes."""
    controller_instance: InstanceSpec = InstanceSpec(type="t4g.medium")
    """The instances of separate controllers."""
    controller_volume: VolumeSpec = VolumeSpec(size_gib=20)
    """The data volumes of separate controllers."""
    pinned: dict[int, str] = Field(default_factory=dict)
    """By node id, the availability zone in which the node stays when `vpc.zones` changes."""
    volumes: dict[int, VolumeId] = Field(default_factory=dict)
    """By node id, the data volume to take over, kept by an earlier stack of this name."""
    drained: tuple[Whole, ...] = ()
    """Ids of brokers without replicas, which may be removed."""
    archive: KafkaRelease
    """Kafka's release archive, which instances download."""
    heap: Heap = "1g"
    """The heap of each JVM, as `-Xmx` takes it, such as 256m or 1g."""
    secrets: dict[FileName, ParameterName] = Field(default_factory=dict)
    """By file name below /run/kafka/secrets, the SSM parameter that holds the file; `{id}` is
    replaced by the node's id."""
    client: dict[str, str] = Field(default_factory=dict)
    """Kafka client properties with which a node connects to its own inter-broker listener, if it
    needs any."""
    nat: Nat | None = None
    """NAT gateways of a new VPC: none, one, or per-zone. Default: one if a node is in a private
    subnet."""
    flow_logs: bool = False
    """Whether the VPC's traffic is recorded, in a bucket of the stack."""
    data: Literal["keep", "delete"] = "keep"
    """What `pulumi destroy` does with the data volumes: keep or delete."""
    remove: Remove = UNUSED
    """When a listener that a change removes goes: unused (once no client is connected, as the
    instances report), anyway, or from a date on (UTC, such as 2030-12-31)."""
    cluster_id: ClusterId | None = None
    """Kafka's cluster id, only to take over volumes that an earlier stack has kept. Default: a new
    one, made once."""
    deletion_protection: bool = True
    """Whether resources that hold data or an address are protected from deletion."""
    prove: Literal["here", "later"] = "here"
    """here: external listeners without credentials are validated from this machine, which must be
    among `clients`; later: by `earshot validate`."""
    validator: Annotated[
        ValidatorInstanceSpec | None,
        BeforeValidator(on_or_off, json_schema_input_type=ValidatorInstanceSpec | bool | None),
    ] = None
    """An instance in a private subnet that validates the internal scope after each update and on a
    timer; true for its defaults. Default: none."""
    in_turn: bool = True
    """true: one node changes at a time, and none while another is down; false: all at once, for a
    cluster that is down as a whole."""
    ready_seconds: Whole = Field(default=900, ge=60, le=7200)
    """Seconds for a new or replaced node to be in sync."""

    @field_validator("client")
    @classmethod
    def _properties(cls, value: dict[str, str]) -> dict[str, str]:
        return {key: check_property(key, text) for key, text in value.items()}

    @model_validator(mode="after")
    def _bootstrap_of_balancer(self) -> Self:
        """Sets the bootstrap port of balanced listeners to `base_port`, which no broker has."""
        settled = tuple(
            listener.model_copy(update={"address": listener.address.with_bootstrap()})
            if listener.name in self.balanced
            else listener
            for listener in self.listeners
        )
        object.__setattr__(self, "listeners", settled)
        return self

    @model_validator(mode="after")
    def _fits_aws(self) -> Self:
        if self.expose is not None:
            own_parts = (self.balanced, self.brokers, self.vpc, self.zone)
            refuse([*self.expose.problems(*own_parts), *self._link_problems()])
        refuse([*self._place_problems(), *self._name_problems(), *self._client_problems()])
        refuse(connection_problems(self.connected, self.vpc, self.naming))
        refuse(list(self._secret_problems()))
        refuse([*self._room_problems(), *self._data_problems()])
        return self

    def _link_problems(self) -> Iterator[str]:
        for listener in self.listeners:
            if listener.name in self.linked and listener.scopes != (Scope.EXTERNAL,):
                yield (
                    f"listeners.{listener.name}.scopes: found {', '.join(listener.scopes)} with "
                    f"expose privatelink; allowed: {Scope.EXTERNAL}, as its name resolves only in "
                    "the consumers' VPCs"
                )

    def _place_problems(self) -> Iterator[str]:
        region = self.vpc.zones[0][:-1]
        if region != self.region:
            yield f"vpc.zones: found zones of {region}; allowed: zones of {self.region}"
        for id, zone in self.pinned.items():
            if id not in self.node_ids:
                yield f"pinned: found node {id}; allowed: {shown_ids(self.node_ids)}"
            elif zone not in self.vpc.zones:
                yield f"pinned.{id}: found {zone}; allowed: {', '.join(self.vpc.zones)}"
        if self.vpc.id is None:
            if self.nat == "none" and self._needs_way_out:
                yield (
                    f"nat: found none with {self._private_ones} in private subnets, which must "
                    "reach packages, archives and AWS's services; allowed: one, per-zone"
                )
            return
        for key, value in (("nat", self.nat is not None), ("flow_logs", self.flow_logs)):
            if value:
                yield f"{key}: found one for a VPC that is there, which has its own"
        if self.public and not self.vpc.public_subnets:
            yield "vpc.public_subnets: is missing; nodes would be there"
        if self._needs_way_out and not self.vpc.private_subnets:
            yield f"vpc.private_subnets: is missing; {self._private_ones} would be there"

    def _data_problems(self) -> Iterator[str]:
        yield from unknown_ids("volumes", "node", self.volumes, self.node_ids)
        holders: dict[str, int] = {}
        for id, volume in self.volumes.items():
            holder = holders.setdefault(volume, id)
            if holder != id:
                yield f"volumes.{id}: found {volume}, which node {holder} has already"
        for id in self.drained:
            if id in self.ids:
                problem = f"found broker {id}, which stays and gets replicas"
                yield f"drained: {problem}; allowed: ids of brokers that this file removes"

    def _name_problems(self) -> Iterator[str]:
        if self.naming == "zone" and self.zone is None:
            yield "zone: is missing; naming zone takes the nodes' names from it"
        if self.naming == "aws" and self.zone is not None:
            yield "zone: found one with naming aws; allowed: with naming zone"
        has_public_zone = not self._public_names or (
            self.zone is not None and self.zone.public_zone_id
        )
        if self.naming == "zone" and self.zone is not None and not has_public_zone:
            why = "external clients find a listener's name in a public zone only"
            yield f"zone.public_zone_id: is missing; {why}"

    def _client_problems(self) -> Iterator[str]:
        yield from clear_text_problems(self.listeners, self.clear_text)
        has_clients = bool(self.clients.ranges) or self.clients.anywhere
        if self.place == "private" and (direct := self.directly_external):
            names = ", ".join(direct)
            yield (
                f"place: found private with a listener for scope external ({names}); allowed: "
                "public, for an Elastic IP works in a public subnet only, or `expose: nlb` and the "
                "address strategy port"
            )
        if not has_clients and any(
            Scope.EXTERNAL in listener.scopes and listener.name not in self.linked
            for listener in self.listeners
        ):
            why = "no client could connect to a listener for scope external"
            yield f"clients.ranges: is missing; {why}"
        if has_clients and not self.external:
            yield "clients: found external ones, and no listener has the scope external"
        if self.validator is not None and not self.validator.client and self.security is None:
            for listener in self.listeners:
                if Scope.INTERNAL in listener.scopes and listener.protocol.startswith("SASL"):
                    yield f"validator.client: is missing; {listener.name} takes {listener.protocol}"

    def _secret_problems(self) -> Iterator[str]:
        """Secrets and properties of the user that conflict with `security`."""
        if self.security is None:
            return
        own_secrets = [("", self.client, self.secrets)]
        if self.validator is not None:
            own_secrets.append(("validator.", self.validator.client, self.validator.secrets))
        for key, client, _ in own_secrets:
            if client:
                problem = "found with `security`, which provides the client properties"
                yield f"{key}client: {problem}; remove it"
        for key, _, files in own_secrets:
            for name in filter(is_secret_file, files):
                yield f"{key}secrets.{name}: found with `security`, which has a file of that name"

    def _room_problems(self) -> Iterator[str]:
        if self.vpc.id is not None:
            return
        for public in (True, False):
            nodes = {id: self.zone_of[id] for id in self.node_ids if self.is_public(id) is public}
            if self.validator is not None and not public:
                nodes[NO_NODE] = self.vpc.zones[0]
            try:
                check_room(self.subnets, nodes, public=public)
            except EarshotError as error:
                yield f"vpc.cidr: {error.line}"

    def at(self, place: Place) -> Self:
        """This spec with its brokers at ``place``. Raises EarshotError if the VPC lacks that."""
        placed = self.model_copy(update={"place": place})
        if problems := list(placed._place_problems()):
            raise SpecError.of("earshot:cluster", problems)
        return placed

    @property
    def external(self) -> bool:
        """True if a listener has scope external."""
        return any(Scope.EXTERNAL in listener.scopes for listener in self.listeners)

    @property
    def public(self) -> bool:
        """True if brokers are in public subnets, each with an Elastic IP."""
        return bool(self.directly_external) if self.place is None else self.place == "public"

    @property
    def balanced(self) -> tuple[str, ...]:
        listeners = self.listeners if self.expose is not None else ()
        return tuple(
            listener.name
            for listener in listeners
            if listener.address.strategy is Strategy.PORT and listener.address.host is None
        )

    @property
    def linked(self) -> tuple[str, ...]:
        """The listeners whose clients connect through endpoints of other VPCs."""
        return self.balanced if self.expose is not None and self.expose.private_link else ()

    @property
    def directly_external(self) -> list[str]:
        """The listeners that clients outside the VPC reach at the brokers' own addresses."""
        return [
            listener.name
            for listener in self.listeners
            if Scope.EXTERNAL in listener.scopes and not listener.address.forwards
        ]

    @property
    def _public_names(self) -> bool:
        """True if names are resolved outside the VPC."""
        return bool(self.directly_external) or bool(self.expose and self.expose.public)

    def is_public(self, id: int) -> bool:
        """True if node ``id`` is in a public subnet, which an Elastic IP needs."""
        return self.public and id in self.ids

    def subnet_of(self, id: int) -> str:
        """The subnet of node ``id``: its CIDR block, or its ID in an existing VPC."""
        zone, public = self.zone_of[id], self.is_public(id)
        if self.vpc.id is not None:
            return self.vpc.subnets["public_subnets" if public else "private_subnets"][zone]
        return next(
            str(subnet.cidr)
            for subnet in self.subnets
            if (subnet.zone, subnet.public) == (zone, public)
        )

    @property
    def _stand_privately(self) -> list[int]:
        return [id for id in self.node_ids if not self.is_public(id)]

    @property
    def _needs_way_out(self) -> bool:
        return bool(self._stand_privately) or self.validator is not None

    @property
    def _private_ones(self) -> str:
        return "nodes" if self._stand_privately else "the validator"

    @property
    def nat_gateways(self) -> Nat:
        """`nat`, or its default."""
        is_needed = self.vpc.id is None and self._needs_way_out
        return self.nat or ("one" if is_needed else "none")

    @property
    def gateways(self) -> int:
        """The number of NAT gateways."""
        return {"none": 0, "one": 1, "per-zone": len(self.vpc.zones)}[self.nat_gateways]

    @property
    def elastic_ips(self) -> int:
        """One per NAT gateway, and one per broker in a public subnet."""
        return self.gateways + (self.brokers if self.public else 0)

    @cached_property
    def subnets(self) -> tuple[Subnet, ...]:
        """The subnets of a new VPC; empty for an existing VPC."""
        return () if self.vpc.id is not None else lay_out(self.vpc.cidr, self.vpc.zones)

    @cached_property
    def zone_of(self) -> dict[int, str]:
        """Each node's zone by its id; brokers and separate controllers are spread in turn."""
        zones: dict[int, str] = {}
        for ids in (list(self.ids), [id for id in self.controller_ids if id not in self.ids]):
            pinned = {id: zone for id, zone in self.pinned.items() if id in ids}
            zones |= spread(ids, self.vpc.zones, pinned)
        return zones

    def name_of(self, id: int) -> str:
        """The name of node ``id``: `broker-1`, `controller-10001`."""
        return f"{'broker' if id in self.ids else 'controller'}-{id}"

    def instance_of(self, id: int) -> InstanceSpec:
        return self.instance if id in self.ids else self.controller_instance

    def volume_of(self, id: int) -> VolumeSpec:
        return self.volume if id in self.ids else self.controller_volume


MODEL = AwsSpec

"""`earshot:cluster` with placement docker: brokers as containers on one Docker host or several."""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from ipaddress import ip_address
from typing import Annotated, Literal, Self

from pydantic import (
    Field,
    PlainValidator,
    field_validator,
    model_validator,
)

from earshot.config.aws_docker_hosts import DockerHostsSpec
from earshot.config.cluster import (
    FIRST_SEPARATE_CONTROLLER,
    ClusterSpec,
    Heap,
    Whole,
    shown_ids,
    unknown_ids,
)
from earshot.config.docker_host import DockerHost, Hosts, ProvisionedHost
from earshot.config.listener import ListenerSpec
from earshot.config.removal import UNUSED, Remove
from earshot.listeners.cluster_id import ClusterId
from earshot.listeners.images import Family, family_of, tag_of
from earshot.listeners.model import Frozen, Port, matching
from earshot.listeners.problems import refuse, repeated, shown
from earshot.listeners.terms import Scope

MAX_HOSTS = 100
_CONTAINER_NAME = re.compile(r"[a-zA-Z0-9]([a-zA-Z0-9.-]{0,61}[a-zA-Z0-9])?", re.ASCII)
_NETWORK = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9_.-]{0,127}", re.ASCII)
WITHOUT_NAMES = ("bridge", "host", "none")
"""Docker's own networks: containers have no names on them, which brokers need.
https://docs.docker.com/engine/network/drivers/bridge/"""
_IMAGE = re.compile(r"[a-z0-9][a-zA-Z0-9._/:@-]{0,254}", re.ASCII)
_KAFKA_TAG = re.compile(r"\d+\.\d+\.\d+", re.ASCII)
_UNUSABLE = {Family.BITNAMI: "it maps other variables", Family.WURSTMEISTER: "it knows no KRaft"}


def _address(value: object) -> str:
    try:
        return str(ip_address(value if isinstance(value, str) else ""))
    except ValueError:
        raise ValueError(f"found {shown(value)}; allowed: an IP address, as text") from None


IpAddress = Annotated[str, PlainValidator(_address, json_schema_input_type=str)]
NetworkName = Annotated[str, matching(_NETWORK, "the name of a Docker network")]
Image = Annotated[str, matching(_IMAGE, "an image such as apache/kafka:4.1.1")]


class DockerListenerSpec(ListenerSpec):
    """One listener, for all brokers, with its published ports."""

    published: dict[int, Port] = Field(default_factory=dict)
    """By broker id, the host port that is published. Default: `port` for the first broker of a
    host, the next ports for its next brokers, on listeners that clients outside the network
    reach."""


class ValidatorImageSpec(Frozen):
    """The image of containers that validate from the clients' networks."""

    base: Image = "debian:bookworm-slim"
    """The Debian image, or a mirror of one, that the validator image is built on."""


_LISTENERS = (
    DockerListenerSpec(name="INTERNAL", port=19092, scopes=(Scope.INTERNAL,)),
    DockerListenerSpec(name="HOST", port=9092, scopes=(Scope.HOST,)),
    DockerListenerSpec(name="EXTERNAL", port=39092, scopes=(Scope.EXTERNAL,)),
)


class DockerSpec(ClusterSpec):
    """Brokers as containers."""

    placement: Literal["docker"]
    """Where brokers run: docker, as containers."""
    broker_ids: tuple[Whole, ...] | None = None
    """The brokers' ids. Default: 1, 2, 3, and so on."""
    names: dict[int, str] = Field(default_factory=dict)
    """By node id, the container's name, which is also its alias on the network. Default: kafka-ID,
    controller-ID."""
    image: Image | None = None
    """The image of every node. Default: apache/kafka of `kafka_version`."""
    listeners: tuple[DockerListenerSpec, ...] = _LISTENERS
    """The listeners of all brokers. At least one serves scope internal."""
    hosts: Hosts = Field(default=(DockerHost(),), min_length=1, max_length=MAX_HOSTS)
    """The Docker hosts; in a stack file also `aws`, with hosts that the stack creates. Default:
    this machine's."""
    network: NetworkName | None = None
    """The name of an existing Docker network for the brokers, which is never removed. With several
    Docker hosts, each must have it. Default: a network that the stack creates."""
    dns: tuple[IpAddress, ...] = ()
    """DNS servers of the containers, as IP addresses. Default: those of the engine."""
    heap: Heap = "512m"
    """The heap of each JVM, as `-Xmx` takes it, such as 256m or 1g."""
    data: Literal["keep", "delete"] = "keep"
    """What `pulumi destroy` does with the brokers' volumes: keep or delete."""
    remove: Remove = UNUSED
    """When a listener that a change removes goes: unused (once no client is connected), anyway, or
    from a date on (UTC, such as 2030-12-31)."""
    cluster_id: ClusterId | None = None
    """Kafka's cluster id, only to take over volumes that an earlier stack has kept. Default: a new
    one, made once."""
    validator: ValidatorImageSpec = ValidatorImageSpec()
    """The image in which the internal and external vantages are validated."""

    @model_validator(mode="before")
    @classmethod
    def _defaults(cls, value: object) -> object:
        """Adds the version in the image's tag; omits the listener HOST on several hosts."""
        if not isinstance(value, Mapping):
            return value
        settings = dict(value)
        image, hosts = settings.get("image"), settings.get("hosts")
        if isinstance(image, str) and "kafka_version" not in settings:
            tag = tag_of(image)
            if family_of(image) is Family.APACHE and _KAFKA_TAG.fullmatch(tag):
                settings["kafka_version"] = tag
        if isinstance(hosts, Mapping):
            aws = hosts.get("aws")
            zones = aws.get("host_zones") if isinstance(aws, Mapping) else None
            hosts = list(zones) if isinstance(zones, Mapping) else []
        if isinstance(hosts, (list, tuple)) and len(hosts) > 1 and "listeners" not in settings:
            settings["listeners"] = tuple(
                listener for listener in _LISTENERS if listener.name != "HOST"
            )
        ids = settings.get("broker_ids")
        if isinstance(ids, (list, tuple)) and "brokers" not in settings:
            settings["brokers"] = len(ids)
        return settings

    @field_validator("network")
    @classmethod
    def _with_names(cls, value: str | None) -> str | None:
        if value in WITHOUT_NAMES:
            problem = f"found {value}, on which Docker resolves no names"
            raise ValueError(f"{problem}; allowed: a network made by `docker network create`")
        return value

    @field_validator("image")
    @classmethod
    def _usable(cls, value: str | None) -> str | None:
        if value is None:
            return None
        if reason := _UNUSABLE.get(family_of(value)):
            raise ValueError(
                f"found {shown(value)}, which earshot cannot run: {reason}; allowed: apache/kafka, "
                "confluentinc/cp-kafka, or an image that takes their variables"
            )
        return value

    @field_validator("names")
    @classmethod
    def _containers(cls, value: dict[int, str]) -> dict[int, str]:
        # Docker allows kafka_1, but many clients reject it as an advertised host
        problems = [
            f"{id}: found {shown(name)}; allowed: up to 63 letters, digits, hyphens and dots, "
            "beginning with a letter or digit"
            for id, name in value.items()
            if not _CONTAINER_NAME.fullmatch(name)
        ]
        names = map(str.lower, value.values())
        problems += [f"{name} occurs {times} times" for name, times in repeated(names)]
        refuse(problems)
        return value

    @model_validator(mode="after")
    def _narrow(self) -> Self:
        """The spec; without an external host, listeners without a host serve only this machine."""
        if len(self.hosts) == 1 and self.hosts[0].external is None:
            settled = tuple(
                listener
                if not listener.advertises_own_host(self.ids)
                else listener.rescoped(Scope.EXTERNAL, Scope.HOST)
                for listener in self.listeners
            )
            object.__setattr__(self, "listeners", settled)
        return self

    @model_validator(mode="after")
    def _fits_docker(self) -> Self:
        refuse([*self._id_problems(), *self._host_problems(), *self._image_problems()])
        refuse(list(self._secured_problems()))
        return self

    def _id_problems(self) -> Iterator[str]:
        if self.broker_ids is not None:
            if len(self.broker_ids) != self.brokers:
                problems = f"found {len(self.broker_ids)} for {self.brokers} broker(s)"
                yield f"broker_ids: {problems}; allowed: one for each"
            if len(set(self.broker_ids)) != len(self.broker_ids):
                yield "broker_ids: found an id twice; allowed: each once"
            if any(not 0 <= id < FIRST_SEPARATE_CONTROLLER for id in self.broker_ids):
                allowed = f"0 to {FIRST_SEPARATE_CONTROLLER - 1}"
                yield f"broker_ids: found {shown_ids(self.broker_ids)}; allowed: {allowed}"
        yield from unknown_ids("names", "node", self.names, self.node_ids)
        for name, times in repeated(self.name_of(id).lower() for id in self.node_ids):
            yield f"names: {name} would be the name of {times} containers"
        for listener in self.listeners:
            key = f"listeners.{listener.name}.published"
            yield from unknown_ids(key, "broker", listener.published, self.ids)

    def _host_problems(self) -> Iterator[str]:
        for name, times in repeated(host_spec.name for host_spec in self.hosts):
            yield f"hosts: {name} occurs {times} times; names are distinct"
        assigned_ids = [id for host_spec in self.hosts for id in host_spec.brokers or ()]
        if assigned_ids and sorted(assigned_ids) != sorted(self.ids):
            yield (
                f"hosts: their `brokers` are {shown_ids(assigned_ids)}; allowed: each of "
                f"{shown_ids(self.ids)} on one host, or no host with `brokers`"
            )
        if len(self.hosts) == 1:
            return
        if self.controllers.mode == "separate":
            yield (
                "controllers.mode: found separate with several Docker hosts; a controller alone "
                "binds the address that the voters use, which in a container is not its host's. "
                "Allowed: combined"
            )
        for host in self.hosts:
            if host.between_hosts is None:
                yield (
                    f"hosts.{host.name}: has neither `external` nor `internal`; networks do not "
                    "span Docker hosts, so that brokers need a name under which they reach it"
                )
            external = (
                listener for listener in self.listeners if Scope.EXTERNAL in listener.scopes
            )
            if host.external is None and any(
                listener.advertises_own_host(self.ids) for listener in external
            ):
                yield f"hosts.{host.name}.external: is missing; a listener has the scope external"
        for listener in self.listeners:
            if Scope.HOST in listener.scopes:
                yield (
                    f"listeners.{listener.name}.scopes: found host with {len(self.hosts)} Docker "
                    "hosts; a client gets the addresses of all brokers, and reaches only those of "
                    "its own host through localhost. Give the listener the scope external"
                )

    def _secured_problems(self) -> Iterator[str]:
        if self.security is None:
            return
        if len(self.hosts) > 1:
            yield (
                f"security: found with {len(self.hosts)} Docker hosts, where it has not been run; "
                "allowed: one host, or protocols by `protocol` and `extra`"
            )
        for listener in self.listeners:
            if listener.name == self.inter_broker_name and listener.advertised:
                yield (
                    f"listeners.{listener.name}.advertised: found with `security`; allowed: "
                    "between brokers only the containers' names, through which users are created"
                )

    def _image_problems(self) -> Iterator[str]:
        image = self.image or ""
        tag = tag_of(image)
        official = family_of(image) is Family.APACHE and _KAFKA_TAG.fullmatch(tag)
        if official and tag != self.kafka_version:
            yield f"image: found {image} with kafka_version {self.kafka_version}; they differ"

    @property
    def provisioned(self) -> DockerHostsSpec | None:
        """The hosts that the stack creates, or None."""
        first_host = self.hosts[0]
        return first_host.made if isinstance(first_host, ProvisionedHost) else None

    @property
    def ids(self) -> Sequence[int]:
        return super().ids if self.broker_ids is None else self.broker_ids

    @property
    def image_name(self) -> str:
        """The image of every node."""
        return self.image or f"apache/kafka:{self.kafka_version}"

    def name_of(self, id: int) -> str:
        """The name of the container of node ``id``."""
        kind = "kafka" if id in self.ids else "controller"
        return self.names.get(id, f"{kind}-{id}")

    @cached_property
    def host_of(self) -> dict[int, int]:
        """The index of each node's host, by node id."""
        hosts_by_id: dict[int, int] = {}
        for index, host in enumerate(self.hosts):
            hosts_by_id |= dict.fromkeys(host.brokers or (), index)
        for nodes in (self.ids, self.controller_ids):
            hosts_by_id |= {
                id: turn % len(self.hosts) for turn, id in enumerate(nodes) if id not in hosts_by_id
            }
        return hosts_by_id


MODEL = DockerSpec

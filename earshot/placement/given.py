"""The plan of brokers that other means provision: the caller gives names, ports and roles."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)

from earshot.config.cluster import ClusterSpec
from earshot.errors import SpecError
from earshot.listeners.model import ClusterPlan, Frozen, Host, ListenerName, Port
from earshot.listeners.problems import describe, refuse, shown
from earshot.listeners.terms import CLIENT_SCOPES, Role, Scope, UnknownHost
from earshot.names.kinds import ip_of
from earshot.placement.plan import NodeNames, plan

_DIGITS = re.compile(r"[1-9][0-9]{0,4}", re.ASCII)
_ID = re.compile(r"0|[1-9][0-9]{0,9}", re.ASCII)
MOST_ID = 2**31 - 1
MOST_VOTERS = 3
"""Voters of a quorum for which no node's `roles` name controllers."""


def _one_line(value: str) -> str:
    if not value.isprintable():
        raise ValueError(f"found {shown(value)}; allowed: one line of text")
    return value


def _ip(value: str) -> str:
    if ip_of(value) is None:
        raise ValueError(f"found {shown(value)}; allowed: an IP address")
    return value


Line = Annotated[str, AfterValidator(_one_line)]
"""Text that a file of properties holds in one line."""


def _unquoted(value: object) -> object:
    return int(value) if isinstance(value, str) and _DIGITS.fullmatch(value) else value


PortOrText = Annotated[Port, BeforeValidator(_unquoted)]
"""A port, quoted or not: keys of a program's map are texts."""


class GivenContainer(Frozen):
    """What a node's container is called and publishes."""

    names: tuple[Annotated[Line, Field(min_length=1)], ...] = Field(min_length=1)
    ports: dict[PortOrText, PortOrText] = Field(default_factory=dict)
    """The port of the Docker host by port of the container."""


class GivenNode(Frozen):
    """One broker or controller: a host for each scope whose clients connect to it."""

    internal: Host | None = None
    host: Host | None = None
    external: Host | None = None
    controller: Host | None = None
    """The host that the quorum's voters name; default: `internal`."""
    ports: dict[ListenerName, Port] = Field(default_factory=dict)
    """Advertised port by listener, where it differs from the port that the listener binds."""
    rack: Line = ""
    log_dir: Annotated[Line, Field(min_length=1)] = "/var/lib/kafka/data"
    addresses: tuple[Annotated[str, AfterValidator(_ip)], ...] = ()
    """IP addresses of the node: what its names must resolve to, where they are known."""
    roles: tuple[Role, ...] = ()
    """Default: broker; and controller for the first nodes, if no node has that role."""
    container: GivenContainer | None = None

    @field_validator("roles")
    @classmethod
    def _client_roles(cls, value: tuple[Role, ...]) -> tuple[Role, ...]:
        if len(set(value)) != len(value):
            raise ValueError(f"found {', '.join(value)}; allowed: each role once")
        return value

    def hosts(self) -> dict[Scope, str | UnknownHost]:
        """The hosts by scope."""
        by_scope = {scope: getattr(self, scope) for scope in CLIENT_SCOPES}
        by_scope[Scope.CONTROLLER] = self.controller or self.internal
        return {scope: host for scope, host in by_scope.items() if host is not None}


class GivenClusterSpec(ClusterSpec):
    """A cluster whose nodes exist already, or are made by other means."""

    placement: Literal["given"] = "given"
    nodes: dict[int, GivenNode] = Field(min_length=1)
    """By node id, as Kafka's `node.id`."""

    @model_validator(mode="before")
    @classmethod
    def _counted(cls, value: Any) -> Any:
        if not isinstance(value, Mapping) or not isinstance(value.get("nodes"), Mapping):
            return value
        wrong = [id for id in value["nodes"] if not _is_id(id)]
        if wrong:
            allowed = f"0 to {MOST_ID}, without sign or leading zero"
            refuse(f"nodes: found the id {shown(id)}; allowed: {allowed}" for id in wrong)
        if "brokers" in value:
            raise ValueError("brokers: found beside `nodes`; allowed: `nodes`, one entry a node")
        brokers = sum(_is_broker(node) for node in value["nodes"].values())
        return {**value, "brokers": max(1, brokers)}

    @model_validator(mode="after")
    def _hosts_for_all_scopes(self) -> Self:
        problems = [
            f"nodes.{id}.{scope}: is missing; listener {item.name} is for scope {scope}, "
            "and advertises a host to its clients"
            for id in self.ids
            for item in self.listeners
            if (scope := item.scopes[-1]) not in self.nodes[id].hosts()
            and item.advertises_own_host([id])
        ]
        problems += [
            f"nodes.{id}.internal: is missing; the quorum's voters name the node's host"
            for id in self.controller_ids
            if Scope.CONTROLLER not in self.nodes[id].hosts()
        ]
        names = [item.name for item in self.listeners] + [self.controllers.name]
        for id, node in self.nodes.items():
            for name in node.ports:
                if name not in names:
                    key = f"nodes.{id}.ports"
                    problems.append(f"{key}: found {shown(name)}; allowed: {', '.join(names)}")
        if not self.ids:
            problems.append("nodes: found no node with the role broker; allowed: at least one")
        refuse(problems)
        return self

    @property
    def ids(self) -> Sequence[int]:
        return sorted(
            id for id, node in self.nodes.items() if not node.roles or Role.BROKER in node.roles
        )

    @property
    def controller_ids(self) -> Sequence[int]:
        named = sorted(id for id, node in self.nodes.items() if Role.CONTROLLER in node.roles)
        return named or self.ids[: MOST_VOTERS if len(self.ids) >= MOST_VOTERS else 1]

    @property
    def voters(self) -> int:
        return len(self.controller_ids)

    def _quorum_problems(self) -> Iterator[str]:
        name = self.controllers.name
        if any(item.name == name for item in self.listeners):
            yield f"controllers.name: found {name}, which is a client listener's name already"
        if self.voters % 2 == 0:
            yield (
                f"nodes: found the role controller on {self.voters} nodes; allowed: an odd number, "
                "as an even number of voters survives no more failures than one less"
            )


def _is_id(value: object) -> bool:
    """Whether ``value`` is a node id as Kafka writes it; two texts for one id would be one node."""
    return bool(_ID.fullmatch(str(value))) and int(str(value)) <= MOST_ID


def _is_broker(node: object) -> bool:
    roles = node.get("roles") if isinstance(node, Mapping) else None
    return not roles or not isinstance(roles, Sequence) or Role.BROKER in roles


def read_given(document: Mapping[str, Any], source: str) -> GivenClusterSpec:
    """The cluster that ``document`` describes. Raises SpecError with every problem of it."""
    try:
        return GivenClusterSpec.model_validate(document)
    except ValidationError as error:
        raise SpecError.of(source, describe(error, GivenClusterSpec, document)) from None


def plan_given(spec: GivenClusterSpec) -> ClusterPlan:
    """The plan of ``spec``. Raises EarshotError."""
    names = {
        id: NodeNames(
            hosts=node.hosts(),
            published=node.ports,
            log_dir=node.log_dir,
            rack=node.rack,
            addresses=node.addresses,
        )
        for id, node in spec.nodes.items()
    }
    return plan(spec, names)

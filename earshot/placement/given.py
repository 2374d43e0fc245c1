"""Plans brokers that other programs provision. The caller provides their names, ports and roles."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Literal, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    field_validator,
    model_validator,
)

from earshot.config.cluster import ClusterSpec
from earshot.json_object import Document
from earshot.listeners.model import ClusterPlan, Frozen, Host, ListenerName, Port
from earshot.listeners.problems import read_model, refuse, shown
from earshot.listeners.terms import CLIENT_SCOPES, Role, Scope, UnknownHost
from earshot.names.kinds import ip_of
from earshot.placement.plan import NodeNames, plan

_DIGITS = re.compile(r"[1-9][0-9]{0,4}", re.ASCII)
_ID = re.compile(r"0|[1-9][0-9]{0,9}", re.ASCII)
MAX_ID = 2**31 - 1
DEFAULT_VOTERS = 3
"""The number of voters if no node has the role controller."""


def _one_line(value: str) -> str:
    if not value.isprintable():
        raise ValueError(f"found {shown(value)}; allowed: one line of text")
    return value


def _ip(value: str) -> str:
    if ip_of(value) is None:
        raise ValueError(f"found {shown(value)}; allowed: an IP address")
    return value


OneLine = Annotated[str, AfterValidator(_one_line)]
"""Text for one line of a properties file."""


def _port_number(value: object) -> object:
    return int(value) if isinstance(value, str) and _DIGITS.fullmatch(value) else value


PortOrText = Annotated[Port, BeforeValidator(_port_number)]
"""A port, as number or text: keys of a program's map are texts."""


class GivenContainer(Frozen):
    """The names and published ports of a node's container."""

    names: tuple[Annotated[OneLine, Field(min_length=1)], ...] = Field(min_length=1)
    ports: dict[PortOrText, PortOrText] = Field(default_factory=dict)
    """Ports of the Docker host, by port of the container."""


class GivenNode(Frozen):
    """One broker or controller: a host for each scope whose clients connect to it."""

    internal: Host | None = None
    host: Host | None = None
    external: Host | None = None
    controller: Host | None = None
    """The host in the addresses of the quorum's voters; default: `internal`."""
    ports: dict[ListenerName, Port] = Field(default_factory=dict)
    """Advertised ports by listener, if they differ from the bound port."""
    rack: OneLine = ""
    log_dir: Annotated[OneLine, Field(min_length=1)] = "/var/lib/kafka/data"
    addresses: tuple[Annotated[str, AfterValidator(_ip)], ...] = ()
    """The node's IP addresses, if known. Its names must resolve to one of them."""
    roles: tuple[Role, ...] = ()
    """Default: broker; for the first nodes also controller, if no node has that role."""
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
    """A cluster whose nodes exist already, or are provisioned by other programs."""

    placement: Literal["given"] = "given"
    nodes: dict[int, GivenNode] = Field(min_length=1)
    """The nodes by Kafka's `node.id`."""

    @model_validator(mode="before")
    @classmethod
    def _with_broker_count(cls, value: object) -> object:
        if not isinstance(value, Mapping) or not isinstance(value.get("nodes"), Mapping):
            return value
        wrong_ids = [id for id in value["nodes"] if not _is_id(id)]
        if wrong_ids:
            allowed = f"0 to {MAX_ID}, without sign or leading zero"
            refuse(f"nodes: found the id {shown(id)}; allowed: {allowed}" for id in wrong_ids)
        if "brokers" in value:
            raise ValueError(
                "brokers: found with `nodes`; allowed: only `nodes`, an entry per node"
            )
        brokers = sum(_is_broker(node) for node in value["nodes"].values())
        return {**value, "brokers": max(1, brokers)}

    @model_validator(mode="after")
    def _hosts_for_all_scopes(self) -> Self:
        problems = [
            f"nodes.{id}.{scope}: is missing; listener {listener.name} is for scope {scope}, "
            "and advertises a host of this scope to its clients"
            for id in self.ids
            for listener in self.listeners
            if (scope := listener.scopes[-1]) not in self.nodes[id].hosts()
            and listener.advertises_own_host([id])
        ]
        problems += [
            f"nodes.{id}.internal: is missing; the quorum's voters name the node's host"
            for id in self.controller_ids
            if Scope.CONTROLLER not in self.nodes[id].hosts()
        ]
        names = [listener.name for listener in self.listeners] + [self.controllers.name]
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
        named_controllers = sorted(
            id for id, node in self.nodes.items() if Role.CONTROLLER in node.roles
        )
        return (
            named_controllers
            or self.ids[: DEFAULT_VOTERS if len(self.ids) >= DEFAULT_VOTERS else 1]
        )

    @property
    def voters(self) -> int:
        return len(self.controller_ids)

    def _quorum_problems(self) -> Iterator[str]:
        name = self.controllers.name
        if any(listener.name == name for listener in self.listeners):
            yield f"controllers.name: found {name}, which is the name of a client listener"
        if self.voters % 2 == 0:
            yield (
                f"nodes: found the role controller on {self.voters} nodes; allowed: an odd number, "
                "as an even number of voters tolerates no more failures than one voter less"
            )


def _is_id(value: object) -> bool:
    """True if ``value`` is a node id in Kafka's spelling, so that two texts are two nodes."""
    return bool(_ID.fullmatch(str(value))) and int(str(value)) <= MAX_ID


def _is_broker(node: object) -> bool:
    roles = node.get("roles") if isinstance(node, Mapping) else None
    return not roles or not isinstance(roles, Sequence) or Role.BROKER in roles


def read_given(document: Document, source: str) -> GivenClusterSpec:
    """The cluster in ``document``. Raises SpecError with every problem."""
    return read_model(GivenClusterSpec, document, source)


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

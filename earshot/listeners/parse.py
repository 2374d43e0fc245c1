"""The way back: from `server.properties`, `KAFKA_*` variables or bare settings to a plan.

Strict on purpose (see `address`): what this module accepts, every supported Kafka reads alike.
All problems of one node are raised together.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from earshot.errors import AddressError, EarshotError, SpecError
from earshot.listeners.address import Address, check_listener_name, check_port, parse_address
from earshot.listeners.model import ANY_IPV4, ClusterPlan, Listener, Node, Protocol, Role, Scope
from earshot.listeners.owned import OWNED
from earshot.listeners.render import NOTE, VARIABLE

T = TypeVar("T")


@dataclass(frozen=True)
class Settings:
    """One node's broker properties, and what earshot noted beside them."""

    values: Mapping[str, str]
    notes: Mapping[str, str] = field(default_factory=dict)


def read_properties(text: str) -> Settings:
    """The settings in the text of a `server.properties` (comments `#` and `!`, `=` or `:`)."""
    values: dict[str, str] = {}
    notes: dict[str, str] = {}
    for line in text.splitlines():
        entry = line.strip()
        if entry.startswith(NOTE):
            key, _, value = entry.removeprefix(NOTE).partition("=")
            notes[key] = value
        elif entry and entry[0] not in "#!":
            key, value = _property(entry)
            values[key] = value
    return Settings(values, notes)


def read_environment(variables: Mapping[str, str]) -> Settings:
    """The settings in `KAFKA_*` variables, as the `apache/kafka` image (4.0+) maps them."""
    values: dict[str, str] = {}
    notes: dict[str, str] = {}
    for name, value in variables.items():
        if name.startswith("KAFKA_") and name not in UNMAPPED:
            values[property_of(name)] = value
        elif name.startswith(VARIABLE):
            notes[name.removeprefix(VARIABLE).lower()] = value
    return Settings(values, notes)


UNMAPPED = frozenset(
    f"KAFKA_{name}"
    for name in (
        "VERSION",
        "HEAP_OPTS",
        "LOG4J_OPTS",
        "OPTS",
        "JMX_OPTS",
        "JVM_PERFORMANCE_OPTS",
        "GC_LOG_OPTS",
        "LOG4J_ROOT_LOGLEVEL",
        "LOG4J_LOGGERS",
        "TOOLS_LOG4J_LOGLEVEL",
        "JMX_HOSTNAME",
    )
)
"""Variables that the image's scripts use themselves (KafkaDockerWrapper)."""


def property_of(variable: str) -> str:
    """The property that the image makes of a variable; the inverse of `render.variable`."""
    text = variable.removeprefix("KAFKA_").lower().replace("_", ".")
    return text.replace("...", "-").replace("..", "_")


def parse_entries(text: str) -> list[tuple[str, Address]]:
    """`NAME://host:port,…` as (name, address) pairs; an empty host becomes the wildcard.

    Raises AddressError for anything that earshot's grammar refuses, repeated names included.
    """
    found: list[tuple[str, Address]] = []
    for raw in text.split(","):
        entry = raw.strip()
        if not entry:
            raise AddressError(
                f"listener list {text!r}",
                observed="has a blank entry",
                allowed="NAME://host:port entries with one comma between them",
            )
        name, separator, rest = entry.partition("://")
        if not separator:
            raise AddressError(
                f"listener entry {entry!r}", observed="has no ://", allowed="NAME://host:port"
            )
        check_listener_name(name)
        if name in (other for other, _ in found):
            raise AddressError(
                f"listener {name}", observed="stands twice in one list", allowed="distinct names"
            )
        host, _, port = rest.rpartition(":")
        address = parse_address(rest) if host else Address("", check_port(port))
        found.append((name, address))
    return found


def parse_protocols(text: str) -> dict[str, Protocol]:
    """`NAME:PROTOCOL,…`; raises AddressError."""
    found: dict[str, Protocol] = {}
    for raw in text.split(","):
        name, colon, protocol = raw.strip().rpartition(":")
        if not colon or protocol not in list(Protocol):
            raise AddressError(
                f"listener.security.protocol.map entry {raw.strip()!r}",
                observed="is no NAME:PROTOCOL",
                allowed=f"a listener name, a colon, and one of {', '.join(Protocol)}",
            )
        if check_listener_name(name) in found:
            raise AddressError(
                f"listener.security.protocol.map: {name}", observed="stands twice; Kafka keeps one"
            )
        found[name] = Protocol(protocol)
    return found


def parse_voters(text: str) -> dict[int, Address]:
    """`id@host:port,…`; raises AddressError."""
    found: dict[int, Address] = {}
    for raw in text.split(","):
        id, at, address = raw.strip().partition("@")
        if not at or not re.fullmatch(r"0|[1-9][0-9]{0,9}", id, re.ASCII):
            raise AddressError(
                f"controller.quorum.voters entry {raw.strip()!r}",
                observed="is no id@host:port",
                allowed="a node id, @, host and port",
            )
        if int(id) in found:
            raise AddressError(f"controller.quorum.voters: id {id}", observed="stands twice")
        found[int(id)] = parse_address(address)
    return found


def parse_node(settings: Settings, scopes: Mapping[str, tuple[Scope, ...]] | None = None) -> Node:
    """One node of ``settings``; ``scopes`` says whom each listener is for, else the notes do.

    Raises SpecError with every problem of the node.
    """
    reader = _Reader(settings, scopes)
    return reader.node()


def parse_plan(
    nodes: Iterable[Settings],
    scopes: Mapping[str, tuple[Scope, ...]] | None = None,
    kafka_version: str | None = None,
) -> ClusterPlan:
    """The cluster of several nodes' settings; the inverse of `render` over all of its nodes.

    Cluster-wide values are taken from the first node (a broker where there is one).
    Raises SpecError where a node cannot be read.
    """
    listed = list(nodes)
    parsed = [parse_node(item, scopes) for item in listed]
    brokers = [item for item, node in zip(listed, parsed, strict=True) if node.is_broker]
    first = (brokers or listed)[0]
    value = first.values.get
    protocols = parse_protocols(value("listener.security.protocol.map", "PLAINTEXT:PLAINTEXT"))
    controller = value("controller.listener.names", "CONTROLLER").split(",")[0].strip()
    return ClusterPlan(
        kafka_version=kafka_version or first.notes.get("kafka_version", ""),
        inter_broker=value("inter.broker.listener.name", "PLAINTEXT"),
        controller=controller,
        controller_protocol=protocols.get(controller, Protocol.PLAINTEXT),
        replication_factor=int(value("default.replication.factor", "1")),
        min_insync_replicas=int(value("min.insync.replicas", "1")),
        extra=tuple(sorted((k, v) for k, v in first.values.items() if k not in OWNED)),
        nodes=tuple(parsed),
    )


class _Reader:
    def __init__(self, settings: Settings, scopes: Mapping[str, tuple[Scope, ...]] | None) -> None:
        self.settings = settings
        self.problems: list[str] = []
        self.scopes = dict(scopes) if scopes is not None else self._noted_scopes()

    def node(self) -> Node:
        values = self.settings.values
        binds = self._list("listeners")
        advertised = dict(self._list("advertised.listeners")) or dict(binds)
        protocols = self._protocols([name for name, _ in binds])
        id = values.get("node.id", values.get("broker.id", ""))
        if not re.fullmatch(r"0|[1-9][0-9]*", id, re.ASCII):
            self.problems.append(f"node.id: found {id!r}; allowed is a number from 0")
        roles = self._roles(values.get("process.roles", ""))
        listeners = [
            built
            for name, bind in binds
            if (built := self._listener(name, bind, advertised.get(name), protocols)) is not None
        ]
        for name in advertised:
            if name not in dict(binds):
                self.problems.append(f"advertised.listeners: {name} is not among the listeners")
        if self.problems or not listeners:
            raise SpecError.of(f"node {id or '(without id)'}", self.problems or ["no listener"])
        return Node(
            id=int(id),
            roles=tuple(roles),
            listeners=tuple(listeners),
            log_dir=values.get("log.dirs", values.get("log.dir", "/tmp/kafka-logs")),
        )

    def _listener(
        self, name: str, bind: Address, advertised: Address | None, protocols: dict[str, Protocol]
    ) -> Listener | None:
        if advertised is None:
            # not advertised: nobody is told of it, so it cannot be for anybody
            self.problems.append(f"listener {name}: is bound and not advertised")
        elif not advertised.host:
            self.problems.append(
                f"listener {name}: the advertised host is empty; Kafka would hand out the "
                "machine's own name, which is not the provisioned one"
            )
        elif name not in protocols:
            self.problems.append(f"listener {name}: has no entry in listener.security.protocol.map")
        elif name not in self.scopes:
            self.problems.append(f"listener {name}: nothing says whom it is for (its scopes)")
        else:
            return Listener(
                name=name,
                protocol=protocols[name],
                scopes=self.scopes[name],
                bind_host=bind.host or ANY_IPV4,
                bind_port=bind.port,
                host=advertised.host,
                port=advertised.port,
            )
        return None

    def _list(self, key: str) -> list[tuple[str, Address]]:
        text = self.settings.values.get(key, "")
        if not text.strip():
            if key == "listeners" or key in self.settings.values:
                self.problems.append(f"{key}: is empty")
            return []
        return self._caught(lambda: parse_entries(text)) or []

    def _protocols(self, names: list[str]) -> dict[str, Protocol]:
        text = self.settings.values.get("listener.security.protocol.map")
        if text is None:
            # Kafka's default: the four protocol names map to themselves, controllers to PLAINTEXT
            identity = {str(item): item for item in Protocol}
            return identity | {
                name: Protocol.PLAINTEXT
                for name in self.settings.values.get("controller.listener.names", "").split(",")
                if name in names and name not in identity
            }
        return self._caught(lambda: parse_protocols(text)) or {}

    def _roles(self, text: str) -> list[Role]:
        names = [part.strip() for part in text.split(",") if part.strip()]
        unknown = [name for name in names if name not in list(Role)]
        if unknown or not names or len(set(names)) != len(names):
            self.problems.append(
                f"process.roles: found {text!r}; allowed are broker, controller, or both once"
            )
            return []
        return [Role(name) for name in names]

    def _noted_scopes(self) -> dict[str, tuple[Scope, ...]]:
        found: dict[str, tuple[Scope, ...]] = {}
        for entry in filter(None, self.settings.notes.get("scopes", "").split(",")):
            name, _, listed = entry.partition(":")
            values = listed.split("+")
            if all(value in list(Scope) for value in values):
                found[name] = tuple(Scope(value) for value in values)
            else:
                self.problems.append(f"scopes: {entry!r} names a scope that does not exist")
        return found

    def _caught(self, read: Callable[[], T]) -> T | None:
        try:
            return read()
        except EarshotError as error:
            self.problems.append(error.line)
            return None


def _property(entry: str) -> tuple[str, str]:
    match = re.fullmatch(r"([^\s=:]+)\s*[=:\s]\s*(.*)", entry)
    if match is None:
        return entry, ""
    return match[1], match[2].strip()

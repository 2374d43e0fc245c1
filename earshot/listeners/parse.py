"""The way back: from broker properties to nodes and plans.

Strict on purpose (see `grammar`): what this module accepts, every supported Kafka reads alike.
All problems of one node are raised together.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

from earshot.errors import AddressError, SpecError
from earshot.listeners.address import Address, check_listener_name
from earshot.listeners.grammar import MAX_ID, parse_entries, parse_protocols, parse_voters
from earshot.listeners.model import ANY_IPV4, ClusterPlan, Listener, Node, Protocol, Role, Scope
from earshot.listeners.owned import OWNED
from earshot.listeners.properties import Settings, read_environment, read_properties

__all__ = [
    "Scopes",
    "Settings",
    "parse_entries",
    "parse_node",
    "parse_plan",
    "parse_protocols",
    "parse_voters",
    "read_environment",
    "read_properties",
]

T = TypeVar("T")
_VERSION = re.compile(r"[0-9]+\.[0-9]+", re.ASCII)
Scopes = Mapping[str, tuple[Scope, ...]]
"""Whom each listener is for, by its name."""

KAFKA_LOG_DIR = "/tmp/kafka-logs"
"""Kafka's own default."""


def parse_node(settings: Settings, scopes: Scopes | None = None) -> Node:
    """One node of ``settings``; ``scopes`` says whom each listener is for, else the notes do.

    Raises SpecError with every problem of the node.
    """
    return _Reader(settings, scopes).node()


def parse_plan(
    nodes: Iterable[Settings], scopes: Scopes | None = None, kafka_version: str | None = None
) -> ClusterPlan:
    """The cluster of several nodes' settings; the inverse of `render` over all of its nodes.

    Cluster-wide values (`extra` among them) are taken from the first node that is a broker.
    Raises SpecError where a node cannot be read, or the nodes make no cluster.
    """
    listed = list(nodes)
    parsed = [parse_node(item, scopes) for item in listed]
    brokers = [item for item, node in zip(listed, parsed, strict=True) if node.is_broker]
    problems = _cluster_problems(parsed)
    if not brokers:
        problems.append("no node has the role broker")
    if problems:
        raise SpecError.of("cluster", problems)
    return _Wide(brokers[0]).plan(tuple(parsed), kafka_version)


def _cluster_problems(nodes: Sequence[Node]) -> list[str]:
    ids = [node.id for node in nodes]
    return [f"node.id {id} stands twice" for id in sorted(set(ids)) if ids.count(id) > 1]


class _Wide:
    """What a broker's settings say about the whole cluster."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.problems: list[str] = []

    def plan(self, nodes: tuple[Node, ...], kafka_version: str | None) -> ClusterPlan:
        value = self.settings.values.get
        controllers = value("controller.listener.names", "CONTROLLER")
        controller = self._name("controller.listener.names", controllers.split(",")[0].strip())
        inter_broker = self._name(
            "inter.broker.listener.name",
            value(
                "inter.broker.listener.name", value("security.inter.broker.protocol", "PLAINTEXT")
            ),
        )
        version = kafka_version or self.settings.notes.get("kafka_version", "")
        if version and not _VERSION.match(version):
            self.problems.append(f"Kafka version: found {version!r}; allowed: as in 4.1.1")
        replicas = self._number("default.replication.factor")
        insync = self._number("min.insync.replicas")
        if self.problems:
            raise SpecError.of("cluster", self.problems)
        protocols = _protocols_of(self.settings.values, [controller])
        return ClusterPlan(
            kafka_version=version,
            inter_broker=inter_broker,
            controller=controller,
            controller_protocol=protocols.get(controller, Protocol.PLAINTEXT),
            replication_factor=replicas,
            min_insync_replicas=insync,
            extra=tuple(sorted((k, v) for k, v in self.settings.values.items() if k not in OWNED)),
            nodes=nodes,
        )

    def _name(self, key: str, text: str) -> str:
        try:
            return check_listener_name(text)
        except AddressError as error:
            self.problems.append(f"{key}: {error.line}")
            return ""

    def _number(self, key: str) -> int:
        text = self.settings.values.get(key, "1")
        if not re.fullmatch(r"[1-9][0-9]{0,4}", text, re.ASCII):
            self.problems.append(f"{key}: found {text!r}; allowed: a number from 1")
            return 1
        return int(text)


def _protocols_of(values: Mapping[str, str], names: Iterable[str]) -> dict[str, Protocol]:
    """The protocol of each name; raises AddressError for a map that the grammar refuses."""
    text = values.get("listener.security.protocol.map")
    if text is not None:
        return parse_protocols(text)
    # Kafka's default: the four protocol names map to themselves, controllers to PLAINTEXT
    controllers = values.get("controller.listener.names", "").split(",")
    identity = {str(item): item for item in Protocol}
    return {name: Protocol.PLAINTEXT for name in controllers if name in names} | identity


class _Reader:
    """One node's settings, and the problems found on the way."""

    def __init__(self, settings: Settings, scopes: Scopes | None) -> None:
        self.settings = settings
        self.problems: list[str] = []
        self.scopes = dict(scopes) if scopes is not None else self._noted_scopes()

    def node(self) -> Node:
        values = self.settings.values
        binds = self._list("listeners")
        if "advertised.listeners" in values:
            advertised = self._list("advertised.listeners")
        else:
            advertised = binds  # as Kafka does it
        protocols = self._caught(lambda: _protocols_of(values, binds)) or {}
        id = values.get("node.id", values.get("broker.id", ""))
        if not re.fullmatch(r"0|[1-9][0-9]{0,9}", id, re.ASCII) or int(id) > MAX_ID:
            self.problems.append(f"node.id: found {id!r}; allowed: a number from 0 to {MAX_ID}")
        roles = self._roles(values.get("process.roles", ""))
        listeners = [
            built
            for name, bind in binds.items()
            if (built := self._listener(name, bind, advertised.get(name), protocols)) is not None
        ]
        for name in advertised:
            if name not in binds:
                self.problems.append(f"advertised.listeners: {name} is not among the listeners")
        if self.problems or not listeners:
            raise SpecError.of(f"node {id or '(without id)'}", self.problems or ["no listener"])
        return Node(
            id=int(id),
            roles=tuple(roles),
            listeners=tuple(listeners),
            log_dir=values.get("log.dirs", values.get("log.dir", KAFKA_LOG_DIR)),
            rack=values.get("broker.rack", ""),
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

    def _list(self, key: str) -> dict[str, Address]:
        if key not in self.settings.values:
            self.problems.append(f"{key}: is missing")
            return {}
        return dict(self._caught(lambda: parse_entries(self.settings.values[key])) or ())

    def _roles(self, text: str) -> list[Role]:
        names = [part.strip() for part in text.split(",") if part.strip()]
        unknown = [name for name in names if name not in list(Role)]
        if unknown or not names or len(set(names)) != len(names):
            self.problems.append(
                f"process.roles: found {text!r}; allowed: broker, controller, or both"
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
        except AddressError as error:
            self.problems.append(error.line)
            return None

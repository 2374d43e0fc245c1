"""Readers of one node's properties.

The functions skip entries that the grammar refuses, as KL002 reports them. `KafkaSettings` reads
as Kafka does, with Kafka's defaults, and raises `Unreadable` for the whole list.
"""

import re
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TypeVar, cast

from earshot.listeners.address import Address
from earshot.listeners.grammar import MAX_ID, Bad, read_voters
from earshot.listeners.kafka_grammar import KafkaGrammar
from earshot.listeners.placeholders import is_known
from earshot.listeners.terms import Protocol, Role
from earshot.topology.container import is_loopback

_DIGITS = re.compile(r"[0-9]{1,10}", re.ASCII)
_BROKER_KEYS = frozenset(
    {
        "advertised.host.name",
        "advertised.listeners",
        "broker.id",
        "control.plane.listener.name",
        "controller.listener.names",
        "controller.quorum.bootstrap.servers",
        "controller.quorum.voters",
        "early.start.listeners",
        "inter.broker.listener.name",
        "listener.security.protocol.map",
        "listeners",
        "log.dir",
        "log.dirs",
        "process.roles",
        "security.inter.broker.protocol",
    }
)
"""Properties that only brokers and controllers have."""
_SHARED_KEYS = frozenset({"node.id", "zookeeper.connect"})
"""Properties that old clients, workers and Trino (`node.properties`) also have."""
_OTHERS_KEY = re.compile(r"(?:.*\.)?bootstrap\.servers|kafkastore\..*|group\.id|node\.environment")
_LISTS = frozenset({"advertised.listeners", "listeners"})
_URL = re.compile(r"\s*https?://", re.IGNORECASE)
"""A listener of a REST proxy, a schema registry, ksqlDB or a Connect worker."""
_NAME, _PROTOCOL = "inter.broker.listener.name", "security.inter.broker.protocol"
NEWEST = (4, 4)
"""The newest release that earshot knows, for tags such as `latest`."""
T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")


def is_broker_configuration(values: Mapping[str, str]) -> bool:
    """Whether these properties are those of a broker or controller.

    One property that only they have is enough: a broker contains clients, such as reporters.
    """
    keys = _BROKER_KEYS & set(values)
    if keys - _LISTS or any(not _URL.match(values[key]) for key in keys):
        return True
    others = keys or any(map(_OTHERS_KEY.fullmatch, values))
    return bool(_SHARED_KEYS & set(values)) and not others


def node_id(values: Mapping[str, str]) -> int:
    """`node.id`, or else `broker.id`; 0 without a valid one."""
    text = values.get("node.id", values.get("broker.id", ""))
    return int(text) if _DIGITS.fullmatch(text) and int(text) <= MAX_ID else 0


def controller_names(values: Mapping[str, str]) -> tuple[str, ...]:
    """`controller.listener.names`."""
    entries = values.get("controller.listener.names", "").split(",")
    return tuple(name.strip() for name in entries if name.strip())


def inter_broker_name(values: Mapping[str, str]) -> str:
    """`inter.broker.listener.name`, with Kafka's default."""
    fallback = values.get("security.inter.broker.protocol", "PLAINTEXT")
    return values.get("inter.broker.listener.name", fallback).strip()


def roles_of(values: Mapping[str, str]) -> tuple[Role, ...]:
    """`process.roles`; without it a node is a broker that uses ZooKeeper."""
    entries = [part.strip() for part in values.get("process.roles", "").split(",")]
    return tuple(role for role in Role if role in entries) or (Role.BROKER,)


def has_lone_quorum(values: Mapping[str, str]) -> bool:
    """Whether the node is the only voter, at a loopback address, so that no other can join.

    Kafka reads an empty host as `localhost`.
    """
    text = values.get("controller.quorum.voters", "")
    voters = dict(readable_entries(KafkaGrammar(NEWEST).read_voters(text)))
    if list(voters) != [node_id(values)] or Role.BROKER not in roles_of(values):
        return False
    host = voters[node_id(values)].host
    return not host or is_loopback(host)


def own_voter(values: Mapping[str, str]) -> Address | None:
    """The node's own entry in `controller.quorum.voters`."""
    voters = dict(readable_entries(read_voters(values.get("controller.quorum.voters", ""))))
    return voters.get(node_id(values))


def readable_entries(items: Iterable[T | Bad]) -> Iterator[T]:
    """The entries of ``items`` that the grammar accepts."""
    return (entry for entry in items if not isinstance(entry, Bad))


class Unreadable(Exception):
    """The setting is refused by the grammar, or has no meaning on this node."""


class Grammar(typing.Protocol):
    """A parser of lists of listeners: `earshot.listeners.grammar` or `KafkaGrammar`."""

    def read_listeners(self, text: str) -> Iterator[tuple[str, Address] | Bad]: ...
    def read_protocols(self, text: str) -> Iterator[tuple[str, Protocol] | Bad]: ...
    def read_voters(self, text: str) -> Iterator[tuple[int, Address] | Bad]: ...
    def read_names(self, text: str) -> Iterator[tuple[str, None] | Bad]: ...
    def read_name(self, text: str) -> Iterator[tuple[str, None] | Bad]: ...
    def read_servers(self, text: str) -> Iterator[tuple[Address, None] | Bad]: ...


class KafkaSettings:
    """One node's settings as Kafka reads them, with Kafka's defaults.

    A setting raises `Unreadable` if the grammar refuses it, or if it is unknown: one with a
    variable that is not set, and if ``complete`` is False an absent property, as an image may set
    it. ``grammar`` is Kafka's own by default.
    """

    def __init__(
        self,
        values: Mapping[str, str],
        version: tuple[int, ...],
        *,
        complete: bool,
        grammar: Grammar | None = None,
    ) -> None:
        self.values = values
        self.version = version
        self.complete = complete
        self.grammar: Grammar = grammar or _kafka_grammar(version)

    def has(self, key: str) -> bool:
        if key in self.values:
            return True
        # Kafka refuses a name for the listener beside its protocol
        is_excluded = key == _NAME and _PROTOCOL in self.values
        if not (self.complete or is_excluded):
            raise Unreadable
        return False

    def text(self, key: str, default: str = "") -> str:
        """A setting without blanks around it, or ``default``."""
        if not self.has(key):
            return default
        if not is_known(self.values[key]):
            raise Unreadable
        return self.values[key].strip()

    def key_of(self, listener: str, key: str) -> str:
        """The property that sets ``key`` for ``listener``: its own, or that of all listeners."""
        own = f"listener.name.{listener.lower()}.{key}"
        return own if own in self.values else key

    @property
    def is_kraft(self) -> bool:
        """False if `zookeeper.connect` is set and no roles are: Kafka then runs with ZooKeeper."""
        uses_zookeeper = self.values.get("zookeeper.connect") and "process.roles" not in self.values
        return not uses_zookeeper and bool(self.text("process.roles"))

    @cached_property
    def roles(self) -> tuple[str, ...]:
        """The roles as written, with unknown and repeated ones; a node that uses ZooKeeper is a
        broker."""
        if not self.is_kraft and self.version < (4, 0):
            return (Role.BROKER,)
        return tuple(re.split(r"\s*,\s*", self.text("process.roles")))

    @cached_property
    def kinds(self) -> frozenset[Role]:
        """The roles as a set. Raises Unreadable for an unknown role."""
        if not set(self.roles) <= set(Role):
            raise Unreadable
        return frozenset(Role(role) for role in self.roles)

    @property
    def is_broker(self) -> bool:
        return Role.BROKER in self.kinds

    @property
    def is_controller(self) -> bool:
        return Role.CONTROLLER in self.kinds

    @property
    def id(self) -> int:
        """`node.id`, or else `broker.id`. Raises Unreadable without a valid one."""
        number = self.number("node.id" if self.has("node.id") else "broker.id")
        if number is None or number < 0:
            raise Unreadable
        return number

    def number(self, key: str) -> int | None:
        """The value as a Java int, or None."""
        text = self.text(key)
        if not re.fullmatch(r"[+-]?[0-9]{1,10}", text, re.ASCII):
            return None
        return int(text) if -MAX_ID - 1 <= int(text) <= MAX_ID else None

    @cached_property
    def listeners(self) -> dict[str, Address]:
        if not self.has("listeners"):
            return {"PLAINTEXT": Address("", 9092)}
        return self._read("listeners", self.grammar.read_listeners)

    @cached_property
    def advertised(self) -> dict[str, Address]:
        """`advertised.listeners`, by default `listeners`."""
        if not self.has("advertised.listeners"):
            return self.listeners
        return self._read("advertised.listeners", self.grammar.read_listeners)

    @cached_property
    def advertised_to_clients(self) -> dict[str, Address]:
        """The advertised listeners without those of controllers, which clients do not receive.

        Before 3.2 Kafka removes a controller listener only at the address that it binds.
        """
        if self.version >= (3, 2) or not self.has("advertised.listeners"):
            return {k: v for k, v in self.advertised.items() if k not in self.controllers}
        bound = {name: self.listeners.get(name) for name in self.controllers}
        return {k: v for k, v in self.advertised.items() if k not in bound or v != bound[k]}

    @cached_property
    def quorum_addresses(self) -> dict[str, Address]:
        """A controller's addresses for other nodes: as advertised, or else as bound."""
        bound = {name: self.listeners[name] for name in self.controllers if name in self.listeners}
        return bound | {k: v for k, v in self.advertised.items() if k in self.controllers}

    @cached_property
    def protocols(self) -> dict[str, Protocol]:
        key = "listener.security.protocol.map"
        if self.has(key):
            return self._read(key, self.grammar.read_protocols)
        identity = {str(protocol): protocol for protocol in Protocol}
        if (identity.keys() - {Protocol.PLAINTEXT}) & {*self.controllers, *self.listeners}:
            return identity
        return dict.fromkeys(self.controllers, Protocol.PLAINTEXT) | identity

    @cached_property
    def controllers(self) -> tuple[str, ...]:
        """`controller.listener.names`, which Kafka supports since 2.8; empty by default."""
        if self.version < (2, 8):
            return ()
        return tuple(self._read("controller.listener.names", self.grammar.read_names))

    @cached_property
    def voters(self) -> dict[int, Address]:
        """`controller.quorum.voters`, empty by default."""
        return self._read("controller.quorum.voters", self.grammar.read_voters)

    @cached_property
    def servers(self) -> tuple[Address, ...]:
        """`controller.quorum.bootstrap.servers`, empty by default."""
        return tuple(self._read("controller.quorum.bootstrap.servers", self.grammar.read_servers))

    @cached_property
    def early(self) -> tuple[str, ...]:
        """`early.start.listeners`, empty by default."""
        return tuple(self._read("early.start.listeners", self.grammar.read_names))

    @cached_property
    def inter_broker(self) -> str:
        """The inter-broker listener's name, or else the inter-broker protocol."""
        if self.has(_NAME):
            return next(iter(self._read(_NAME, self.grammar.read_name)))
        return self.inter_broker_protocol

    @property
    def inter_broker_protocol(self) -> str:
        """`security.inter.broker.protocol` with its default; releases before 3.3 read it in any
        case."""
        protocol = self.text(_PROTOCOL, Protocol.PLAINTEXT)
        return protocol.upper() if self.version < (3, 3) else protocol

    def _read(self, key: str, read: Callable[[str], Iterator[tuple[K, V] | Bad]]) -> dict[K, V]:
        """The list at ``key``, empty by default. Raises Unreadable if an entry is invalid."""
        if not self.has(key):
            return {}
        entries = _entries(read, self.text(key))
        if entries is None:
            raise Unreadable
        return cast("dict[K, V]", entries)


_kafka_grammar = lru_cache(maxsize=64)(KafkaGrammar)


@lru_cache(maxsize=4096)
def _entries(
    read: Callable[[str], Iterator[tuple[object, object] | Bad]], text: str
) -> dict[object, object] | None:
    """The list ``text``, or None if an entry is invalid. The nodes of a cluster have mostly equal
    lists, and each list is read by several rules."""
    items = list(read(text))
    good = [entry for entry in items if not isinstance(entry, Bad)]
    return dict(good) if len(good) == len(items) else None


@dataclass(frozen=True)
class BrokerSettings:
    """The known properties of one broker.

    If ``complete``, absent properties are unset; otherwise an image or script may set them.
    ``release`` is Kafka's (major, minor), or None; ``patch`` is the number after them, if known.
    """

    values: Mapping[str, str]
    complete: bool
    release: tuple[int, int] | None
    patch: int | None = None

    def read(self, release: tuple[int, int] | None = None) -> KafkaSettings:
        """The settings as Kafka reads them; ``release`` is the default for an unknown one."""
        return self._as_read if release is None else self._read_by(release)

    @cached_property
    def _as_read(self) -> KafkaSettings:
        return self._read_by(NEWEST)

    def _read_by(self, release: tuple[int, int]) -> KafkaSettings:
        version: tuple[int, ...] = self.release or release
        if self.release and self.patch is not None:
            version = (*self.release, self.patch)
        return KafkaSettings(self.values, version, complete=self.complete)

    @property
    def is_zookeeper(self) -> bool:
        return "zookeeper.connect" in self.values and not self.values.get("process.roles")

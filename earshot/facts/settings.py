"""What the properties of one node say, in two ways.

The functions read leniently: what the grammar refuses is left out, for KL002 reports it.
`StrictSettings` reads as Kafka does, with Kafka's defaults, and refuses such a list as a whole.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, TypeVar, cast

from earshot.listeners import grammar as strict_grammar
from earshot.listeners.address import Address
from earshot.listeners.grammar import MAX_ID, Bad, read_voters
from earshot.listeners.kafka_grammar import KafkaGrammar
from earshot.listeners.placeholders import is_known
from earshot.listeners.terms import Protocol as SecurityProtocol
from earshot.listeners.terms import Role
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
"""Properties of brokers and controllers that no client of theirs has."""
_SHARED_KEYS = frozenset({"node.id", "zookeeper.connect"})
"""Properties that other programs have too: old clients, workers, Trino in its `node.properties`."""
_OTHERS_KEY = re.compile(r"(?:.*\.)?bootstrap\.servers|kafkastore\..*|group\.id|node\.environment")
_LISTS = frozenset({"advertised.listeners", "listeners"})
_URL = re.compile(r"\s*https?://", re.IGNORECASE)
"""A listener of a REST proxy, a schema registry, ksqlDB or a worker of Connect."""
NEWEST = (4, 4)
"""Of what a tag such as `latest` means: the newest release that earshot knows."""
T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")
Memo = dict[tuple[str, str], object]


def is_broker_configuration(values: Mapping[str, str]) -> bool:
    """True if properties by name are those of a broker or a controller.

    One property that only they have is enough: a broker has clients inside, such as reporters.
    """
    keys = _BROKER_KEYS & set(values)
    if keys - _LISTS or any(not _URL.match(values[key]) for key in keys):
        return True
    others = keys or any(map(_OTHERS_KEY.fullmatch, values))
    return bool(_SHARED_KEYS & set(values)) and not others


def node_id(values: Mapping[str, str]) -> int:
    """The id that the properties give a node; 0 where they give none."""
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
    """`process.roles`; without it a node is a broker of ZooKeeper's time."""
    entries = [part.strip() for part in values.get("process.roles", "").split(",")]
    return tuple(role for role in Role if role in entries) or (Role.BROKER,)


def has_lone_quorum(values: Mapping[str, str]) -> bool:
    """Whether the properties are those of a node that no other node can ever join.

    An empty host is `localhost` to Kafka.
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
    """Those of ``items`` that the grammar could read."""
    return (entry for entry in items if not isinstance(entry, Bad))


class Unreadable(Exception):
    """A setting that the grammar refuses, or that has no meaning on this node."""


class Grammar(Protocol):
    """How lists of listeners are read: `earshot.listeners.grammar`, or Kafka's own way."""

    def read_listeners(self, text: str) -> Iterator[tuple[str, Address] | Bad]: ...
    def read_protocols(self, text: str) -> Iterator[tuple[str, SecurityProtocol] | Bad]: ...
    def read_voters(self, text: str) -> Iterator[tuple[int, Address] | Bad]: ...
    def read_names(self, text: str) -> Iterator[tuple[str, None] | Bad]: ...
    def read_name(self, text: str) -> Iterator[tuple[str, None] | Bad]: ...
    def read_servers(self, text: str) -> Iterator[tuple[Address, None] | Bad]: ...


class StrictSettings:
    """One node's settings; what the grammar refuses raises `Unreadable` where it is asked for.

    ``memo`` may be shared by the nodes of a cluster: most of their texts are the same.
    """

    grammar: Grammar = strict_grammar

    def __init__(
        self, values: Mapping[str, str], version: tuple[int, ...], memo: Memo | None = None
    ) -> None:
        self.values = values
        self.version = version
        self._memo: Memo = {} if memo is None else memo

    def has(self, key: str) -> bool:
        return key in self.values

    def text(self, key: str, default: str = "") -> str:
        """A setting as written, or ``default``."""
        return self.values.get(key, default)

    @property
    def is_kraft(self) -> bool:
        return bool(self.text("process.roles", "").strip())

    @cached_property
    def roles(self) -> tuple[str, ...]:
        """The roles as written, even unknown or repeated ones."""
        return tuple(re.split(r"\s*,\s*", self.text("process.roles", "").strip()))

    @cached_property
    def kinds(self) -> frozenset[Role]:
        """Both, or one of the roles; Unreadable where they are not fit to be checked."""
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
        """`node.id`, or `broker.id` in its place."""
        number = self.number("node.id" if self.has("node.id") else "broker.id")
        if number is None or number < 0:
            raise Unreadable
        return number

    def number(self, key: str) -> int | None:
        """A setting as a Java int, or None."""
        text = self.text(key, "").strip()
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
        """The advertised listeners; where they are not set, the listeners."""
        if not self.has("advertised.listeners"):
            return self.listeners
        return self._read("advertised.listeners", self.grammar.read_listeners)

    @cached_property
    def advertised_to_clients(self) -> dict[str, Address]:
        """Without the controllers' listeners, which Kafka keeps from its clients."""
        return {k: v for k, v in self.advertised.items() if k not in self.controllers}

    @cached_property
    def quorum_addresses(self) -> dict[str, Address]:
        """What a controller hands out: as advertised, else as it listens."""
        found = {name: self.listeners[name] for name in self.controllers if name in self.listeners}
        return found | {k: v for k, v in self.advertised.items() if k in self.controllers}

    @cached_property
    def protocols(self) -> dict[str, SecurityProtocol]:
        key = "listener.security.protocol.map"
        if self.has(key):
            return self._read(key, self.grammar.read_protocols)
        identity = {str(protocol): protocol for protocol in SecurityProtocol}
        guarded = {
            str(protocol)
            for protocol in SecurityProtocol
            if protocol is not SecurityProtocol.PLAINTEXT
        }
        if guarded & {*self.controllers, *self.listeners}:
            return identity
        return dict.fromkeys(self.controllers, SecurityProtocol.PLAINTEXT) | identity

    @cached_property
    def controllers(self) -> tuple[str, ...]:
        """`controller.listener.names`; none where it is not set."""
        return tuple(self._read("controller.listener.names", self.grammar.read_names))

    @cached_property
    def voters(self) -> dict[int, Address]:
        """`controller.quorum.voters`; none where it is not set."""
        return self._read("controller.quorum.voters", self.grammar.read_voters)

    @cached_property
    def servers(self) -> tuple[Address, ...]:
        """`controller.quorum.bootstrap.servers`; none where it is not set."""
        return tuple(self._read("controller.quorum.bootstrap.servers", self.grammar.read_servers))

    @cached_property
    def early(self) -> tuple[str, ...]:
        """`early.start.listeners`; none where it is not set."""
        return tuple(self._read("early.start.listeners", self.grammar.read_names))

    @cached_property
    def inter_broker(self) -> str:
        """The name, or the protocol in place of a name."""
        if self.has("inter.broker.listener.name"):
            return next(iter(self._read("inter.broker.listener.name", self.grammar.read_name)))
        return self.inter_broker_protocol

    @property
    def inter_broker_protocol(self) -> str:
        """`security.inter.broker.protocol`, or its default."""
        return self.text("security.inter.broker.protocol", SecurityProtocol.PLAINTEXT).strip()

    def _read(self, key: str, read: Callable[[str], Iterator[tuple[K, V] | Bad]]) -> dict[K, V]:
        """The list at ``key``; an empty one where it is not set."""
        if not self.has(key):
            return {}
        text = self.text(key)
        if (key, text) not in self._memo:
            items = list(read(text))
            good = [entry for entry in items if not isinstance(entry, Bad)]
            self._memo[key, text] = dict(good) if len(good) == len(items) else None
        cached = cast("dict[K, V] | None", self._memo[key, text])
        if cached is None:
            raise Unreadable
        return cached


class ForeignSettings(StrictSettings):
    """Settings that others wrote, in Kafka's own grammar.

    What is not known raises `Unreadable` too: a value with a variable in it that is not set,
    and a property that is absent where ``complete`` is False, for an image may set it.
    """

    def __init__(
        self, values: Mapping[str, str], version: tuple[int, ...], *, complete: bool
    ) -> None:
        super().__init__(values, version)
        self.complete = complete
        self.grammar = KafkaGrammar(version)

    @cached_property
    def roles(self) -> tuple[str, ...]:
        """A node of ZooKeeper's time is a broker."""
        return super().roles if self.is_kraft or self.version >= (4, 0) else (Role.BROKER,)

    @cached_property
    def controllers(self) -> tuple[str, ...]:
        """`controller.listener.names`; brokers before 2.8 do not know it."""
        return super().controllers if self.version >= (2, 8) else ()

    @cached_property
    def advertised_to_clients(self) -> dict[str, Address]:
        """Without the controllers' listeners: before 3.2, with ZooKeeper, at their own address."""
        if self.version >= (3, 2) or not self.has("advertised.listeners"):
            return super().advertised_to_clients
        controller_addresses = {key: self.listeners.get(key) for key in self.controllers}
        return {
            k: v
            for k, v in self.advertised.items()
            if k not in controller_addresses or v != controller_addresses[k]
        }

    @property
    def inter_broker_protocol(self) -> str:
        """`security.inter.broker.protocol`, which older releases take in any case."""
        protocol = super().inter_broker_protocol
        return protocol.upper() if self.version < (3, 3) else protocol

    def has(self, key: str) -> bool:
        if key in self.values:
            return True
        if not self.complete:
            raise Unreadable
        return False

    def text(self, key: str, default: str = "") -> str:
        if not self.has(key):
            return default
        if not is_known(self.values[key]):
            raise Unreadable
        return self.values[key].strip()


@dataclass(frozen=True)
class BrokerSettings:
    """What is known of one broker's properties, and of the Kafka that reads them.

    Where it is ``complete``, what ``values`` lack is not set; else an image or a script may set it.
    ``release`` is (major, minor), None where it is unknown.
    """

    values: Mapping[str, str]
    complete: bool
    release: tuple[int, int] | None

    def read(self, release: tuple[int, int] | None = None) -> ForeignSettings:
        """The settings as Kafka reads them; ``release`` is assumed where none is known."""
        version = self.release or release or NEWEST
        return ForeignSettings(self.values, version, complete=self.complete)

    @property
    def is_zookeeper(self) -> bool:
        return "zookeeper.connect" in self.values and not self.values.get("process.roles")

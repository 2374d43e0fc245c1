"""The listeners of a cluster as frozen data: what `plan` computes and everything else reads."""

import re
from collections.abc import Callable
from functools import cached_property
from typing import Annotated, Any, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    PlainSerializer,
    PlainValidator,
    model_validator,
)
from pydantic_core import CoreSchema

from earshot.listeners import address
from earshot.listeners.address import Address, bracketed
from earshot.listeners.numbers import without_truth_values
from earshot.listeners.problems import reraised, shown
from earshot.listeners.terms import (
    ANY_IPV4,
    ClientAuth,
    Mechanism,
    Protocol,
    Role,
    Scope,
    Strategy,
    UnknownHost,
)

NOT_KNOWN = "not-known-yet.invalid"
"""A name that can never resolve, in place of a host that is not known yet."""


class Frozen(BaseModel):
    """Base of all data between packages: immutable; unknown keys, and `true` for a number, are
    refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return without_truth_values(handler(source))


def matching(pattern: re.Pattern[str], allowed: str) -> AfterValidator:
    """A check that a text matches ``pattern``; ``allowed`` describes it."""

    def check(value: str) -> str:
        if not pattern.fullmatch(value):
            raise ValueError(f"found {shown(value)}; allowed: {allowed}")
        return value

    return AfterValidator(check)


def text_of(check: Callable[[str], str], allowed: str) -> PlainValidator:
    """The same by ``check``, which gives the text back and raises EarshotError."""

    def checked(value: object) -> str:
        if not isinstance(value, str):
            raise ValueError(f"found {shown(value)}; allowed: {allowed}")
        return reraised(check, value)

    return PlainValidator(checked, json_schema_input_type=str)


def _host(value: Any) -> str | UnknownHost:
    if isinstance(value, UnknownHost):
        return value
    if isinstance(value, dict):
        return UnknownHost.read(value)
    if not isinstance(value, str):
        raise ValueError(f"found {shown(value)}; allowed: {address.HOST_ALLOWED}")
    return reraised(address.check_host, value)


def _port(value: Any) -> int:
    number = whole_number(value, address.PORT_ALLOWED)
    if not 1 <= number <= address.MAX_PORT:
        raise ValueError(f"found {number}; allowed: {address.PORT_ALLOWED}")
    return number


def whole_number(value: Any, allowed: str = "a whole number") -> int:
    """``value`` as a number; raises ValueError for text, truth values and fractions."""
    if isinstance(value, float) and value.is_integer():  # Pulumi hands every number over as a float
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        hint = "; take the quotes away" if isinstance(value, str) and value.isdigit() else ""
        raise ValueError(f"found {shown(value)}; allowed: {allowed}{hint}")
    return value


def _written(host: str | UnknownHost) -> str | dict[str, str]:
    return host if isinstance(host, str) else host.written


Host = Annotated[
    str | UnknownHost,
    PlainValidator(_host, json_schema_input_type=str),
    PlainSerializer(_written),
]
BindHost = Annotated[str, text_of(address.check_host, address.HOST_ALLOWED)]
Port = Annotated[
    int,
    PlainValidator(_port, json_schema_input_type=Annotated[int, Field(ge=1, le=address.MAX_PORT)]),
]
ListenerName = Annotated[str, text_of(address.check_listener_name, address.NAME_ALLOWED)]


class ForwardingPath(Frozen):
    """What forwards clients' connections to the brokers: a balancer, a gateway, NAT, a tunnel."""

    keeps_client_address: bool = True
    """Whether brokers see the clients' addresses; false: they see the forwarder's own."""
    ends_tls: bool = False
    """Whether TLS ends there, so that clients see another certificate than the broker's."""
    hairpins: bool = True
    """Whether a process on a broker's machine reaches that broker through it. Balancers that keep
    the clients' addresses drop such connections."""
    per_broker: bool = True
    """Whether each advertised address leads to its broker; false: each leads to any broker."""
    idle_seconds: Annotated[int, Field(ge=1)] | None = None
    """Seconds after which it drops a connection without traffic. Default: not known."""


class Endpoint(Frozen):
    """A host and a port that clients connect to."""

    host: Host
    port: Port

    @property
    def address(self) -> Address:
        return Address(self.host if isinstance(self.host, str) else NOT_KNOWN, self.port)


class Front(Frozen):
    """Where clients of a listener connect, if that is not the broker itself."""

    strategy: Strategy
    bootstrap: Endpoint | None = None
    """An address for first connections, which leads to any broker. None: every broker's."""
    path: ForwardingPath | None = None
    group: str = ""
    """The security group of a forwarder that the stack makes: brokers admit no one else."""
    private_link: Annotated[bool, Field(exclude_if=lambda link: not link)] = False
    """Whether clients connect through endpoints of their VPCs, where alone the name resolves."""

    @property
    def forwards(self) -> bool:
        """Whether the advertised name resolves to the forwarder, not to the broker."""
        return self.strategy in (Strategy.PORT, Strategy.SNI) or (
            self.strategy is Strategy.GIVEN and self.path is not None
        )


class Listener(Frozen):
    """A named socket of one node: where it binds, and what it hands out to clients."""

    name: ListenerName
    protocol: Protocol = Protocol.PLAINTEXT
    scopes: tuple[Scope, ...] = Field(min_length=1)
    bind_host: BindHost = ANY_IPV4
    bind_port: Port
    host: Host
    """The advertised host."""
    port: Port
    """The advertised port."""
    mechanism: Mechanism | None = None
    """None: that of `security`."""
    client_auth: ClientAuth | None = None
    """None: what `security` has for its protocol."""
    front: Annotated[Front | None, Field(exclude_if=lambda front: front is None)] = None
    """None: clients connect to the broker itself."""

    @property
    def known(self) -> bool:
        return all(isinstance(host, str) for host in self.hosts)

    @property
    def hosts(self) -> tuple[str | UnknownHost, ...]:
        """The hosts that clients connect to: the advertised one, then that of the bootstrap."""
        bootstrap = self.front.bootstrap if self.front is not None else None
        return tuple(dict.fromkeys((self.host, *([bootstrap.host] if bootstrap else []))))

    @property
    def forwarded(self) -> bool:
        """Whether the advertised name resolves to a forwarder, not to the broker."""
        return self.front is not None and self.front.forwards

    @property
    def path(self) -> ForwardingPath:
        """What forwards connections; without it, a path that changes nothing."""
        return (self.front.path if self.front is not None else None) or ForwardingPath()

    @property
    def advertised(self) -> Address:
        """The advertised host:port; an unknown host is written as a name that can never resolve."""
        return Address(self.host if isinstance(self.host, str) else NOT_KNOWN, self.port)

    @property
    def bind(self) -> Address:
        return Address(self.bind_host, self.bind_port)

    def __str__(self) -> str:
        host = bracketed(self.host) if isinstance(self.host, str) else str(self.host)
        return f"{self.name}://{host}:{self.port}"


class Node(Frozen):
    """One Kafka process: a broker, a controller, or both."""

    id: int = Field(ge=0, le=2**31 - 1)
    roles: tuple[Role, ...] = Field(min_length=1)
    listeners: tuple[Listener, ...] = Field(min_length=1)
    log_dir: str = "/var/lib/kafka/data"
    rack: str = ""
    """The rack of a broker: Kafka spreads the replicas of a partition over racks."""

    @property
    def is_broker(self) -> bool:
        return Role.BROKER in self.roles

    @property
    def is_controller(self) -> bool:
        return Role.CONTROLLER in self.roles

    def listener(self, name: str) -> Listener | None:
        return next((listener for listener in self.listeners if listener.name == name), None)


class SecurityPlan(Frozen):
    """What makes nodes secured ones: where they find their certificates, how users log in."""

    folder: str
    """On the node: the authority's certificate, and the node's key store."""
    mechanism: Mechanism
    principals: tuple[str, ...] = ()
    """What certificates of nodes call them where others issue these; none where the stack does."""
    authorities: tuple[int, ...] = (1,)
    """Those of the stack by number: the first one issues certificates, and nodes trust all."""
    slow_aes: bool = False
    """Whether nodes run in JVMs that do not use the processor's instructions for AES."""

    def mechanisms(self, listener: Listener) -> tuple[Mechanism, ...]:
        """Those by which users log in on ``listener``: earshot itself by the common one."""
        if not listener.protocol.sasl:
            return ()
        return tuple(dict.fromkeys((listener.mechanism or self.mechanism, self.mechanism)))


class ClusterPlan(Frozen):
    """Every node of a cluster with its listeners, which all packages share."""

    kafka_version: str
    inter_broker: ListenerName
    controller: ListenerName
    controller_protocol: Protocol = Protocol.PLAINTEXT
    replication_factor: int = Field(ge=1)
    min_insync_replicas: int = Field(ge=1)
    security: SecurityPlan | None = None
    """None: listeners are what their protocol and `extra` make them."""
    extra: tuple[tuple[str, str], ...] = ()
    nodes: tuple[Node, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _distinct_ids(self) -> Self:
        ids = [node.id for node in self.nodes]
        if len(set(ids)) != len(ids):
            raise ValueError(f"node ids repeat: {sorted(ids)}")
        return self

    def __copy__(self) -> Self:
        copied = super().__copy__()
        for name in ("brokers", "controllers", "_by_id"):  # a copy may be given other nodes
            copied.__dict__.pop(name, None)
        return copied

    @cached_property
    def brokers(self) -> tuple[Node, ...]:
        return tuple(node for node in self.nodes if node.is_broker)

    @cached_property
    def controllers(self) -> tuple[Node, ...]:
        return tuple(node for node in self.nodes if node.is_controller)

    def address_of(self, broker: Node) -> Address:
        """Where the other nodes reach ``broker``: every broker has the inter-broker listener."""
        (address,) = (
            listener.advertised
            for listener in broker.listeners
            if listener.name == self.inter_broker
        )
        return address

    @property
    def listener_names(self) -> tuple[str, ...]:
        """Client listeners in the order of their first appearance."""
        names = dict.fromkeys(
            listener.name
            for node in self.brokers
            for listener in node.listeners
            if listener.name != self.controller
        )
        return tuple(names)

    def node(self, id: int) -> Node:
        """Raises KeyError for an id that no node has."""
        return self._by_id[id]

    @cached_property
    def _by_id(self) -> dict[int, Node]:
        return {node.id: node for node in self.nodes}

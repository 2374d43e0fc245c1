"""The settings of a cluster for all placements: listeners, quorum, replicas, validation."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, Self, TypeVar

from pydantic import AfterValidator, BeforeValidator, Field, field_validator, model_validator

from earshot.config.cluster_addresses import address_problems
from earshot.config.listener import ListenerSpec
from earshot.config.security import (
    SecuritySpec,
    authorizer_problems,
    security_problems,
    token_problems,
)
from earshot.listeners.model import Frozen, ListenerName, Port, whole_number
from earshot.listeners.owned import check_property
from earshot.listeners.problems import refuse, repeated, shown
from earshot.listeners.secrets import INSTEAD, reveals
from earshot.listeners.terms import DEFAULT_KAFKA, Mechanism, Protocol, Scope

MAX_BROKERS = 1000
FIRST_SEPARATE_CONTROLLER = 10_001
"""Node ids of separate controllers start here, so that brokers can grow without a clash."""

_VERSION = re.compile(r"(3\.9|4\.\d+)\.\d+", re.ASCII)
_Version = Annotated[str, Field(pattern=f"^{_VERSION.pattern}$")]
_Properties = dict[str, str | int | float | bool]
_SIZE = re.compile(r"[1-9]\d*[mg]", re.ASCII)


MIN_HEAP, MAX_HEAP = 16, 1024 * 1024
"""Limits in megabytes: Kafka does not start with less, and no machine has more."""


def heap_size(value: str) -> str:
    """``value``, if it is a valid JVM heap size. Raises ValueError otherwise."""
    allowed_text = "a JVM size such as 256m or 1g"
    if not _SIZE.fullmatch(value):
        raise ValueError(f"found {shown(value)}; allowed: {allowed_text}")
    digits = value[:-1]
    megabytes = int(digits) * (1024 if value.endswith("g") else 1) if len(digits) < 10 else math.inf
    if not MIN_HEAP <= megabytes <= MAX_HEAP:
        raise ValueError(f"found {shown(value)}; allowed: {allowed_text}, from 16m to 1024g")
    return value


def shown_ids(ids: Sequence[int]) -> str:
    """``ids`` as text for a message."""
    if len(ids) > 2 and list(ids) == list(range(ids[0], ids[-1] + 1)):
        return f"{ids[0]} to {ids[-1]}"
    return ", ".join(map(str, ids))


def unknown_ids(key: str, kind: str, ids: Iterable[int], allowed: Sequence[int]) -> Iterator[str]:
    """A problem of ``key`` for each of ``ids`` that is not ``allowed``."""
    for id in ids:
        if id not in allowed:
            yield f"{key}: found {kind} {id}; allowed: {shown_ids(allowed)}"


Whole = Annotated[int, BeforeValidator(whole_number)]
"""A whole number; pydantic alone would read `true` as 1."""
Heap = Annotated[str, AfterValidator(heap_size)]
"""The heap of each JVM, as for `-Xmx`."""


L = TypeVar("L", bound=Frozen)


class ControllerSpec(Frozen):
    """The KRaft quorum: on the first brokers, or on separate nodes."""

    mode: Literal["combined", "separate"] = "combined"
    """combined: the first brokers are also controllers; separate: controllers are other nodes."""
    count: Whole | None = Field(default=None, ge=1, le=9)
    """The number of voters, an odd number; it cannot change later. Default: 3 with at least three
    brokers or separate mode, else 1."""
    name: ListenerName = "CONTROLLER"
    """The name of the controllers' listener."""
    port: Port = 29092
    """The port of the controllers' listener. On one machine, the first controller's; the next take
    the next ports."""
    protocol: Protocol = Protocol.PLAINTEXT
    """The security protocol of the controllers' listener. With `security`, the default is SSL."""

    @field_validator("count")
    @classmethod
    def _odd(cls, value: int | None) -> int | None:
        if value is not None and value % 2 == 0:
            raise ValueError(
                f"found {value}; allowed: an odd number, as an even number of voters survives "
                "no more failures than one less"
            )
        return value


class ValidationSpec(Frozen):
    """How the stack validates its listeners after an update."""

    records: Whole = Field(default=3000, ge=0, le=10_000_000)
    """Records that Spark sends in all, in equal shares per listener; 0 validates only with
    `earshot doctor`, without Java."""
    deadline: Whole = Field(default=300, ge=10, le=3600)
    """Seconds for the whole validation."""


def _with_protocol(listener: L, otherwise: Protocol) -> L:
    is_given = "protocol" in listener.model_fields_set
    return listener if is_given else listener.model_copy(update={"protocol": otherwise})


class ClusterSpec(Frozen):
    """The settings that all placements have in common."""

    if TYPE_CHECKING:
        placement: str  # set by each placement

    PLAINTEXT_QUORUM: ClassVar[bool] = False
    """Whether the quorum of a secured cluster may use plain text, as during its introduction."""

    brokers: Whole = Field(default=3, ge=1, le=MAX_BROKERS)
    """The number of brokers. Their ids are 1, 2, 3, and so on."""
    kafka_version: str = DEFAULT_KAFKA
    """The version of Apache Kafka, 3.9.x or 4.x.y, in quotes."""
    listeners: tuple[ListenerSpec, ...] = (
        ListenerSpec(name="INTERNAL", port=19092, scopes=(Scope.INTERNAL,)),
        ListenerSpec(name="EXTERNAL", port=9092, scopes=(Scope.HOST,)),
    )
    """The listeners of all brokers. At least one serves scope internal."""
    inter_broker: ListenerName | None = None
    """The listener that brokers reach each other through. Default: the first of scope internal."""
    controllers: ControllerSpec = ControllerSpec()
    """The KRaft quorum."""
    replication_factor: Whole | None = Field(default=None, ge=1)
    """Replicas of each partition. Default: 3, or the number of brokers if that is smaller."""
    min_insync_replicas: Whole | None = Field(default=None, ge=1)
    """In-sync replicas that a write with acks=all needs. Default: one less than the replication
    factor, at least 1."""
    security: SecuritySpec | None = None
    """TLS certificates, users and ACLs, made by the update. Default: none; listeners have
    their `protocol`."""
    extra: dict[str, str] = Field(default_factory=dict)
    """Further broker properties. Keys that earshot computes and secrets in plain text are
    refused."""
    gate: Literal["required", "off"] = "required"
    """required: brokers change only after their advertised names were approved in this run; off:
    without a check."""
    validation: ValidationSpec = ValidationSpec()
    """How the stack validates its listeners after an update."""

    @field_validator("kafka_version", mode="before", json_schema_input_type=_Version)
    @classmethod
    def _supported(cls, value: object) -> object:
        if not isinstance(value, str) or not _VERSION.fullmatch(value):
            raise ValueError(f"found {shown(value)}; allowed: 3.9.x or 4.x.y, as text in quotes")
        return value

    @field_validator(
        "gate", mode="before", json_schema_input_type=Literal["required", "off", False]
    )
    @classmethod
    def _yaml_off(cls, value: object) -> object:
        # YAML 1.1 reads a bare `off` as false
        return "off" if value is False else value

    @field_validator("extra", mode="before", json_schema_input_type=_Properties)
    @classmethod
    def _free_properties(cls, value: object) -> object:
        if not isinstance(value, Mapping):
            raise ValueError(f"found {shown(value)}; allowed: a map of broker properties")
        problems: list[str] = []
        properties: dict[str, str] = {}
        for key, text in value.items():
            if isinstance(key, str) and reveals(key, str(text)):
                problems.append(f"{key} would hold a secret in clear; allowed: {INSTEAD}")
                continue
            try:
                properties[key] = check_property(key, text)
            except ValueError as error:
                problems.append(str(error))
        refuse(problems)
        return properties

    @field_validator("listeners")
    @classmethod
    def _distinct(cls, value: tuple[ListenerSpec, ...]) -> tuple[ListenerSpec, ...]:
        if not value:
            raise ValueError("found none; allowed: at least one listener")
        repeated_names = repeated(listener.name for listener in value)
        refuse(
            f"{name} is defined {times} times; names are distinct" for name, times in repeated_names
        )
        return value

    @model_validator(mode="after")
    def _secured(self) -> Self:
        """The spec; with `security`, listeners without a protocol in the file get a secure one."""
        if self.security is None:
            return self
        internal = (
            listener.name for listener in self.listeners if Scope.INTERNAL in listener.scopes
        )
        between = self.inter_broker or next(internal, "")
        listeners = tuple(
            _with_protocol(
                listener, Protocol.SSL if listener.name == between else Protocol.SASL_SSL
            )
            for listener in self.listeners
        )
        object.__setattr__(self, "listeners", listeners)
        object.__setattr__(self, "controllers", _with_protocol(self.controllers, Protocol.SSL))
        return self

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        refuse([*self._listener_problems(), *self._quorum_problems(), *self._replica_problems()])
        refuse(list(self._security_problems()))
        return self

    def asks_for_certificates(self, listener: str) -> bool:
        """True if clients of ``listener`` in a secured cluster have a certificate."""
        return any(
            listener_spec.name == listener and listener_spec.asks_for_certificates
            for listener_spec in self.listeners
        )

    def mechanisms(self, security: SecuritySpec) -> tuple[Mechanism, ...]:
        """The mechanisms with which users log in; the one of ``security`` is first."""
        mechanisms = (
            listener.mechanism for listener in self.listeners if listener.mechanism is not None
        )
        return tuple(dict.fromkeys((security.mechanism, *mechanisms)))

    def mechanism(self, listener: str, security: SecuritySpec) -> Mechanism:
        """The mechanism with which users log in on ``listener``."""
        mechanisms = (
            listener_spec.mechanism
            for listener_spec in self.listeners
            if listener_spec.name == listener
        )
        return next(mechanisms, None) or security.mechanism

    def _security_problems(self) -> Iterator[str]:
        yield from token_problems(self.extra)
        if self.security is None:
            for listener in self.listeners:
                for key in ("mechanism", "client_auth"):
                    if (value := getattr(listener, key)) is not None:
                        yield (
                            f"listeners.{listener.name}.{key}: found {value} without `security`; "
                            "allowed: with it; without it `extra` has Kafka's own settings"
                        )
            if self.controllers.protocol is Protocol.PLAINTEXT:
                yield from authorizer_problems(self.controllers.name, self.extra)
            return
        if self.controllers.protocol is Protocol.PLAINTEXT and not self.PLAINTEXT_QUORUM:
            yield (
                f"controllers.protocol: found {Protocol.PLAINTEXT} with `security` and placement "
                f"{self.placement}; allowed: {Protocol.SSL}, where nodes show certificates"
            )
        yield from security_problems(
            self.listeners, self.inter_broker_name, self.controllers.protocol, self.extra
        )

    def _listener_problems(self) -> Iterator[str]:
        names = [listener.name for listener in self.listeners]
        if not any(Scope.INTERNAL in listener.scopes for listener in self.listeners):
            problem = f"none of {', '.join(names)} has the scope internal"
            yield f"listeners: {problem}; the brokers need one to reach each other"
        if self.inter_broker is not None and self.inter_broker not in names:
            yield f"inter_broker: found {self.inter_broker}; allowed: {', '.join(names)}"
        for name, protocol in (
            *((listener.name, listener.protocol) for listener in self.listeners),
            (self.controllers.name, self.controllers.protocol),
        ):
            if name in list(Protocol) and name != protocol:
                yield (
                    f"listener {name}: found protocol {protocol} under the name of another "
                    f"protocol; allowed: protocol {name}, or a name that is not a protocol"
                )
        ports: dict[int, str] = {}
        for listener in self.listeners:
            holder = ports.setdefault(listener.port, listener.name)
            if holder != listener.name:
                yield (
                    f"listeners.{listener.name}.port: found {listener.port}, which "
                    f"{holder} has already"
                )
            key = f"listeners.{listener.name}.advertised"
            yield from unknown_ids(key, "broker", listener.advertised, self.ids)
        if any(Scope.INTERNAL in listener.scopes for listener in self.listeners):
            yield from address_problems(
                self.listeners, self.ids, self.inter_broker_name, self.balanced
            )
        port = self.controllers.port
        if self.controllers.mode == "combined" and port in ports:
            yield f"controllers.port: found {port}, which {ports[port]} has already"

    def _quorum_problems(self) -> Iterator[str]:
        name = self.controllers.name
        if any(listener.name == name for listener in self.listeners):
            yield f"controllers.name: found {name}, which is a client listener's name already"
        if self.controllers.mode == "combined" and self.voters > self.brokers:
            problem = f"found {self.voters} voters on {self.brokers} broker(s)"
            yield f"controllers.count: {problem}; allowed: at most one per broker, or mode separate"

    def _replica_problems(self) -> Iterator[str]:
        if self.replicas > self.brokers:
            problem = f"found {self.replicas} replicas on {self.brokers} broker(s)"
            yield f"replication_factor: {problem}; allowed: at most one per broker"
        if self.min_insync > self.replicas:
            problem = f"found {self.min_insync} of {self.replicas} replicas"
            yield f"min_insync_replicas: {problem}, so that no record could ever be acknowledged"

    @property
    def ids(self) -> Sequence[int]:
        """The ids of the brokers, in their order."""
        return range(1, self.brokers + 1)

    @property
    def balanced(self) -> tuple[str, ...]:
        """The listeners for which the stack creates a balancer."""
        return ()

    @property
    def voters(self) -> int:
        if self.controllers.count is not None:
            return self.controllers.count
        return 3 if self.brokers >= 3 or self.controllers.mode == "separate" else 1

    @property
    def controller_ids(self) -> Sequence[int]:
        if self.controllers.mode == "combined":
            return self.ids[: self.voters]
        first_id = FIRST_SEPARATE_CONTROLLER
        return range(first_id, first_id + self.voters)

    @property
    def node_ids(self) -> tuple[int, ...]:
        """The ids of all nodes, brokers first."""
        return tuple(dict.fromkeys((*self.ids, *self.controller_ids)))

    @property
    def inter_broker_name(self) -> str:
        if self.inter_broker is not None:
            return self.inter_broker
        return next(
            listener.name for listener in self.listeners if Scope.INTERNAL in listener.scopes
        )

    @property
    def replicas(self) -> int:
        return self.replication_factor or min(3, self.brokers)

    @property
    def min_insync(self) -> int:
        return self.min_insync_replicas or max(1, self.replicas - 1)
